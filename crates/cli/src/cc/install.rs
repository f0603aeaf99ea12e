//! `opentcp cc load` and `unload`: algorithms in the running kernel.

use crate::failure::Failure;
use crate::terminal::{note, print};
use congestion::compile_for_bpf;
use kernel::{Change, Kernel, NAME_PREFIX, PinError, Pins, Prepared, not_pinned, pinned};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

/// The name that means every algorithm.
const ALL: &str = "all";

/// Loads algorithms. Everything is compiled and verified before anything changes.
///
/// # Errors
/// Not an algorithm, refused, or a kernel without support (bad input); a failure afterwards.
pub fn load(wanted: &[String]) -> Result<(), Failure> {
    let mut objects = Vec::new();
    for word in wanted {
        if word == ALL {
            objects.extend(kernel::builtins().map(Object::builtin).collect::<Result<Vec<_>, _>>()?);
        } else if is_file(word) {
            objects.push(Object::file(word)?);
        } else {
            objects.push(Object::builtin(word)?);
        }
    }
    refuse_twice(&objects)?;
    let kernel = kernel()?;
    let prepared: Vec<Prepared> = objects
        .iter()
        .map(|object| kernel.prepare(&object.bytes, &object.label))
        .collect::<Result<_, _>>()
        .map_err(input)?;
    let pins = Pins::open().map_err(input)?;
    if pins.mounted() {
        note!("mounted a BPF file system on /sys/fs/bpf");
    }
    for algorithm in prepared {
        let name = algorithm.name().to_string();
        let change = pins.load(algorithm).map_err(|error| failure(&error))?;
        let words = match change {
            Change::Loaded => "loaded",
            Change::Replaced => "replaced; open connections keep their version",
        };
        print(&format!("{name:<16}{words}\n"))?;
    }
    Ok(())
}

/// Unloads algorithms. Nothing changes if one of them is not loaded.
///
/// # Errors
/// Not an algorithm, or not loaded (bad input); a failure afterwards.
pub fn unload(wanted: &[String]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for word in wanted.iter().filter(|word| *word != ALL) {
        names.insert(if is_file(word) { Object::file(word)?.name } else { kernel_name(word) });
    }
    kernel()?;
    let pins = Pins::existing().map_err(input)?;
    let loaded = pinned();
    if let Some(name) = names.iter().find(|name| !loaded.contains(name)) {
        return Err(input(not_pinned(name)));
    }
    if wanted.iter().any(|word| word == ALL) {
        names.extend(loaded);
    }
    if names.is_empty() {
        note!("nothing is loaded");
    }
    let used = kernel::sockets_by_algorithm().unwrap_or_default();
    for name in names {
        let Some(pins) = &pins else { break };
        pins.unload(&name).map_err(|error| failure(&error))?;
        let words = match used.get(&name) {
            None => "unloaded".to_string(),
            Some(1) => "unloaded; a socket of this network namespace keeps it until it closes".to_string(),
            Some(n) => format!("unloaded; {n} sockets of this network namespace keep it until they close"),
        };
        print(&format!("{name:<16}{words}\n"))?;
    }
    Ok(())
}

/// An algorithm compiled for BPF.
struct Object {
    /// What messages call it: as the user wrote it.
    label: String,
    /// The kernel's name of it.
    name: String,
    bytes: Cow<'static, [u8]>,
}

impl Object {
    /// A built-in one; `word` with or without the kernel's prefix.
    fn builtin(word: &str) -> Result<Object, Failure> {
        let name = word.strip_prefix(NAME_PREFIX).unwrap_or(word);
        let Some(bytes) = kernel::object(name) else {
            let known = kernel::builtins().collect::<Vec<_>>().join(", ");
            return Err(Failure::Input(format!(
                "there is no algorithm {word:?}; there are {known}, `all` for all of them, and files that end in .c"
            )));
        };
        Ok(Object { label: word.to_string(), name: kernel_name(name), bytes: Cow::Borrowed(bytes) })
    }

    /// A user's C file, compiled.
    fn file(word: &str) -> Result<Object, Failure> {
        let bytes = compile_for_bpf(Path::new(word)).map_err(input)?;
        let name = kernel::name_of(&bytes, word).map_err(input)?;
        Ok(Object { label: word.to_string(), name, bytes: Cow::Owned(bytes) })
    }
}

/// Two files with one name would replace each other, and only the last would stay.
fn refuse_twice(objects: &[Object]) -> Result<(), Failure> {
    for (i, object) in objects.iter().enumerate() {
        let same = objects[..i].iter().find(|other| other.name == object.name && other.bytes != object.bytes);
        if let Some(other) = same {
            let (a, b, name) = (&other.label, &object.label, &object.name);
            return Err(Failure::Input(format!("{a} and {b} are both called {name}; load one of them")));
        }
    }
    Ok(())
}

fn is_file(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some()
}

/// With the kernel's prefix, however it was written. A user's file may have a name without one.
fn kernel_name(word: &str) -> String {
    if word.starts_with(NAME_PREFIX) || pinned().iter().any(|name| name == word) {
        word.to_string()
    } else {
        format!("{NAME_PREFIX}{word}")
    }
}

fn kernel() -> Result<Kernel, Failure> {
    Kernel::probe().map_err(input)
}

fn input(error: impl std::fmt::Display) -> Failure {
    Failure::Input(error.to_string())
}

/// A name already in use is bad input; the rest is the kernel's failure.
fn failure(error: &PinError) -> Failure {
    match error {
        PinError::Load(kernel::Error::Exists { .. }) => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}
