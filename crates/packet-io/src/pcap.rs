//! Captures for Wireshark, tshark and tcpdump: the classic pcap format, with nanoseconds.

use crate::offload;
use crate::vnet::VnetHeader;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The magic number for times in nanoseconds.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const RECORD_HEADER_BYTES: usize = 16;

/// The writer's polling interval. It is not woken: that would cost the forwarding thread a system call each.
const PAUSE: Duration = Duration::from_millis(5);

/// Limits of a capture.
#[derive(Clone, Copy, Debug)]
pub struct PcapOptions {
    /// Bytes kept of each packet.
    pub snap_bytes: usize,
    /// Bytes that may wait to be written. Beyond that packets are not recorded, but counted.
    pub buffer_bytes: usize,
}

impl Default for PcapOptions {
    /// Whole packets, and 64 MB: half a second at 1 Gbit/s.
    fn default() -> PcapOptions {
        PcapOptions { snap_bytes: 65_535 + 22, buffer_bytes: 64 << 20 }
    }
}

/// Packet counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcapTotals {
    /// In the file.
    pub recorded: u64,
    /// Not recorded, because the disk was too slow.
    pub dropped: u64,
}

/// A capture in progress. [`record`](Pcap::record) only copies into memory; a thread of its own writes the file, so that a
/// slow disk costs records, never the network's time.
#[derive(Debug)]
pub struct Pcap {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<io::Result<()>>>,
    options: PcapOptions,
    totals: PcapTotals,
    scratch: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Bytes that the writer has taken but not yet written: they count towards the limit too.
    in_writing: usize,
    is_over: bool,
    has_failed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so another thread's panic has not corrupted it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pcap {
    /// Starts a capture in the file `path`, which is made or emptied.
    ///
    /// # Errors
    /// The file cannot be made, or the thread.
    pub fn create(path: impl AsRef<Path>, options: PcapOptions) -> io::Result<Pcap> {
        let mut file = File::create(path)?;
        file.write_all(&file_header(options.snap_bytes))?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let writer = thread::Builder::new().name("pcap".into()).spawn(move || write_all_of(&theirs, file))?;
        Ok(Pcap { shared, writer: Some(writer), options, totals: PcapTotals::default(), scratch: Vec::new() })
    }

    /// Records a packet that passed `time_ns` nanoseconds after 1 January 1970, its pieces being `parts`. A partial checksum is
    /// filled in, so that the packet looks as it would on a wire.
    pub fn record(&mut self, time_ns: u64, header: &VnetHeader, parts: &[&[u8]]) {
        self.scratch.clear();
        for part in parts {
            self.scratch.extend_from_slice(part);
        }
        offload::complete(header, &mut self.scratch);
        let kept = &self.scratch[..self.scratch.len().min(self.options.snap_bytes)];
        let record = record_header(time_ns, kept.len(), self.scratch.len());

        let mut state = self.shared.state();
        let used = state.waiting.len() + state.in_writing;
        if state.has_failed || used + record.len() + kept.len() > self.options.buffer_bytes {
            self.totals.dropped += 1;
            return;
        }
        state.waiting.extend_from_slice(&record);
        state.waiting.extend_from_slice(kept);
        self.totals.recorded += 1;
    }

    /// Packets not recorded so far.
    pub fn dropped(&self) -> u64 {
        self.totals.dropped
    }

    /// Writes the rest, and closes the file.
    ///
    /// # Errors
    /// The first write error; the file ends there.
    pub fn finish(mut self) -> io::Result<PcapTotals> {
        self.close()?;
        Ok(self.totals)
    }

    fn close(&mut self) -> io::Result<()> {
        self.shared.state().is_over = true;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.thread().unpark();
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes a capture has panicked")))
    }
}

impl Drop for Pcap {
    fn drop(&mut self) {
        // `finish` reports errors.
        let _ = self.close();
    }
}

/// The writer's loop: takes records and writes them, until the capture ends.
fn write_all_of(shared: &Shared, mut file: File) -> io::Result<()> {
    let mut batch = Vec::new();
    loop {
        batch.clear();
        let mut state = shared.state();
        state.in_writing = 0;
        std::mem::swap(&mut state.waiting, &mut batch);
        state.in_writing = batch.len();
        let is_over = state.is_over;
        drop(state);

        if batch.is_empty() && is_over {
            return Ok(());
        }
        if batch.is_empty() {
            thread::park_timeout(PAUSE);
        } else if let Err(error) = file.write_all(&batch) {
            shared.state().has_failed = true;
            return Err(error);
        }
    }
}

fn file_header(snap_bytes: usize) -> [u8; 24] {
    let mut header = [0; 24];
    // In this machine's byte order, which readers detect by the number. Version 2.4; the zone's offset and accuracy are zero
    // in every file.
    header[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_ne_bytes());
    header[4..6].copy_from_slice(&2u16.to_ne_bytes());
    header[6..8].copy_from_slice(&4u16.to_ne_bytes());
    header[16..20].copy_from_slice(&(snap_bytes as u32).to_ne_bytes());
    header[20..24].copy_from_slice(&LINKTYPE_ETHERNET.to_ne_bytes());
    header
}

fn record_header(time_ns: u64, kept: usize, whole: usize) -> [u8; RECORD_HEADER_BYTES] {
    let fields = [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, kept as u32, whole as u32];
    let mut header = [0; RECORD_HEADER_BYTES];
    for (place, field) in header.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
        *place = field.to_ne_bytes();
    }
    header
}
