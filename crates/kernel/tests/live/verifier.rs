//! Every algorithm of `cc/` is accepted by the verifier of the running kernel.

use crate::support;
use kernel::Error;

#[test]
fn every_algorithm_passes_the_verifier() {
    let Some(kernel) = support::kernel() else { return };
    for name in kernel::builtins() {
        let object = kernel::object(name).expect("a built-in has an object");
        let verified = kernel.verify(object, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verified.name, format!("{}{name}", kernel::NAME_PREFIX));
        let programs: Vec<String> =
            verified.programs.iter().map(|p| format!("{} {}", p.name, p.instructions)).collect();
        println!("{}: {}", verified.name, programs.join(", "));
        assert!(programs.len() >= 3, "{name} needs ssthresh, undo_cwnd and one that grows the window");
    }
}

#[test]
fn a_file_that_is_no_object_is_reported() {
    let Some(kernel) = support::kernel() else { return };
    let error = kernel.verify(b"int main(void) { return 0; }", "mine.o").expect_err("text is no object file");
    assert!(matches!(error, Error::Object { .. }), "{error}");
    assert!(error.to_string().starts_with("mine.o is not a BPF object file"), "{error}");
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
    let Some(kernel) = support::kernel() else { return };
    let error = kernel.load("bbrr").expect_err("there is no bbrr");
    assert!(error.to_string().contains("bbr, "), "{error}");
}

/// The kernel lets no algorithm write the clamp.
const FORBIDDEN: &str = r#"
#include "tcp.h"
CC_HOOK(u32, forbidden_ssthresh, struct sock *sk) { tcp_sk(sk)->snd_cwnd_clamp = 1; return 2; }
CC_HOOK(void, forbidden_cong_avoid, struct sock *sk, u32 ack, u32 acked) { (void)ack; tcp_reno_cong_avoid(sk, acked); }
CC_HOOK(u32, forbidden_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
CC_OPS(forbidden, .ssthresh = forbidden_ssthresh, .cong_avoid = forbidden_cong_avoid, .undo_cwnd = forbidden_undo_cwnd);
"#;

/// `FORBIDDEN` without what is forbidden, called `name`.
fn allowed(name: &str) -> String {
    let source = FORBIDDEN.replace("tcp_sk(sk)->snd_cwnd_clamp = 1", "(void)sk");
    source.replace("CC_OPS(forbidden", &format!("CC_OPS({name}"))
}

#[test]
fn a_name_may_have_fifteen_characters_and_no_more() {
    let Some(kernel) = support::kernel() else { return };
    // "ot_" and 12, 13 and 20 characters
    let object = support::compile("name12", &allowed("abcdefghijkl"));
    assert_eq!(
        kernel.load_object(&object, "12.c").map(|l| l.name().to_string()).ok().as_deref(),
        Some("ot_abcdefghijkl")
    );
    for name in ["abcdefghijklm", "abcdefghijklmnopqrst"] {
        let object = support::compile("name", &allowed(name));
        let error = kernel.verify(&object, "long.c").expect_err("it does not fit");
        let expected = format!("long.c names its algorithm \"ot_{name}\", {} characters", 3 + name.len());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[test]
fn a_missing_hook_is_named() {
    let Some(kernel) = support::kernel() else { return };
    let source = allowed("lacking").replace(".ssthresh = forbidden_ssthresh, ", "");
    let unused = "CC_HOOK(u32, forbidden_ssthresh, struct sock *sk) { (void)sk; return 2; }";
    let object = support::compile("lacking", &source.replace(unused, ""));
    let error = kernel.verify(&object, "lacking.c").expect_err("Linux requires ssthresh");
    assert_eq!(error.to_string(), "lacking.c lacks ssthresh in its table of operations");
}

#[test]
fn a_refusal_carries_the_hook_its_source_and_the_reason() {
    let Some(kernel) = support::kernel() else { return };
    let object = support::compile("forbidden", FORBIDDEN);
    let error = kernel.verify(&object, "forbidden.c").expect_err("the clamp is not an algorithm's to write");
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    let text = error.to_string();
    let reason = text.lines().last().expect("a message has lines");
    assert!(reason.contains("no write support to tcp_sock"), "{text}");
    for part in ["forbidden.c:", "in the hook forbidden_ssthresh", "snd_cwnd_clamp = 1"] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    assert!(text.lines().count() <= 18, "{text}");
}

#[test]
fn an_object_without_an_algorithm_is_reported() {
    let Some(kernel) = support::kernel() else { return };
    let object = support::compile("nothing", "int nothing;");
    let error = kernel.verify(&object, "nothing.c").expect_err("there is no CC_OPS");
    assert!(error.to_string().contains("declares 0 algorithms"), "{error}");
}

#[test]
fn a_name_exists_once() {
    let Some(kernel) = support::kernel() else { return };
    let first = kernel.load("newreno").unwrap_or_else(|error| panic!("{error}"));
    let error = kernel.load("newreno").expect_err("the name is taken");
    assert!(matches!(&error, Error::Exists { name } if name == first.name()), "{error}");
    drop(first);
    assert!(testkit::eventually(|| kernel.load("newreno").is_ok()), "the name is free again");
}
