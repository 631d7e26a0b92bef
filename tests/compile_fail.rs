//! What must not compile. The expected messages lie beside the programs in `tests/ui`; they are the words of one compiler version.

use std::process::Command;

const KEPT_FOR: &str = "rustc 1.95.";

#[test]
fn misuse_does_not_compile() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match version {
        Ok(version) if version.starts_with(KEPT_FOR) => trybuild::TestCases::new().compile_fail("tests/ui/*.rs"),
        other => eprintln!("skipped: the messages are kept for {KEPT_FOR}x, this is {other:?}"),
    }
}
