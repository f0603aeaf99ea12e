//! nginx on a host, and programs that run there to completion.

use super::File;
use crate::failure::Failure;
use crate::stop::Stop;
use ::emu::hosts::Host;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

/// Connections of one nginx process; in Debian, a process has at most 20,000 files.
const CONNECTIONS: u32 = 19_900;
/// Interval of polling for a program's end.
const LOOK: Duration = Duration::from_millis(20);

/// A site: files on these ports, served by this many processes from a new folder.
pub struct Site<'a> {
    pub folder: &'a Path,
    pub files: &'a [File],
    pub processes: u32,
    pub ports: RangeInclusive<u16>,
}

/// Serves a site until the host ends.
///
/// # Errors
/// The folder cannot be written, nginx does not start, or the user stopped it.
pub fn serve(host: &Host, site: Site<'_>, stop: &Stop) -> Result<(), Failure> {
    let Site { folder, files, processes, ports } = site;
    let prepare = || {
        fs::create_dir_all(folder)?;
        for file in files {
            fs::File::create(folder.join(file.name()))?.set_len(file.kilobytes * 1000)?;
        }
        fs::write(folder.join("nginx.conf"), configuration(folder, processes, ports))
    };
    prepare().map_err(|error: io::Error| Failure::Run(format!("nginx: {error}")))?;
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(folder.join("nginx.conf"));
    // it enters the background once it listens
    ended(host, nginx, stop).map(drop)
}

fn configuration(folder: &Path, processes: u32, ports: RangeInclusive<u16>) -> String {
    let folder = folder.display();
    let (mut temporary, mut listen) = (String::new(), String::new());
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(temporary, "  {kind}_temp_path {folder}/{kind};");
    }
    for port in ports {
        let _ = writeln!(listen, "    listen {port} backlog=4096;");
    }
    format!(
        "user root;\nworker_processes {processes};\npid {folder}/nginx.pid;\nevents {{ worker_connections {CONNECTIONS}; }}\nhttp {{\n  \
         access_log off;\n{temporary}  sendfile on;\n  tcp_nopush on;\n  keepalive_timeout 1h;\n  keepalive_requests 1000000000;\n  \
         server {{\n{listen}    root {folder};\n  }}\n}}\n"
    )
}

/// Runs a program on a host to completion; returns its output.
///
/// # Errors
/// It cannot be started, it fails, or the user stopped it.
pub fn ended(host: &Host, mut command: Command, stop: &Stop) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| Failure::Run(format!("{name}: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = host.start(command).map_err(failed)?;
    while child.try_wait().map_err(failed)?.is_none() {
        if stop.is_set() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::Interrupted);
        }
        thread::sleep(LOOK);
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        // Ctrl-C reaches it as well
        if stop.is_set() {
            return Err(Failure::Interrupted);
        }
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Run(format!("{name} ended with {}: {}", output.status, why.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
