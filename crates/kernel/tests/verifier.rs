//! Every algorithm of `cc/` is accepted by the verifier of the running kernel.

mod support;

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
fn what_is_no_object_file_is_told_so() {
    let Some(kernel) = support::kernel() else { return };
    let error = kernel.verify(b"int main(void) { return 0; }", "mine.o").expect_err("text is no object file");
    assert!(matches!(error, Error::Object { .. }), "{error}");
    assert!(error.to_string().starts_with("mine.o is not a BPF object file"), "{error}");
}

#[test]
fn an_unknown_name_is_answered_with_those_known() {
    let Some(kernel) = support::kernel() else { return };
    let error = kernel.load("bbrr").expect_err("there is no bbrr");
    assert!(error.to_string().contains("bbr, "), "{error}");
}
