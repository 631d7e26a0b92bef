//! Compiles C code against the headers that the runtime's crate names.

use std::env;
use std::path::Path;

fn main() {
    let include = env::var("DEP_VLLM_VT_INCLUDE").expect("the crate names its headers");
    let root = env::var("DEP_VLLM_VT_ROOT").expect("the crate names the folder of its archive");
    assert!(Path::new(&root).join("libvllm_vt.a").is_file(), "no libvllm_vt.a in {root}");
    println!("cargo::rerun-if-changed=src/two_ranks.c");
    cc::Build::new().file("src/two_ranks.c").include(include).std("c11").warnings_into_errors(true).compile("two_ranks");
}
