//! A compute runtime for LLM inference engines: devices, queues, events, pinned memory, graphs, a step arena, and collectives between
//! ranks. The runtime is written in C11 (`c/` of this crate, headers `vllm_vt/`); [`sys`] holds its plain bindings, and this crate's
//! other types wrap them.
//!
//! # First steps
//!
//! ```
//! use vllm_cpp_sys::{Device, DeviceBuf, Event, PinnedBuf, Queue};
//!
//! # fn main() -> Result<(), vllm_cpp_sys::Error> {
//! let device = Device::cpu(0);
//! let main = Queue::new_async(device)?;
//! let copies = Queue::new_async(device)?;
//!
//! let x = DeviceBuf::from_fn(device, 1000, |i| i as f32)?;
//! let mut y = DeviceBuf::<f32>::zeroed(device, 1000)?;
//! let mut result = PinnedBuf::<f32>::zeroed(device, 1)?;
//!
//! // One step, recorded once and launched at will.
//! let step = main.capture(|q| {
//!     q.host_task((&x, &mut y), |(x, y)| {
//!         y.iter_mut().zip(x).for_each(|(y, x)| *y += 2.0 * x);
//!         Ok(())
//!     })
//! })?;
//! step.launch(&main)?;
//! step.launch(&main)?;
//!
//! // The result goes to the host on another queue; an event says when.
//! let done = Event::new(device)?;
//! copies.copy(&mut result, y.slice(999..))?; // comes after the launches: they use the same bytes
//! done.record(&copies)?;
//! done.synchronize()?;
//! assert_eq!(result.read()?[0], 4.0 * 999.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Soundness
//!
//! No sequence of safe calls is undefined behaviour, whatever is forgotten or dropped, in whichever order and on whichever thread.
//!
//! - **Work in flight keeps its memory.** Buffers are reference-counted allocations that remember the last operations on them as
//!   (queue, ticket). Dropping one never waits: the memory is given back when those operations have completed.
//! - **Memory comes back in order.** What [`DeviceBuf::zeroed_async`] took from the pool may hold earlier work of its queue: everybody else
//!   comes after that, and after the zeroing. Where the queue fails before, the memory is never read.
//! - **What others may write has no views.** Memory that another process can map ([`AllocOptions::shareable`]) is copied in and out.
//! - **Uses of the same bytes are ordered.** An operation on a second queue waits for conflicting ones on the first, without blocking
//!   the host, and only where the bytes overlap and one of the two writes; it then waits for all that the first queue holds by then.
//!   Inside a capture the same holds between its queues.
//! - **Views exclude work.** [`DeviceBuf::read`] and [`DeviceBuf::write`] wait for pending work and give `&[T]` or `&mut [T]`. While a
//!   view is open, conflicting work is refused with [`Status::FailedPrecondition`]; a view that was forgotten keeps it refused.
//! - **Graphs own what they use.** A [`Graph`] may be launched after its queues and buffers were dropped; a view of a buffer waits for
//!   launches of the graphs that hold it, and keeps new ones out.
//! - **Borrowed slices are free on return.** Calls that take `&[T]` or `&mut [T]` have finished with them when they return; so has
//!   [`Queue::scope`], which borrows them for several operations.
//! - **Failures stay failures.** Where a queue or a communicator failed, views, operations and launches that read what was to be
//!   written report the failure: once for each byte, unless it was overwritten since. The memory is at rest by then. What a failed
//!   queue refuses is reported by that call alone. Panics in callbacks become errors of the queue. A rank that panics aborts its group.
//!
//! # Threads
//!
//! | type | Send | Sync |
//! |---|---|---|
//! | [`Device`], [`Error`], [`Status`], [`OpId`], [`AllocOptions`], [`AllocInfo`], [`SharedMemory`], [`PoolStats`] | yes | yes |
//! | [`Queue`], [`Event`], [`EventFuture`], [`Graph`] | yes | yes |
//! | [`DeviceBuf`], [`PinnedBuf`], [`Slice`], [`SliceMut`], [`ReadView`], [`WriteView`] | yes | yes |
//! | [`CommGroup`], [`AbortHandle`] | yes | yes |
//! | [`Scope`] | yes | yes |
//! | [`Comm`], [`Arena`] | yes | no |
//! | [`Batch`], [`CommCall`], [`ArenaScope`] | no | no |
//! | [`dlpack::ManagedTensor`] | yes | yes |
//! | [`backend::HostCall`], [`backend::QueueRequest`] | yes | yes |
//! | [`backend::QueueDone`] | yes | no |
//! | [`DeviceInfo`], [`DeviceType`], [`MemoryKind`], [`Guarantees`], [`Health`], [`MemoryStats`], [`ArenaStats`], [`QueueOptions`], [`CommGroupOptions`] | yes | yes |
//! | [`EventFlags`], [`WaitMode`], [`Rows`], [`DType`], [`F16`], [`Bf16`], [`ReduceOp`], [`Domain`] | yes | yes |
//!
//! # Features
//!
//! - `half`: `half::f16` and `half::bf16` are elements that communicators reduce, and convert from and to [`F16`] and [`Bf16`].
//! - `bytemuck`: `Plain<T>` makes an element of any `bytemuck::Pod` type, and [`F16`] and [`Bf16`] can be cast by bytemuck.
//! - `bindgen`: the bindings are generated while building. Needs libclang.
//!
//! # Errors
//!
//! Every failure is an [`Error`]: a [`Status`] to act on, a message for people, and the native code where there is one. `Drop` never
//! blocks, panics or reports; `close` does what `Drop` does and answers the status.
//!
//! The C interface reads the environment variable `VT_LOG` (error, warn, info, debug: messages go to stderr) where no [`log`] hook is
//! set, `VT_OP_PROVIDER_DISABLE` (names of operation providers, separated by commas; see [`op`]), `VT_TRACE` (a path; see [`trace`]),
//! `VT_VALIDATE` (1: on; see [`validate`]) and `VT_CPU_DEVICES` (1 to 16: so many logical CPU devices).
#![warn(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod backend;
pub mod dlpack;
pub mod log;
pub mod op;
pub mod sys;
pub mod trace;
pub mod validate;

mod alloc;
mod arena;
mod batch;
mod buffer;
mod capture;
mod collectives;
mod comm;
mod comm_group;
mod comm_health;
mod comm_op;
mod context;
mod copies;
mod device;
mod dtype;
mod error;
mod event;
mod event_future;
mod graph;
mod graph_track;
mod host;
mod lock;
mod options;
#[cfg(feature = "bytemuck")]
mod plain;
mod pool;
mod queue;
mod queue_core;
mod ranges;
mod reaper;
mod scope;
mod slice;
mod track;
mod transfer;
mod view;

pub use arena::{Arena, ArenaScope, ArenaStats};
pub use batch::{Batch, batch};
pub use buffer::{DeviceBuf, PinnedBuf};
pub use comm::{AbortHandle, Comm, CommCall};
pub use comm_group::{CommGroup, CommGroupOptions};
pub use comm_health::{Guarantees, Health};
pub use comm_op::ReduceOp;
pub use copies::Rows;
pub use device::{Device, DeviceInfo, DeviceType, MemoryKind, MemoryStats};
pub use dtype::{Bf16, DType, Element, F16, Reducible, Scalar};
pub use error::{Domain, Error, Result, Status};
pub use event::{Event, EventFlags, WaitMode};
pub use event_future::EventFuture;
pub use graph::Graph;
pub use host::{HostArg, HostArgs, host_concurrency};
pub use op::OpId;
pub use options::{AllocInfo, AllocOptions, SharedMemory};
#[cfg(feature = "bytemuck")]
pub use plain::Plain;
pub use pool::PoolStats;
pub use queue::{Queue, QueueOptions};
pub use reaper::reclaim;
pub use scope::Scope;
pub use slice::{Slice, SliceMut};
pub use view::{ReadView, WriteView};
