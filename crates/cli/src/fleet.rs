//! `opentcp fleet`: identities of the machines of a fleet.

use crate::failure::Failure;
use crate::members;
use crate::terminal::{note, print, print_json};
use bus::unix_s;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use fleet::{
    CERTIFICATE_DAYS, Identity, Init, InitError, OracleIdentity, Role, Rotation, Server, Token, TokenError,
    TokenRequest,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// After the help of `opentcp fleet`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp fleet init /etc/opentcp/fleet --server nats.example:4222
  opentcp fleet token --fleet /etc/opentcp/fleet --role agent --for 1h
  opentcp fleet show /etc/opentcp/identity
  opentcp fleet list
  opentcp fleet revoke web17";

/// What is to be done.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Init(InitArgs),
    Token(TokenArgs),
    RotateKey(RotateArgs),
    Certificate(CertificateArgs),
    Show(ShowArgs),
    List(members::ListArgs),
    Revoke(members::RevokeArgs),
}

/// Make a new fleet: keys, certificates, the server's configuration, identities
///
/// Makes DIR with four kinds of folders. DIR/nats is for the machine of the server: `cd nats && nats-server -c nats-server.conf`. DIR/oracle-0
/// and so on are the Oracles' identity folders, each for one Oracle's machine, as /etc/opentcp/identity. DIR/operator is the identity folder of
/// whoever changes policies. DIR/keys holds what is needed to recover, and to renew the servers' certificate: keep it on no machine of the fleet.
/// Secrets can only be read by their owner.
///
/// DIR must not exist, or be empty; it is made whole or not at all.
///
/// Exit codes: 0 done, 1 the folder cannot be written, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet init fleet --server nats.example:4222\n  opentcp fleet init fleet --server a.example --server b.example \
                  --server c.example --oracles 2"
)]
pub struct InitArgs {
    /// The folder to make
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A server of the bus, by DNS name or IP address, as members reach it; repeat it for each [default port: 4222]
    #[arg(long = "server", value_name = "HOST[:PORT]", required = true)]
    servers: Vec<Server>,
    /// How many Oracles the fleet has: one decides, the others are ready to replace it
    #[arg(long, value_name = "N", default_value_t = 1)]
    oracles: usize,
    /// For how many days the servers' certificate is valid; `opentcp fleet certificate` renews it
    #[arg(long, value_name = "DAYS", default_value_t = CERTIFICATE_DAYS)]
    certificate_days: u32,
}

/// Print a token, with which machines enrol
///
/// Prints one line. On the machine, `opentcp enroll` takes it and makes the identity folder: the machine proposes a key of its own, and the Oracle
/// signs it. The token is a secret until it expires. It cannot report, take CUEs or change anything; it can only ask to be enrolled, in
/// its role, under its names.
///
/// Exit codes: 0 done, 1 the system gave no random bytes, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet token\n  opentcp fleet token --host h1 --uses 1\n  opentcp fleet token --role enforcer --host h7 --host h8 \
                  --for 10min\n  opentcp fleet token --fleet fleet | ssh h1 sudo opentcp enroll -"
)]
pub struct TokenArgs {
    /// An Oracle's identity folder, or the folder that `opentcp fleet init` made
    #[arg(long, value_name = "DIR", default_value = "/etc/opentcp/identity")]
    fleet: PathBuf,
    /// What the machines may do: agent, enforcer, collector or operator
    #[arg(long, value_name = "ROLE", default_value = "agent", value_parser = roles())]
    role: Role,
    /// A name that a machine may take; repeat it for each [default: any that is free]. For an enforcer, a host behind it, which has to be named
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// How long the token is valid, in s, min, h or d, at most 7d
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = life)]
    life: Life,
    /// How many machines may enrol with it [default: any number]
    #[arg(long, value_name = "N")]
    uses: Option<u32>,
}

/// Replace the Oracle's key, with which it signs CUEs
///
/// In two steps, so that no machine misses a CUE. The first makes a second key valid: machines receive it when they renew their JWTs or connect.
/// The Oracle still signs with the first key. The second step, with --finish, makes the Oracle sign with the second key, and the first
/// one is not valid any more. Wait between them until every machine has connected once; one that was off follows when it connects,
/// since the Oracle keeps the signed statements of the last 16 steps. Restart the Oracles after each step.
///
/// A key that somebody has stolen is not replaced by this, since the thief can sign such statements, too: see docs/security.md.
///
/// Exit codes: 0 done, 1 a file cannot be written, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet rotate-key --fleet /etc/opentcp/fleet\n  opentcp fleet rotate-key --fleet /etc/opentcp/fleet --finish"
)]
pub struct RotateArgs {
    /// An Oracle's identity folder, or the folder that `opentcp fleet init` made; in that case, copy the changed folders to their machines
    #[arg(long, value_name = "DIR", default_value = "/etc/opentcp/identity")]
    fleet: PathBuf,
    /// End the rotation: sign with the second key, and forget the first
    #[arg(long)]
    finish: bool,
}

/// Renew the servers' certificate
///
/// Makes a new key and a new certificate in DIR/nats, signed by the fleet's authority, whose key is in DIR/keys. Members notice nothing. Copy both
/// files to the servers, and have them reload: `nats-server --signal reload`.
///
/// Exit codes: 0 done, 1 a file cannot be written, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp fleet certificate /etc/opentcp/fleet\n  opentcp fleet certificate fleet --server nats2.example --days 90"
)]
pub struct CertificateArgs {
    /// The folder that `opentcp fleet init` made
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A server's DNS name or IP address for the certificate; repeat it for each [default: those named to `fleet init`]
    #[arg(long = "server", value_name = "HOST")]
    servers: Vec<Server>,
    /// For how many days it is valid
    #[arg(long, value_name = "DAYS", default_value_t = CERTIFICATE_DAYS)]
    days: u32,
}

/// Print who a machine is, from its identity folder
///
/// Prints name, role, servers, keys and expiry, and no secret.
///
/// Exit codes: 0 done, 2 the folder is not a valid identity, or it has expired.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp fleet show\n  opentcp fleet show fleet/oracle-0 --json")]
pub struct ShowArgs {
    /// The identity folder
    #[arg(value_name = "DIR", default_value = "/etc/opentcp/identity")]
    folder: PathBuf,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn fleet(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Init(args) => init(args),
        Command::Token(args) => token(args),
        Command::RotateKey(args) => rotate(args),
        Command::Certificate(args) => certificate(args),
        Command::Show(args) => show(args),
        Command::List(args) => members::list(args),
        Command::Revoke(args) => members::revoke(args),
    }
}

fn roles() -> impl clap::builder::TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ENROLLED.map(Role::word)).try_map(|word| word.parse::<Role>())
}

/// How long a token is valid.
#[derive(Clone, Debug)]
struct Life {
    seconds: u64,
    /// As it was asked for.
    text: String,
}

/// A time such as `90s`, `10 min`, `1h`, `2d`.
fn life(text: &str) -> Result<Life, String> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or("it lacks a unit: s, min, h or d, such as `1h`")?;
    let (number, unit) = text.split_at(at);
    let each = match unit.trim() {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => DAY_S,
        other => return Err(format!("the unit `{other}` is not one of s, min, h and d")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number and a unit, such as `1h`")?;
    let seconds = number.checked_mul(each).ok_or("it is too long")?;
    Ok(Life { seconds, text: text.to_string() })
}

fn init(args: &InitArgs) -> Result<(), Failure> {
    let request = Init {
        servers: args.servers.clone(),
        oracles: args.oracles,
        certificate_days: args.certificate_days,
        now: unix_s(),
    };
    fleet::init(&args.folder, &request).map_err(|error| failed(&error))?;
    let at = args.folder.display();
    let mut text = format!("{at}/nats: for the server; `cd {at}/nats && nats-server -c nats-server.conf`\n");
    for number in 0..args.oracles {
        writeln!(text, "{at}/oracle-{number}: the identity of Oracle {number}").expect("writing to a string");
    }
    writeln!(text, "{at}/operator: the identity of an operator").expect("writing to a string");
    writeln!(text, "{at}/keys: keys to recover with; keep them on no machine of the fleet")
        .expect("writing to a string");
    print(&text)
}

fn failed(error: &InitError) -> Failure {
    if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
}

/// The identity of the first Oracle of a folder.
fn oracle(folder: &Path) -> Result<OracleIdentity, Failure> {
    let folders = fleet::oracle_folders(folder);
    let first = folders.first().map_or(folder, PathBuf::as_path);
    OracleIdentity::load(first).map_err(|error| Failure::Input(error.to_string()))
}

fn token(args: &TokenArgs) -> Result<(), Failure> {
    let request =
        TokenRequest { role: args.role, hosts: args.hosts.clone(), seconds: args.life.seconds, uses: args.uses };
    let token = Token::issue(&oracle(&args.fleet)?, &request, unix_s());
    let token = token.map_err(|error| match error {
        TokenError::Random(_) => Failure::Run(error.to_string()),
        _ => Failure::Input(error.to_string()),
    })?;
    print(&format!("{}\n", token.text()))?;
    note!("a secret, valid for {}; on the machine, `opentcp enroll` takes it", args.life.text);
    Ok(())
}

fn rotate(args: &RotateArgs) -> Result<(), Failure> {
    let step = if args.finish { Rotation::Finish } else { Rotation::Begin };
    let rotated = fleet::rotate(&args.fleet, step).map_err(|error| {
        if error.is_input() { Failure::Input(error.to_string()) } else { Failure::Run(error.to_string()) }
    })?;
    let mut text = String::new();
    for folder in &rotated.folders {
        writeln!(text, "{}: {} valid", folder.display(), keys(rotated.ring.keys().len())).expect("writing to a string");
    }
    print(&text)?;
    if rotated.completed {
        note!("this completed a step that had been interrupted, and did nothing else");
    }
    note!("restart the Oracles; machines receive the change when they connect or renew");
    Ok(())
}

fn keys(number: usize) -> String {
    if number == 1 { "1 key is".to_string() } else { format!("{number} keys are") }
}

fn certificate(args: &CertificateArgs) -> Result<(), Failure> {
    let made = fleet::renew_certificate(&args.folder, &args.servers, args.days, unix_s());
    // what is missing is the folder that the user has named
    let path = made.map_err(|error| match error {
        InitError::File(error) => Failure::Input(error.to_string()),
        error => failed(&error),
    })?;
    print(&format!("{}: valid for {} days\n", path.display(), args.days))
}

/// What `opentcp fleet show` prints.
#[derive(Serialize)]
struct Shown {
    name: String,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    key: String,
    servers: Vec<String>,
    account: String,
    oracle_keys: Vec<String>,
    days_left: u64,
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let input = |error: fleet::files::FileError| Failure::Input(error.to_string());
    let identity = Identity::load(&args.folder).map_err(input)?;
    let now = unix_s();
    identity.check(&args.folder, now).map_err(input)?;
    let user = &identity.card.user;
    let shown = Shown {
        name: user.member.name.clone(),
        role: user.member.role,
        number: user.number,
        hosts: user.member.hosts.clone(),
        key: user.key.to_string(),
        servers: identity.fleet.servers.clone(),
        account: identity.fleet.account.to_string(),
        oracle_keys: identity.oracle.text().lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect(),
        days_left: (user.expires - now) / DAY_S,
    };
    if args.json {
        return print_json(&shown);
    }
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").expect("writing to a string");
    line(format!("{} {}", shown.role, shown.name));
    if !shown.hosts.is_empty() {
        line(format!("reports for: {}", shown.hosts.join(", ")));
    }
    line(format!("key: {}", shown.key));
    line(format!("servers: {}", shown.servers.join(", ")));
    line(format!("account: {}", shown.account));
    line(format!("the Oracle's keys: {}", shown.oracle_keys.join(", ")));
    line(format!("valid for {} more days", shown.days_left));
    print(&text)
}
