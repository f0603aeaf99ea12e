//! Both ends of a hand-over, each against a script of what the other says.

use super::*;
use enforcer::{Action, Direction, Limits, Rule};
use packet_io::Tap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::thread;

/// Two TAPs, whose hosts are the test.
fn taps() -> ([Port; 2], [UnixDatagram; 2]) {
    let tap = |name: &str| {
        let (near, far) = UnixDatagram::pair().expect("a socket");
        near.set_nonblocking(true).expect("it is open");
        (Port::of_tap(name, Tap::resume(near.into())), far)
    };
    let ((servers, one), (clients, other)) = (tap("a"), tap("b"));
    ([servers, clients], [one, other])
}

fn enforcer(rules: Vec<Rule>) -> Enforcer<OwnedFrame> {
    Enforcer::new(Limits { flows: 16, half_open: 16, ..Limits::default() }, rules, 1)
}

/// A segment between 10.0.0.1:80 (the server) and 10.0.0.2:40000 in an Ethernet frame whose checksum was verified.
fn segment(is_servers: bool, (seq, ack): (u32, u32), flags: u8) -> OwnedFrame {
    let (ours, theirs): ((u8, u16), (u8, u16)) = ((1, 80), (2, 40_000));
    let ((from, port), (to, other)) = if is_servers { (ours, theirs) } else { (theirs, ours) };
    let mut ip = vec![0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    let words = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = Vec::new();
    tcp.extend(port.to_be_bytes());
    tcp.extend(other.to_be_bytes());
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    // 28 bytes of header, a window of 65,000, an MSS of 1460 and SACK
    tcp.extend([0x70, flags, 0xfd, 0xe8, 0, 0, 0, 0, 2, 4, 5, 0xb4, 4, 2, 1, 1]);
    let ethernet = [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0][..], &ip, &tcp].concat();
    OwnedFrame::new(VnetHeader::VALID, &ethernet)
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// An enforcer with one flow, by CUBIC.
fn with_flow() -> Enforcer<OwnedFrame> {
    let rule = crate::rule("cubic", &mut |_| {}).expect("a rule");
    let mut enforcer = enforcer(vec![rule]);
    let mut pass = |direction, frame| {
        let action = enforcer.on_packet(Time::from_ms(1), direction, frame);
        assert!(!matches!(action, Action::Dropped));
    };
    pass(Direction::In, segment(false, (1000, 0), SYN));
    pass(Direction::Out, segment(true, (5000, 1001), SYN | ACK));
    pass(Direction::In, segment(false, (1001, 5001), ACK));
    assert_eq!(enforcer.flows(), 1);
    enforcer
}

fn port_state(name: &str, received: u64) -> PortState {
    PortState { name: name.to_string(), received, sent: 2, lost: 1, ..PortState::default() }
}

fn start(format: u32, ports: &[&str]) -> Start {
    Start { format, ports: ports.iter().map(|name| port_state(name, 0)).collect(), flows: 1, buffered: 0 }
}

fn both_ends() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("a socket")
}

/// Reads the one byte that the other end says.
fn said(stream: &UnixStream) -> u8 {
    let mut byte = [0];
    (&*stream).read_exact(&mut byte).expect("it says something");
    byte[0]
}

#[test]
fn messages_arrive_whole_and_in_order_however_they_are_cut() {
    let (one, other) = both_ends();
    let sizes: Vec<usize> = vec![0, 1, 3, CHUNK - 9, CHUNK, 3 * CHUNK, 7];
    let given =
        |len: &usize| Given::decode(&[&[0x12][..], &varint(*len), &vec![7; *len]].concat()[..]).expect("its bytes");
    let all: Vec<Given> = sizes.iter().map(given).collect();
    let sent = all.clone();
    let sender = thread::spawn(move || {
        let mut messages = Outgoing::to(&one);
        sent.iter().try_for_each(|message| messages.add(message))?;
        messages.flush()
    });
    let mut messages = Incoming::of(&other, CHUNK);
    let read: Vec<Given> = all.iter().map(|_| messages.next().expect("it was sent")).collect();
    sender.join().expect("it ends").expect("it is read");
    assert!(read == all);
    let end = messages.next::<Given>().expect_err("the other end is closed");
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
}

/// A length as Protocol Buffers write it.
fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn a_message_that_is_cut_or_none_is_an_error_and_takes_no_memory_beforehand() {
    let outcome = |bytes: &[u8]| {
        let (one, other) = both_ends();
        (&one).write_all(bytes).expect("it is open");
        drop(one);
        let mut messages = Incoming::of(&other, 0);
        let kind = messages.next::<Pause>().expect_err("it is no message").kind();
        (kind, messages.read.capacity())
    };
    assert_eq!(outcome(&[1, 0]).0, io::ErrorKind::UnexpectedEof);
    // four gigabytes are announced, and three bytes come
    let (kind, memory) = outcome(&[0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    assert!(kind == io::ErrorKind::UnexpectedEof && memory < 4 * CHUNK, "{memory} bytes");
    assert_eq!(outcome(&[2, 0, 0, 0, 0xff, 0xff]).0, io::ErrorKind::InvalidData);
}

#[test]
fn a_frame_is_the_same_behind_a_hand_over() {
    let frame = segment(true, (5000, 1001), ACK);
    let again = frame_of(&bytes_of(&frame)).expect("it is a frame");
    assert_eq!((again.to_vec(), again.vnet_header()), (frame.to_vec(), frame.vnet_header()));
    assert!(frame_of(&[0; VnetHeader::LEN - 1]).is_none());
}

#[test]
fn files_arrive_in_their_order_however_many_messages_they_take() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = both_ends();
    let files: Vec<File> = (0..FILES_MAX + 3)
        .map(|n| {
            let path = folder.path().join(n.to_string());
            std::fs::write(&path, n.to_string()).expect("there is room");
            File::open(path).expect("it was just made")
        })
        .collect();
    let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(File::as_fd).collect();
    borrowed.chunks(FILES_MAX).for_each(|some| send_files(&one, some).expect("it is open"));
    let mut received = Vec::new();
    while received.len() < files.len() {
        receive_files(&other, &mut received).expect("they were sent");
    }
    for (n, file) in received.into_iter().enumerate() {
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).expect("it can be read");
        assert_eq!(text, n.to_string());
    }
    (&one).write_all(&[0]).expect("it is open");
    let none = receive_files(&other, &mut Vec::new()).expect_err("a byte without files");
    assert_eq!(none.to_string(), "a file is missing");
}

#[test]
fn a_new_enforcer_has_ten_seconds_to_get_ready() {
    let waiting = || {
        let (one, other) = both_ends();
        one.set_nonblocking(true).expect("it is open");
        (Successor { stream: one, until: Time::from_secs(10) }, other)
    };
    let (mut successor, other) = waiting();
    assert!(!successor.waits(Time::from_ms(9_999)).expect("it may still come"));
    assert!(successor.waits(Time::from_secs(10)).is_err(), "it has taken too long");
    (&other).write_all(&[PAUSE]).expect("it is open");
    assert!(successor.waits(Time::from_secs(11)).expect("it has said so"), "better late than never");
    assert_eq!(successor.process().expect("the kernel knows it"), std::process::id());
    let (mut successor, other) = waiting();
    (&other).write_all(b"?").expect("it is open");
    assert_eq!(successor.waits(Time::ZERO).expect_err("it is of another kind").to_string(), "the new enforcer gave up");
    let (mut successor, other) = waiting();
    drop(other);
    assert!(successor.waits(Time::ZERO).is_err_and(|error| error.to_string() == "the new enforcer gave up"));
}

/// Gives an enforcer with a flow to a script: what that has read, and whether giving has succeeded.
fn given(
    script: impl FnOnce(&UnixStream) -> Option<Checkpoint> + Send + 'static,
) -> (Option<Checkpoint>, Result<(), String>) {
    let (one, other) = both_ends();
    let new = thread::spawn(move || script(&other));
    let ((ports, _hosts), enforcer) = (taps(), with_flow());
    let giving = Giving { ports: &ports, enforcer: &enforcer, cues: None, now: Time::from_ms(2) };
    let done = giving.give(&Successor { stream: one, until: Time::NEVER });
    (new.join().expect("the script ends"), done.map_err(|error| error.to_string()))
}

#[test]
fn a_running_enforcer_gives_its_flows_and_ends_once_the_new_one_has_them() {
    let (flow, done) = given(|stream| {
        let mut messages = Incoming::of(stream, CHUNK);
        let pause: Pause = messages.next().ok()?;
        let _: Handshakes = messages.next().ok()?;
        let flow = messages.next().ok()?;
        assert_eq!((pause.flows, pause.ports.len(), pause.cues.is_none()), (1, 2, true));
        (&*stream).write_all(&[READY]).ok()?;
        (messages.bytes(1).ok()? == [GO][..]).then_some(flow)
    });
    let flow = flow.expect("the script went through");
    assert_eq!((flow.server_port, flow.client_port), (80, 40_000));
    assert_eq!(done, Ok(()));
}

#[test]
fn a_running_enforcer_goes_on_where_the_new_one_fails() {
    let gave_up = Err("the new enforcer gave up".to_string());
    let (_, done) = given(|stream| {
        let mut messages = Incoming::of(stream, CHUNK);
        let _: Pause = messages.next().ok()?;
        let _: Handshakes = messages.next().ok()?;
        messages.next().ok()
    });
    assert_eq!(done, gave_up, "it has closed without a word");
    let (_, done) = given(|stream| {
        (&*stream).write_all(b"?").ok()?;
        let mut messages = Incoming::of(stream, CHUNK);
        let _: Pause = messages.next().ok()?;
        let _: Handshakes = messages.next().ok()?;
        messages.next().ok()
    });
    assert_eq!(done, gave_up, "it says something else");
}

/// Takes over from a script, with a rule for another algorithm: how many flows there were, or why not; how many are here by that algorithm; and
/// the ports.
fn taken(flow: Option<Checkpoint>, last: u8) -> (Result<u64, String>, usize, [Port; 2]) {
    let (one, other) = both_ends();
    let running = thread::spawn(move || {
        assert_eq!(said(&other), PAUSE);
        let mut messages = Outgoing::to(&other);
        let (ports, flows) = (vec![port_state("a", 70), port_state("b", 80)], 1);
        let began_ns = monotonic_ns().expect("a clock");
        messages.add(&Pause { began_ns, ports, flows, cues: None }).expect("there is room");
        messages.add(&Handshakes::default()).expect("there is room");
        if let Some(flow) = &flow {
            messages.add(flow).expect("there is room");
        }
        messages.flush().expect("it is read");
        if flow.is_some() {
            assert_eq!(said(&other), READY);
            (&other).write_all(&[last]).expect("it is open");
        }
    });
    let rule = crate::rule("vegas", &mut |_| {}).expect("a rule");
    let ((mut ports, _hosts), mut enforcer) = (taps(), enforcer(vec![rule]));
    let taking = Taking { stream: one, start: start(FORMAT, &["a", "b"]) };
    let done = taking.finish(&mut ports, &mut enforcer, None, || Time::from_ms(9));
    running.join().expect("the script ends");
    let by_vegas = enforcer.algorithms().filter(|(name, _)| *name == "vegas").map(|(_, flows)| flows).sum();
    (done.map(|(flows, _)| flows).map_err(|error| error.to_string()), by_vegas, ports)
}

fn a_flow() -> Option<Checkpoint> {
    with_flow().checkpoints(Time::from_ms(2), bytes_of).next()
}

#[test]
fn a_new_enforcer_begins_with_the_flows_and_the_counts_of_the_old_one() {
    let (done, flows, [servers, clients]) = taken(a_flow(), GO);
    assert_eq!((done, flows), (Ok(1), 1));
    assert_eq!((servers.received, servers.sent, servers.lost, clients.received), (70, 2, 1, 80));
}

#[test]
fn a_new_enforcer_does_not_begin_unless_the_old_one_says_so() {
    let (done, ..) = taken(a_flow(), b'?');
    assert_eq!(done, Err("it answers something else".to_string()));
    let (done, flows, _) = taken(None, GO);
    assert!(done.is_err() && flows == 0, "the old one broke off");
}

#[test]
fn who_is_asked_to_hand_over_names_its_format_and_gives_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |start: Start, files: usize| {
        let path = folder.path().join(format!("{}-{}-{files}", start.format, start.ports.len()));
        let listener = UnixListener::bind(&path).expect("a socket");
        let running = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("it is asked");
            let mut question = [0; 10];
            (&stream).read_exact(&mut question).expect("a question");
            assert_eq!(&question, b"hand over\n");
            let mut messages = Outgoing::to(&stream);
            messages.add(&start).and_then(|()| messages.flush()).expect("it is read");
            let null = File::open("/dev/null").expect("Linux has it");
            if files > 0 {
                send_files(&stream, &vec![null.as_fd(); files]).expect("it is open");
            }
        });
        let taken = Taking::begin(&path);
        running.join().expect("the script ends");
        taken
    };
    let (taking, files) = asked(start(FORMAT, &["a", "b"]), 3).expect("as an enforcer does");
    let given: Vec<(&str, usize)> =
        files.ports.iter().map(|(state, files)| (state.name.as_str(), files.len())).collect();
    assert_eq!((given, taking.start.flows), (vec![("a", 1), ("b", 1)], 1), "and one is the status socket's");
    let why = |start, files| asked(start, files).err().expect("it is refused").to_string();
    assert_eq!(why(start(FORMAT + 1, &["a", "b"]), 0), "it is of a version that hands over in another way");
    assert_eq!(why(start(FORMAT, &["a"]), 0), "an enforcer has two interfaces");
    assert!(asked(start(FORMAT, &["a", "b"]), 2).is_err(), "a file is missing");
}
