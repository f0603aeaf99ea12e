//! Expressions: CEL's grammar, read by the `cel` crate; names, units and functions checked here against the table of
//! variables; compiled into a [`Program`].
//!
//! Of CEL the language has: literals, `network.…` and its like, `! - && || ?: < <= > >= == != + - * /`, `exists` and `all`
//! over `links`, `hosts` and `groups`, and the functions `duration("…")`, `rate("…")`, `size("…")`.

use crate::program::{DEPTH_MAX, Entity, Facts, INPUTS_MAX, Input, Inputs, Op, Program, Quantifier};
use crate::unit::Unit;
use crate::variable::{Scope, Variable};
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};
use document::{list, nearest, suggestion};
use std::ops::Range;
use units::{Bytes, Rate, Time};

/// Longest expression, characters: a policy is read by people.
const LENGTH_MAX: usize = 1000;

/// A checked expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    unit: Unit,
    pub(crate) program: Program,
}

/// Where an expression stands: this decides what it may ask for and what type it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `when` and `until`: a condition on the network, or on each host.
    Rule,
    /// A constraint: a condition on the network.
    Network,
    /// A guard: a condition on what a host knows by itself.
    Guard,
    /// An objective: a quantity of the network.
    Objective,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What.
    pub message: String,
    /// Where: bytes of the expression's text.
    pub span: Range<usize>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Expression {
    /// Reads and checks an expression.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn compile(text: &str, place: Place) -> Result<Expression, ExpressionError> {
        if text.chars().count() > LENGTH_MAX {
            let message = format!("this expression is longer than {LENGTH_MAX} characters");
            return Err(ExpressionError { message, span: 0..text.len(), help: None });
        }
        let (root, source) = cel::parser::Parser::new()
            .parse_with_source_info(text)
            .map_err(|errors| syntax(text, errors.errors.first()))?;
        let mut checker =
            Checker { text, source: &source, place, program: Program::default(), depth: 0, variable: None };
        let typed = checker.check(&root)?;
        let whole = 0..text.len();
        match (place, typed.unit) {
            (Place::Objective, Unit::Flag | Unit::Text) => {
                let message = format!("an objective is a quantity; this is {}", typed.unit.described());
                Err(ExpressionError { message, span: whole, help: Some("write for example `network.fct_p99`".into()) })
            }
            (Place::Objective, _) | (_, Unit::Flag) => {
                Ok(Expression { text: text.to_string(), unit: typed.unit, program: checker.program })
            }
            (_, unit) => {
                let message = format!("a condition is true or false; this is {}", unit.described());
                let help = format!("compare it, for example `{} > {}`", text.trim(), unit.example());
                Err(ExpressionError { message, span: whole, help: Some(help) })
            }
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Whether it asks for `host.…` outside of `hosts.exists`.
    pub fn is_per_host(&self) -> bool {
        self.program.inputs.iter().any(|input| input.scope() == Scope::Host)
    }

    /// Every variable that it asks for, also inside `exists` and `all`, each once.
    pub fn variables(&self) -> Vec<&'static Variable> {
        fn collect(program: &Program, into: &mut Vec<&'static Variable>) {
            for input in &program.inputs {
                match input {
                    Input::Variable(variable) | Input::TextIs(variable, _) if !into.contains(variable) => {
                        into.push(variable);
                    }
                    Input::Quantifier(quantifier) => collect(&quantifier.body, into),
                    _ => {}
                }
            }
        }
        let mut variables = Vec::new();
        collect(&self.program, &mut variables);
        variables
    }

    /// The values of its inputs for people: `network.max_link_utilization = 0.82`.
    pub(crate) fn explained(&self, inputs: &Inputs) -> Vec<String> {
        let one = |(input, value): (&Input, &f64)| match input {
            Input::Variable(variable) => format!("{} = {}", variable.name, variable.unit.show(*value)),
            Input::TextIs(variable, text) => format!("{} == \"{text}\" is {}", variable.name, Unit::Flag.show(*value)),
            Input::Quantifier(q) => format!("{}: {}", quantified(q), Unit::Flag.show(*value)),
        };
        self.program.inputs.iter().zip(inputs).map(one).collect()
    }

    /// What its inputs are called, and their units.
    pub(crate) fn input_names(&self) -> impl Iterator<Item = (String, Unit)> {
        self.program.inputs.iter().map(|input| match input {
            Input::Variable(variable) => (variable.name.to_string(), variable.unit),
            Input::TextIs(variable, text) => (format!("{} == \"{text}\"", variable.name), Unit::Flag),
            Input::Quantifier(q) => (quantified(q), Unit::Flag),
        })
    }

    /// What its inputs are for one host.
    pub(crate) fn of_host(&self, facts: Facts<'_>, index: usize, inputs: &mut Inputs) {
        let host = facts.view.own.get(&index).unwrap_or(&facts.view.hosts[index]);
        self.program.entity_inputs(facts, Entity::Host(index, host), inputs);
    }
}

/// `any of the links`.
fn quantified(quantifier: &Quantifier) -> String {
    format!("{} of the {}", if quantifier.all { "all" } else { "any" }, set_name(quantifier.over))
}

/// What the checker knows of a part.
struct Typed {
    unit: Unit,
    /// The value, if it is a number as written.
    constant: Option<f64>,
    /// The text, if it is one.
    text: Option<TextOf>,
}

enum TextOf {
    Constant(String),
    Variable(&'static Variable),
}

impl Typed {
    fn of(unit: Unit) -> Typed {
        Typed { unit, constant: None, text: None }
    }
}

struct Checker<'a> {
    text: &'a str,
    source: &'a SourceInfo,
    place: Place,
    program: Program,
    /// Values on the stack.
    depth: usize,
    /// Inside `exists` and `all`: the name of the variable and what it runs over.
    variable: Option<(&'a str, Scope)>,
}

type Checked = Result<Typed, ExpressionError>;

impl<'a> Checker<'a> {
    fn check(&mut self, node: &'a IdedExpr) -> Checked {
        match &node.expr {
            Expr::Literal(value) => self.literal(node, value),
            Expr::Ident(_) | Expr::Select(_) => self.name(node),
            Expr::Call(call) => self.call(node, call),
            Expr::Comprehension(comprehension) => self.quantifier(node, comprehension),
            Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => self.error(
                node,
                "an expression cannot contain this",
                "a condition consists of variables, constants and operators",
            ),
        }
    }

    fn literal(&mut self, node: &IdedExpr, value: &LiteralValue) -> Checked {
        let number = match value {
            LiteralValue::Boolean(flag) => {
                self.emit(node, Op::Constant(f64::from(*flag.inner())))?;
                return Ok(Typed::of(Unit::Flag));
            }
            LiteralValue::String(text) => {
                let text = Some(TextOf::Constant(text.inner().to_string()));
                return Ok(Typed { unit: Unit::Text, constant: None, text });
            }
            LiteralValue::Int(value) => *value.inner() as f64,
            LiteralValue::UInt(value) => *value.inner() as f64,
            LiteralValue::Double(value) => *value.inner(),
            LiteralValue::Null | LiteralValue::Bytes(_) => {
                return self.error(node, "an expression cannot contain this", "write a number, a text or a variable");
            }
        };
        self.emit(node, Op::Constant(number))?;
        Ok(Typed { unit: Unit::Number, constant: Some(number), text: None })
    }

    fn name(&mut self, node: &'a IdedExpr) -> Checked {
        let Some(written) = dotted(&node.expr) else {
            return self.error(node, "only a variable has fields", "`opentcp policy check --list` shows the variables");
        };
        let (root, field) = written.split_once('.').unwrap_or((&written, ""));
        // The loop's variable stands for what it runs over.
        let (full, scope) = match self.variable {
            Some((name, scope)) if name == root => (format!("{}.{field}", owner(scope)), Some(scope)),
            _ => (written.clone(), None),
        };
        let Some(variable) = Variable::named(&full) else { return self.unknown(node, &written, scope) };
        if scope.is_none() {
            self.may_ask(node, variable)?;
        }
        if variable.unit == Unit::Text {
            return Ok(Typed { unit: Unit::Text, constant: None, text: Some(TextOf::Variable(variable)) });
        }
        self.input(node, Input::Variable(variable))?;
        Ok(Typed::of(variable.unit))
    }

    /// Whether a variable that is not a loop's may be asked for here.
    fn may_ask(&self, node: &IdedExpr, variable: &'static Variable) -> Result<(), ExpressionError> {
        let name = variable.name;
        let (message, help) = match (variable.scope(), self.place) {
            (Scope::Link | Scope::Group, _) => {
                let set = set_name(variable.scope());
                (
                    format!("`{name}` exists once for each member of `{set}`"),
                    format!("write for example `{set}.exists(x, x.{} …)`", variable.field()),
                )
            }
            (Scope::Host, Place::Network | Place::Objective) => (
                format!("`{name}` belongs to one host; this expression is evaluated for the whole network"),
                format!("write `hosts.exists(h, h.{} …)`, or use a variable of `network.…`", variable.field()),
            ),
            (Scope::Host, _) if self.variable.is_some() => (
                format!("`{name}` cannot be used inside `exists` and `all`"),
                "inside, use `network.…`, `clock.…` and the variable that the macro declares".to_string(),
            ),
            (_, Place::Guard) if !variable.at_agent => {
                let known = Variable::all().iter().filter(|variable| variable.at_agent).map(|variable| variable.name);
                (
                    format!("a guard cannot use `{name}`: the host checks it by itself"),
                    format!("a guard can use {}", list(known)),
                )
            }
            _ => return Ok(()),
        };
        Err(ExpressionError { message, span: self.span(node), help: Some(help) })
    }

    fn unknown(&self, node: &IdedExpr, written: &str, scope: Option<Scope>) -> Checked {
        let listing = "`opentcp policy check --list` shows all";
        if let Some(scope) = scope {
            let fields: Vec<&str> =
                Variable::all().iter().filter(|v| v.scope() == scope).map(Variable::field).collect();
            let field = written.split_once('.').map_or("", |(_, field)| field);
            let message = format!("a {} has no `{field}`", scope.name());
            return self.error(node, &message, &suggestion(field, &fields));
        }
        let help = match nearest(written, Variable::all().iter().map(|variable| variable.name)) {
            Some(name) => format!("did you mean `{name}`? {listing}"),
            None => format!("variables begin with `network.`, `clock.` or `host.`; {listing}"),
        };
        self.error(node, &format!("there is no variable `{written}`"), &help)
    }

    fn call(&mut self, node: &'a IdedExpr, call: &'a CallExpr) -> Checked {
        match (call.func_name.as_str(), &call.target, &call.args[..]) {
            (operators::LOGICAL_AND, None, [a, b]) => self.logic(node, [a, b], Op::And),
            (operators::LOGICAL_OR, None, [a, b]) => self.logic(node, [a, b], Op::Or),
            (operators::LOGICAL_NOT, None, [a]) => {
                self.flag(a)?;
                self.emit(node, Op::Not)?;
                Ok(Typed::of(Unit::Flag))
            }
            (operators::LESS, None, [a, b]) => self.comparison(node, [a, b], Op::Less),
            (operators::LESS_EQUALS, None, [a, b]) => self.comparison(node, [a, b], Op::LessOrEqual),
            // a > b is b < a: so is its operation
            (operators::GREATER, None, [a, b]) => self.comparison(node, [b, a], Op::Less),
            (operators::GREATER_EQUALS, None, [a, b]) => self.comparison(node, [b, a], Op::LessOrEqual),
            (operators::EQUALS, None, [a, b]) => self.comparison(node, [a, b], Op::Equal),
            (operators::NOT_EQUALS, None, [a, b]) => {
                self.comparison(node, [a, b], Op::Equal)?;
                self.emit(node, Op::Not)?;
                Ok(Typed::of(Unit::Flag))
            }
            (operators::ADD, None, [a, b]) => self.sum(node, [a, b], Op::Add),
            (operators::SUBSTRACT, None, [a, b]) => self.sum(node, [a, b], Op::Subtract),
            (operators::MULTIPLY, None, [a, b]) => self.product(node, [a, b]),
            (operators::DIVIDE, None, [a, b]) => self.quotient(node, [a, b]),
            (operators::NEGATE, None, [a]) => self.negation(node, a),
            (operators::CONDITIONAL, None, [condition, a, b]) => {
                self.flag(condition)?;
                let unit = self.same(node, [a, b])?;
                self.emit(node, Op::Select)?;
                Ok(Typed::of(unit))
            }
            (name @ ("duration" | "rate" | "size"), None, [argument]) => self.quantity(node, name, argument),
            (name, _, _) => self.no_function(node, name),
        }
    }

    fn no_function(&self, node: &IdedExpr, name: &str) -> Checked {
        const FUNCTIONS: [&str; 3] = ["duration", "rate", "size"];
        let message = match name {
            operators::MODULO => "`%` is not part of this language".to_string(),
            operators::INDEX => "`[…]` is not part of this language".to_string(),
            operators::IN => "`in` is not part of this language".to_string(),
            _ => format!("there is no function `{name}` of this form"),
        };
        let help = match name {
            operators::MODULO => "write a share as a fraction: 0.70 for 70 %".to_string(),
            operators::IN => "write `a == \"x\" || a == \"y\"`".to_string(),
            operators::INDEX => "write `links.exists(l, …)` or `links.all(l, …)`".to_string(),
            _ => match nearest(name, FUNCTIONS) {
                Some(near) if near != name => format!("did you mean `{near}(\"…\")`?"),
                _ => "functions are `duration(\"2 ms\")`, `rate(\"1 Gbit/s\")`, `size(\"64 kB\")`, `links.exists(l, …)` and `links.all(l, …)`".to_string(),
            },
        };
        self.error(node, &message, &help)
    }

    fn logic(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2], op: Op) -> Checked {
        self.flag(a)?;
        self.flag(b)?;
        self.emit(node, op)?;
        Ok(Typed::of(Unit::Flag))
    }

    /// A part that must be true or false.
    fn flag(&mut self, node: &'a IdedExpr) -> Result<(), ExpressionError> {
        match self.check(node)?.unit {
            Unit::Flag => Ok(()),
            unit => {
                let message = format!("this is {}, where a condition is expected", unit.described());
                let help = format!("compare it, for example with `> {}`", unit.example());
                self.error(node, &message, &help).map(|_| ())
            }
        }
    }

    fn comparison(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2], op: Op) -> Checked {
        let (left, right) = (self.check(a)?, self.check(b)?);
        if left.unit == Unit::Text && right.unit == Unit::Text {
            return self.texts(node, left, right, op);
        }
        let unit = self.agree(node, (a, &left), (b, &right), "compare")?;
        if unit == Unit::Flag && op != Op::Equal {
            return self.error(node, "true and false have no order", "write `a && b`, `a || b` or `a == b`");
        }
        self.emit(node, op)?;
        Ok(Typed::of(Unit::Flag))
    }

    fn texts(&mut self, node: &IdedExpr, left: Typed, right: Typed, op: Op) -> Checked {
        if op != Op::Equal {
            return self.error(node, "texts have no order", "compare them with `==` or `!=`");
        }
        match (left.text, right.text) {
            (Some(TextOf::Variable(variable)), Some(TextOf::Constant(text)))
            | (Some(TextOf::Constant(text)), Some(TextOf::Variable(variable))) => {
                self.input(node, Input::TextIs(variable, text))?;
                Ok(Typed::of(Unit::Flag))
            }
            _ => self.error(
                node,
                "one side is a variable, the other a text in quotes",
                "write for example `host.rack == \"rack-1\"`",
            ),
        }
    }

    fn sum(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2], op: Op) -> Checked {
        let (left, right) = (self.check(a)?, self.check(b)?);
        let unit = self.agree(node, (a, &left), (b, &right), if op == Op::Add { "add" } else { "subtract" })?;
        if matches!(unit, Unit::Flag) {
            return self.error(node, "true and false are not numbers", "write `a && b` or `a || b`");
        }
        self.emit(node, op)?;
        let constant = left.constant.zip(right.constant).map(|(a, b)| if op == Op::Add { a + b } else { a - b });
        Ok(Typed { unit, constant, text: None })
    }

    fn product(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2]) -> Checked {
        let (left, right) = (self.check(a)?, self.check(b)?);
        let plain = |unit| matches!(unit, Unit::Number | Unit::Fraction);
        let unit = match (left.unit, right.unit) {
            (Unit::Flag | Unit::Text, _) | (_, Unit::Flag | Unit::Text) => None,
            (one, other) if plain(one) => Some(if other == Unit::Fraction { one } else { other }),
            (one, other) if plain(other) => Some(one),
            _ => None,
        };
        let Some(unit) = unit else {
            let message = format!("cannot multiply {} by {}", left.unit.described(), right.unit.described());
            return self.error(node, &message, "one factor is a plain number or a fraction");
        };
        self.emit(node, Op::Multiply)?;
        Ok(Typed { unit, constant: left.constant.zip(right.constant).map(|(a, b)| a * b), text: None })
    }

    fn quotient(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2]) -> Checked {
        let (left, right) = (self.check(a)?, self.check(b)?);
        let unit = match (left.unit, right.unit) {
            (Unit::Flag | Unit::Text, _) | (_, Unit::Flag | Unit::Text) => None,
            (one, other) if one == other => Some(Unit::Number),
            (one, Unit::Number | Unit::Fraction) => Some(one),
            _ => None,
        };
        let Some(unit) = unit else {
            let message = format!("cannot divide {} by {}", left.unit.described(), right.unit.described());
            return self.error(node, &message, "divide by a plain number, or by something of the same unit");
        };
        if right.constant == Some(0.0) {
            return self.error(b, "this divides by zero", "the result would never be known");
        }
        self.emit(node, Op::Divide)?;
        Ok(Typed { unit, constant: left.constant.zip(right.constant).map(|(a, b)| a / b), text: None })
    }

    fn negation(&mut self, node: &IdedExpr, a: &'a IdedExpr) -> Checked {
        let typed = self.check(a)?;
        if matches!(typed.unit, Unit::Flag | Unit::Text) {
            let message = format!("`-` before {}", typed.unit.described());
            return self.error(node, &message, "write `!` for the opposite of a condition");
        }
        self.emit(node, Op::Negate)?;
        Ok(Typed { unit: typed.unit, constant: typed.constant.map(|value| -value), text: None })
    }

    /// The unit of two parts that must have one.
    fn same(&mut self, node: &IdedExpr, [a, b]: [&'a IdedExpr; 2]) -> Result<Unit, ExpressionError> {
        let (left, right) = (self.check(a)?, self.check(b)?);
        self.agree(node, (a, &left), (b, &right), "mix")
    }

    /// The unit that two parts share; a bare number takes the other's, if that has none of its own to be written.
    fn agree(
        &self,
        node: &IdedExpr,
        (a, left): (&IdedExpr, &Typed),
        (b, right): (&IdedExpr, &Typed),
        verb: &str,
    ) -> Result<Unit, ExpressionError> {
        if left.unit == right.unit && left.unit != Unit::Text {
            return Ok(left.unit);
        }
        let sides = [((a, left), right), ((b, right), left)];
        for ((part, typed), other) in sides {
            let Some(value) = typed.constant.filter(|_| typed.unit == Unit::Number) else { continue };
            if other.unit == Unit::Fraction && verb == "compare" && !(0.0..=1.0).contains(&value) {
                let help = if (1.0..=100.0).contains(&value) {
                    format!("write {} for {value} %", value / 100.0)
                } else {
                    "compare it with a number from 0 to 1".to_string()
                };
                let message = format!("a fraction is from 0 to 1; it is never {value}");
                return Err(ExpressionError { message, span: self.span(part), help: Some(help) });
            }
            if other.unit.takes_literals() {
                return Ok(other.unit);
            }
            if matches!(other.unit, Unit::Duration | Unit::Rate | Unit::Size) {
                let message =
                    format!("`{}` has no unit, where {} is expected", self.words(part), other.unit.described());
                let help = format!("write for example `{}`", other.unit.example());
                return Err(ExpressionError { message, span: self.span(part), help: Some(help) });
            }
        }
        // a quotient of two counts is a share
        if let (Unit::Fraction, Unit::Number) | (Unit::Number, Unit::Fraction) = (left.unit, right.unit) {
            return Ok(Unit::Fraction);
        }
        let message = format!("cannot {verb} {} with {}", left.unit.described(), right.unit.described());
        let help = format!(
            "write {1} on the other side of `{0}`, such as `{2}`",
            self.words(a),
            left.unit.described(),
            left.unit.example()
        );
        Err(ExpressionError { message, span: self.span(node), help: Some(help) })
    }

    /// `duration("2 ms")`.
    fn quantity(&mut self, node: &IdedExpr, name: &str, argument: &'a IdedExpr) -> Checked {
        let Expr::Literal(LiteralValue::String(text)) = &argument.expr else {
            let message = format!("`{name}` takes a text in quotes");
            return self.error(argument, &message, &format!("write for example `{}`", unit_of(name).example()));
        };
        let text = text.inner();
        let value = match name {
            "duration" => text.parse::<Time>().map(Time::as_secs_f64),
            "rate" => text.parse::<Rate>().map(|rate| rate.as_bps() as f64),
            _ => text.parse::<Bytes>().map(|bytes| bytes.get() as f64),
        };
        match value {
            Ok(value) => {
                self.emit(node, Op::Constant(value))?;
                Ok(Typed::of(unit_of(name)))
            }
            Err(error) => {
                self.error(argument, &error.to_string(), &format!("write for example `{}`", unit_of(name).example()))
            }
        }
    }

    /// `links.exists(l, …)`, which the parser has expanded into a loop.
    fn quantifier(&mut self, node: &'a IdedExpr, loop_: &'a ComprehensionExpr) -> Checked {
        let all = match (&loop_.accu_init.expr, &loop_.loop_step.expr) {
            (Expr::Literal(LiteralValue::Boolean(init)), Expr::Call(step)) => {
                match (init.inner(), step.func_name.as_str()) {
                    (true, operators::LOGICAL_AND) => Some((true, step)),
                    (false, operators::LOGICAL_OR) => Some((false, step)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((all, [_, body])) = all.map(|(all, step)| (all, &step.args[..])) else {
            return self.error(
                node,
                "of CEL's macros, only `exists` and `all` are supported",
                "write for example `links.exists(l, l.utilization > 0.9)`",
            );
        };
        let sets = ["links", "hosts", "groups"];
        let over = match &loop_.iter_range.expr {
            Expr::Ident(name) => match name.as_str() {
                "links" => Scope::Link,
                "hosts" => Scope::Host,
                "groups" => Scope::Group,
                _ => {
                    return self.error(
                        &loop_.iter_range,
                        &format!("there is no list `{name}`"),
                        &suggestion(name, &sets),
                    );
                }
            },
            _ => return self.error(&loop_.iter_range, "this is not a list", &format!("lists are {}", list(sets))),
        };
        if self.variable.is_some() {
            return self.error(node, "this macro is inside another one", "`exists` and `all` cannot be nested");
        }
        if self.place == Place::Guard {
            return self.error(
                node,
                "a guard cannot use `links`, `hosts` or `groups`: the host checks it by itself",
                "use variables of `host.…`",
            );
        }
        let variable = Some((loop_.iter_var.as_str(), over));
        let mut inner = Checker {
            program: Program::default(),
            depth: 0,
            variable,
            text: self.text,
            source: self.source,
            place: self.place,
        };
        inner.flag(body)?;
        let quantifier = Quantifier { over, all, body: inner.program };
        self.input(node, Input::Quantifier(Box::new(quantifier)))?;
        Ok(Typed::of(Unit::Flag))
    }

    /// Puts an input on the stack; the same one has one place.
    fn input(&mut self, node: &IdedExpr, input: Input) -> Result<(), ExpressionError> {
        let inputs = &mut self.program.inputs;
        let index = inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            inputs.push(input);
            inputs.len() - 1
        });
        if index >= INPUTS_MAX {
            let message = format!("this expression uses more than {INPUTS_MAX} variables and lists");
            return self.error(node, &message, "split it into two rules").map(|_| ());
        }
        self.emit(node, Op::Input(index as u8))
    }

    fn emit(&mut self, node: &IdedExpr, op: Op) -> Result<(), ExpressionError> {
        match op {
            Op::Constant(_) | Op::Input(_) => self.depth += 1,
            Op::Not | Op::Negate => {}
            Op::Select => self.depth -= 2,
            _ => self.depth -= 1,
        }
        if self.depth > DEPTH_MAX {
            return self.error(node, "this expression is nested too deeply", "split it into two rules").map(|_| ());
        }
        self.program.ops.push(op);
        Ok(())
    }

    fn error(&self, node: &IdedExpr, message: &str, help: &str) -> Checked {
        Err(ExpressionError { message: message.to_string(), span: self.span(node), help: Some(help.to_string()) })
    }

    fn words(&self, node: &IdedExpr) -> &str {
        &self.text[self.span(node)]
    }

    /// What a part covers: whole characters of the text.
    fn span(&self, node: &IdedExpr) -> Range<usize> {
        let (from, to) = self.bytes(node);
        let begins = |at: &usize| self.text.is_char_boundary(*at);
        let from = (0..=from.min(self.text.len())).rev().find(begins).unwrap_or(0);
        from..(to..self.text.len()).find(begins).unwrap_or(self.text.len()).max(from)
    }

    /// The same as the parser counts, in bytes; where a function ends is a guess.
    fn bytes(&self, node: &IdedExpr) -> (usize, usize) {
        let (start, end) =
            self.source.offset_for(node.id).map_or((0, 0), |(start, stop)| (start as usize, stop as usize + 1));
        let over = |parts: &[&IdedExpr]| {
            parts.iter().map(|part| self.bytes(part)).fold((start, end), |(a, b), (c, d)| (a.min(c), b.max(d)))
        };
        match &node.expr {
            Expr::Select(select) => (self.bytes(&select.operand).0, end + select.field.len()),
            Expr::Call(call) => {
                let parts: Vec<&IdedExpr> = call.args.iter().chain(call.target.as_deref()).collect();
                let (from, to) = over(&parts);
                // The place of a function is its parenthesis; its name stands before, and the other parenthesis after.
                let is_function = call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
                if is_function { (from.saturating_sub(call.func_name.len()), to + 1) } else { (from, to) }
            }
            Expr::Comprehension(loop_) => over(&[&loop_.iter_range]),
            _ => (start, end),
        }
    }
}

fn unit_of(function: &str) -> Unit {
    match function {
        "duration" => Unit::Duration,
        "rate" => Unit::Rate,
        _ => Unit::Size,
    }
}

fn owner(scope: Scope) -> &'static str {
    match scope {
        Scope::Network => "network",
        Scope::Link => "link",
        Scope::Host => "host",
        Scope::Group => "group",
    }
}

fn set_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Link => "links",
        Scope::Group => "groups",
        Scope::Host | Scope::Network => "hosts",
    }
}

/// `a.b.c` of a chain of names.
fn dotted(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", dotted(&select.operand.expr)?, select.field)),
        _ => None,
    }
}

/// The byte at which the character of this number begins.
fn byte_at(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
}

/// The parser's first error in our words.
fn syntax(text: &str, error: Option<&cel::parser::ParseError>) -> ExpressionError {
    let (line, column) = error.map_or((1, 1), |error| (error.pos.0.max(1) as usize, error.pos.1.max(1) as usize));
    let message = error.map_or("", |error| error.msg.as_str());
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let start = before + byte_at(&text[before..], column - 1);
    let rest = &text[start..];
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '.').collect();
    let sign: String = if word.is_empty() { rest.chars().take(1).collect() } else { word };
    let percent =
        text.char_indices().any(|(i, c)| c == '%' && text[..i].trim_end().ends_with(|c: char| c.is_ascii_digit()));
    let number_before = text[..start].trim_end().ends_with(|c: char| c.is_ascii_digit());
    let (message, help) = if text.trim().is_empty() {
        ("the expression is empty".to_string(), "write for example `network.max_link_utilization < 0.70`".to_string())
    } else if percent {
        (
            "there are no percentages in expressions".to_string(),
            "write a share as a fraction: 0.70 for 70 %".to_string(),
        )
    } else if message.contains("recursion") || message.contains("depth") {
        ("this expression is nested too deeply".to_string(), "split it into two rules".to_string())
    } else if sign.is_empty() {
        (
            "the expression is incomplete".to_string(),
            "an operator needs a value on both sides, and each parenthesis must be closed".to_string(),
        )
    } else if sign == "=" {
        ("`=` is not part of the language".to_string(), "compare with `==`".to_string())
    } else if matches!(sign.as_str(), "and" | "or" | "not") {
        (format!("`{sign}` is not part of the language"), "write `&&`, `||` or `!`".to_string())
    } else if number_before && sign.starts_with(|c: char| c.is_ascii_alphabetic()) {
        (
            format!("`{sign}` does not belong here"),
            "a quantity is written `duration(\"2 ms\")`, `rate(\"1 Gbit/s\")` or `size(\"64 kB\")`".to_string(),
        )
    } else {
        (format!("`{sign}` does not belong here"), "this is not valid CEL".to_string())
    };
    ExpressionError { message, span: start..start + sign.len(), help: Some(help) }
}
