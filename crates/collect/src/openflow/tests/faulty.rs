//! Readings of switches that answer slowly, partly, or with something else: listeners of this test, with what Open vSwitch sent.

use super::super::wire::{HEADER, kind};
use super::super::{Error, LldpKey, OpenFlow, Settings};
use super::{mutated, recorded};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How it answers a request of a type (and of a multipart type); `None`: not at all.
type Answers = fn(u8, u16) -> Option<Vec<u8>>;

/// As Open vSwitch did.
pub(crate) fn rightly(request: u8, multipart: u16) -> Option<Vec<u8>> {
    let name = match (request, multipart) {
        (kind::HELLO, _) => "hello",
        (kind::FEATURES_REQUEST, _) => "features",
        (kind::ROLE_REQUEST, _) => "role",
        (kind::MULTIPART_REQUEST, 13) => "descriptions",
        (kind::MULTIPART_REQUEST, 4) => "ports",
        (kind::MULTIPART_REQUEST, 5) => "queues",
        (kind::MULTIPART_REQUEST, 1) => "flows",
        (kind::BARRIER_REQUEST, _) => return Some(vec![4, kind::BARRIER_REPLY, 0, 8, 0, 0, 0, 0]),
        _ => return None,
    };
    Some(recorded(name))
}

/// Answers each request on a connection until the other end closes it.
pub(crate) async fn answer(
    mut stream: TcpStream,
    mut answers: impl FnMut(u8, u16) -> Option<Vec<u8>>,
) -> std::io::Result<()> {
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).await?;
        let length = u16::from_be_bytes([header[2], header[3]]);
        let mut body = vec![0; usize::from(length) - HEADER];
        stream.read_exact(&mut body).await?;
        let multipart = body.first_chunk().map_or(0, |number| u16::from_be_bytes(*number));
        if let Some(mut reply) = answers(header[1], multipart) {
            // an answer of another transaction stays one
            if let Some(xid) = reply.get_mut(4..8).filter(|xid| **xid != [9; 4]) {
                xid.copy_from_slice(&header[4..8]);
            }
            stream.write_all(&reply).await?;
        }
    }
}

/// A reader of a switch that answers so, and is there for several connections.
async fn reader(settings: Settings, answers: Answers) -> OpenFlow {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, answers));
        }
    });
    OpenFlow::connect(settings, address, None)
}

fn hasty() -> Settings {
    Settings { name: "sw".to_string(), timeout: Duration::from_millis(200), ..Settings::default() }
}

async fn error_of(answers: Answers) -> Error {
    reader(hasty(), answers).await.read().await.expect_err("it is faulty")
}

#[tokio::test]
async fn a_switch_that_answers_rightly_is_read() {
    let found = reader(hasty(), rightly).await.read().await.expect("it is right");
    let names: Vec<&str> = found.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!((found.switch.as_str(), names), ("sw", vec!["c1", "p1"]));
    assert_eq!(found.ports[1].queues.len(), 2);
}

#[tokio::test]
async fn each_fault_is_that_readings_error() {
    let silent: Answers = |request, multipart| (request != kind::HELLO).then(|| rightly(request, multipart)).flatten();
    assert_eq!(error_of(silent).await, Error::Timeout { what: "hello" });

    let old: Answers = |_, _| Some(vec![1, kind::HELLO, 0, 8, 0, 0, 0, 0]);
    assert_eq!(error_of(old).await, Error::Version { highest: 1 });

    let web: Answers = |_, _| Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    assert!(matches!(error_of(web).await, Error::Malformed { .. } | Error::Timeout { .. }));

    let forgetful: Answers = |request, multipart| if multipart == 4 { None } else { rightly(request, multipart) };
    assert_eq!(error_of(forgetful).await, Error::Timeout { what: "port statistics" });

    let endless: Answers = |request, multipart| {
        let mut reply = rightly(request, multipart)?;
        if multipart == 4 {
            reply[11] = 1;
        }
        Some(reply)
    };
    assert_eq!(error_of(endless).await, Error::Timeout { what: "port statistics" });

    let torn: Answers = |request, multipart| {
        let mut reply = rightly(request, multipart)?;
        if multipart == 13 {
            let length = reply.len() - 9;
            reply.truncate(length);
            reply[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        }
        Some(reply)
    };
    assert!(matches!(error_of(torn).await, Error::Malformed { what: "port descriptions", .. }));

    let double: Answers = |request, multipart| {
        let mut reply = rightly(request, multipart)?;
        if multipart == 13 {
            let length = reply.len();
            reply.copy_within(length - 64.., 16);
        }
        Some(reply)
    };
    assert!(matches!(error_of(double).await, Error::Malformed { .. }));

    let refusing: Answers = |request, multipart| {
        if multipart == 13 { Some(recorded("error")) } else { rightly(request, multipart) }
    };
    let refused = Error::Refused { what: "port descriptions", error: "BAD_REQUEST, BAD_LEN".to_string() };
    assert_eq!(error_of(refusing).await, refused);
}

#[tokio::test]
async fn a_switch_without_queues_or_roles_is_read_all_the_same() {
    let plain: Answers = |request, multipart| {
        if multipart == 5 || request == kind::ROLE_REQUEST {
            Some(recorded("error"))
        } else {
            rightly(request, multipart)
        }
    };
    let found = reader(hasty(), plain).await.read().await.expect("nothing else is missing");
    assert!(found.ports.iter().all(|port| port.queues.is_empty()));
}

#[tokio::test]
async fn a_late_answer_is_not_taken_for_that_of_the_next_request() {
    let (listener, settings) = (TcpListener::bind("127.0.0.1:0").await.expect("a port is free"), hasty());
    let mut switch = OpenFlow::connect(settings, listener.local_addr().expect("it is bound").to_string(), None);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("it connects");
        let mut asked = 0;
        let late = |request, multipart| {
            // the first request for descriptions is answered only with the second, which has another transaction
            asked += u32::from(multipart == 13);
            let reply = rightly(request, multipart)?;
            match (multipart, asked) {
                (13, 1) => Some(recorded("status")),
                (13, 2) => Some(
                    [[4, kind::MULTIPART_REPLY, 0, 16, 9, 9, 9, 9].to_vec(), vec![0, 13, 0, 0, 0, 0, 0, 0]].concat(),
                ),
                _ => Some(reply),
            }
        };
        let _ = answer(stream, late).await;
    });
    assert_eq!(switch.read().await, Err(Error::Timeout { what: "port descriptions" }));
    assert!(switch.read().await.is_err(), "an empty answer to another request");
    assert_eq!(switch.read().await.expect("it is right").ports.len(), 2);
}

#[tokio::test]
async fn a_port_that_began_anew_shows_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let mut switch = OpenFlow::connect(hasty(), listener.local_addr().expect("it is bound").to_string(), None);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("it connects");
        let mut ages = [5, 7, 2, 3].into_iter();
        let aging = |request, multipart| {
            let mut reply = rightly(request, multipart)?;
            if multipart == 4 {
                // the age of the second port, whose entry has 112 bytes and its age in the last 8
                let at = HEADER + 8 + 2 * 112 - 8;
                reply[at..at + 4].copy_from_slice(&u32::to_be_bytes(ages.next()?));
            }
            Some(reply)
        };
        let _ = answer(stream, aging).await;
    });
    let mut resets = Vec::new();
    for _ in 0..4 {
        resets.push(switch.read().await.expect("it is right").ports[0].discontinuity);
    }
    assert_eq!(resets, [0, 0, 1, 1].map(Some));
}

/// Whole readings and a matrix of a switch whose every answer is a changed message.
#[test]
fn changed_messages_end_a_reading_and_nothing_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are descriptors");
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    let cases = (prop::collection::vec(mutated(), 1..6), 0_u8..4);
    let outcome = TestRunner::new(config).run(&cases, |(replies, right)| {
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("it is bound").to_string();
            let served = tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let mut at = 0;
                    let answers = |request, multipart| {
                        at += 1;
                        let is_right = at <= usize::from(right) + 1;
                        if is_right { rightly(request, multipart) } else { Some(replies[at % replies.len()].clone()) }
                    };
                    let _ = answer(stream, answers).await;
                }
            });
            let settings = Settings {
                timeout: Duration::from_millis(5),
                lldp: Some(LldpKey::of([3; 32]).into()),
                matrix: Some(super::super::MatrixSettings::default()),
                ..hasty()
            };
            let mut switch = OpenFlow::connect(settings, address, None);
            for _ in 0..2 {
                // a panic of the task would be this error
                prop_assert_ne!(switch.read().await, Err(Error::Stopped));
                prop_assert_ne!(switch.matrix().await, Err(Error::Stopped));
            }
            prop_assert!(switch.problem().await.is_ok());
            served.abort();
            Ok(())
        })
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
