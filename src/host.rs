//! Host code in stream order, and the host itself.

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;

use crate::buffer::{DeviceBuf, PinnedBuf};
use crate::capture;
use crate::context::{self, callback, discard};
use crate::dtype::Element;
use crate::error::{Error, Result, Status, check};
use crate::queue::Queue;
use crate::slice::{Slice, SliceMut};
use crate::sys;
use crate::track::{self, Access, Mode};
use crate::validate;

/// How many threads of this process can run at once: by affinity masks and by the quotas of control groups, at least 1. So many
/// workers or ranks are worth their while.
///
/// ```
/// assert!(vllm_cpp_sys::host_concurrency() >= 1);
/// ```
pub fn host_concurrency() -> usize {
    // SAFETY: no arguments.
    unsafe { sys::vt_host_concurrency() as usize }
}

impl Queue {
    /// Queues a host function. An error or a panic of it sticks to the queue like the failure of any operation. It may not call the
    /// runtime.
    ///
    /// In a capture it is recorded, and runs at each launch.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    /// use vllm_cpp_sys::{Device, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let steps = Arc::new(AtomicU32::new(0));
    /// let counter = steps.clone();
    /// let graph = queue.capture(|q| {
    ///     q.host_func(move || {
    ///         counter.fetch_add(1, Ordering::Relaxed);
    ///         Ok(())
    ///     })
    /// })?;
    /// graph.launch(&queue)?;
    /// graph.launch(&queue)?;
    /// queue.synchronize()?;
    /// assert_eq!(steps.load(Ordering::Relaxed), 2);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn host_func<F>(&self, f: F) -> Result<()>
    where
        F: Fn() -> Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the closure is shared, sent and repeated as its bounds allow.
        self.submit([], |raw| unsafe { queue_box(raw, f, run_fn::<F>) })
    }

    /// Queues a host function that runs once. Refused in a capture.
    pub fn host_func_once<F>(&self, f: F) -> Result<()>
    where
        F: FnOnce() -> Result<()> + Send + 'static,
    {
        context::enter("host_func_once")?;
        if capture::is_recording(&self.core) {
            return Err(Error::refused("host_func_once", "a graph runs its functions at each launch: use host_func in a capture"));
        }
        // SAFETY: the closure is sent as its bounds allow, and taken out of the cell by its only run.
        self.submit([], |raw| unsafe { queue_box(raw, Cell::new(Some(f)), run_once::<F>) })
    }

    /// Queues host code that works on buffers: `f` gets the elements of each as `&[T]` or `&mut [T]`.
    ///
    /// `args` is a tuple of one to six of `&DeviceBuf`, `&mut DeviceBuf`, `&PinnedBuf`, `&mut PinnedBuf`, [`Slice`] and [`SliceMut`].
    /// In a capture it is recorded, and runs at each launch.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let queue = Queue::new_async(Device::cpu(0))?;
    /// let x = DeviceBuf::from_slice(Device::cpu(0), &[1.0f32, 2.0])?;
    /// let mut y = DeviceBuf::zeroed(Device::cpu(0), 2)?;
    /// queue.host_task((&x, &mut y), |(x, y)| {
    ///     y.iter_mut().zip(x).for_each(|(y, x)| *y = 10.0 * x);
    ///     Ok(())
    /// })?;
    /// assert_eq!(y.to_vec()?, [10.0, 20.0]);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn host_task<'a, A, F>(&self, args: A, f: F) -> Result<()>
    where
        A: HostArgs<'a>,
        F: for<'r> Fn(A::Refs<'r>) -> Result<()> + Send + Sync + 'static,
    {
        let (accesses, raw) = args.split();
        if let Some(access) = accesses.as_ref().iter().find(|access| !access.alloc.on_host) {
            return Err(access.alloc.no_views("host_task"));
        }
        track::run(&self.core, accesses.as_ref(), |queue| {
            // SAFETY: the ranges are on the host and alive until the task has run, and the tracker keeps conflicting uses away; the
            // closure is shared, sent and repeated as its bounds allow.
            check(unsafe { queue_box(queue, Task { raw, f }, run_task::<A, F>) })?;
            validate::task_submitted(queue, accesses.as_ref());
            Ok(())
        })
    }
}

type Run = unsafe extern "C" fn(*mut c_void) -> sys::vt_status;

/// Hands a boxed value to a host function of the C queue, which drops it.
///
/// # Safety
///
/// `run` takes a pointer to `V`; `V` may be used and dropped on another thread.
unsafe fn queue_box<V: 'static>(queue: *mut sys::vt_queue, value: V, run: Run) -> sys::vt_status {
    let user = Box::into_raw(Box::new(value)).cast();
    // SAFETY: the queue calls `drop_box` exactly once, after the last run, also where it refuses.
    unsafe { sys::vt_queue_host_func(queue, Some(run), user, Some(drop_box::<V>)) }
}

unsafe extern "C" fn drop_box<V>(user: *mut c_void) {
    // SAFETY: made by `queue_box` of the same type, and nobody runs it any more.
    let value = unsafe { Box::from_raw(user.cast::<V>()) };
    if std::mem::needs_drop::<V>() {
        discard(value);
    }
}

unsafe extern "C" fn run_fn<F: Fn() -> Result<()>>(user: *mut c_void) -> sys::vt_status {
    // SAFETY: the box that `queue_box` made.
    let f = unsafe { &*user.cast::<F>() };
    callback("host function", f)
}

unsafe extern "C" fn run_once<F: FnOnce() -> Result<()>>(user: *mut c_void) -> sys::vt_status {
    // SAFETY: the box that `queue_box` made; one run at a time.
    let f = unsafe { &*user.cast::<Cell<Option<F>>>() };
    callback("host function", || match f.take() {
        Some(f) => f(),
        None => Err(Error::new(Status::Internal, "a host function that runs once was run again")),
    })
}

struct Task<R, F> {
    raw: R,
    f: F,
}

unsafe extern "C" fn run_task<'a, A, F>(user: *mut c_void) -> sys::vt_status
where
    A: HostArgs<'a>,
    F: for<'r> Fn(A::Refs<'r>) -> Result<()>,
{
    // SAFETY: the box that `queue_box` made.
    let task = unsafe { &*user.cast::<Task<A::Raw, F>>() };
    // SAFETY: the task runs in stream order, when earlier conflicting uses have completed and later ones wait.
    callback("host task", || (task.f)(unsafe { A::refs(&task.raw) }))
}

/// The elements of one argument while no borrow holds them.
#[doc(hidden)]
pub struct RawRange<T> {
    pointer: *mut T,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: used on one thread at a time, and `Element` is `Send` and `Sync`.
unsafe impl<T: Element> Send for RawRange<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for RawRange<T> {}

mod sealed {
    pub trait Sealed {}
}

/// What [`Queue::host_task`] takes: a buffer or a part of one.
pub trait HostArg<'a>: sealed::Sealed {
    /// Kept while the task is queued.
    #[doc(hidden)]
    type Raw: Send + Sync + 'static;
    /// What the closure gets.
    type Ref<'r>;
    #[doc(hidden)]
    fn split(self) -> (Access<'a>, Self::Raw);
    /// # Safety
    ///
    /// The elements are free to be used like this for `'r`.
    #[doc(hidden)]
    unsafe fn reference<'r>(raw: &'r Self::Raw) -> Self::Ref<'r>;
}

macro_rules! host_arg {
    ($kind:ty, $slice:ident, $reference:ty, $make:ident, $access:expr) => {
        impl<'a, T: Element> sealed::Sealed for $kind {}
        impl<'a, T: Element> HostArg<'a> for $kind {
            type Raw = RawRange<T>;
            type Ref<'r> = $reference;

            fn split(self) -> (Access<'a>, RawRange<T>) {
                let slice: $slice<'a, T> = self.into();
                let raw = RawRange { pointer: slice.pointer().cast(), len: slice.len(), elements: PhantomData };
                ($access(&slice), raw)
            }

            unsafe fn reference<'r>(raw: &'r RawRange<T>) -> Self::Ref<'r> {
                // SAFETY: in bounds and initialised; the caller vouches for the time.
                unsafe { std::slice::$make(raw.pointer, raw.len) }
            }
        }
    };
}

macro_rules! host_arg_read {
    ($($kind:ty),*) => { $(host_arg!($kind, Slice, &'r [T], from_raw_parts, Slice::access);)* };
}

macro_rules! host_arg_write {
    ($($kind:ty),*) => { $(host_arg!($kind, SliceMut, &'r mut [T], from_raw_parts_mut, update);)* };
}

fn update<'a, T: Element>(slice: &SliceMut<'a, T>) -> Access<'a> {
    slice.access(Mode::Update)
}

host_arg_read!(Slice<'a, T>, &'a DeviceBuf<T>, &'a PinnedBuf<T>, &'a SliceMut<'_, T>);
host_arg_write!(SliceMut<'a, T>, &'a mut DeviceBuf<T>, &'a mut PinnedBuf<T>, &'a mut SliceMut<'_, T>);

/// A tuple of one to six [`HostArg`]s.
pub trait HostArgs<'a>: sealed::Sealed {
    #[doc(hidden)]
    type Accesses: AsRef<[Access<'a>]>;
    #[doc(hidden)]
    type Raw: Send + Sync + 'static;
    /// What the closure gets.
    type Refs<'r>;
    #[doc(hidden)]
    fn split(self) -> (Self::Accesses, Self::Raw);
    /// # Safety
    ///
    /// As for [`HostArg`].
    #[doc(hidden)]
    unsafe fn refs<'r>(raw: &'r Self::Raw) -> Self::Refs<'r>;
}

macro_rules! host_args {
    ($count:literal: $($arg:ident $field:tt),*) => {
        impl<$($arg: sealed::Sealed),*> sealed::Sealed for ($($arg,)*) {}
        impl<'a, $($arg: HostArg<'a>),*> HostArgs<'a> for ($($arg,)*) {
            type Accesses = [Access<'a>; $count];
            type Raw = ($($arg::Raw,)*);
            type Refs<'r> = ($($arg::Ref<'r>,)*);
            fn split(self) -> (Self::Accesses, Self::Raw) {
                let parts = ($(self.$field.split(),)*);
                ([$(parts.$field.0),*], ($(parts.$field.1,)*))
            }
            unsafe fn refs<'r>(raw: &'r Self::Raw) -> Self::Refs<'r> {
                // SAFETY: the caller vouches for all of them.
                unsafe { ($($arg::reference(&raw.$field),)*) }
            }
        }
    };
}

host_args!(1: A 0);
host_args!(2: A 0, B 1);
host_args!(3: A 0, B 1, C 2);
host_args!(4: A 0, B 1, C 2, D 3);
host_args!(5: A 0, B 1, C 2, D 3, E 4);
host_args!(6: A 0, B 1, C 2, D 3, E 4, F 5);
