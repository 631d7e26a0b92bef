// graph.h: recording the work of a step once, and replaying it.
//
// Between begin and end, operations on the capturing queue are recorded and do not run. Another queue joins by waiting for an event
// recorded on a queue that is in the capture, and must be joined back the same way before the end. The addresses are baked in; the
// bytes behind them are read at each launch, so they must stay alive as long as the graph is launched.
//
// A call on a capturing queue that is refused fails its capture: vt_graph_end_capture() then answers the first such failure. Calls
// on a capturing queue are legal on the thread that began the capture only.
#ifndef VLLM_VT_GRAPH_H
#define VLLM_VT_GRAPH_H

#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vt_graph vt_graph;

// Begins a capture. Its rules bind the calling thread; other threads go on as before.
//
// Order    work submitted before is not part of it
// Memory   none
// Units    at most 64 queues join one capture
// Threads  begin, the recorded calls and end on one thread
// Capture  refused: a queue is in one capture at a time
// Errors   VT_ERR_UNSUPPORTED          the backend can't capture
//          VT_ERR_INVALID_ARGUMENT     not a live queue
//          VT_ERR_FAILED_PRECONDITION  already capturing, the queue was destroyed, in a forked child, or from a callback
//          VT_ERR_OUT_OF_MEMORY        the queue isn't capturing
//          or the failure that stuck to the queue
VT_API vt_status vt_graph_begin_capture(vt_queue *queue);

// Ends the capture that began on `queue`, and gives the graph. The queue is usable again, also where this fails.
//
// Order    nothing has run
// Memory   the caller owns one reference, see vt_graph_release(). With `out_graph` NULL the queue keeps the graph for
//          vt_queue_replay(), in place of the one it kept before (only where this succeeds)
// Units    none
// Threads  the thread that began
// Capture  ends it
// Errors   VT_ERR_FAILED_PRECONDITION  not capturing, began on another queue or thread, or a fork was not joined (the message
//                                      names its queue)
//          VT_ERR_INVALID_ARGUMENT     not a live queue
//          VT_ERR_OUT_OF_MEMORY        no graph was made
//          or the first failure inside the capture
VT_API vt_status vt_graph_end_capture(vt_queue *queue, vt_graph **out_graph);

// Ends a capture without a graph. All its queues are usable again, and nothing was run.
//
// Order    none
// Memory   frees what was recorded
// Units    none
// Threads  the thread that began
// Capture  ends it
// Errors   VT_ERR_FAILED_PRECONDITION  not capturing, or began on another queue or thread
//          VT_ERR_INVALID_ARGUMENT     not a live queue
VT_API vt_status vt_graph_abort_capture(vt_queue *queue);

// Queues one run of the graph.
//
// Order    in stream order. One graph launched on two queues runs one launch at a time
// Memory   the graph may be released at once
// Units    none
// Threads  any
// Capture  refused on a capturing queue; the refusal fails that capture
// Errors   VT_ERR_INVALID_ARGUMENT     not live, or of different devices
//          VT_NOT_READY                the ring is full and the queue was made with VT_QUEUE_FAIL_FULL
//          VT_ERR_FAILED_PRECONDITION  the queue is capturing or was destroyed, in a forked child, or from a callback
//          VT_ERR_OUT_OF_MEMORY        no thread for a branch; nothing has run
//          or the failure that stuck to the queue; on a synchronous queue, the failure of a node
VT_API vt_status vt_graph_launch(vt_graph *graph, vt_queue *queue);

// Queues one run of the graph that the queue keeps.
//
// Order    as vt_graph_launch()
// Memory   none
// Units    none
// Threads  any
// Capture  refused on a capturing queue; the refusal fails that capture
// Errors   VT_ERR_FAILED_PRECONDITION  the queue keeps no graph yet
//          and those of vt_graph_launch()
VT_API vt_status vt_queue_replay(vt_queue *queue);

// Answers 1 while the queue is in a capture, else 0.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse answers 0 and goes to the last error
VT_API int32_t vt_queue_is_capturing(vt_queue *queue);

// Takes one more reference.
//
// Order    none
// Memory   to be given back with vt_graph_release()
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live graph
VT_API vt_status vt_graph_retain(vt_graph *graph);

// Gives up one reference. Never waits: launches in flight complete.
//
// Order    none
// Memory   NULL is fine; a misuse goes to the last error and the log
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned
VT_API void vt_graph_release(vt_graph *graph);

// Reads the number of operations that one launch runs.
//
// Order    none
// Memory   none
// Units    operations
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live graph, or `out_count` NULL
VT_API vt_status vt_graph_get_node_count(vt_graph *graph, size_t *out_count);

// Reads the device of a graph.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  not a live graph, or `out_device` NULL
VT_API vt_status vt_graph_get_device(vt_graph *graph, vt_device *out_device);

// Reads the id of a graph: unique in the process, growing, never used again. 0 for what isn't a live graph.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API uint64_t vt_graph_get_id(vt_graph *graph);

// Reads the backend's own handle (a cudaGraphExec_t). NULL where there is none.
//
// Order    none
// Memory   borrowed from the graph
// Units    none
// Threads  any
// Capture  allowed
// Errors   none returned; a misuse goes to the last error
VT_API void *vt_graph_get_native(vt_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
