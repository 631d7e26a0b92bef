//! Compiles the C part, which asks the runtime's registries. `early.rs` links it, into the library and the program.

use std::env;

fn main() {
    let include = env::var("DEP_VLLM_VT_INCLUDE").expect("the crate names its headers");
    println!("cargo::rerun-if-changed=survey.c");
    println!("cargo::rerun-if-changed=survey.h");
    println!("cargo::rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets it"));
    cc::Build::new()
        .file("survey.c")
        .include(include)
        .std("c11")
        .warnings_into_errors(true)
        .cargo_metadata(false)
        .compile("survey");
}
