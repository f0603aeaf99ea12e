//! A value of a target: the same counter comes as an integer, a number, a text (RFC 7951 writes 64-bit integers so), or within JSON.

use super::proto::TypedValue;
use super::proto::typed_value::Value;
use crate::text::clean;

/// Deepest JSON that is looked into: a container of counters has two levels.
const JSON_DEPTH: usize = 8;
/// Longest path within JSON, elements together, bytes.
const JSON_PATH_MAX: usize = 255;

/// A value without structure.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Unsigned(u64),
    Real(f64),
    Text(String),
}

impl Scalar {
    /// As a counter: a whole number from 0 to 2^64 − 1.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Scalar::Unsigned(number) => Some(*number),
            Scalar::Real(real) => whole(*real),
            Scalar::Text(text) => text.parse().ok().or_else(|| text.parse().ok().and_then(whole)),
        }
    }

    /// As a text, without the module's name that RFC 7951 puts before identities.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A mean may have a fraction; a counter has none, and is exact up to 2^53 in a number of JSON or a double.
fn whole(real: f64) -> Option<u64> {
    (real.is_finite() && (0.0..18_446_744_073_709_551_616.0).contains(&real)).then_some(real as u64)
}

/// Calls `take` with each scalar of a value and its path below the value's own (names joined by `/`; empty: the value itself). False: it is
/// no value that can be read.
pub(super) fn scalars(value: &TypedValue, take: &mut impl FnMut(&str, Scalar)) -> bool {
    let scalar = match &value.value {
        Some(Value::JsonVal(json) | Value::JsonIetfVal(json)) => return in_json(json, take),
        Some(value) => plain(value),
        None => None,
    };
    match scalar {
        Some(scalar) => take("", scalar),
        None => return false,
    }
    true
}

fn plain(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::UintVal(number) => Scalar::Unsigned(*number),
        Value::IntVal(number) => Scalar::Unsigned(u64::try_from(*number).ok()?),
        Value::FloatVal(real) => Scalar::Real(f64::from(*real)),
        Value::DoubleVal(real) => Scalar::Real(*real),
        // 18 digits are the most that YANG has
        Value::DecimalVal(decimal) if decimal.precision <= 18 => {
            Scalar::Real(decimal.digits as f64 / 10f64.powi(decimal.precision as i32))
        }
        Value::StringVal(text) | Value::AsciiVal(text) => Scalar::Text(clean(text.as_bytes())),
        Value::BoolVal(flag) => Scalar::Text(flag.to_string()),
        Value::LeaflistVal(list) => match &list.element[..] {
            // one value, or several of a kind of which none is read here
            [TypedValue { value: Some(only) }] if !matches!(only, Value::LeaflistVal(_)) => plain(only)?,
            _ => return None,
        },
        _ => return None,
    })
}

fn in_json(json: &[u8], take: &mut impl FnMut(&str, Scalar)) -> bool {
    let Ok(value) = serde_json::from_slice(json) else { return false };
    walk(&value, &mut String::new(), JSON_DEPTH, take)
}

fn walk(value: &serde_json::Value, path: &mut String, depth: usize, take: &mut impl FnMut(&str, Scalar)) -> bool {
    use serde_json::Value as Json;
    let scalar = match value {
        Json::Number(number) => match number.as_u64() {
            Some(number) => Scalar::Unsigned(number),
            None => Scalar::Real(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Scalar::Text(clean(text.as_bytes())),
        Json::Bool(flag) => Scalar::Text(flag.to_string()),
        Json::Array(list) => match &list[..] {
            [only] if !only.is_array() && !only.is_object() => return walk(only, path, depth, take),
            _ => return false,
        },
        Json::Object(members) if depth > 0 => {
            let mut all = true;
            for (name, member) in members {
                let before = path.len();
                let name = without_module(name);
                if before + name.len() < JSON_PATH_MAX {
                    if before > 0 {
                        path.push('/');
                    }
                    path.push_str(name);
                    // what is not read is often a list or a container of its own
                    all &= walk(member, path, depth - 1, take) || member.is_array() || member.is_object();
                }
                path.truncate(before);
            }
            return all;
        }
        Json::Object(_) | Json::Null => return false,
    };
    take(path, scalar);
    true
}

/// `oper-status` of `openconfig-interfaces:oper-status`.
pub(super) fn without_module(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}
