//! OpenFlow 1.3 on the wire (ONF TS-006, chapter 7): the messages that a reader of counters needs, to and from bytes.
//!
//! Everything is big-endian. Nothing here panics, whatever the bytes: each field is taken by [`Cursor`], which checks the length.

use super::Error;

/// The protocol's version number of OpenFlow 1.3.
pub(super) const VERSION: u8 = 4;
/// Bytes of the header in front of each message: version, type, length (2), transaction (4).
pub(super) const HEADER: usize = 8;

/// `ofp_type`.
pub(super) mod kind {
    pub const HELLO: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const FEATURES_REQUEST: u8 = 5;
    pub const FEATURES_REPLY: u8 = 6;
    pub const PACKET_IN: u8 = 10;
    pub const FLOW_REMOVED: u8 = 11;
    pub const PORT_STATUS: u8 = 12;
    pub const PACKET_OUT: u8 = 13;
    pub const FLOW_MOD: u8 = 14;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const MULTIPART_REPLY: u8 = 19;
    pub const BARRIER_REQUEST: u8 = 20;
    pub const BARRIER_REPLY: u8 = 21;
    pub const ROLE_REQUEST: u8 = 24;
    pub const ROLE_REPLY: u8 = 25;
    pub const SET_ASYNC: u8 = 28;
}

/// `ofp_port_no`: greater numbers are not ports that a cable can be in.
pub(super) const PORT_MAX: u32 = 0xffff_ff00;
/// The controller, as a port.
pub(super) const PORT_CONTROLLER: u32 = 0xffff_fffd;
/// Any port; any group.
pub(super) const ANY: u32 = 0xffff_ffff;
/// All queues.
pub(super) const QUEUE_ALL: u32 = 0xffff_ffff;
/// The packet is in the message itself, not in a buffer of the switch.
const NO_BUFFER: u32 = 0xffff_ffff;
/// The whole packet is sent to the controller.
const WHOLE_PACKET: u16 = 0xffff;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// Its sender's version; 4 but in a hello, and in an error that answers one.
    pub version: u8,
    /// `ofp_type`.
    pub kind: u8,
    /// Transaction: an answer has its request's.
    pub xid: u32,
    /// What follows the header; at most 65,527 bytes.
    pub body: Vec<u8>,
}

/// What a header says: how many bytes the message has, the header included.
///
/// # Errors
/// A length that no message has.
pub(super) fn length(header: [u8; HEADER]) -> Result<usize, Error> {
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if length < HEADER {
        return Err(Error::Malformed {
            what: "header",
            why: format!("a length of {length}; a header alone has {HEADER}"),
        });
    }
    Ok(length)
}

/// The message of this type, with its header. A body of more than a message can hold is a mistake of ours.
pub(super) fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER + body.len()).expect("what is sent is short, or was received in a message");
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend([VERSION, kind]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Takes fields from the front of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// What is read, for errors.
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes, what }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let Some((taken, rest)) = self.rest.split_at_checked(n) else {
            return Err(self.error(format!("{} bytes where {n} are needed", self.rest.len())));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        self.take(n).map(|_| ())
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A counter: all ones where the switch does not count it.
    pub fn counter(&mut self) -> Result<Option<u64>, Error> {
        Ok(Some(self.u64()?).filter(|count| *count != u64::MAX))
    }

    pub fn error(&self, why: String) -> Error {
        Error::Malformed { what: self.what, why }
    }
}

/// A hello that offers 1.3 alone, with the bitmap of versions that 1.3.1 introduced.
pub(super) fn hello(xid: u32) -> Vec<u8> {
    const VERSION_BITMAP: u16 = 1;
    let mut body = Vec::new();
    body.extend(VERSION_BITMAP.to_be_bytes());
    body.extend(8_u16.to_be_bytes());
    body.extend((1_u32 << VERSION).to_be_bytes());
    message(kind::HELLO, xid, &body)
}

/// Whether the sender of this hello speaks 1.3: by its bitmap, else by its version, which is the highest that it speaks.
///
/// # Errors
/// It is cut short.
pub(super) fn speaks_ours(hello: &Message) -> Result<bool, Error> {
    let mut cursor = Cursor::new("hello", &hello.body);
    while !cursor.is_empty() {
        let kind = cursor.u16()?;
        let length = usize::from(cursor.u16()?);
        let Some(content) = length.checked_sub(4) else {
            return Err(cursor.error(format!("an element with a length of {length}; its header alone has 4")));
        };
        let content = cursor.take(content)?;
        // padding to 8 bytes; some leave it out at the end
        let padding = (8 - length % 8) % 8;
        cursor.skip(padding.min(cursor.rest().len()))?;
        if kind == 1 {
            return Ok(Cursor::new("hello", content).u32()? & (1 << VERSION) != 0);
        }
    }
    Ok(hello.version >= VERSION)
}

/// An error that says that the versions offered have none in common: `OFPET_HELLO_FAILED`, `OFPHFC_INCOMPATIBLE`.
pub(super) fn hello_failed(xid: u32) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0];
    body.extend(b"only OpenFlow 1.3 is spoken here");
    message(kind::ERROR, xid, &body)
}

/// The type and the code of an error message.
///
/// # Errors
/// It is cut short.
pub(super) fn error(body: &[u8]) -> Result<(u16, u16), Error> {
    let mut cursor = Cursor::new("error message", body);
    Ok((cursor.u16()?, cursor.u16()?))
}

/// What the standard calls an error.
pub(super) fn error_name(kind: u16, code: u16) -> String {
    const KINDS: [&str; 14] = [
        "HELLO_FAILED",
        "BAD_REQUEST",
        "BAD_ACTION",
        "BAD_INSTRUCTION",
        "BAD_MATCH",
        "FLOW_MOD_FAILED",
        "GROUP_MOD_FAILED",
        "PORT_MOD_FAILED",
        "TABLE_MOD_FAILED",
        "QUEUE_OP_FAILED",
        "SWITCH_CONFIG_FAILED",
        "ROLE_REQUEST_FAILED",
        "METER_MOD_FAILED",
        "TABLE_FEATURES_FAILED",
    ];
    const REQUEST: [&str; 14] = [
        "BAD_VERSION",
        "BAD_TYPE",
        "BAD_MULTIPART",
        "BAD_EXPERIMENTER",
        "BAD_EXP_TYPE",
        "EPERM",
        "BAD_LEN",
        "BUFFER_EMPTY",
        "BUFFER_UNKNOWN",
        "BAD_TABLE_ID",
        "IS_SLAVE",
        "BAD_PORT",
        "BAD_PACKET",
        "MULTIPART_BUFFER_OVERFLOW",
    ];
    match (KINDS.get(usize::from(kind)), kind, REQUEST.get(usize::from(code))) {
        (Some(name), 1, Some(what)) => format!("{name}, {what}"),
        (Some(name), _, _) => format!("{name}, code {code}"),
        (None, _, _) => format!("error {kind}, code {code}"),
    }
}

/// What a switch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    /// Its datapath's number, which is unique in a network.
    pub datapath: u64,
    /// 0 on the main connection.
    pub auxiliary: u8,
}

/// Reads a features reply.
///
/// # Errors
/// It is cut short.
pub(super) fn features(body: &[u8]) -> Result<Features, Error> {
    let mut cursor = Cursor::new("features reply", body);
    let datapath = cursor.u64()?;
    let _buffers = cursor.u32()?;
    let _tables = cursor.u8()?;
    Ok(Features { datapath, auxiliary: cursor.u8()? })
}

/// What a controller may do at a switch that has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Asks which it has.
    Same = 0,
    /// It may change the switch, as the others may.
    Equal = 1,
    /// It may only read.
    Slave = 3,
}

/// Asks for a role. `generation` counts elections of masters: an older one than the switch has seen is refused.
pub(super) fn role(xid: u32, role: Role, generation: u64) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend((role as u32).to_be_bytes());
    body.extend([0; 4]);
    body.extend(generation.to_be_bytes());
    message(kind::ROLE_REQUEST, xid, &body)
}

/// The generation in a role reply; `None` before there was an election.
///
/// # Errors
/// It is cut short.
pub(super) fn generation(body: &[u8]) -> Result<Option<u64>, Error> {
    let mut cursor = Cursor::new("role reply", body);
    cursor.skip(8)?;
    cursor.counter()
}

/// Asks for these messages, in either role, and no others: packets that a flow entry sends to the controller, changes of ports, and
/// flow entries that were removed.
pub(super) fn asynchronous(xid: u32, packets: bool, removed: bool) -> Vec<u8> {
    // bits by reason: a packet by an action (1), not by a table miss (0) or its TTL (2); a port added, deleted, modified (0, 1, 2);
    // an entry removed by either timeout, a delete message, or with its group (0, 1, 2, 3)
    let masks = [if packets { 1 << 1 } else { 0 }, 0b111, if removed { 0b1111 } else { 0 }];
    // each twice: as equal, as slave
    let body: Vec<u8> = masks.iter().flat_map(|mask: &u32| [mask.to_be_bytes(); 2]).flatten().collect();
    message(kind::SET_ASYNC, xid, &body)
}

/// A packet to be sent out of a port.
pub(super) fn packet_out(xid: u32, port: u32, packet: &[u8]) -> Vec<u8> {
    let action = output(port, 0);
    let mut body = Vec::new();
    body.extend(NO_BUFFER.to_be_bytes());
    body.extend(PORT_CONTROLLER.to_be_bytes());
    body.extend((action.len() as u16).to_be_bytes());
    body.extend([0; 6]);
    body.extend(action);
    body.extend(packet);
    message(kind::PACKET_OUT, xid, &body)
}

fn output(port: u32, bytes: u16) -> [u8; 16] {
    let mut action = [0; 16];
    action[3] = 16;
    action[4..8].copy_from_slice(&port.to_be_bytes());
    action[8..10].copy_from_slice(&bytes.to_be_bytes());
    action
}

/// A packet that the switch sent to its controllers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketIn<'a> {
    /// The match, which names the port.
    pub fields: &'a [u8],
    /// The packet, from its Ethernet header on.
    pub packet: &'a [u8],
}

/// Reads a packet-in.
///
/// # Errors
/// It is cut short.
pub(super) fn packet_in(body: &[u8]) -> Result<PacketIn<'_>, Error> {
    let mut cursor = Cursor::new("packet-in", body);
    // buffer, length, reason, table, cookie
    cursor.skip(4 + 2 + 1 + 1 + 8)?;
    let fields = fields(&mut cursor)?;
    cursor.skip(2)?;
    Ok(PacketIn { fields, packet: cursor.rest() })
}

/// The fields of a match, which stands next, and is padded to 8 bytes.
///
/// # Errors
/// It is cut short, or no OXM match.
pub(super) fn fields<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Error> {
    let kind = cursor.u16()?;
    let length = usize::from(cursor.u16()?);
    let (1, Some(content)) = (kind, length.checked_sub(4)) else {
        return Err(cursor.error(format!("a match of type {kind} and length {length}; type 1 has at least 4")));
    };
    let content = cursor.take(content)?;
    cursor.skip((8 - length % 8) % 8)?;
    Ok(content)
}

/// A match of these fields, padded.
fn matching(fields: &[u8]) -> Vec<u8> {
    let length = 4 + fields.len();
    let mut bytes = vec![0, 1];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend(fields);
    bytes.resize(length.next_multiple_of(8), 0);
    bytes
}

/// A flow entry that sends what it matches to the controllers, or its deletion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    /// By which its owner finds it.
    pub cookie: u64,
    /// The highest priority is taken.
    pub priority: u16,
    /// The switch removes it by itself after so many seconds.
    pub lifetime_s: u16,
    /// OXM fields.
    pub fields: &'a [u8],
}

/// Adds this entry to table 0. The switch refuses it where one of the same priority would match the same packets, unless it is this one.
pub(super) fn add_entry(xid: u32, entry: &Entry<'_>) -> Vec<u8> {
    const CHECK_OVERLAP: u16 = 1 << 1;
    const APPLY_ACTIONS: u16 = 4;
    let action = output(PORT_CONTROLLER, WHOLE_PACKET);
    let mut body = flow_mod(0, entry, 0, CHECK_OVERLAP);
    body.extend(APPLY_ACTIONS.to_be_bytes());
    body.extend((8 + action.len() as u16).to_be_bytes());
    body.extend([0; 4]);
    body.extend(action);
    message(kind::FLOW_MOD, xid, &body)
}

/// Deletes what has exactly this cookie from table 0, and is matched by the fields.
pub(super) fn delete_entries(xid: u32, entry: &Entry<'_>) -> Vec<u8> {
    const DELETE: u8 = 3;
    message(kind::FLOW_MOD, xid, &flow_mod(DELETE, entry, u64::MAX, 0))
}

fn flow_mod(command: u8, entry: &Entry<'_>, cookie_mask: u64, flags: u16) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(entry.cookie.to_be_bytes());
    body.extend(cookie_mask.to_be_bytes());
    // table 0, command, no idle timeout
    body.extend([0, command, 0, 0]);
    body.extend(entry.lifetime_s.to_be_bytes());
    body.extend(entry.priority.to_be_bytes());
    body.extend(NO_BUFFER.to_be_bytes());
    body.extend(ANY.to_be_bytes());
    body.extend(ANY.to_be_bytes());
    body.extend(flags.to_be_bytes());
    body.extend([0; 2]);
    body.extend(matching(entry.fields));
    body
}

/// `ofp_multipart_type`, with the body of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question<'a> {
    /// Flow entries of a table that these fields match, or of all for none.
    Flows {
        /// Its number.
        table: u8,
        /// OXM fields.
        fields: &'a [u8],
    },
    /// Counters of all ports.
    Ports,
    /// Counters of all queues of all ports.
    Queues,
    /// Names, addresses, states and speeds of all ports.
    Descriptions,
}

impl Question<'_> {
    /// Its number in request and reply.
    pub fn number(self) -> u16 {
        match self {
            Question::Flows { .. } => 1,
            Question::Ports => 4,
            Question::Queues => 5,
            Question::Descriptions => 13,
        }
    }

    /// What it asks for, for errors.
    pub fn name(self) -> &'static str {
        match self {
            Question::Flows { .. } => "flow statistics",
            Question::Ports => "port statistics",
            Question::Queues => "queue statistics",
            Question::Descriptions => "port descriptions",
        }
    }
}

/// A multipart request.
pub(super) fn question(xid: u32, question: Question<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(question.number().to_be_bytes());
    body.extend([0; 6]);
    match question {
        Question::Flows { table, fields } => {
            body.extend([table, 0, 0, 0]);
            body.extend(ANY.to_be_bytes());
            body.extend(ANY.to_be_bytes());
            // padding, no cookie, no mask of cookies
            body.extend([0; 4 + 8 + 8]);
            body.extend(matching(fields));
        }
        Question::Ports => {
            body.extend(ANY.to_be_bytes());
            body.extend([0; 4]);
        }
        Question::Queues => {
            body.extend(ANY.to_be_bytes());
            body.extend(QUEUE_ALL.to_be_bytes());
        }
        Question::Descriptions => {}
    }
    message(kind::MULTIPART_REQUEST, xid, &body)
}

/// One part of an answer.
pub(super) struct Part<'a> {
    /// Of which question.
    pub number: u16,
    /// Whether parts follow.
    pub more: bool,
    /// Its entries.
    pub body: &'a [u8],
}

/// Reads a part.
///
/// # Errors
/// It is cut short.
pub(super) fn part(body: &[u8]) -> Result<Part<'_>, Error> {
    let mut cursor = Cursor::new("multipart reply", body);
    let number = cursor.u16()?;
    let more = cursor.u16()? & 1 != 0;
    cursor.skip(4)?;
    Ok(Part { number, more, body: cursor.rest() })
}
