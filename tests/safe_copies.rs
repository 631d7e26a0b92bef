//! Batches of copies, and blocks of rows.

mod support;

use support::{CPU, Gate, async_queue};
use vllm_cpp_sys::*;

fn queues() -> [Queue; 2] {
    [Queue::new(CPU).unwrap(), async_queue()]
}

/// Reverses the order of pages of four elements.
fn reverse<'a>(queue: &Queue, mut to: SliceMut<'a, u32>, from: Slice<'a, u32>) -> Result<()> {
    let pages = to.len() / 4;
    let mut parts = Vec::new();
    for _ in 0..pages {
        let (page, rest) = to.split_at_mut(4)?;
        parts.push(page);
        to = rest;
    }
    queue.copy_batch(
        parts.into_iter().enumerate().map(|(i, page)| (page, from.slice((pages - 1 - i) * 4..(pages - i) * 4).unwrap())),
    )
}

fn reversed(values: &[u32]) -> Vec<u32> {
    values.chunks(4).rev().flatten().copied().collect()
}

#[test]
fn a_batch_copies_every_pair() {
    let values: Vec<u32> = (0..400).collect();
    for queue in queues() {
        let from = DeviceBuf::from_slice(CPU, &values).unwrap();
        let mut to = PinnedBuf::<u32>::zeroed(CPU, 400).unwrap();
        let before = queue.ticket().unwrap();
        reverse(&queue, to.as_slice_mut(), from.as_slice()).unwrap();
        assert_eq!(queue.ticket().unwrap(), before + 1);
        assert_eq!(to.to_vec().unwrap(), reversed(&values));
        queue.copy_batch::<u32, SliceMut<'_, u32>, Slice<'_, u32>>([]).unwrap();
    }
}

#[test]
fn pairs_of_different_lengths_are_refused_by_their_number() {
    let queue = Queue::new(CPU).unwrap();
    let from = DeviceBuf::<u8>::zeroed(CPU, 10).unwrap();
    let mut to = DeviceBuf::<u8>::zeroed(CPU, 10).unwrap();
    let (low, high) = to.as_slice_mut().split_at_mut(4).unwrap();
    let error = queue.copy_batch([(low, from.slice(..4)), (high, from.slice(..5))]).unwrap_err();
    assert_eq!(error.status, Status::InvalidArgument);
    assert!(error.to_string().contains("destination 1 has 6 elements, its source 5"), "{error}");
}

#[test]
fn a_batch_comes_after_what_it_reads_and_before_who_reads_it() {
    let (main, side) = (async_queue(), async_queue());
    let values: Vec<u32> = (0..64).collect();
    let mut from = DeviceBuf::<u32>::zeroed(CPU, 64).unwrap();
    let mut to = DeviceBuf::<u32>::zeroed(CPU, 64).unwrap();
    let mut seen = PinnedBuf::<u32>::zeroed(CPU, 64).unwrap();
    let source = PinnedBuf::from_slice(CPU, &values).unwrap();
    let gate = Gate::default();
    gate.block(&main).unwrap();
    main.copy(&mut from, &source).unwrap();
    reverse(&side, to.as_slice_mut(), from.as_slice()).unwrap();
    main.copy(&mut seen, &to).unwrap();
    assert!(!side.query().unwrap());
    gate.open();
    assert_eq!(seen.to_vec().unwrap(), reversed(&values));
}

#[test]
fn what_lies_between_the_pages_stays_free() {
    let queue = async_queue();
    let from = DeviceBuf::from_slice(CPU, &[7u8; 4]).unwrap();
    let mut to = DeviceBuf::<u8>::zeroed(CPU, 12).unwrap();
    let gate = Gate::default();
    gate.block(&queue).unwrap();
    let (first, rest) = to.as_slice_mut().split_at_mut(2).unwrap();
    let (_, last) = rest.split_at_mut(8).unwrap();
    queue.copy_batch([(first, from.slice(..2)), (last, from.slice(2..))]).unwrap();
    to.slice_mut(2..10).write().unwrap().fill(1); // doesn't wait
    assert!(!queue.query().unwrap());
    gate.open();
    assert_eq!(to.to_vec().unwrap(), [7, 7, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7]);
}

#[test]
fn an_open_view_of_one_page_keeps_the_batch_out() {
    let queue = async_queue();
    let from = DeviceBuf::from_slice(CPU, &[7u8; 4]).unwrap();
    let mut to = DeviceBuf::<u8>::zeroed(CPU, 4).unwrap();
    std::mem::forget(from.slice(3..).read().unwrap());
    std::mem::forget(to.slice_mut(3..).write().unwrap());
    let (low, high) = to.as_slice_mut().split_at_mut(2).unwrap();
    assert_eq!(queue.copy_batch([(low, from.slice(..2)), (high, from.slice(2..))]).unwrap_err().status, Status::FailedPrecondition);
    let (low, _) = to.as_slice_mut().split_at_mut(2).unwrap();
    queue.copy_batch([(low, from.slice(..2))]).unwrap();
    assert_eq!(to.slice(..3).to_vec().unwrap(), [7, 7, 0]);
}

#[test]
fn buffers_outlive_a_pending_batch_and_a_captured_one() {
    let queue = async_queue();
    let gate = Gate::default();
    let values: Vec<u32> = (0..64).collect();
    let mut last = PinnedBuf::<u32>::zeroed(CPU, 64).unwrap();
    let graph = {
        let from = DeviceBuf::from_slice(CPU, &values).unwrap();
        let mut to = DeviceBuf::<u32>::zeroed(CPU, 64).unwrap();
        let graph = queue
            .capture(|queue| {
                reverse(queue, to.as_slice_mut(), from.as_slice())?;
                queue.copy(&mut last, &to)
            })
            .unwrap();
        gate.block(&queue).unwrap();
        reverse(&queue, to.as_slice_mut(), from.as_slice()).unwrap();
        graph
    };
    let _others: Vec<_> = (0..8).map(|_| DeviceBuf::from_slice(CPU, &[9u32; 64]).unwrap()).collect();
    gate.open();
    graph.launch(&queue).unwrap();
    assert_eq!(last.to_vec().unwrap(), reversed(&values));
}

#[test]
fn rows_are_copied_and_what_lies_between_is_left_alone() {
    for queue in queues() {
        let from = DeviceBuf::from_slice(CPU, &(0..20).collect::<Vec<i16>>()).unwrap();
        let mut to = DeviceBuf::from_slice(CPU, &[-1i16; 11]).unwrap();
        queue.copy_2d(&mut to, 4, &from, 5, Rows { rows: 3, width: 2 }).unwrap();
        assert_eq!(to.to_vec().unwrap(), [0, 1, -1, -1, 5, 6, -1, -1, 10, 11, -1]);
        queue.copy_2d(&mut to, 0, &from, 0, Rows { rows: 0, width: 2 }).unwrap();
        queue.copy_2d(&mut to, 0, &from, 0, Rows { rows: 2, width: 0 }).unwrap();
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let queue = Queue::new(CPU).unwrap();
    let from = DeviceBuf::<u16>::zeroed(CPU, 20).unwrap();
    let mut to = DeviceBuf::<u16>::zeroed(CPU, 10).unwrap();
    let block = |rows, width| Rows { rows, width };
    let refusals = [
        (queue.copy_2d(&mut to, 4, &from, 5, block(4, 2)), "4 rows with a pitch of 4 don't fit the destination, which has 10"),
        (queue.copy_2d(&mut to, 4, &from, 10, block(3, 2)), "3 rows with a pitch of 10 don't fit the source, which has 20"),
        (queue.copy_2d(&mut to, 1, &from, 5, block(3, 2)), "the destination's pitch is 1, less than the width of 2"),
        (queue.copy_2d(&mut to, 4, &from, 1, block(3, 2)), "the source's pitch is 1, less than the width of 2"),
        (queue.copy_2d(&mut to, usize::MAX / 2, &from, 5, block(4, 2)), "4 rows with a pitch of 9223372036854775807"),
        (queue.copy_2d(&mut to, usize::MAX, &from, 5, block(2, 2)), "2 rows with a pitch of 18446744073709551615"),
    ];
    for (outcome, text) in refusals {
        let error = outcome.unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument);
        assert!(error.to_string().contains(text), "{error}");
    }
}
