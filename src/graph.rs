//! Recording the work of a step once, and replaying it.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::alloc::Alloc;
use crate::capture;
use crate::context;
use crate::error::{Error, Result, Status, check};
use crate::graph_track::{GraphTrack, Launch};
use crate::queue::Queue;
use crate::queue_core::lock;
use crate::reaper::{self, Handle};
use crate::sys;

/// A graph of C with the buffers that it uses.
pub(crate) struct GraphCore {
    /// `None`: the C queue keeps it.
    raw: Option<NonNull<sys::vt_graph>>,
    track: Arc<GraphTrack>,
    /// Kept alive for the launches.
    allocs: Vec<Arc<Alloc>>,
}

// SAFETY: all functions on graphs may be called from any thread.
unsafe impl Send for GraphCore {}
// SAFETY: as above, also on one graph at the same time.
unsafe impl Sync for GraphCore {}

impl Drop for GraphCore {
    fn drop(&mut self) {
        // The allocations go afterwards; each waits for the launches that the track knows.
        self.track.retire();
        if let Some(raw) = self.raw {
            reaper::release(Handle::Graph(raw));
        }
    }
}

/// Recorded work, to be launched any number of times.
///
/// A graph owns what it uses: queues and buffers may be dropped before it is launched. Dropping it doesn't wait; launches in flight
/// complete.
///
/// ```
/// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
///
/// let queue = Queue::new_async(Device::cpu(0))?;
/// let mut input = DeviceBuf::from_slice(Device::cpu(0), &[1i32, 2])?;
/// let mut output = DeviceBuf::zeroed(Device::cpu(0), 2)?;
/// let graph = queue.capture(|q| q.copy(&mut output, &input))?;
/// assert_eq!(*output.read()?, [0, 0]); // capturing runs nothing
/// input.copy_from_slice(&[3, 4])?;
/// graph.launch(&queue)?;
/// assert_eq!(*output.read()?, [3, 4]); // waits for the launch
/// # Ok::<(), vllm_cpp_sys::Error>(())
/// ```
pub struct Graph {
    core: GraphCore,
}

impl Graph {
    /// Queues one run.
    ///
    /// Refused while a view of one of its buffers is open that conflicts with it. Where earlier work failed to write what the graph
    /// reads, the launch reports that, once, instead of running. Launches of one graph run one at a time; launches of graphs that use
    /// the same bytes are ordered where one of them writes.
    pub fn launch(&self, queue: &Queue) -> Result<()> {
        let Some(raw) = self.core.raw else { return Err(Error::new(Status::Internal, "the graph has no handle")) };
        // SAFETY: live handles; the launch keeps the graph, and the track keeps the memory until it has run.
        self.core.launch(queue, || unsafe { sys::vt_graph_launch(raw.as_ptr(), queue.as_raw()) })
    }

    /// The number of operations that one launch runs.
    pub fn node_count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: a live graph and a valid out-parameter.
        check(unsafe { sys::vt_graph_get_node_count(self.as_raw(), &mut count) })?;
        Ok(count)
    }

    /// The C graph, borrowed.
    pub fn as_raw(&self) -> *mut sys::vt_graph {
        self.core.raw.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: a live graph.
        write!(f, "Graph({})", unsafe { sys::vt_graph_get_id(self.as_raw()) })
    }
}

impl GraphCore {
    fn launch(&self, queue: &Queue, call: impl FnOnce() -> sys::vt_status) -> Result<()> {
        context::enter("vt_graph_launch")?;
        if capture::is_recording(&queue.core) {
            return check(call()); // refused there, which fails the capture
        }
        let launch = Launch::begin(&self.track, &self.allocs, &queue.core)?;
        let outcome = check(call());
        launch.end(outcome.is_ok());
        outcome
    }
}

/// Aborts a capture that doesn't come to its end: an error or a panic in the closure.
struct Open<'q> {
    queue: &'q Queue,
    ended: bool,
}

impl<'q> Open<'q> {
    fn begin(queue: &'q Queue) -> Result<Open<'q>> {
        context::enter("vt_graph_begin_capture")?;
        if context::is_capturing() || context::is_batching() {
            let text = "this thread is inside another capture or a batch";
            return Err(Error::refused("vt_graph_begin_capture", text));
        }
        capture::start(&queue.core)?;
        // SAFETY: a live queue.
        if let Err(error) = check(unsafe { sys::vt_graph_begin_capture(queue.as_raw()) }) {
            capture::stop();
            return Err(error);
        }
        Ok(Open { queue, ended: false })
    }

    /// Ends it; with `out_graph` NULL the C queue keeps the graph.
    fn end(mut self, out_graph: *mut *mut sys::vt_graph) -> Result<GraphCore> {
        self.ended = true;
        let builder = capture::stop();
        // SAFETY: a live queue, and a valid out-parameter or NULL.
        let outcome = check(unsafe { sys::vt_graph_end_capture(self.queue.as_raw(), out_graph) });
        let builder = builder.ok_or_else(|| Error::new(Status::Internal, "the capture was lost"))?;
        // Where the end failed, this core is dropped at once: nothing was ever launched.
        let core = GraphCore { raw: None, track: builder.track, allocs: builder.allocs };
        outcome.map(|()| core)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let builder = capture::stop();
        // SAFETY: a live queue. A failure means that the capture has ended by other means.
        unsafe { sys::vt_graph_abort_capture(self.queue.as_raw()) };
        if let Some(builder) = builder {
            builder.track.retire();
        }
    }
}

impl Queue {
    /// Records what `f` does on this queue, and on queues that join by events, into a graph. Nothing runs. An error or a panic in `f`
    /// aborts the capture; the queue is usable again in any case.
    pub fn capture(&self, f: impl FnOnce(&Queue) -> Result<()>) -> Result<Graph> {
        let open = Open::begin(self)?;
        f(self)?;
        let mut raw = std::ptr::null_mut();
        let mut core = open.end(&mut raw)?;
        core.raw = NonNull::new(raw);
        Ok(Graph { core })
    }

    /// As [`Queue::capture`], but the queue keeps the graph, for [`Queue::replay`], in place of the one that it kept before.
    pub fn capture_stored(&self, f: impl FnOnce(&Queue) -> Result<()>) -> Result<()> {
        let open = Open::begin(self)?;
        f(self)?;
        // Held over the call: what C keeps and what is noted here change together.
        let mut stored = lock(&self.stored);
        let before = stored.replace(open.end(std::ptr::null_mut())?);
        drop(stored);
        drop(before);
        Ok(())
    }

    /// Queues one run of the graph that the queue keeps.
    ///
    /// ```
    /// use vllm_cpp_sys::{Device, DeviceBuf, Queue};
    ///
    /// let queue = Queue::new(Device::cpu(0))?;
    /// let mut buffer = DeviceBuf::<u8>::zeroed(Device::cpu(0), 4)?;
    /// queue.capture_stored(|q| q.fill(&mut buffer, 7))?;
    /// queue.replay()?;
    /// assert_eq!(buffer.to_vec()?, [7, 7, 7, 7]);
    /// # Ok::<(), vllm_cpp_sys::Error>(())
    /// ```
    pub fn replay(&self) -> Result<()> {
        context::enter("vt_queue_replay")?;
        let stored = lock(&self.stored);
        // SAFETY: a live queue; the track keeps the memory until the launch has run.
        let call = || unsafe { sys::vt_queue_replay(self.as_raw()) };
        match stored.as_ref() {
            Some(core) => core.launch(self, call),
            None => check(call()),
        }
    }
}
