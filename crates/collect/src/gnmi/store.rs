//! What a target has reported, by entity: the ports, their queues, their neighbours.
//!
//! A table says where an entity's leaves are: a path with keys down to the entity, and the leaves below it. All else that a target reports
//! is not kept.

use super::proto::{Path, PathElem};
use super::value::{Scalar, without_module};
use crate::ReadError;
use crate::text::TEXT_MAX;
use std::collections::BTreeMap;

/// Longest path, elements: the longest that is used has 8.
const PATH_MAX: usize = 32;

/// A target's timestamp. The generation rises when the target's clock was set: times before and after are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) generation: u32,
    /// Nanoseconds.
    pub(super) ns: i64,
}

/// A leaf's last value; `None`: what came was no value.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) value: Option<Scalar>,
    pub(super) stamp: Stamp,
}

/// One level of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    name: String,
    keys: BTreeMap<String, String>,
}

impl Level {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// A path with the notification's prefix before it; `None`: longer than any that is used.
pub(super) fn whole_path(prefix: Option<&Path>, path: Option<&Path>) -> Option<Vec<Level>> {
    let elements = [prefix, path].into_iter().flatten().flat_map(|path| &path.elem);
    let level = |PathElem { name, key }: &PathElem| Level { name: without_module(name).to_string(), keys: key.clone() };
    let levels: Vec<Level> = elements.take(PATH_MAX + 1).map(level).collect();
    (levels.len() <= PATH_MAX).then_some(levels)
}

/// Where the entities of a kind are.
pub(super) struct Table {
    /// What they are, for messages.
    pub(super) entities_are: &'static str,
    /// The path down to an entity: names, each with its key if it is a list.
    pub(super) base: &'static [(&'static str, Option<&'static str>)],
    /// Leaves below it, those with numbers first.
    pub(super) leaves: &'static [&'static str],
    /// How many of them are numbers.
    pub(super) numbers: usize,
    /// Most entities.
    pub(super) most: usize,
}

/// An entity's leaves, by their number in the table.
pub(super) type Leaves = BTreeMap<usize, Leaf>;

/// Entities of a kind, by their keys.
pub(super) struct Store {
    pub(super) table: &'static Table,
    pub(super) entities: BTreeMap<Vec<String>, Leaves>,
}

impl Store {
    pub(super) fn new(table: &'static Table) -> Store {
        Store { table, entities: BTreeMap::new() }
    }

    /// Sets the leaf at `path` and `below` it (names joined by `/`). `None`: the table has no such leaf. Else its number, and whether the
    /// value is newer than the one before, which an older one does not replace.
    pub(super) fn set(
        &mut self,
        path: &[Level],
        below: &str,
        value: Option<&Scalar>,
        stamp: Stamp,
    ) -> Result<Option<(usize, bool)>, ReadError> {
        let base = self.table.base;
        let Some((entity, rest)) = path.split_at_checked(base.len()) else { return Ok(None) };
        let Some(keys) = keys(base, entity).into_iter().flatten().collect::<Option<Vec<String>>>() else {
            return Ok(None);
        };
        if keys.is_empty() {
            return Ok(None);
        }
        let Some(leaf) = self.table.leaves.iter().position(|leaf| is(leaf, rest, below)) else { return Ok(None) };
        if !self.entities.contains_key(&keys) && self.entities.len() >= self.table.most {
            return Err(ReadError::Beyond { what: self.table.entities_are, most: self.table.most });
        }
        let leaves = self.entities.entry(keys).or_default();
        let before = leaves.get(&leaf).map(|leaf| leaf.stamp);
        if before > Some(stamp) {
            return Ok(Some((leaf, false)));
        }
        leaves.insert(leaf, Leaf { value: value.cloned(), stamp });
        Ok(Some((leaf, before < Some(stamp))))
    }

    /// Removes what is at `path` and below it. A key that is not there, or is `*`, stands for all. Returns how many entities it looked at.
    pub(super) fn delete(&mut self, path: &[Level]) -> usize {
        let base = self.table.base;
        let (entity, rest) = path.split_at(path.len().min(base.len()));
        let Some(mut keys) = keys(&base[..entity.len()], entity) else { return 1 };
        let all = base.iter().filter(|(_, key)| key.is_some()).count();
        keys.resize(all, None);
        let table = self.table;
        let remove = |leaves: &mut Leaves| {
            leaves.retain(|leaf, _| !rest.is_empty() && !is_below(table.leaves[*leaf], rest));
            !leaves.is_empty()
        };
        if let Some(exact) = keys.iter().cloned().collect::<Option<Vec<String>>>() {
            if self.entities.get_mut(&exact).is_some_and(|leaves| !remove(leaves)) {
                self.entities.remove(&exact);
            }
            return 1;
        }
        let looked = self.entities.len();
        let matches =
            |entity: &[String]| keys.iter().zip(entity).all(|(key, is)| key.as_ref().is_none_or(|key| key == is));
        self.entities.retain(|entity, leaves| !matches(entity) || remove(leaves));
        looked.max(1)
    }
}

/// The keys of a path along `base`, `None` for each that stands for all. `None`: another path.
fn keys(base: &[(&str, Option<&str>)], path: &[Level]) -> Option<Vec<Option<String>>> {
    let mut keys = Vec::new();
    for ((name, key), level) in base.iter().zip(path) {
        if level.name != *name {
            return None;
        }
        if let Some(key) = key {
            let value = level.keys.get(*key).filter(|value| *value != "*");
            if value.is_some_and(|value| value.len() > TEXT_MAX || value.chars().any(char::is_control)) {
                return None;
            }
            keys.push(value.cloned());
        }
    }
    Some(keys)
}

/// Whether a leaf's path is `rest` followed by `below`.
fn is(leaf: &str, rest: &[Level], below: &str) -> bool {
    let mut names = leaf.split('/');
    let rest = rest.iter().map(|level| level.name.as_str());
    let below = below.split('/').filter(|name| !name.is_empty());
    rest.chain(below).all(|name| names.next() == Some(name)) && names.next().is_none()
}

/// Whether a leaf is at `rest` or below it.
fn is_below(leaf: &str, rest: &[Level]) -> bool {
    let mut names = leaf.split('/');
    rest.iter().all(|level| names.next() == Some(level.name.as_str()))
}
