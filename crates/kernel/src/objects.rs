//! Objects of `bpf/` whose maps may outlive their loader, pinned in a folder.

use crate::bpffs::is_bpffs;
use crate::log::captured;
use libbpf_rs::{MapCore as _, Object, ObjectBuilder, OpenObject};
use std::fs;
use std::io;
use std::path::Path;

/// Loads an object into the kernel, with the maps that are pinned in `folder`, if any.
///
/// # Errors
/// The kernel's messages.
pub fn load(bytes: &[u8], folder: Option<&Path>) -> Result<Object, String> {
    load_as(bytes, folder, |_| {})
}

/// The same, after `prepare` has configured it.
///
/// # Errors
/// The kernel's messages.
pub fn load_as(bytes: &[u8], folder: Option<&Path>, prepare: impl FnOnce(&mut OpenObject)) -> Result<Object, String> {
    let open_and_load = || {
        let mut object = ObjectBuilder::default().open_memory(bytes)?;
        for mut map in object.maps_mut() {
            let pin = folder.map(|folder| folder.join(map.name())).filter(|pin| pin.exists());
            if let Some(pin) = pin {
                map.reuse_pinned_map(pin)?;
            }
        }
        prepare(&mut object);
        object.load()
    };
    let (object, log) = captured(open_and_load);
    object.map_err(|_| log)
}

/// Pins the maps in `folder`.
///
/// # Errors
/// `folder` is not in a BPF file system, or cannot be written.
pub fn pin_maps(object: &mut Object, folder: &Path) -> Result<(), String> {
    for mut map in object.maps_mut() {
        let pin = folder.join(map.name());
        if !pin.exists() {
            map.pin(&pin).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Removes the pinned files in `folder`; whether there were any. A folder outside of BPF file systems has none, whatever is in it.
///
/// # Errors
/// A file cannot be removed.
pub fn remove(folder: &Path) -> io::Result<bool> {
    if !is_bpffs(folder) {
        return Ok(false);
    }
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_removed_that_cannot_be_pinned() {
        let folder = std::env::temp_dir().join(format!("opentcp-objects-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("epoch");
        fs::write(&file, "7").unwrap();
        assert!(!remove(&folder).unwrap() && !remove(&file).unwrap() && !remove(&folder.join("none")).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "7");
        fs::remove_dir_all(&folder).unwrap();
    }
}
