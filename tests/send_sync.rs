//! The table of `Send` and `Sync` in the crate's documentation. It is checked while this file compiles.

use vllm_cpp_sys::*;

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}

/// Fails to compile where `$kind` implements `$bound`: then two candidates fit the call.
macro_rules! assert_not {
    ($kind:ty: $bound:ident) => {
        const _: fn() = || {
            trait AmbiguousIfImplemented<A> {
                fn check() {}
            }
            impl<T: ?Sized> AmbiguousIfImplemented<()> for T {}
            struct Implemented;
            impl<T: ?Sized + $bound> AmbiguousIfImplemented<Implemented> for T {}
            let _ = <$kind as AmbiguousIfImplemented<_>>::check;
        };
    };
}

macro_rules! assert_both {
    ($($kind:ty),*) => { $(const _: () = { is_send::<$kind>(); is_sync::<$kind>(); };)* };
}

assert_both!(Device, Error, Status, OpId, Queue, Event, Graph, DeviceBuf<f32>, PinnedBuf<f32>, CommGroup, AbortHandle);
assert_both!(Scope<'static, 'static>, Slice<'static, f32>, SliceMut<'static, f32>, ReadView<'static, f32>, WriteView<'static, f32>);

assert_both!(backend::HostCall, backend::QueueRequest);

const _: () = is_send::<backend::QueueDone>();
const _: () = is_send::<Comm>();
const _: () = is_send::<Arena>();
assert_not!(backend::QueueDone: Sync);
assert_not!(Comm: Sync);
assert_not!(Arena: Sync);
assert_not!(Batch<'static>: Send);
assert_not!(Batch<'static>: Sync);
assert_not!(ArenaScope<'static>: Send);
assert_not!(ArenaScope<'static>: Sync);

#[test]
fn the_table_compiles() {
    let table = include_str!("../src/lib.rs");
    assert!(table.contains("| [`Comm`], [`Arena`] | yes | no |"));
    assert!(table.contains("| [`backend::QueueDone`] | yes | no |"));
    assert!(table.contains("| [`Batch`], [`ArenaScope`] | no | no |"));
}
