//! A checked expression, ready to run: inputs that are read from the view, and operations on a small stack.
//!
//! Everything is an f64 and NaN is "not known". What is not known stays so through arithmetic and comparisons; `&&` and `||`
//! give an answer where one side alone decides, as CEL has it for errors. Nothing is allocated.

use crate::ports::Ports;
use crate::variable::{Read, Scope, Variable};
use crate::view::{FlowGroup, Host, Link, NetworkView};

/// Most inputs of an expression.
pub(crate) const INPUTS_MAX: usize = 32;
/// Deepest stack of an expression.
pub(crate) const DEPTH_MAX: usize = 64;

/// Values of the inputs.
pub(crate) type Inputs = [f64; INPUTS_MAX];

/// One operation. A binary one pops two values, the second from the top of the stack, and pushes one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Constant(f64),
    Input(u8),
    Not,
    Negate,
    And,
    Or,
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Equal,
    /// condition, then, else
    Select,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Variable(&'static Variable),
    /// Whether a text is this one.
    TextIs(&'static Variable, String),
    Quantifier(Box<Quantifier>),
}

/// `links.exists(l, …)` and its like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantifier {
    pub over: Scope,
    /// `all`; else `exists`
    pub all: bool,
    pub body: Program,
}

/// What inputs are read from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub view: &'a NetworkView,
    /// `host.every_hop_marks` of each host; empty where no rule asks.
    pub marks: &'a [f64],
    /// The links to hosts; empty where nothing asks.
    pub ports: &'a Ports,
}

/// Whose variables are read.
#[derive(Clone, Copy)]
pub(crate) enum Entity<'a> {
    Network,
    Link(&'a Link),
    /// With its index in the view.
    Host(usize, &'a Host),
    Group(&'a FlowGroup),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Program {
    pub ops: Vec<Op>,
    pub inputs: Vec<Input>,
}

impl Input {
    /// Whose value it is.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Input::Variable(variable) | Input::TextIs(variable, _) => variable.scope(),
            Input::Quantifier(_) => Scope::Network,
        }
    }

    fn read(&self, facts: Facts<'_>, entity: Entity<'_>) -> f64 {
        match self {
            Input::Variable(variable) => read_number(variable, facts, entity),
            Input::TextIs(variable, text) => match (variable.read, entity) {
                (Read::LinkText(read), Entity::Link(link)) => f64::from(read(link) == text),
                (Read::HostText(read), Entity::Host(_, host)) => f64::from(read(host) == text),
                (Read::GroupText(read), Entity::Group(group)) => f64::from(read(group) == text),
                _ => f64::NAN,
            },
            Input::Quantifier(quantifier) => quantifier.evaluate(facts),
        }
    }
}

fn read_number(variable: &Variable, facts: Facts<'_>, entity: Entity<'_>) -> f64 {
    match (variable.read, entity) {
        (Read::Network(read), _) => read(facts.view),
        (Read::Link(read), Entity::Link(link)) => read(link),
        (Read::Host(read), Entity::Host(_, host)) => read(host),
        (Read::Group(read), Entity::Group(group)) => read(group),
        (Read::EveryHopMarks, Entity::Host(index, _)) => facts.marks.get(index).copied().unwrap_or(f64::NAN),
        (Read::Port(read), Entity::Host(index, _)) => {
            let links = facts.ports.of(index).filter_map(|link| facts.view.links.get(link));
            links.filter_map(read).fold(f64::NAN, f64::max)
        }
        _ => f64::NAN,
    }
}

impl Quantifier {
    fn evaluate(&self, facts: Facts<'_>) -> f64 {
        let mut inputs = self.body.network_inputs(facts);
        let view = facts.view;
        match self.over {
            Scope::Link => self.fold(view.links.iter().map(Entity::Link), facts, &mut inputs),
            Scope::Host => {
                self.fold(view.hosts.iter().enumerate().map(|(i, host)| Entity::Host(i, host)), facts, &mut inputs)
            }
            Scope::Group => self.fold(view.groups.iter().map(Entity::Group), facts, &mut inputs),
            Scope::Network => f64::NAN,
        }
    }

    fn fold<'a>(&self, entities: impl Iterator<Item = Entity<'a>>, facts: Facts<'_>, inputs: &mut Inputs) -> f64 {
        let mut result = f64::from(self.all);
        for entity in entities {
            self.body.entity_inputs(facts, entity, inputs);
            let value = self.body.run(inputs);
            // one that is true decides `exists`, one that is false `all`
            if if self.all { value == 0.0 } else { value > 0.0 } {
                return value;
            }
            if value.is_nan() {
                result = f64::NAN;
            }
        }
        result
    }
}

impl Program {
    /// The inputs that are the same for every entity, read once.
    pub(crate) fn network_inputs(&self, facts: Facts<'_>) -> Inputs {
        let mut inputs = [f64::NAN; INPUTS_MAX];
        for (value, input) in inputs.iter_mut().zip(&self.inputs) {
            if input.scope() == Scope::Network {
                *value = input.read(facts, Entity::Network);
            }
        }
        inputs
    }

    /// The inputs of one entity.
    pub(crate) fn entity_inputs(&self, facts: Facts<'_>, entity: Entity<'_>, inputs: &mut Inputs) {
        for (value, input) in inputs.iter_mut().zip(&self.inputs) {
            if input.scope() != Scope::Network {
                *value = input.read(facts, entity);
            }
        }
    }

    /// Evaluates; NaN if what is known does not decide it.
    pub(crate) fn run(&self, inputs: &Inputs) -> f64 {
        let mut stack = [0.0; DEPTH_MAX];
        let mut top = 0;
        for op in &self.ops {
            match *op {
                Op::Constant(value) => {
                    stack[top] = value;
                    top += 1;
                }
                Op::Input(index) => {
                    stack[top] = inputs[usize::from(index)];
                    top += 1;
                }
                Op::Not => stack[top - 1] = 1.0 - stack[top - 1],
                Op::Negate => stack[top - 1] = -stack[top - 1],
                Op::Select => {
                    top -= 2;
                    let condition = stack[top - 1];
                    stack[top - 1] = match condition {
                        c if c.is_nan() => f64::NAN,
                        0.0 => stack[top + 1],
                        _ => stack[top],
                    };
                }
                binary_op => {
                    top -= 1;
                    stack[top - 1] = binary(binary_op, stack[top - 1], stack[top]);
                }
            }
        }
        stack[0]
    }
}

#[allow(clippy::float_cmp, reason = "equality of CEL is exact")]
fn binary(op: Op, a: f64, b: f64) -> f64 {
    // a side that decides alone comes first
    match op {
        Op::And if a == 0.0 || b == 0.0 => return 0.0,
        Op::Or if a > 0.0 || b > 0.0 => return 1.0,
        _ if a.is_nan() || b.is_nan() => return f64::NAN,
        _ => {}
    }
    match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide if b == 0.0 => f64::NAN,
        Op::Divide => a / b,
        Op::Less => f64::from(a < b),
        Op::LessOrEqual => f64::from(a <= b),
        Op::Equal => f64::from(a == b),
        // both sides are known, and neither decides alone
        Op::And => 1.0,
        _ => 0.0,
    }
}
