//! What an operator asks about members: the list, and to revoke one, or a token.

use super::bus::NatsBus;
use super::hub::NatsHub;
use super::joining::parts;
use super::link::{Capacity, Link};
use super::unix_s;
use crate::kind::{FLEET, FLEET_REPLY};
use crate::{Bus as _, Peer};
use fleet::{AccountJwt, Authority, Command, Entry, LIFETIME_S, MemberLine, Nkey, Reply, find, line, page, rights};
use std::time::{Duration, Instant};

/// A question to the server and its answer, and another.
const CAPACITY: Capacity = Capacity { received: 8, sent: 8 };
/// How long the server may take to connect, and to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the answer is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Asks the Oracle about members, or to revoke one, and waits for the answer.
///
/// # Errors
/// There is none in time, in words.
pub fn ask_fleet(bus: &mut NatsBus, command: &Command, wait: Duration) -> Result<Reply, String> {
    let message = [FLEET, &serde_json::to_vec(command).expect("it is plain data")].concat();
    bus.send(&message).map_err(|error| error.to_string())?;
    let began = Instant::now();
    while began.elapsed() < wait {
        let answer = bus.receive(LOOK).map_err(|error| error.to_string())?;
        if let Some(json) = answer.as_ref().and_then(|bytes| bytes.strip_prefix(FLEET_REPLY)) {
            return serde_json::from_slice(json)
                .map_err(|error| format!("the Oracle's answer is not understood: {error}"));
        }
    }
    Err(match (bus.is_connected(), bus.trouble()) {
        (false, Some(why)) => format!("no server of the fleet can be reached: {why}"),
        (false, None) => "no server of the fleet can be reached".to_string(),
        (true, _) => "the server is there, but no Oracle has answered: is one running?".to_string(),
    })
}

/// The answer to a command of an operator's, whose signature was verified.
pub(super) fn answer(hub: &mut NatsHub, from: &Peer, bytes: &[u8]) -> Vec<u8> {
    let command = bytes.strip_prefix(FLEET).and_then(|json| serde_json::from_slice(json).ok());
    let reply = match command {
        None => Reply::Refused("the command is not understood: it is of another version".to_string()),
        Some(Command::List { after }) => page(&hub.lock().registry, after.as_deref()),
        Some(Command::Revoke { name, role }) => match revoke(hub, &name, role) {
            Ok(line) => {
                hub.note("revoked", format!("{} {}, by {}", line.role, line.name, name_of(from)));
                Reply::Revoked(line)
            }
            Err(why) => Reply::Refused(why),
        },
        Some(Command::RevokeToken { ticket }) => match revoke_token(hub, &ticket) {
            Ok(line) => {
                hub.note("revoked", format!("a token for the role {}, by {}", line.role, name_of(from)));
                Reply::Revoked(line)
            }
            Err(why) => Reply::Refused(why),
        },
    };
    [FLEET_REPLY, &serde_json::to_vec(&reply).expect("it is plain data")].concat()
}

fn name_of(from: &Peer) -> &str {
    if let Peer::Member(member) = from { member.name.as_str() } else { "this machine" }
}

/// Revokes a token, as a member is.
fn revoke_token(hub: &mut NatsHub, ticket: &str) -> Result<MemberLine, String> {
    let revoked = Authority { oracle: &hub.oracle }.revoke_token(ticket, unix_s());
    let (key, entry) = revoked.map_err(|why| why.to_string())?;
    hub.record(key.as_str(), &entry).map_err(|why| partly("the token", &format!("the register: {why}")))?;
    let entry = hub.lock().registry.entry(&key).map(|entry| line(&key, entry));
    at_server(hub, &key).map_err(|why| partly("the token", &why))?;
    entry.ok_or_else(|| "the register is full".to_string())
}

/// Revokes a member at once for this Oracle, then in the register, then at the server.
fn revoke(hub: &mut NatsHub, name: &str, role: Option<fleet::Role>) -> Result<MemberLine, String> {
    let found = find(&hub.lock().registry, name, role);
    let (key, line) = match found {
        Ok((key, line)) => {
            let entry = {
                let authority = Authority { oracle: &hub.oracle };
                authority.revoke(&hub.lock().registry, &key, unix_s()).map_err(|why| why.to_string())?
            };
            let line = MemberLine { revoked: true, until: unix_s(), ..line };
            hub.record(&entry.0, &entry.1).map_err(|why| partly(name, &format!("the register of members: {why}")))?;
            (key, line)
        }
        // the first attempt may not have reached the server
        Err(why) => revoked(hub, name, role).ok_or(why)?,
    };
    at_server(hub, &key).map_err(|why| partly(name, &why))?;
    Ok(line)
}

fn partly(name: &str, why: &str) -> String {
    format!("this Oracle refuses {name} from now on, but the server does not yet: {why}. Run the command once more")
}

/// A member that was revoked.
fn revoked(hub: &NatsHub, name: &str, role: Option<fleet::Role>) -> Option<(Nkey, MemberLine)> {
    let state = hub.lock();
    let mut revoked = state.registry.entries().filter_map(|(key, entry)| match entry {
        Entry::Revoked(one) if one.name == name || one.key == name => Some((key.clone(), one.clone())),
        _ => None,
    });
    let (key, one) = revoked.find(|(_, one)| role.is_none_or(|role| one.role == role))?;
    let (hosts, hosts_count, issued) = (Vec::new(), 0, 0);
    let line = MemberLine {
        key: one.key,
        name: one.name,
        role: one.role,
        hosts,
        hosts_count,
        issued,
        until: one.at,
        revoked: true,
    };
    Some((key, line))
}

/// Has the server end the member's connection and refuse it from now on: by a new JWT of the account, as a user of the system account.
fn at_server(hub: &NatsHub, key: &Nkey) -> Result<(), String> {
    let (oracle, fleet) = (&hub.oracle, &hub.oracle.identity.fleet);
    let (jwt, seed) = parts(&oracle.system)?;
    let inbox = rights::inbox(seed.public());
    let credentials = Box::new(move || Ok((jwt.clone(), seed.clone())));
    let joining = hub.folder.joining_as("opentcp revocation".to_string(), inbox, credentials);
    let link = Link::join(joining.map_err(|error| error.to_string())?, CAPACITY).map_err(|error| error.to_string())?;
    link.reach(PATIENCE)?;
    let request = |subject: String, bytes: Vec<u8>| {
        let asked = link.client().request(subject, bytes.into());
        let answer = link.run(PATIENCE, asked).ok_or("it did not answer in time")?;
        answer.map(|message| message.payload).map_err(|error| error.to_string())
    };
    let text = request(rights::lookup(&fleet.account), Vec::new())?;
    let text = std::str::from_utf8(&text).map_err(|_| "the account's JWT is not text")?;
    let operators = [oracle.operator.public().clone()];
    let mut account = AccountJwt::read(text, &fleet.account, &operators).map_err(|error| error.to_string())?;
    let anew = account.revoke(key, &oracle.operator, unix_s(), LIFETIME_S).map_err(|error| error.to_string())?;
    let answer = request(rights::UPDATE.to_string(), anew.into_bytes())?;
    let taken =
        serde_json::from_slice(&answer).ok().and_then(|answer: serde_json::Value| answer["data"]["code"].as_u64());
    if taken == Some(200) { Ok(()) } else { Err(String::from_utf8_lossy(&answer).into_owned()) }
}
