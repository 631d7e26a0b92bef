// vt_test.h: what a case of the conformance suite sees.
//
// A case is a function that is run once per row, a row being a device and a kind of queue. It uses the public headers, libc and
// this file. Checks record file, line and values and go on; the REQUIRE forms return from the function as well. Checks may be
// called from any thread. Whatever a case gets from vt_test_*() is given back by the harness when the case is over, which then
// looks for objects and memory that were left behind.
//
// Include it first: it asks libc for the POSIX functions.
#ifndef VT_TEST_H
#define VT_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <vllm_vt/vt.h>

// One run of one case on one row.
typedef struct vt_case vt_case;

typedef void (*vt_case_fn)(vt_case *c);

// What a case needs; rows that lack it skip the case by name.
enum {
  NEED_SYNC = 1 << 0,          // operations are done when the call returns
  NEED_ASYNC = 1 << 1,         // operations may be pending when the call returns
  NEED_WORKER = 1 << 2,        // queues have a worker, so host functions may wait for each other and for the caller
  NEED_GRAPH = 1 << 3,         // graph capture
  NEED_COMM = 1 << 4,          // communicators
  NEED_EVENT_TIMING = 1 << 5,  // timing events
  NEED_CPU = 1 << 6,           // the built-in CPU backend
  NEED_DEVICES = 1 << 7,       // four logical devices, 0 to 3
  NEED_FORK = 1 << 8,          // fork(): not under TSan
  NEED_TOY = 1 << 9,           // the plug-in backend that defers
  NEED_NO_TSAN = 1 << 10,      // too slow or not understood there
  NEED_PLUGIN = 1 << 16,       // a backend that was loaded from a shared library
  REPORTS = 1 << 17,           // provokes reports of the validation layer on purpose, where that is on; not a need
  ONCE = 1 << 11,              // does not depend on the row: listed on the first row only
};

// Tables end with a case without a name.
typedef struct vt_test_case {
  const char *name;  // states the promise: "arena_refusal_leaves_accounting_alone"
  uint32_t needs;
  vt_case_fn fn;
} vt_test_case;

#define VT_TEST_END \
  { NULL, 0, NULL }

// Checks. Each answers whether it held.
#define EXPECT_STATUS(c, expected, call) vt_test_check_status((c), __FILE__, __LINE__, #call, (expected), (call))
#define EXPECT_OK(c, call) EXPECT_STATUS(c, VT_OK, call)
#define EXPECT_TRUE(c, condition) vt_test_check_true((c), __FILE__, __LINE__, #condition, (condition) ? 1 : 0)
#define EXPECT_EQ(c, expected, actual) \
  vt_test_check_eq((c), __FILE__, __LINE__, #actual, (long long)(expected), (long long)(actual))
// The message of this thread's last error holds `part`.
#define EXPECT_MESSAGE(c, part) vt_test_check_message((c), __FILE__, __LINE__, (part))
// The last error's status and a part of its message, after a function that returns no status.
#define EXPECT_LAST_ERROR(c, status, part) vt_test_check_last_error((c), __FILE__, __LINE__, (status), (part))
// A call that fails in this way, with this in its message.
#define EXPECT_FAILS(c, expected, part, call) vt_test_check_fails((c), __FILE__, __LINE__, #call, (expected), (part), (call))
// Two texts are the same; NULL is the same as no other text.
#define EXPECT_TEXT(c, expected, actual) vt_test_check_text((c), __FILE__, __LINE__, #actual, (expected), (actual))
#define EXPECT_BYTES(c, expected, actual, bytes) \
  vt_test_check_bytes((c), __FILE__, __LINE__, #actual, (expected), (actual), (bytes))
// Every one of `bytes` bytes is `value`.
#define EXPECT_FILLED(c, value, actual, bytes) vt_test_check_filled((c), __FILE__, __LINE__, #actual, (value), (actual), (bytes))
// Records a failure with a printf-like text.
#define FAIL_CASE(c, ...) vt_test_fail((c), __FILE__, __LINE__, __VA_ARGS__)
// Ends the case as skipped, from the function that runs it.
#define SKIP_CASE(c, ...)           \
  do {                              \
    vt_test_skip((c), __VA_ARGS__); \
    return;                         \
  } while (0)

#define VT_TEST_OR_RETURN(check) \
  do {                           \
    if (!(check)) {              \
      return;                    \
    }                            \
  } while (0)
#define REQUIRE_OK(c, call) VT_TEST_OR_RETURN(EXPECT_OK(c, call))
#define REQUIRE_STATUS(c, expected, call) VT_TEST_OR_RETURN(EXPECT_STATUS(c, expected, call))
#define REQUIRE_TRUE(c, condition) VT_TEST_OR_RETURN(EXPECT_TRUE(c, condition))
#define REQUIRE_EQ(c, expected, actual) VT_TEST_OR_RETURN(EXPECT_EQ(c, expected, actual))

int vt_test_check_status(vt_case *c, const char *file, int line, const char *call, vt_status expected, vt_status actual);
int vt_test_check_fails(vt_case *c, const char *file, int line, const char *call, vt_status expected, const char *part,
                        vt_status actual);
int vt_test_check_text(vt_case *c, const char *file, int line, const char *what, const char *expected, const char *actual);
int vt_test_check_true(vt_case *c, const char *file, int line, const char *condition, int held);
int vt_test_check_eq(vt_case *c, const char *file, int line, const char *what, long long expected, long long actual);
int vt_test_check_message(vt_case *c, const char *file, int line, const char *part);
int vt_test_check_last_error(vt_case *c, const char *file, int line, vt_status status, const char *part);
int vt_test_check_bytes(vt_case *c, const char *file, int line, const char *what, const void *expected, const void *actual,
                        size_t bytes);
int vt_test_check_filled(vt_case *c, const char *file, int line, const char *what, int value, const void *actual, size_t bytes);
int vt_test_fail(vt_case *c, const char *file, int line, const char *format, ...) VT_PRINTF_LIKE(4, 5);
void vt_test_skip(vt_case *c, const char *format, ...) VT_PRINTF_LIKE(2, 3);

// Whether no check has failed so far.
int vt_test_is_clean(vt_case *c);

// The row.
vt_device vt_test_device(vt_case *c);
const char *vt_test_row(vt_case *c);
int vt_test_has(vt_case *c, uint32_t needs);         // whether the row offers all of these NEED_ bits
vt_queue_options vt_test_queue_options(vt_case *c);  // make a queue of the row's kind

// Things that the harness gives back at the end of the case, handles first, memory when the queues have gone. They do not return
// without what was asked for: a failure to get it ends the program with a message. Each call makes a new one.
vt_queue *vt_test_queue(vt_case *c);                                                            // of the row's device and kind
vt_queue *vt_test_queue_on(vt_case *c, vt_device device);                                       // of the row's kind
vt_queue *vt_test_queue_with(vt_case *c, const vt_queue_options *options);                      // of the row's device
vt_event *vt_test_event(vt_case *c, uint32_t flags);                                            // of the row's device
vt_arena *vt_test_arena(vt_case *c, size_t capacity);                                           // of the row's device
vt_comm_group *vt_test_group(vt_case *c, int32_t world, const vt_comm_group_options *options);  // also watched
void *vt_test_alloc(vt_case *c, size_t bytes);   // vt_alloc() on the row's device, zeroed
void *vt_test_pinned(vt_case *c, size_t bytes);  // vt_pinned_alloc() on the row's device, zeroed

// Host memory, zeroed, with 64 canary bytes before and behind, which are checked at the end of the case. The address is `misalign`
// bytes (0 to 63) behind a multiple of 64.
void *vt_test_guarded_alloc(vt_case *c, size_t bytes);
void *vt_test_guarded_alloc_at(vt_case *c, size_t bytes, size_t misalign);
// Checks the canaries of one block now. Answers whether they were whole.
int vt_test_guarded_check(vt_case *c, const void *ptr);

// Calls fn(arg) at the end of the case, last come first served, before any memory goes.
void vt_test_defer(vt_case *c, void (*fn)(void *arg), void *arg);

// Sends the log's messages up to `level` to fn(user, ...) until the case ends.
void vt_test_log(vt_case *c, vt_log_fn fn, void *user, vt_log_level level);

// Runs fn(c, index, arg) on `count` threads that start together, and waits for all of them.
typedef void (*vt_test_thread_fn)(vt_case *c, int32_t index, void *arg);
void vt_test_threads(vt_case *c, int32_t count, vt_test_thread_fn fn, void *arg);

// How many threads the process has. One that was joined may still be counted for a while.
int32_t vt_test_count_threads(vt_case *c);

// When the case's deadline passes, its watchdog prints what the ranks of these groups are doing.
void vt_test_watch_group(vt_case *c, vt_comm_group *group);

// Gives the case another deadline, counted from now; it is stretched under sanitizers like the default of 60 s.
void vt_test_set_deadline(vt_case *c, uint32_t seconds);

// The validation layer. Where it is on (VT_VALIDATE=1), a report fails a case that doesn't say REPORTS. vt_test_validate() turns it
// on for the case in any row, and declares that it checks the reports itself.
void vt_test_validate(vt_case *c);

// The reports since the last check are one of this kind, made by a call of `now` in conflict with one of `before` (NULL: none),
// and the callers of both are known.
#define EXPECT_REPORT(c, kind, now, before) vt_test_check_report((c), __FILE__, __LINE__, (kind), (now), (before))
// There were none since the last check.
#define EXPECT_QUIET(c) vt_test_check_quiet((c), __FILE__, __LINE__)

int vt_test_check_report(vt_case *c, const char *file, int line, vt_validate_kind kind, const char *now, const char *before);
int vt_test_check_quiet(vt_case *c, const char *file, int line);

// The last report of the case, until the next check; its texts live as long. NULL if there is none.
const vt_validate_report *vt_test_last_report(vt_case *c);

// Random numbers. The seed is printed with every failure; VT_TEST_SEED sets it. A stream is a pure function of (seed, stream).
typedef struct vt_test_rng {
  uint64_t state;
} vt_test_rng;

uint64_t vt_test_seed(vt_case *c);
vt_test_rng vt_test_rng_begin(vt_case *c, uint64_t stream);
uint64_t vt_test_random(vt_test_rng *rng);                        // splitmix64
uint64_t vt_test_random_below(vt_test_rng *rng, uint64_t limit);  // 0 to limit - 1
void vt_test_random_fill(vt_test_rng *rng, void *ptr, size_t bytes);

// The library's memory. The whole suite runs on a host allocator (host_allocator.h) that counts.
int64_t vt_test_alloc_live(void);   // blocks that were not given back
int64_t vt_test_alloc_calls(void);  // blocks asked for so far

// Calls fn(arg) at each allocation of this thread; where it answers 0, there is no memory. NULL ends it.
typedef int (*vt_test_alloc_fn)(void *arg);
void vt_test_alloc_step_in(vt_test_alloc_fn fn, void *arg);

// Time.
uint64_t vt_test_now_ns(void);
void vt_test_sleep_ns(uint64_t ns);

// How this program was built and is run.
int vt_test_is_tsan(void);
int vt_test_is_slow(void);      // under a sanitizer, valgrind or an emulator: choose smaller sizes
int vt_test_is_emulated(void);  // VT_TEST_RUNNER names an emulator

// A door that host functions and threads wait at. Lives in the case's frame or longer.
typedef struct vt_test_latch {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int open;
  int waiting;  // threads at the door
} vt_test_latch;

#define VT_TEST_LATCH_INIT \
  { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 }

void vt_test_latch_open(vt_test_latch *latch);
void vt_test_latch_wait(vt_test_latch *latch);          // until it is open
void vt_test_latch_await_waiter(vt_test_latch *latch);  // until a thread waits at the door, or it is open

// Host functions: `user` is what the name says.
vt_status vt_test_host_wait(void *latch);     // waits at the door of a vt_test_latch
vt_status vt_test_host_count(void *counter);  // adds one to an _Atomic int32_t
vt_status vt_test_host_fail(void *text);      // fails with VT_ERR_INTERNAL and this text
void vt_test_drop_count(void *counter);       // a drop function: adds one to an _Atomic int32_t

#endif
