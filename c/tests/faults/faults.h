// faults.h: every request for memory or a thread fails once, in every public function.
//
// A scenario is a program of calls. It runs in a process of its own, once undisturbed, then with its first request failing, its
// second one, and so on until none is left to fail. Requests are the allocations (through vt_host_allocator_set()), mappings,
// threads and fork handlers. Where a call meets the failure, it answers VT_ERR_OUT_OF_MEMORY under its own name, everything that
// can be counted or listed is as before, and the same call succeeds when it is made again. When the scenario has given everything
// back, the library holds exactly as much memory as it does without the failure: so what it keeps for reuse counts, and what is
// lost shows.
//
// Calls are made through the macros below, which note the function: the program fails where an exported one is never called.
#ifndef VT_TESTS_FAULTS_H
#define VT_TESTS_FAULTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <vllm_vt/vt.h>

typedef struct scenario {
  const char *name;
  void (*fn)(int pass);  // pass: how often it has run in this process
  bool first_use;        // begins with the first use of the library: nothing may be asked before that
} scenario;

// Tables end with a scenario without a name.
extern const scenario fault_scenarios_core[];
extern const scenario fault_scenarios_graph[];
extern const scenario fault_scenarios_comm[];
extern const scenario fault_scenarios_op[];
extern const scenario fault_scenarios_first[];
extern const scenario fault_scenarios_quiet[];
extern const scenario fault_scenarios_pool[];
extern const scenario fault_scenarios_validate[];

// A call that succeeds, again after it met the failure.
#define DO(fn, args)                         \
  do {                                       \
    fault_begin(#fn);                        \
    if (!fault_end(fn args, FAULT_UNDONE)) { \
      fault_begin(#fn);                      \
      (void)fault_end(fn args, FAULT_NONE);  \
    }                                        \
  } while (0)

// A call whose failure changes something, as its header says. Answers whether it succeeded; if not, it met the failure.
#define TRY(fn, args) (fault_begin(#fn), fault_end(fn args, FAULT_KNOWN))

// A call that does without what it can't get, as its header says.
#define DO_ANYWAY(fn, args) (fault_begin(#fn), (void)fault_end(fn args, FAULT_HIDDEN))

// A call of either kind: it does without some things, and for others its failure changes something.
#define TRY_EITHER(fn, args) (fault_begin(#fn), fault_end(fn args, FAULT_KNOWN_OR_HIDDEN))

// A call that asks for several things, some of which it can do without.
#define DO_EITHER(fn, args)                  \
  do {                                       \
    fault_begin(#fn);                        \
    if (!fault_end(fn args, FAULT_EITHER)) { \
      fault_begin(#fn);                      \
      (void)fault_end(fn args, FAULT_NONE);  \
    }                                        \
  } while (0)

// One of many calls alike: DO(), unless `spared` says that it isn't to fail.
#define DO_UNLESS(spared, fn, args) \
  do {                              \
    if (spared) {                   \
      inject_pause(true);           \
      SURE(fn args == VT_OK);       \
      inject_pause(false);          \
    } else {                        \
      DO(fn, args);                 \
    }                               \
  } while (0)

// A call that asks for nothing: it is made while every request fails. By kind of result:
#define ASK(fn, args) (fault_deny(#fn), fault_allow(fn args))              // a status, which is VT_OK
#define LOOK(fn, args) (fault_deny(#fn), (void)(fn args), fault_undeny())  // something else
#define TELL(fn, args) (fault_deny(#fn), fn args, fault_undeny())          // nothing

typedef enum fault_effect {
  FAULT_NONE,    // no failure left to meet
  FAULT_UNDONE,  // a failure leaves everything as it was
  FAULT_KNOWN,   // a failure has a consequence that the caller checks
  FAULT_EITHER,  // a failure is hidden, or leaves everything as it was
  FAULT_KNOWN_OR_HIDDEN,
  FAULT_HIDDEN,  // a failure isn't seen
} fault_effect;

void fault_begin(const char *function);
bool fault_end(vt_status status, fault_effect effect);
void fault_deny(const char *function);
void fault_allow(vt_status status);
void fault_undeny(void);

// A new queue.
static inline vt_queue *fault_queue(vt_device device, uint32_t flags) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_queue *queue = NULL;
  options.flags = flags;
  DO(vt_queue_create, (device, &options, &queue));
  return queue;
}

// Waits until this many queues are alive: they go when their last work has run.
void fault_await_queues(size_t count);

// Whether the failure has come since the last fault_begin(), in whatever thread.
bool fault_was_met(void);

// Ends the scenario's process with a message unless something holds.
#define SURE(condition) fault_sure(__FILE__, __LINE__, #condition, (condition) ? 1 : 0)
void fault_sure(const char *file, int line, const char *what, int held);
_Noreturn void fault_fail(const char *format, ...) VT_PRINTF_LIKE(1, 2);

// The injection (inject.c).
void inject_allocator_set(void);
void inject_arm(uint64_t nth);  // the nth request from now fails; 0: none
void inject_deny(bool all);     // all requests fail
bool inject_was_met(void);
uint64_t inject_requests(void);    // so far
void inject_pause(bool pause);     // on this thread, whose requests are the harness's own
int64_t inject_live_blocks(void);  // not given back
int64_t inject_live_bytes(void);

// What can be counted and listed (state.c).
enum { STATE_TEXT = 24576 };

typedef struct fault_state {
  size_t handles[VT_HANDLE_KIND_COUNT];
  char text[STATE_TEXT];  // devices, memory, operations and who serves them; empty before the first use
} fault_state;

void state_take(fault_state *state, bool all);
// NULL, or what differs.
const char *state_difference(const fault_state *a, const fault_state *b);

#endif
