//! Foreign algorithms, compiled natively unmodified: C files written for libbpf (vmlinux.h, BPF_PROG, SEC, kfuncs), and Linux's own modules
//! (`net/ipv4/tcp_*.c`).
//!
//! The headers that such a file includes are replaced by this crate's own (`src/foreign/`), which map its world onto
//! the contract. Anything else that a file uses is reported with its line and an alternative.

use crate::contract::HEADER;
use std::fmt::Write as _;
use std::path::Path;

const VMLINUX: &str = include_str!("foreign/vmlinux.h");
const TRACING_NET: &str = include_str!("foreign/bpf_tracing_net.h");
/// For older files, which include the kernel's own headers.
const ONLY_VMLINUX: &str = "#include \"../vmlinux.h\"\n";

/// The headers, by the names in `#include`.
const HEADERS: [(&str, &str); 16] = [
    ("vmlinux.h", VMLINUX),
    ("bpf_tracing_net.h", TRACING_NET),
    ("bpf_tcp_helpers.h", include_str!("foreign/bpf_tcp_helpers.h")),
    ("bpf/bpf_helpers.h", include_str!("foreign/bpf/bpf_helpers.h")),
    ("bpf/bpf_tracing.h", include_str!("foreign/bpf/bpf_tracing.h")),
    ("bpf/bpf_core_read.h", include_str!("foreign/bpf/bpf_core_read.h")),
    // as the kernel's own tests named them before Linux 5.6
    ("bpf_helpers.h", "#include <bpf/bpf_helpers.h>\n"),
    ("bpf_tracing.h", "#include <bpf/bpf_tracing.h>\n"),
    ("bpf_trace_helpers.h", "#include <bpf/bpf_tracing.h>\n"),
    ("bpf_core_read.h", "#include <bpf/bpf_core_read.h>\n"),
    ("linux/bpf.h", ONLY_VMLINUX),
    ("linux/types.h", ONLY_VMLINUX),
    ("linux/stddef.h", ONLY_VMLINUX),
    ("linux/tcp.h", ONLY_VMLINUX),
    ("linux/errno.h", "#include \"../errno.h\"\n"),
    ("errno.h", "#pragma once\n#define ENOENT 2\n#define EBUSY 16\n#define EINVAL 22\n#define ENOTSUPP 524\n"),
];

/// The compiler's own headers, which the builds do not have; a file that includes only these is not written for libbpf.
const STANDARD: [(&str, &str); 3] = [
    ("stddef.h", "#include <bpf/bpf_helpers.h>\n"),
    ("stdbool.h", "#include \"vmlinux.h\"\n"),
    ("stdint.h", "#include \"vmlinux.h\"\n"),
];

/// The header of Linux's modules.
const MODULE: &str = include_str!("foreign/module.h");
const ONLY_MODULE: &str = "#include <module.h>\n";
/// The headers of the kernel that stand for it. A module includes the first, and no other file does.
const MODULE_HEADERS: [&str; 30] = [
    "linux/module.h",
    "net/tcp.h",
    "asm/div64.h",
    "linux/bitops.h",
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/bug.h",
    "linux/errno.h",
    "linux/inet.h",
    "linux/inet_diag.h",
    "linux/init.h",
    "linux/jiffies.h",
    "linux/kernel.h",
    "linux/log2.h",
    "linux/math.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/mm.h",
    "linux/moduleparam.h",
    "linux/printk.h",
    "linux/random.h",
    "linux/sched/clock.h",
    "linux/skbuff.h",
    "linux/slab.h",
    "linux/tcp.h",
    "linux/time.h",
    "linux/types.h",
    "linux/win_minmax.h",
    "net/inet_connection_sock.h",
    "net/sock.h",
];

/// The kernel functions that files declare.
const KFUNCS: &str = include_str!("foreign/kfuncs.c");

/// Algorithms of `cc/` that stand for the kernel's: the prefix of its functions, the macro that asks for them, the text.
const KERNELS: [(&str, &str, &str, &str); 3] = [
    ("cubictcp_", "CC_KERNELS_CUBIC", "cc_kernels_cubic", include_str!("../../../cc/cubic.c")),
    ("dctcp_", "CC_KERNELS_DCTCP", "cc_kernels_dctcp", include_str!("../../../cc/dctcp.c")),
    ("bbr_", "CC_KERNELS_BBR", "cc_kernels_bbr", include_str!("../../../cc/bbr.c")),
];

/// Functions that `bpf_tracing_net.h` defines unless a file has its own.
const OWN: [&str; 5] = ["min", "max", "before", "after", "div64_u64"];

const HELPERS_OFFERED: &str = "bpf_jiffies64, bpf_ktime_get_ns (and _boot_ns, _coarse_ns), bpf_get_prandom_u32, \
    bpf_tcp_send_ack, bpf_probe_read_kernel, bpf_loop, bpf_for, bpf_repeat, bpf_printk, BPF_CORE_READ, \
    BPF_CORE_READ_BITFIELD; bpf_setsockopt, bpf_getsockopt and bpf_sk_storage_get answer as where nothing is set up";

const MODULE_OFFERED: &str = "the arithmetic of linux/kernel.h, minmax.h and math64.h, jiffies and tcp_jiffies32, get_random_u32 (and _below), \
    the functions of net/tcp.h that read and change the window, minmax_running_max, pr_debug; no memory (state is 104 bytes of \
    icsk_ca_priv), timers, locks or other sockets";

const KFUNCS_OFFERED: &str = "tcp_slow_start, tcp_cong_avoid_ai, tcp_reno_ssthresh, tcp_reno_cong_avoid, \
    tcp_reno_undo_cwnd, and the kernel's hooks cubictcp_*, dctcp_* and bbr_*; CONFIG_HZ and LINUX_KERNEL_VERSION";

/// What else is compiled with a foreign file.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Files of the folder that it is compiled in: name and text.
    pub files: Vec<(String, String)>,
    /// Of these, the C files to link to a native build.
    pub linked: Vec<String>,
    /// The compiler's arguments: `-D`, and folders of headers.
    pub arguments: Vec<String>,
}

/// Whose world a file was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    /// libbpf's: it includes one of its headers.
    Bpf,
    /// The kernel's: it is a module.
    Kernel,
}

/// Whose world the file was written for; `None` for the contract, `tcp.h`.
pub(crate) fn world(source: &[u8]) -> Option<World> {
    let text = String::from_utf8_lossy(source);
    let includes = |wanted: &dyn Fn(&str) -> bool| text.lines().filter_map(included).any(wanted);
    if includes(&|name| name == MODULE_HEADERS[0]) {
        return Some(World::Kernel);
    }
    includes(&|name| HEADERS.iter().any(|(header, _)| *header == name)).then_some(World::Bpf)
}

/// What the module at `path` is compiled with: headers beside it, and the modules that these are of (yeah takes functions from vegas).
pub(crate) fn module_surroundings(path: &Path, source: &[u8]) -> Surroundings {
    let text = String::from_utf8_lossy(source);
    let mut around = Surroundings::default();
    around.files.extend([("vmlinux.h", VMLINUX), ("module.h", MODULE)].map(|(name, text)| (name.into(), text.into())));
    around.files.extend(MODULE_HEADERS.map(|name| (name.to_string(), ONLY_MODULE.to_string())));
    let folder = std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_path_buf));
    let Some(folder) = folder else { return around };
    around.arguments.extend(["-idirafter".to_string(), folder.display().to_string()]);
    let quoted = text.lines().filter_map(included).filter_map(|name| name.strip_suffix(".h"));
    for name in quoted.filter(|name| folder.join(format!("{name}.h")).is_file()) {
        let other = folder.join(format!("{name}.c"));
        if other.file_name() != path.file_name() && other.is_file() {
            let wrapper = format!("other_{}.c", around.linked.len());
            around.files.push((wrapper.clone(), format!("#define CC_DEPENDENCY\n#include \"{}\"\n", other.display())));
            around.linked.push(wrapper);
        }
    }
    around
}

/// What a file for libbpf is compiled with.
pub(crate) fn surroundings(source: &[u8]) -> Surroundings {
    let text = String::from_utf8_lossy(source);
    let mut around = Surroundings::default();
    let headers = HEADERS.into_iter().chain(STANDARD);
    around.files.extend(headers.map(|(name, header)| (name.to_string(), header.to_string())));
    around.files.push(("kfuncs.c".to_string(), KFUNCS.to_string()));
    around.linked.push("kfuncs.c".to_string());
    for (prefix, macro_name, symbol, algorithm) in KERNELS {
        if text.lines().any(|line| line.starts_with("extern") && line.contains(prefix)) {
            let name = format!("{symbol}.c");
            around.files.push((name.clone(), format!("#define CC_SYMBOL {symbol}\n#line 1 \"{symbol}\"\n{algorithm}")));
            around.linked.push(name);
            around.arguments.push(format!("-D{macro_name}"));
        }
    }
    let own = OWN.into_iter().filter(|name| text.lines().any(|line| defines(line, name)));
    around.arguments.extend(own.map(|name| format!("-DCC_OWN_{name}")));
    around
}

/// The header's name of an `#include` line.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let close = match rest.chars().next()? {
        '<' => '>',
        '"' => '"',
        _ => return None,
    };
    rest[1..].split_once(close).map(|(name, _)| name)
}

/// Is this line the definition of a function or macro of that name? Code starts at the line's beginning only outside of
/// functions.
fn defines(line: &str, name: &str) -> bool {
    let macro_name = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
    if let Some(rest) = macro_name {
        return rest.trim_start().strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_word));
    }
    line.starts_with(char::is_alphabetic) && calls(line, name)
}

/// Does the line contain `name(` as a word?
fn calls(line: &str, name: &str) -> bool {
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(is_word) && line[at + name.len()..].trim_start().starts_with('('))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Our message for a compiler's error in a foreign file, if the error is about something that is not supported. `shown`
/// is the file's name in the compiler's messages.
pub(crate) fn explain(world: World, shown: &str, said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().collect();
    let mut report = String::new();
    let mut offers: Vec<String> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((_, words)) = line.split_once("error: ") else { continue };
        if words.starts_with("#error") || words.starts_with('"') {
            return None; // a header's own message says it
        }
        let Some((what, offer)) = not_offered(world, words) else { continue };
        let entry = format!("\n  line {}: {what}", line_of(shown, &lines, i));
        if !report.contains(&entry) {
            report.push_str(&entry);
        }
        if !offer.is_empty() && !offers.contains(&offer) {
            offers.push(offer);
        }
    }
    if report.is_empty() {
        return None;
    }
    for offer in offers {
        write!(report, "\n{offer}").expect("writing to a string");
    }
    Some(report)
}

/// Our text for a compiler's warnings about a foreign file, if each is about a helper that returns a fixed value.
pub(crate) fn warnings(shown: &str, said: String) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let mut report = String::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((_, words)) = line.split_once("warning: ") else { continue };
        let Some((name, reason)) = by_attribute(words, "warning") else { return said };
        let reason = reason.split(" [-W").next().unwrap_or(reason);
        writeln!(report, "{shown}:{}: {name}: {reason}", line_of(shown, &lines, i)).expect("writing to a string");
    }
    report
}

/// The helper and the reason, if the compiler's message comes from an attribute in our headers.
fn by_attribute<'a>(words: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (_, reason) = words
        .split_once(&format!("declared with attribute {kind}: "))
        .or_else(|| words.split_once(&format!("declared with '{kind}' attribute: ")))?;
    let name = match words.split('\'').nth(1)? {
        "cc_stored_value_made" | "cc_no_stored_value" => "bpf_sk_storage_get",
        name => name,
    };
    Some((name, reason))
}

/// The line of the user's file that the message `at` is about: its own, or that of the macro whose expansion it is in.
fn line_of(shown: &str, lines: &[&str], at: usize) -> String {
    let number = |line: &&str| {
        let rest = line.trim_start().strip_prefix(shown)?.strip_prefix(':')?;
        rest.split(':').next().map(str::to_string)
    };
    let after = lines[at..].iter().find_map(number);
    after.or_else(|| lines[..at].iter().rev().find_map(number)).unwrap_or_else(|| "?".to_string())
}

/// What is missing according to a message of gcc or clang, and what there is instead.
fn not_offered(world: World, words: &str) -> Option<(String, String)> {
    let quoted: Vec<&str> = words.split('\'').skip(1).step_by(2).collect();
    if let Some((name, reason)) = by_attribute(words, "error") {
        return Some((format!("{name}: {reason}"), String::new()));
    }
    let member = match quoted.as_slice() {
        [owner, field, ..] if words.contains("has no member named") => Some((*field, *owner)),
        [field, owner, ..] if words.starts_with("no member named") || words.starts_with("field designator") => {
            Some((*field, *owner))
        }
        _ => None,
    };
    if let Some((field, owner)) = member {
        let owner = owner.strip_prefix("const ").unwrap_or(owner);
        let fields = fields_of(owner.strip_prefix("struct ")?)?;
        return Some((format!("{owner} has no field {field}"), format!("{owner} has {}", fields.join(", "))));
    }
    let function = quoted.first()?;
    if words.contains("implicit declaration of function") || words.contains("call to undeclared function") {
        let what = format!("{function} is not known: neither an available helper nor declared in the file");
        let offered = match world {
            World::Bpf => format!("helpers available: {HELPERS_OFFERED}"),
            World::Kernel => format!("of the kernel there are: {MODULE_OFFERED}"),
        };
        return Some((what, offered));
    }
    if words.contains("deprecated") && words.contains("BPF_CORE_READ_BITFIELD") {
        let what = format!("{function} is a bitfield: read it with BPF_CORE_READ_BITFIELD(object, field)");
        return Some((what, String::new()));
    }
    None
}

/// Our message for a missing header.
pub(crate) fn explain_header(world: World, shown: &str, said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| line.contains("fatal error: "))?;
    let words = lines[at].split_once("fatal error: ")?.1;
    let missing = words.contains("No such file") || words.contains("file not found");
    let name = words.trim_start_matches('\'').split(['\'', ':']).next()?;
    let names: Vec<&str> = match world {
        World::Bpf => HEADERS.iter().map(|(name, _)| *name).collect(),
        World::Kernel => MODULE_HEADERS.to_vec(),
    };
    let line = line_of(shown, &lines, at);
    missing.then(|| format!("\n  line {line}: the header {name}\nheaders available: {}", names.join(", ")))
}

/// The kernel function `symbol` that the file declares and the simulator does not have.
pub(crate) fn missing_kfunc(world: World, source: &[u8], symbol: &str) -> String {
    let text = String::from_utf8_lossy(source);
    let line = text.lines().position(|line| line.match_indices(symbol).any(|(at, _)| is_whole(line, at, symbol)));
    let line = line.map_or_else(|| "?".to_string(), |line| (line + 1).to_string());
    let offered = match world {
        World::Bpf => format!("kernel functions available: {KFUNCS_OFFERED}"),
        World::Kernel => format!("of the kernel there are: {MODULE_OFFERED}"),
    };
    format!("\n  line {line}: {symbol}, which the file declares and nothing defines\n{offered}")
}

fn is_whole(line: &str, at: usize, word: &str) -> bool {
    !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
}

/// The fields of a structure of the native contract, as `tcp.h` declares it.
fn fields_of(name: &str) -> Option<Vec<String>> {
    let start = HEADER.rfind(&format!("struct {name} {{"))?;
    let body = HEADER[start..].split_once("{\n")?.1.split_once("\n}")?.0;
    let text = without_comments(body);
    let fields = text.split(';').filter_map(|declaration| {
        // `u32 (*name)(parameters)` and `u64 name[13]` are named before what follows
        let named = declaration.split(")(").next().and_then(|named| named.split('[').next())?;
        named.rsplit(|c| !is_word(c)).find(|word| !word.is_empty())
    });
    Some(fields.filter(|field| !field.starts_with("cc_") && !field.starts_with("CC_")).map(str::to_string).collect())
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        out.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// Writes these files into the folder.
pub(crate) fn write(folder: &Path, around: &Surroundings) -> std::io::Result<()> {
    for (name, text) in &around.files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}
