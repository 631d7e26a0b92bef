//! What must not compile. The expected messages lie beside the programs in `tests/ui`; they are the words of one compiler version.
//!
//! | promise | programs |
//! |---|---|
//! | views and slices follow the rules of references | `aliasing_views`, `copy_onto_itself`, `two_writers_of_one_buffer`, `view_outlives_its_buffer`, `write_through_a_shared_slice`, `all_reduce_under_a_write_view` |
//! | only plain data lives in buffers | `element_with_padding`, `element_with_invalid_bits` |
//! | only what ranks can reduce is reduced, and types agree | `all_reduce_of_what_is_no_scalar`, `all_gather_of_another_dtype` |
//! | host functions own what they use, may go to another thread, and are repeated | `function_that_borrows`, `function_that_is_not_send`, `once_function_in_a_capture`, `task_reference_escapes` |
//! | what is borrowed for several operations lives until the end | `scope_slice_is_gone_too_early`, `scope_output_is_read_too_early`, `batch_buffer_is_gone_too_early` |
//! | a batch belongs to its thread, a rank to one caller at a time | `batch_on_another_thread`, `comm_is_not_sync`, `two_calls_of_one_rank` |
//! | arena memory lives as long as its arena or scope, until the reset | `allocation_outlives_its_arena`, `arena_is_not_sync`, `reset_under_an_allocation`, `scope_memory_escapes` |
//! | handles don't mix | `event_for_queue` |
//! | what is given away is gone, and raw tensors need `unsafe` | `use_of_a_buffer_given_away`, `raw_tensor_without_unsafe` |
//! | errors may grow fields | `error_made_by_hand` |

use std::process::Command;

const KEPT_FOR: &str = "rustc 1.95.";

#[test]
fn every_program_stands_beside_its_promise() {
    let table = include_str!("compile_fail.rs");
    let programs = std::fs::read_dir("tests/ui").unwrap().map(|entry| entry.unwrap().path());
    for program in programs.filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let name = program.file_stem().unwrap().to_string_lossy();
        assert!(table.contains(&format!("`{name}`")), "{name} stands beside no promise");
    }
}

#[test]
fn misuse_does_not_compile() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match version {
        Ok(version) if version.starts_with(KEPT_FOR) => {
            // As for docs.rs: what is only checked needs no native code, which would be compiled once more.
            // SAFETY: nobody else in this program reads or changes the environment meanwhile.
            unsafe { std::env::set_var("DOCS_RS", "1") };
            trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
        }
        other => eprintln!("skipped: the messages are kept for {KEPT_FOR}x, this is {other:?}"),
    }
}
