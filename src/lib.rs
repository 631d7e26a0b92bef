//! Placeholder until the safe layer lands.
#![allow(non_camel_case_types)]
#[path = "bindings.rs"]
pub mod sys;
