//! Captures: their bytes, their limit, and Wireshark's reading of them.

use crate::support::Plan;
use packet_io::{Pcap, PcapOptions, PcapTotals, VnetHeader};
use std::fs;
use std::process::Command;

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[test]
fn a_capture_holds_times_lengths_and_whole_checksums() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pcap");
    let mut pcap = Pcap::create(&path, PcapOptions { snap_bytes: 60, ..PcapOptions::default() }).expect("a file");
    let plan = Plan { payload: b"0123456789".to_vec(), ..Plan::default() };
    let (header, frame) = plan.packet();
    pcap.record(1_700_000_000_000_000_123, &header, &[&frame[..20], &frame[20..]]);
    pcap.record(1_700_000_001_999_999_999, &VnetHeader::default(), &[&[7; 15]]);
    assert_eq!(pcap.finish().expect("it is written"), PcapTotals { recorded: 2, dropped: 0 });

    let bytes = fs::read(&path).expect("the capture");
    assert_eq!((number(&bytes, 0), number(&bytes, 16), number(&bytes, 20)), (0xa1b2_3c4d, 60, 1));
    // the first record: seconds, nanoseconds, kept, whole (14 + 20 + 32 + 10)
    assert_eq!([24, 28, 32, 36].map(|at| number(&bytes, at)), [1_700_000_000, 123, 60, 76]);
    let mut whole = frame;
    packet_io::complete(&header, &mut whole);
    assert_eq!(bytes[40..100], whole[..60]);
    assert_eq!([100, 104, 108, 112].map(|at| number(&bytes, at)), [1_700_000_001, 999_999_999, 15, 15]);
    assert_eq!(bytes[116..], [7; 15]);
}

#[test]
fn what_the_buffer_cannot_hold_is_left_out_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.pcap");
    // each record needs 16 + 1000 bytes, which is above the bound, or below it
    let mut pcap = Pcap::create(&path, PcapOptions { buffer_bytes: 1015, ..PcapOptions::default() }).expect("a file");
    for _ in 0..5 {
        pcap.record(0, &VnetHeader::default(), &[&[1; 1000]]);
    }
    pcap.record(0, &VnetHeader::default(), &[&[1; 999]]);
    assert_eq!(pcap.dropped(), 5);
    assert_eq!(pcap.finish().expect("it is written"), PcapTotals { recorded: 1, dropped: 5 });
    assert_eq!(fs::read(&path).expect("the capture").len(), 24 + 1015);
}

#[test]
fn a_full_disk_is_reported_and_ends_the_capture() {
    // Linux's device that is always full.
    if let Ok(mut pcap) = Pcap::create("/dev/full", PcapOptions::default()) {
        pcap.record(0, &VnetHeader::default(), &[&[1; 1000]]);
        assert!(pcap.finish().is_err());
    }
    assert!(Pcap::create("/nowhere/at/all.pcap", PcapOptions::default()).is_err());
}

#[test]
fn readers_of_captures_open_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.pcap");
    let mut pcap = Pcap::create(&path, PcapOptions::default()).expect("a file");
    let (header, frame) = Plan { payload: vec![b'x'; 10], ..Plan::default() }.packet();
    pcap.record(1_700_000_000_000_000_001, &header, &[&frame]);
    pcap.finish().expect("it is written");
    let path = path.to_str().expect("a plain path");
    let shows = |program: &str, arguments: &[&str], expected: &str| match Command::new(program).args(arguments).output()
    {
        Err(_) => eprintln!("skipped: there is no {program}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(expected), "{program}: {text} {}", String::from_utf8_lossy(&output.stderr));
        }
    };
    let fields =
        ["-r", path, "-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "tcp.len", "-e", "tcp.checksum.status"];
    shows("tshark", &fields, "10\t1");
    shows("tcpdump", &["-nn", "-vv", "-r", path], "10.0.0.1.40000 > 10.0.0.2.5001");
    shows("tcpdump", &["-nn", "-vv", "-r", path], "(correct)");
}
