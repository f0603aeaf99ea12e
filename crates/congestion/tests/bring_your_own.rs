//! Users' files: which are accepted, which are refused, and with which message.

use congestion::{Algorithm, Fault, LoadError, check_invariants, compile_for_bpf, model};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::{env, fs};
use tempfile::TempDir;

struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("mine.c");
        fs::write(&path, text).expect("written");
        path
    }

    fn refusal(&self, text: &str) -> LoadError {
        Algorithm::load(&self.write(text)).expect_err("a broken file")
    }

    /// The fault that the check finds in a file whose cong_avoid has this body.
    fn fault_of(&self, body: &str) -> Fault {
        let algorithm = Algorithm::load(&self.write(&with_cong_avoid(body))).expect("it compiles");
        check_invariants(algorithm).expect_err("a fault").fault
    }
}

const OTHER_HOOKS: &str = "
CC_HOOK(u32, mine_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
CC_HOOK(u32, mine_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
";
const TABLE: &str = "
CC_OPS(mine, .ssthresh = mine_ssthresh, .cong_avoid = mine_cong_avoid, .undo_cwnd = mine_undo_cwnd);
";

fn with_cong_avoid(body: &str) -> String {
    format!(
        "#include \"tcp.h\"\n{OTHER_HOOKS}\
         CC_HOOK(void, mine_cong_avoid, struct sock *sk, u32 ack, u32 acked)\n\
         {{\n\tstruct tcp_sock *tp = tcp_sk(sk);\n\t(void)ack;\n\t(void)acked;\n\t(void)tp;\n\t{body}\n}}\n{TABLE}"
    )
}

fn source_of(algorithm: &Algorithm) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc").join(format!("{}.c", algorithm.name()))
}

#[test]
fn a_copy_of_each_builtin_behaves_as_the_builtin() {
    let desk = Desk::new();
    for builtin in Algorithm::builtins() {
        let copy = desk.folder.path().join("copy.c");
        fs::copy(source_of(builtin), &copy).expect("copied");
        let loaded = Algorithm::load(&copy).unwrap_or_else(|error| panic!("{error}"));
        assert!(!std::ptr::eq(loaded.ops(), builtin.ops()), "it is the user's object, not ours");
        assert_eq!(loaded.warnings(), "", "{}", builtin.name());
        let text = |a: &Algorithm| format!("{} {} {:?} {}", a.title(), a.environment(), a.category(), a.needs_ecn());
        assert_eq!(text(loaded), text(builtin));
        for seed in 0..8 {
            assert_eq!(model::run(loaded, seed, 1000), model::run(builtin, seed, 1000), "{}", builtin.name());
        }
    }
}

#[test]
fn every_builtin_compiles_for_bpf() {
    for builtin in Algorithm::builtins() {
        let object = compile_for_bpf(&source_of(builtin)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(object[..4], *b"\x7fELF", "{}", builtin.name());
        assert_eq!(object[18..20], [247, 0], "e_machine of {} is EM_BPF", builtin.name());
    }
}

#[test]
fn the_same_bytes_are_compiled_once() {
    let desk = Desk::new();
    let text = with_cong_avoid("tcp_reno_cong_avoid(sk, acked);");
    let first = Algorithm::load(&desk.write(&text)).expect("loads");
    let other_desk = Desk::new();
    let second = Algorithm::load(&other_desk.write(&text)).expect("loads");
    assert!(std::ptr::eq(first, second));
    let other = Algorithm::load(&desk.write(&format!("{text}\n"))).expect("loads");
    assert!(!std::ptr::eq(first, other));
}

#[test]
fn a_syntax_error_shows_the_compilers_message_with_the_users_file_name() {
    let desk = Desk::new();
    let error = desk.refusal(&with_cong_avoid("tp->snd_cwnd += ;"));
    let LoadError::Compile { message, .. } = &error else { panic!("{error}") };
    let path = desk.folder.path().join("mine.c");
    // the body is the eleventh line
    assert!(message.contains(&format!("{}:11:", path.display())), "{message}");
    assert!(message.contains("error: expected expression"), "{message}");
    assert!(error.to_string().contains(message.as_str()));
}

#[test]
fn a_library_that_is_included_or_called_is_refused_at_its_line() {
    let desk = Desk::new();
    let error = desk.refusal("#include <stdio.h>\n").to_string();
    assert!(error.contains("mine.c:1:") && error.contains("stdio.h"), "{error}");
    let error = desk.refusal(&with_cong_avoid("tp->snd_cwnd = window_for(acked);")).to_string();
    assert!(error.contains("mine.c:11:") && error.contains("window_for"), "{error}");
}

#[test]
fn floating_point_is_refused() {
    let error = Desk::new().refusal(&with_cong_avoid("tp->snd_cwnd = (u32)((double)tp->snd_cwnd * 1.5);")).to_string();
    // gcc at the line, clang when it is linked
    assert!(error.contains("mine.c:11:") || error.contains("it uses floating point"), "{error}");
}

#[test]
fn an_undefined_symbol_is_named() {
    let text = with_cong_avoid("tp->snd_cwnd = window_for(acked);")
        .replace(OTHER_HOOKS, &format!("{OTHER_HOOKS}extern u32 window_for(u32 acked);\n"));
    let error = Desk::new().refusal(&text);
    assert!(matches!(&error, LoadError::UndefinedSymbol { symbol, .. } if symbol == "window_for"), "{error}");
    assert!(error.to_string().contains("declares and does not define"), "{error}");
}

#[test]
fn a_file_without_a_table_gets_an_error_that_asks_for_one() {
    let error = Desk::new().refusal("#include \"tcp.h\"\n");
    assert!(matches!(error, LoadError::NoTable { .. }), "{error}");
    assert!(error.to_string().contains("CC_OPS(name"), "{error}");
}

#[test]
fn a_missing_hook_is_named() {
    let whole = with_cong_avoid("tcp_reno_cong_avoid(sk, acked);");
    for (entry, hook) in [
        (".ssthresh = mine_ssthresh, ", "ssthresh"),
        (".cong_avoid = mine_cong_avoid, ", "cong_avoid or cong_control"),
        (", .undo_cwnd = mine_undo_cwnd", "undo_cwnd"),
    ] {
        let error = Desk::new().refusal(&whole.replace(entry, ""));
        let LoadError::Contract { message, .. } = &error else { panic!("{error}") };
        assert_eq!(*message, format!("its table of operations lacks {hook}"));
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Algorithm::load(Path::new("no/such/file.c")).expect_err("no file").to_string();
    assert!(error.starts_with("no/such/file.c: "), "{error}");
}

#[test]
fn a_private_state_that_is_too_large_does_not_compile() {
    let text = with_cong_avoid("tcp_reno_cong_avoid(sk, acked);").replace(
        OTHER_HOOKS,
        &format!("{OTHER_HOOKS}struct big {{ u64 w[14]; }};\nCC_ASSERT_STATE_FITS(struct big);\n"),
    );
    let error = Desk::new().refusal(&text).to_string();
    assert!(error.contains("struct big exceeds icsk_ca_priv"), "{error}");
}

#[test]
fn a_users_own_tcp_h_beside_the_file_is_not_taken() {
    let desk = Desk::new();
    fs::write(desk.folder.path().join("tcp.h"), "#error not this one\n").expect("written");
    let path = desk.write(&with_cong_avoid("tcp_reno_cong_avoid(sk, acked); /* beside a tcp.h */"));
    Algorithm::load(&path).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn warnings_of_a_file_that_compiles_are_kept() {
    let text = with_cong_avoid("u32 unused; tcp_reno_cong_avoid(sk, acked);");
    let algorithm = Algorithm::load(&Desk::new().write(&text)).expect("a warning is no error");
    assert!(algorithm.warnings().contains("unused"), "{}", algorithm.warnings());
    let padded = with_cong_avoid("struct { u8 a; u32 b; } s = { 0, acked }; tcp_reno_cong_avoid(sk, s.a + s.b);");
    let algorithm = Algorithm::load(&Desk::new().write(&padded)).expect("padding is no error in a user's file");
    assert!(algorithm.warnings().contains("padding"), "{}", algorithm.warnings());
}

#[test]
fn signed_division_does_not_compile_for_bpf() {
    let desk = Desk::new();
    let path = desk.write(&with_cong_avoid("tp->snd_cwnd = (u32)(-(s32)acked / ((s32)ack + 1));"));
    let error = compile_for_bpf(&path).expect_err("no signed division").to_string();
    assert!(error.to_lowercase().contains("signed division"), "{error}");
}

#[test]
fn the_check_names_what_a_bad_file_does() {
    let desk = Desk::new();
    let faults = [
        ("tp->snd_cwnd = 0;", "Window"),
        ("tp->snd_cwnd = tp->snd_cwnd_clamp + 1;", "Window"),
        ("tp->snd_cwnd = tp->snd_cwnd * 3 + acked < tp->snd_cwnd_clamp ? tp->snd_cwnd * 3 + acked : 1;", "Jump"),
        ("tp->snd_ssthresh = 1;", "Threshold"),
        ("tp->packets_out = 7;", "HostField { field: \"packets_out\" }"),
        ("((u64 *)inet_csk_ca(sk))[20] = 1;", "HostField"),
        ("tp->snd_cwnd = 10 / tp->retrans_out + 1;", "Signal { signal: 8 }"),
        ("*(volatile u32 *)64 = 1;", "Signal { signal: 11 }"),
        // x86's exit_group, fork and socket
        (&system_call(231), "Ended"),
        (&system_call(57), "Signal { signal: 31 }"),
        (&system_call(41), "Signal { signal: 31 }"),
        // a section in which no variables are expected
        ("static u32 calls __attribute__((section(\"version\"))); tp->snd_cwnd = 1 + calls++ % 3;", "Irreproducible"),
    ];
    for (body, fault) in faults {
        let found = format!("{:?}", desk.fault_of(body));
        assert!(found.starts_with(fault), "{body}: {found}, not {fault}");
    }
}

/// A hook's body that asks the kernel for what has this number on x86.
fn system_call(number: u32) -> String {
    if cfg!(target_arch = "x86_64") {
        return format!(
            "long n = {number}; __asm__ volatile(\"syscall\" : \"+a\"(n) : \"D\"(0) : \"rcx\", \"r11\", \"memory\");"
        );
    }
    format!(
        "register long n __asm__(\"x8\") = {}; __asm__ volatile(\"svc 0\" :: \"r\"(n) : \"x0\", \"memory\");",
        match number {
            231 => 94,
            57 => 220,
            _ => 198,
        }
    )
}

#[test]
fn what_this_process_has_is_not_linked() {
    for (declared, used) in
        [("void _exit(int status);", "_exit(0);"), ("int fork(void);", "fork();"), ("void abort(void);", "abort();")]
    {
        let text = with_cong_avoid(used).replace(OTHER_HOOKS, &format!("{OTHER_HOOKS}extern {declared}\n"));
        let error = Desk::new().refusal(&text).to_string();
        assert!(error.contains("which it declares and does not define"), "{error}");
    }
}

/// What a process says in which a hook with this body runs as in a simulation, and its exit code.
fn end_of(body: &str, name: &str) -> Option<(String, Option<i32>)> {
    if let Some(file) = env::var_os("HOOK_OF_TEST") {
        let algorithm = Algorithm::load(Path::new(&file)).expect("it compiles");
        let _ = model::run(algorithm, 1, 2000);
        return None;
    }
    let desk = Desk::new();
    let mut again = Command::new(env::current_exe().expect("this test"));
    again.args([name, "--exact", "--nocapture"]).env("HOOK_OF_TEST", desk.write(&with_cong_avoid(body)));
    let output = again.output().expect("it runs");
    Some((String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code()))
}

#[test]
fn a_trap_ends_the_process_with_hook_line_and_values() {
    const NAME: &str = "a_trap_ends_the_process_with_hook_line_and_values";
    let Some((said, code)) = end_of("tp->snd_cwnd = 10 / tp->retrans_out + 1;", NAME) else { return };
    assert_eq!(code, Some(1), "{said}");
    let expected = "mine.c:11: cong_avoid: it divided by zero (SIGFPE), with snd_cwnd ";
    assert!(said.contains(expected) && said.contains("icsk_ca_state"), "{said}");
    let Some((said, code)) = end_of("*(volatile u32 *)64 = 1;", NAME) else { return };
    assert!(
        code == Some(1) && said.contains("mine.c:11: cong_avoid: it accessed memory outside its own (SIGSEGV) at 0x40"),
        "{said}"
    );
}

#[test]
fn a_hook_that_does_not_return_ends_the_process_with_its_name() {
    const NAME: &str = "a_hook_that_does_not_return_ends_the_process_with_its_name";
    let Some((said, code)) = end_of("for (;;) tp->snd_cwnd = 1 + (tp->snd_cwnd & 1);", NAME) else { return };
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("mine.c: cong_avoid: it did not return within 10 s, with snd_cwnd "), "{said}");
}

#[test]
fn a_hook_that_does_not_return_ends_the_process_once_it_is_interrupted() {
    const NAME: &str = "a_hook_that_does_not_return_ends_the_process_once_it_is_interrupted";
    // what a handler of SIGINT or SIGTERM sets
    congestion::interrupted().store(env::var_os("HOOK_OF_TEST").is_some(), Ordering::Relaxed);
    let Some((said, code)) = end_of("for (;;) tp->snd_cwnd = 1 + (tp->snd_cwnd & 1);", NAME) else { return };
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("mine.c: cong_avoid: it did not return, and the program was to end"), "{said}");
}

#[test]
fn an_include_without_an_end_ends_the_compiler() {
    let error = Desk::new().refusal("#include \"/dev/zero\"\n").to_string();
    assert!(error.contains("was ended") || error.contains("does not compile"), "{error}");
}

#[test]
fn variables_that_outlive_a_run_are_refused_by_their_names() {
    let desk = Desk::new();
    let body =
        "static u64 _Thread_local learned; learned += acked; flows++; tp->snd_cwnd = table[flows & 1] + (u32)learned;";
    let text = with_cong_avoid(body)
        .replace(OTHER_HOOKS, &format!("{OTHER_HOOKS}u32 flows = 1;\nstatic const u32 table[2] = {{ 1, 2 }};\n"));
    let message = desk.refusal(&text).to_string();
    // the compiler numbers variables of functions
    assert!(message.contains("(flows, learned") && !message.contains("table"), "{message}");
    let constant = text.replace("u32 flows = 1", "static const u32 flows = 1").replace("flows++;", "");
    let constant =
        constant.replace("static u64 _Thread_local learned; learned += acked;", "const u64 learned = acked;");
    Algorithm::load(&desk.write(&constant)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn code_that_would_run_outside_of_hooks_is_refused() {
    for code in [
        "__attribute__((constructor)) static void early(void) { *(volatile u32 *)64 = 1; }",
        "__attribute__((destructor)) static void late(void) { *(volatile u32 *)64 = 1; }",
        "void _init(void);\nvoid _init(void) { *(volatile u32 *)64 = 1; }",
    ] {
        let text =
            with_cong_avoid("tcp_reno_cong_avoid(sk, acked);").replace(OTHER_HOOKS, &format!("{OTHER_HOOKS}{code}\n"));
        let error = Desk::new().refusal(&text).to_string();
        assert!(error.contains("run when it is opened"), "{code}: {error}");
    }
}

#[test]
fn a_violation_names_its_place_and_is_reproducible_there() {
    let text = with_cong_avoid("tp->snd_ssthresh = 1;");
    let algorithm = Algorithm::load(&Desk::new().write(&text)).expect("it compiles");
    let violation = check_invariants(algorithm).expect_err("a fault");
    assert_eq!(model::run(algorithm, violation.seed, 2000), Err(violation));
    let said = violation.to_string();
    assert!(said.starts_with("cong_avoid: the slow-start threshold is 1"), "{said}");
    assert!(said.contains(&format!("operation {} of seed {}", violation.operation, violation.seed)), "{said}");
}

#[test]
fn an_endless_loop_is_ended() {
    assert_eq!(Desk::new().fault_of("for (;;) tp->snd_cwnd = 1 + (tp->snd_cwnd & 1);"), Fault::TimedOut);
}

/// Needs an environment of its own, so it starts itself once more in one.
#[test]
fn a_compiler_that_is_missing_or_cannot_run_is_reported() {
    const NAME: &str = "a_compiler_that_is_missing_or_cannot_run_is_reported";
    if env::var_os("CC_OF_TEST").is_some() {
        println!("{}", Desk::new().refusal(&with_cong_avoid("")));
        return;
    }
    let say = |cc: &str, path: &str| {
        let mut again = Command::new(env::current_exe().expect("this test"));
        again.args([NAME, "--exact", "--nocapture"]).env("CC_OF_TEST", "1").env("CC", cc).env("PATH", path);
        String::from_utf8_lossy(&again.output().expect("it runs").stdout).into_owned()
    };
    let said = say("no-such-compiler -v", "/usr/bin:/bin");
    assert!(said.contains("cannot run the compiler no-such-compiler -v: No such file"), "{said}");
    let said = say("", "/nonexistent");
    assert!(said.contains("no C compiler: $CC is not set, and neither cc nor clang nor gcc was found"), "{said}");
}
