//! Which values an expression's inputs had, over the hosts of a rule.

use crate::expression::Expression;
use crate::program::Inputs;
use crate::unit::Unit;
use crate::variable::Variable;
use serde::Serialize;

/// What a rule asked for, and from which to which value it had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// A variable's name, or what else is asked: `any of the links`.
    pub what: String,
    /// The least that it was, in its unit's base; 1 is true, 0 is false. `None`: it was never known.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
    #[serde(skip)]
    unit: Unit,
}

impl Seen {
    /// The inputs of an expression, of which nothing was seen yet.
    pub(crate) fn of(expression: &Expression) -> Vec<Seen> {
        let of_input = |(what, unit)| Seen { what, least: None, most: None, unit };
        expression.input_names().map(of_input).collect()
    }

    /// What was asked for by this name: a variable's, or else something true or false.
    pub fn named(what: &str, range: Option<(f64, f64)>) -> Seen {
        let unit = Variable::named(what).map_or(Unit::Flag, |variable| variable.unit);
        let (least, most) = range.unzip();
        Seen { what: what.to_string(), least, most, unit }
    }

    /// Takes what the inputs were.
    pub(crate) fn take(all: &mut [Seen], inputs: &Inputs) {
        for (seen, value) in all.iter_mut().zip(inputs).filter(|(_, value)| !value.is_nan()) {
            seen.least = seen.least.into_iter().chain([*value]).reduce(f64::min);
            seen.most = seen.most.into_iter().chain([*value]).reduce(f64::max);
        }
    }
}

impl std::fmt::Display for Seen {
    /// `network.max_link_utilization was 0.93 to 0.99`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |value: f64| self.unit.show(value);
        match (self.least, self.most) {
            (Some(least), Some(most)) if least < most && self.unit == Unit::Flag => {
                write!(f, "{} was true and false", self.what)
            }
            (Some(least), Some(most)) if least < most => {
                write!(f, "{} was {} to {}", self.what, show(least), show(most))
            }
            (Some(value), _) => write!(f, "{} was {}", self.what, show(value)),
            _ => write!(f, "{} was not known", self.what),
        }
    }
}
