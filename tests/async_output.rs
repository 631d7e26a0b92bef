//! The example of async output: results and order are asserted there, and here that a warm step allocates nothing. One test only: the
//! counter is of the process.

#[path = "../examples/async_output.rs"]
mod async_output;

#[path = "support/counting.rs"]
mod counting;

#[test]
fn a_result_arrives_one_step_later_and_a_warm_step_allocates_nothing() {
    let (mut warm, mut end) = (0, 0);
    let mut watch = |step| match step {
        100 => warm = counting::allocations(),
        _ => end = counting::allocations(),
    };
    async_output::run(&mut watch).unwrap();
    assert!(warm > 0, "the counter counts");
    assert_eq!(end - warm, 0, "allocations in {} steps", async_output::STEPS - 101);
}
