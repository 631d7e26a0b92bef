//! What must not compile. The expected messages lie beside the programs in `tests/ui`.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
