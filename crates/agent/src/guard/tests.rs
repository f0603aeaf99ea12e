//! Who may restore, and when there is nothing to do.

use super::*;
use std::io;

fn places(folder: &Path) -> Places {
    Places { state: folder.join("state"), pins: folder.join("pins") }
}

#[test]
fn one_agent_at_a_time_has_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let first = lock(&places).unwrap();
    assert!(first.is_some(), "the folder is made");
    assert!(lock(&places).unwrap().is_none());
    drop(first);
    assert!(lock(&places).unwrap().is_some());
}

#[test]
fn while_an_agent_lives_nothing_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let agent = lock(&places).unwrap();
    fs::write(places.status(), "its status").unwrap();
    let error = reset(&places, folder.path()).unwrap_err();
    assert!(matches!(&error, AgentError::Running(state) if *state == places.state), "{error}");
    assert!(error.to_string().contains("another agent is running") && error.is_input(), "{error}");
    assert!(places.status().exists());
    drop(agent);
    assert_eq!(reset(&places, folder.path()).unwrap(), Reset::default());
    assert!(!places.status().exists(), "it would say of a dead agent what was in force");
}

#[test]
fn where_no_agent_has_been_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    assert_eq!(reset(&places, folder.path()).unwrap(), Reset::default());
    assert!(!places.state.exists());
}

#[test]
fn a_damaged_journal_is_not_taken_for_nothing_to_restore() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    drop(lock(&places).unwrap());
    fs::write(places.journal(), "{").unwrap();
    let error = reset(&places, folder.path()).unwrap_err();
    assert!(error.to_string().contains("journal.json"), "{error}");
    assert!(places.journal().exists(), "whoever sees to it needs it");
}

/// A pipe that is interrupted, brings something, and closes.
struct Pipe(Vec<io::Result<usize>>);

impl Read for Pipe {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.remove(0)
    }
}

#[test]
fn a_guardian_waits_for_the_pipes_end_and_not_for_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    drop(lock(&places).unwrap());
    fs::write(places.status(), "its status").unwrap();
    let mut pipe = Pipe(vec![Err(io::ErrorKind::Interrupted.into()), Ok(1), Ok(0)]);
    assert_eq!(guard(&mut pipe, &places, folder.path()).unwrap(), Reset::default());
    assert!(pipe.0.is_empty() && !places.status().exists());
}
