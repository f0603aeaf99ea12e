//! `opentcp fleet list` and `opentcp fleet revoke`: an operator's look at the members, and the end of one, or of a token.

use crate::enroll::token;
use crate::failure::Failure;
use crate::identity::FOLDER;
use crate::terminal::{print, print_json};
use bus::{NatsBus, ask_fleet, unix_s};
use fleet::{Command, MemberLine, Reply, Role, Token};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

const DAY_S: u64 = 86_400;
/// Pages of members that are asked for at most: more than a fleet has.
const PAGES_MAX: usize = 4096;

#[derive(Debug, clap::Args)]
pub struct Operator {
    /// The folder of an operator's identity
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    identity: PathBuf,
    /// How long to wait for a server and for the Oracle, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

/// List the fleet's members
///
/// Asks the Oracle for all members: name, role, how long the identity is valid, key. Revoked ones are listed until their identities
/// would have expired.
///
/// Exit codes: 0 done, 1 no server or no Oracle answered, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet list\n  opentcp fleet list --json | jq -r '.[] | select(.revoked | not) | .name'"
)]
pub struct ListArgs {
    #[command(flatten)]
    operator: Operator,
    /// JSON on stdout instead of a table
    #[arg(long)]
    json: bool,
}

/// Revoke a member, or a token: nothing of it is accepted any more
///
/// The server ends its connection at once, and the Oracle refuses what its key signs. What its host has set ends as CUEs expire. The
/// machine can join again with a new token and a new key, after its identity folder is removed.
///
/// With a token, nobody joins with it any more. Who has joined with it stays: `opentcp fleet list` shows whom you do not know.
///
/// Exit codes: 0 done, 1 no server or no Oracle answered, or only a part was done (repeat the command), 2 there is no such member.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet revoke web17\n  opentcp fleet revoke web17 --role agent\n  opentcp fleet revoke UDXU4RCS…\n  \
                  opentcp fleet revoke --token @token"
)]
pub struct RevokeArgs {
    /// The member's name, or its public key
    #[arg(value_name = "NAME", required_unless_present = "token")]
    name: Option<String>,
    /// A token in place of a member: the line itself, `-` for standard input, or `@FILE`
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["name", "role"])]
    token: Option<String>,
    /// Its role, if several members have the name
    #[arg(long, value_name = "ROLE")]
    role: Option<Role>,
    #[command(flatten)]
    operator: Operator,
}

impl Operator {
    fn ask(&self, bus: &mut NatsBus, command: &Command) -> Result<Reply, Failure> {
        ask_fleet(bus, command, Duration::from_secs(self.wait)).map_err(Failure::Run)
    }

    fn join(&self) -> Result<NatsBus, Failure> {
        let bus = NatsBus::join(&self.identity).map_err(|error| Failure::Input(error.to_string()))?;
        let member = bus.member();
        if member.role == Role::Operator {
            return Ok(bus);
        }
        let folder = self.identity.display();
        let words =
            format!("{folder}: the identity of {} {}; this command needs an operator's", member.role, member.name);
        Err(Failure::Input(words))
    }
}

/// Runs `opentcp fleet list`.
///
/// # Errors
/// As the exit codes say.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let (mut bus, mut all, mut after) = (args.operator.join()?, Vec::new(), None);
    for _ in 0..PAGES_MAX {
        match args.operator.ask(&mut bus, &Command::List { after })? {
            Reply::Members { members, more } => {
                all.extend(members);
                after = more;
            }
            Reply::Refused(why) => return Err(Failure::Run(why)),
            Reply::Revoked(_) => return Err(Failure::Run("the Oracle answered something else".to_string())),
        }
        if after.is_none() {
            break;
        }
    }
    all.sort_by(|one, other| (one.role, &one.name, one.until).cmp(&(other.role, &other.name, other.until)));
    if args.json { print_json(&all) } else { print(&table(&all)) }
}

/// Runs `opentcp fleet revoke`.
///
/// # Errors
/// As the exit codes say.
pub fn revoke(args: &RevokeArgs) -> Result<(), Failure> {
    let command = match (&args.token, &args.name) {
        (Some(text), _) => {
            let token = Token::parse(&token(text)?, unix_s()).map_err(|error| Failure::Input(error.to_string()))?;
            Command::RevokeToken { ticket: token.ticket.jwt }
        }
        (None, name) => Command::Revoke { name: name.clone().expect("clap requires it"), role: args.role },
    };
    match args.operator.ask(&mut args.operator.join()?, &command)? {
        Reply::Revoked(line) if args.token.is_some() => {
            print(&format!("the token for the role {} is revoked: {}\n", line.role, line.key))
        }
        Reply::Revoked(line) => print(&format!("{} {} is revoked: {}\n", line.role, line.name, line.key)),
        Reply::Refused(why) if why.contains("once more") => Err(Failure::Run(why)),
        Reply::Refused(why) => Err(Failure::Input(why)),
        Reply::Members { .. } => Err(Failure::Run("the Oracle answered something else".to_string())),
    }
}

fn table(members: &[MemberLine]) -> String {
    let longest = members.iter().map(|one| one.name.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<9}  {:<longest$}  {:<18}  key\n", "role", "name", "identity");
    let now = unix_s();
    for one in members {
        let days = |from: u64, to: u64| to.saturating_sub(from) / DAY_S;
        let state = match (one.revoked, one.until > now) {
            (true, _) => format!("revoked {} d ago", days(one.until, now)),
            (false, true) => format!("valid for {} d", days(now, one.until)),
            (false, false) => format!("expired {} d ago", days(one.until, now)),
        };
        let hosts = match one.hosts_count {
            0 => String::new(),
            1 => format!("  for {}", one.hosts.join(" ")),
            more => format!("  for {} and {} more", one.hosts.join(" "), more - one.hosts.len()),
        };
        writeln!(text, "{:<9}  {:<longest$}  {state:<18}  {}{hosts}", one.role.word(), one.name, one.key)
            .expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_listed_in_columns() {
        let one = |name: &str, role, until, revoked, hosts: &[&str]| MemberLine {
            key: "UKEY".into(),
            name: name.into(),
            role,
            hosts: hosts.iter().take(1).map(|host| (*host).to_string()).collect(),
            hosts_count: hosts.len(),
            issued: 0,
            until,
            revoked,
        };
        let now = unix_s();
        let text = table(&[
            one("web17", Role::Agent, now + 2 * DAY_S + 60, false, &[]),
            one("edge", Role::Enforcer, now - 3 * DAY_S, true, &["db1", "db2"]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "role       name   identity            key");
        assert_eq!(lines[1], "agent      web17  valid for 2 d       UKEY");
        assert_eq!(lines[2], "enforcer   edge   revoked 3 d ago     UKEY  for db1 and 1 more");
    }
}
