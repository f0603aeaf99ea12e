//! What is read from answers, and which dumps are asked for again.

use super::*;
use netlink_packet_core::{DoneMessage, NLM_F_MULTIPART};
use netlink_packet_route::route::RouteMessage;

fn bytes(flags: u16, sequence: u32, payload: NetlinkPayload<RouteNetlinkMessage>) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    (header.flags, header.sequence_number) = (flags, sequence);
    let mut message = NetlinkMessage::new(header, payload);
    // the kernel's answers are made here, so the flags stay as they are
    message.finalize();
    message.header.flags = flags;
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn route(flags: u16, sequence: u32) -> Vec<u8> {
    bytes(flags, sequence, NetlinkPayload::from(RouteNetlinkMessage::NewRoute(RouteMessage::default())))
}

fn done(flags: u16) -> Vec<u8> {
    bytes(flags, 7, NetlinkPayload::Done(DoneMessage::default()))
}

#[test]
fn an_interrupted_dump_is_seen_by_any_of_its_messages() {
    let of = |parts: &[Vec<u8>]| {
        let mut answer = Answer::<RouteNetlinkMessage> { messages: Vec::new(), is_interrupted: false };
        let is_all = answer.take(&parts.concat(), 7).unwrap();
        (answer.messages.len(), answer.is_interrupted, is_all)
    };
    let (whole, broken) = (NLM_F_MULTIPART, NLM_F_MULTIPART | NLM_F_DUMP_INTR);
    assert_eq!(of(&[route(whole, 7), route(whole, 7), done(whole)]), (2, false, true));
    assert_eq!(of(&[route(whole, 7), route(broken, 7), done(whole)]), (2, true, true));
    assert_eq!(of(&[route(whole, 7), done(broken)]), (1, true, true));
    assert_eq!(of(&[route(whole, 7)]), (1, false, false), "more is to come");
    assert_eq!(of(&[route(broken, 6), done(whole)]), (0, false, true), "the rest of an earlier answer");
}

#[test]
fn a_dump_is_repeated_until_nothing_interrupts_it() {
    let mut tries = 0;
    let mut interrupted = |times| {
        tries = 0;
        let dump = repeated(|| {
            tries += 1;
            Ok(Answer { messages: vec![tries], is_interrupted: tries <= times })
        });
        (dump.unwrap(), tries)
    };
    assert_eq!(interrupted(0), (Dump { messages: vec![1], is_whole: true }, 1));
    assert_eq!(interrupted(3), (Dump { messages: vec![4], is_whole: true }, 4));
    let all = Dump { messages: (1..=TRIES).collect(), is_whole: false };
    assert_eq!(interrupted(usize::MAX), (all, TRIES), "what came at any time");
    assert!(repeated::<()>(|| Err(io::ErrorKind::PermissionDenied.into())).is_err());
}
