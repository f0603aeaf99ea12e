//! A thread in a network namespace of its own, which runs jobs there.

use crate::hosts::Error;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use std::any::Any;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

/// The namespace, held by its thread. Dropping it ends the thread; the namespace remains while anything else is in it.
#[derive(Debug)]
pub struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    thread_id: i32,
}

impl Namespace {
    /// A new namespace, with only a loopback interface that is down.
    pub fn create(thread_name: &str) -> Result<Namespace, Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (reply, answer) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(thread_name.to_owned())
            .spawn(move || {
                // This changes the namespace of this thread only, and of threads and processes that it starts.
                let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| nix::unistd::gettid().as_raw());
                let is_in = entered.is_ok();
                if reply.send(entered).is_ok() && is_in {
                    for job in queue {
                        job();
                    }
                }
            })
            .map_err(Error::Namespace)?;
        let thread_id = match answer.recv() {
            Ok(Ok(thread_id)) => thread_id,
            Ok(Err(Errno::EPERM)) => return Err(Error::NotRoot),
            Ok(Err(errno)) => return Err(Error::Namespace(errno.into())),
            Err(_) => return Err(Error::Namespace(ended())),
        };
        Ok(Namespace { jobs: Some(jobs), thread: Some(thread), thread_id })
    }

    /// Runs `job` on the namespace's thread, and waits for it. A panic of the job continues in the caller.
    pub fn enter<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (reply, answer) = mpsc::channel::<Result<T, Box<dyn Any + Send>>>();
        let job: Job = Box::new(move || {
            // The receiver is gone only if the caller's thread has ended.
            let _ = reply.send(catch_unwind(AssertUnwindSafe(job)));
        });
        self.jobs.as_ref().ok_or_else(ended)?.send(job).map_err(|_| ended())?;
        match answer.recv().map_err(|_| ended())? {
            Ok(result) => Ok(result),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The file by which other programs can enter, such as `nsenter --net=`.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/task/{}/ns/net", process::id(), self.thread_id))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It catches its jobs' panics.
            let _ = thread.join();
        }
    }
}

/// Runs `job` on a temporary thread inside the namespace of the file `namespace`.
pub fn inside<T: Send>(namespace: &Path, job: impl FnOnce() -> T + Send) -> io::Result<T> {
    let file = File::open(namespace)?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || {
            setns(&file, CloneFlags::CLONE_NEWNET)?;
            Ok(job())
        })?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn ended() -> io::Error {
    io::Error::other("the namespace's thread has ended")
}
