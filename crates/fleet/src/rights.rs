//! What each role may publish and subscribe to; the server enforces it by the member's own JWT.

use crate::nkey::Nkey;
use crate::{Kind, Role};
use serde::{Deserialize, Serialize};

/// CUEs and period beacons, from the Oracle to all agents and enforcers.
pub const CUE: &str = "opentcp.cue";
/// Requests of enrolment, from holders of a token; answered in the inbox of the token's user.
pub const ENROLL: &str = "opentcp.enroll";
/// The bucket of the members: key `U…`, value a [`crate::Card`]'s JWT or a [`crate::Revoked`].
pub const MEMBERS_BUCKET: &str = "opentcp-members";
/// The bucket of what the Oracles share: the lease, the policy, the rollout.
pub const ORACLE_BUCKET: &str = "opentcp-oracle";
/// Longest message of a member, bytes: a message of the bus, sealed.
pub const PAYLOAD_MAX: usize = 64 * 1024 + 1024;
/// Subscriptions of a member: two, and some for reconnecting.
const SUBSCRIPTIONS_MAX: i64 = 8;

/// From the Oracle to one member.
pub fn to(key: &Nkey) -> String {
    format!("opentcp.to.{key}")
}

/// On which subject a member of this role sends to the Oracle: `opentcp.report.KEY`, `opentcp.collect.KEY` or `opentcp.request.KEY`.
/// `None` for an Oracle.
pub fn from(role: Role, key: &Nkey) -> Option<String> {
    let word = match role {
        Role::Agent | Role::Enforcer => "report",
        Role::Collector => "collect",
        Role::Operator => "request",
        Role::Oracle => return None,
    };
    Some(format!("opentcp.{word}.{key}"))
}

/// The prefix of this user's reply subjects: no other user can listen to them.
pub fn inbox(key: &Nkey) -> String {
    format!("_INBOX.{key}")
}

/// Whether this is a reply subject of this user's.
pub fn is_in_inbox(key: &Nkey, subject: &str) -> bool {
    subject.strip_prefix(&inbox(key)).is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
}

/// Where a system user asks for the account's current JWT; the answer is its text.
pub fn lookup(account: &Nkey) -> String {
    format!("$SYS.REQ.ACCOUNT.{account}.CLAIMS.LOOKUP")
}

/// Where a system user sends a new JWT of the account.
pub const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";

/// What a user may do, as NATS writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Subjects that it may publish to.
    #[serde(rename = "pub", default)]
    pub publish: Subjects,
    /// Subjects that it may subscribe to.
    #[serde(rename = "sub", default)]
    pub subscribe: Subjects,
    /// Most subscriptions; -1 is no limit.
    pub subs: i64,
    /// Most bytes of all its messages; -1 is no limit.
    pub data: i64,
    /// Longest message, bytes.
    pub payload: i64,
}

/// Subjects that are allowed; for NATS an empty list allows everything, so none here is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subjects {
    /// The patterns.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// What a user of this kind may do.
pub fn rights(kind: Kind, role: Role, key: &Nkey) -> Rights {
    let (publish, subscribe) = match kind {
        Kind::Member => member(role, key),
        Kind::Ticket => (vec![ENROLL.to_string()], vec![format!("{}.>", inbox(key))]),
    };
    let oracle = kind == Kind::Member && role == Role::Oracle;
    Rights {
        publish: Subjects { allow: publish },
        subscribe: Subjects { allow: subscribe },
        subs: if oracle { -1 } else { SUBSCRIPTIONS_MAX },
        data: -1,
        payload: PAYLOAD_MAX as i64,
    }
}

fn member(role: Role, key: &Nkey) -> (Vec<String>, Vec<String>) {
    let own = from(role, key).into_iter().collect();
    match role {
        // all hear the beacons: a message must name one of the last epochs
        Role::Agent | Role::Enforcer | Role::Collector | Role::Operator => (own, vec![CUE.to_string(), to(key)]),
        Role::Oracle => oracle(key),
    }
}

/// An Oracle sends to all members and hears all; it keeps two buckets, and no other stream of the account.
fn oracle(key: &Nkey) -> (Vec<String>, Vec<String>) {
    // the last is read only: what of the account's storage is in use, which clients ask for before they make a bucket
    let mut publish = vec![CUE.to_string(), "opentcp.to.*".to_string(), "$JS.API.INFO".to_string()];
    for bucket in [MEMBERS_BUCKET, ORACLE_BUCKET] {
        publish.extend(bucket_subjects(bucket));
    }
    // an Oracle that waits hears from its leader, and a leader from another: the highest epoch wins
    let heard = ["cue", "report.*", "collect.*", "request.*"];
    let mut subscribe: Vec<String> = heard.iter().map(|word| format!("opentcp.{word}")).collect();
    subscribe.push(format!("{}.>", inbox(key)));
    (publish, subscribe)
}

/// What an Oracle's second user may do, who answers newcomers. Any holder of a token chooses where his answer goes, so this user reaches
/// inboxes and nothing else: no CUE, no member, no bucket.
pub fn registrar() -> Rights {
    Rights {
        publish: Subjects { allow: vec!["_INBOX.*.>".to_string()] },
        subscribe: Subjects { allow: vec![ENROLL.to_string()] },
        subs: SUBSCRIPTIONS_MAX,
        data: -1,
        payload: PAYLOAD_MAX as i64,
    }
}

/// What a client publishes to in using one key-value bucket.
fn bucket_subjects(bucket: &str) -> Vec<String> {
    let stream = format!("KV_{bucket}");
    vec![
        // make the bucket, and look whether it is there
        format!("$JS.API.STREAM.CREATE.{stream}"),
        format!("$JS.API.STREAM.INFO.{stream}"),
        // read a key: from the last message of its subject, or by number
        format!("$JS.API.DIRECT.GET.{stream}"),
        format!("$JS.API.DIRECT.GET.{stream}.$KV.{bucket}.>"),
        format!("$JS.API.STREAM.MSG.GET.{stream}"),
        // watch: an ordered consumer, recreated after a lost connection, and its flow control
        format!("$JS.API.CONSUMER.CREATE.{stream}"),
        format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
        format!("$JS.API.CONSUMER.INFO.{stream}.*"),
        format!("$JS.API.CONSUMER.DELETE.{stream}.*"),
        format!("$JS.FC.{stream}.>"),
        // put, create, update, delete
        format!("$KV.{bucket}.>"),
    ]
}

/// What the Oracle's user of the system account may do: read and replace the JWT of the fleet's account.
pub fn system(key: &Nkey, account: &Nkey) -> Rights {
    Rights {
        publish: Subjects { allow: vec![UPDATE.to_string(), lookup(account)] },
        subscribe: Subjects { allow: vec![format!("{}.>", inbox(key))] },
        subs: SUBSCRIPTIONS_MAX,
        data: -1,
        payload: PAYLOAD_MAX as i64,
    }
}
