//! The folder of a run's results: one in which no other results are.

use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::request::{RunRequest, results_folder};
use crate::sweep::Job;
use results::{Content, Maker};
use scenario::Bundle;
use std::path::{Path, PathBuf};

/// The folder of these jobs' results: `out`, or the first of `NAME`, `NAME-2`, … that has no results of other content.
///
/// # Errors
/// `out` has such results, and the request does not say that they may go.
pub(crate) fn place_of(
    request: &RunRequest,
    jobs: &[Job],
    maker: Maker,
    monitor: Monitor<'_>,
) -> Result<PathBuf, Failure> {
    let name = &jobs[0].scenario.name;
    if request.replace {
        return Ok(request.out.clone().unwrap_or_else(|| results_folder(name)));
    }
    let content = content_of(jobs, maker);
    if let Some(out) = &request.out {
        refuse_other(&content, out)?;
        return Ok(out.clone());
    }
    let first = results_folder(name);
    if !content.would_lose(&first) {
        return Ok(first);
    }
    let mut others = (2_u32..).map(|number| results_folder(&format!("{name}-{number}")));
    let free = others.find(|other| !content.would_lose(other)).expect("numbers do not end");
    monitor.note(&format!(
        "{} has other results, which stay; these go to {} (--replace replaces them)",
        first.display(),
        free.display()
    ));
    Ok(free)
}

/// Refuses a folder that has results of another content.
///
/// # Errors
/// It has, with the ways out.
pub(crate) fn refuse_other(content: &Content, out: &Path) -> Result<(), Failure> {
    if !content.would_lose(out) {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{} has other results: of another scenario, backend or version, or with other values. Choose another folder (--out), or replace them \
         (--replace)",
        out.display()
    )))
}

fn content_of(jobs: &[Job], maker: Maker) -> Content {
    let mut content = Content::new(maker, env!("CARGO_PKG_VERSION"));
    for job in jobs {
        let Bundle { toml, files } = job.scenario.bundle();
        let files = files.into_iter().map(|(name, text)| (name, text.to_string())).collect();
        content.add(&job.name, toml, files);
    }
    if jobs.len() == 1 { content.of_one_run() } else { content }
}
