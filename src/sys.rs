//! The C interface as bindgen sees it. The contracts are in the headers under `c/include/vllm_vt/`.
#![allow(non_camel_case_types, missing_docs)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments, clippy::undocumented_unsafe_blocks, clippy::useless_transmute)]

#[cfg(not(feature = "bindgen"))]
include!("bindings.rs");
#[cfg(feature = "bindgen")]
include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

const _: () = assert!(size_of::<usize>() == 8, "bindgen takes size_t for usize: 64 bits on every platform of this library");
