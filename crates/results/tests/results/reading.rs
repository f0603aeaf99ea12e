//! What was written is read again as it was: runs, sweeps, datasets.

use crate::common;
use results::{
    Dataset, PackedRun, RunResults, RunSummary, Story, Summary, Table, WriteError, write_run, write_sweep, written_runs,
};

/// Everything of the run is there.
fn is_whole(read: &results::WrittenRun, run: &RunResults) {
    assert_eq!((&read.name, &read.parameters), (&run.name, &run.parameters));
    // as any reader of the JSON has them: the last digit of a ratio may differ
    let summary: Summary = serde_json::from_str(&serde_json::to_string(&run.summary).unwrap()).unwrap();
    assert_eq!(read.summary, summary);
    let (toml, files) = read.scenario().expect("it was written");
    assert_eq!((&toml, files.len()), (&run.scenario_toml, run.files.len()));
    for table in Table::ALL {
        let stored = read.table(table).expect("it was written");
        let columns = run.columns(table);
        match stored {
            Some(stored) => assert_eq!(stored.columns(), columns, "{}", table.name()),
            None => assert!(run.link_series.is_empty() || table != Table::LinkSeries, "{}", table.name()),
        }
    }
    assert!(read.table(Table::Flows).is_ok_and(|table| table.is_some()));
}

#[test]
fn a_run_and_a_sweep_are_read_in_their_order() {
    let place = tempfile::tempdir().unwrap();
    let runs = common::study(1);
    write_run(&place.path().join("one"), &runs[1], None).unwrap();
    let read = written_runs(&place.path().join("one")).unwrap();
    assert_eq!(read.len(), 1);
    is_whole(&read[0], &runs[1]);
    write_sweep(&place.path().join("all"), &runs, &Story::new("all"), None).unwrap();
    let read = written_runs(&place.path().join("all")).unwrap();
    assert_eq!(read.len(), runs.len());
    read.iter().zip(&runs).for_each(|(read, run)| is_whole(read, run));
}

#[test]
fn a_dataset_is_read_in_the_order_of_its_table() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("set");
    let mut runs = common::study(1);
    runs.truncate(3);
    runs.reverse();
    for run in &mut runs {
        run.name = run.name.replace('/', ",");
    }
    let mut dataset = Dataset::open(&dir).unwrap();
    for run in &runs {
        dataset.add(&run.name, &PackedRun::of(run).unwrap()).unwrap();
    }
    let sorted = written_runs(&dir).unwrap();
    assert!(sorted.is_sorted_by_key(|run| run.name.clone()), "a stopped sweep has no table");
    dataset.finish(&runs.iter().map(RunSummary::of).collect::<Vec<_>>()).unwrap();
    dataset.clean().unwrap();
    let read = written_runs(&dir).unwrap();
    read.iter().zip(&runs).for_each(|(read, run)| is_whole(read, run));
    assert_eq!(read.len(), 3);
}

#[test]
fn a_folder_without_results_is_refused() {
    let place = tempfile::tempdir().unwrap();
    assert!(matches!(written_runs(place.path()), Err(WriteError::NotResults(_))));
}
