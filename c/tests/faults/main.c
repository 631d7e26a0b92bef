// main.c: runs every scenario with every one of its requests failing, each time in a fresh process.
//
//   vt_faults EXPORTS [SCENARIO [NTH]]   EXPORTS is c/exports.txt
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"

enum { MAX_FUNCTIONS = 512, FUNCTION_BYTES = 48, MAX_NTH = 400, PROCESS_S = 60 };

// What a process has found out.
typedef struct result {
  bool met;
  uint64_t requests;
  int64_t blocks;
  int64_t bytes;
  fault_state state;
  char problem[2048];  // empty: none
} result;

// Shared with the processes of the scenarios.
static struct {
  result result;
  size_t called;
  char functions[MAX_FUNCTIONS][FUNCTION_BYTES];
} * shared;

// Of this process.
static struct {
  const scenario *run;
  const char *function;  // that is being called
  bool used;             // the library has been used before
  bool tainted;          // the failure came, and was seen or allowed to be hidden
  uint64_t nth;
  fault_state before;
} now;

static void note(const char *function) {
  now.function = function;
  for (size_t i = 0; i < shared->called; i++) {
    if (strcmp(shared->functions[i], function) == 0) {
      return;
    }
  }
  if (shared->called == MAX_FUNCTIONS) {
    fault_fail("no place for one more function: raise MAX_FUNCTIONS");
  }
  (void)snprintf(shared->functions[shared->called++], FUNCTION_BYTES, "%s", function);
}

_Noreturn void fault_fail(const char *format, ...) {
  result *out = &shared->result;
  int length = snprintf(out->problem, sizeof(out->problem), "%s, request %llu fails, in %s: ", now.run->name,
                        (unsigned long long)now.nth, now.function);
  va_list list;
  va_start(list, format);
  (void)vsnprintf(out->problem + length, sizeof(out->problem) - (size_t)length, format, list);
  va_end(list);
  _exit(1);
}

void fault_sure(const char *file, int line, const char *what, int held) {
  if (!held) {
    const char *slash = strrchr(file, '/');
    fault_fail("%s:%d: not so: %s (last error: %s)", slash == NULL ? file : slash + 1, line, what, vt_last_error()->message);
  }
}

static void take_state(fault_state *state) {
  inject_pause(true);
  state_take(state, now.used || !now.run->first_use);
  inject_pause(false);
}

void fault_begin(const char *function) {
  note(function);
  take_state(&now.before);
  now.tainted = inject_was_met();
}

bool fault_was_met(void) {
  return inject_was_met() && !now.tainted;
}

static void check_undone(void) {
  static fault_state after;
  take_state(&after);
  const char *difference = state_difference(&now.before, &after);
  if (difference != NULL) {
    fault_fail("it failed and left something behind: %s", difference);
  }
}

bool fault_end(vt_status status, fault_effect effect) {
  bool fails_now = fault_was_met();
  if (status == VT_OK) {
    now.used = true;
    if (fails_now && (effect == FAULT_UNDONE || effect == FAULT_KNOWN)) {
      fault_fail("it met the failure and answered OK");
    }
    return true;
  }
  if (status != VT_ERR_OUT_OF_MEMORY || !fails_now || effect == FAULT_NONE || effect == FAULT_HIDDEN) {
    fault_fail("%s%s: %s", vt_status_get_name(status), fails_now ? "" : " without a failure", vt_last_error()->message);
  }
  const vt_error *error = vt_last_error();
  if (error->status != status || strcmp(error->function, now.function) != 0 || error->message[0] == 0) {
    fault_fail("the record is of %s by %s: '%s'", vt_status_get_name(error->status), error->function, error->message);
  }
  if (effect == FAULT_UNDONE || effect == FAULT_EITHER) {
    check_undone();
  }
  return false;
}

static uint64_t requests_before;

void fault_deny(const char *function) {
  note(function);
  requests_before = inject_requests();
  inject_deny(true);
}

void fault_undeny(void) {
  inject_deny(false);
  if (inject_requests() != requests_before) {
    fault_fail("it asked for memory or a thread");
  }
}

void fault_allow(vt_status status) {
  fault_undeny();
  if (status != VT_OK) {
    fault_fail("%s: %s", vt_status_get_name(status), vt_last_error()->message);
  }
}

enum { TRIES = 200000 };

static void sleep_100_us(void) {
  const struct timespec pause = {0, 100000};
  (void)nanosleep(&pause, NULL);
}

void fault_await_queues(size_t count) {
  for (int i = 0; i < TRIES && vt_handle_get_live_count(VT_HANDLE_QUEUE) != count; i++) {
    sleep_100_us();
  }
}

// Workers end, and give back what they have, a little later.
static void await_rest(const fault_state *begin) {
  static fault_state end;
  int quiet = 0;
  for (int i = 0; i < TRIES && quiet < 3; i++) {
    int64_t blocks = inject_live_blocks();
    sleep_100_us();
    state_take(&end, false);
    quiet = memcmp(begin->handles, end.handles, sizeof(end.handles)) == 0 && blocks == inject_live_blocks() ? quiet + 1 : 0;
  }
  if (quiet < 3) {
    fault_fail("what it made is still there: %s", state_difference(begin, &end));
  }
}

// The process of one run. A warm one has run the scenario before.
static _Noreturn void run_here(const scenario *run, uint64_t nth, bool warm) {
  static fault_state begin;
  now.run = run;
  now.nth = nth;
  now.function = "nothing";
  alarm(PROCESS_S);
  inject_allocator_set();
  state_take(&begin, false);
  int pass = 0;
  if (warm) {
    run->fn(pass++);
    await_rest(&begin);
  }
  inject_arm(nth);
  run->fn(pass++);
  await_rest(&begin);
  shared->result.met = inject_was_met();
  inject_arm(0);
  run->fn(pass++);
  await_rest(&begin);
  now.used = true;
  take_state(&shared->result.state);
  shared->result.requests = inject_requests();
  shared->result.blocks = inject_live_blocks();
  shared->result.bytes = inject_live_bytes();
  exit(0);
}

static bool run_apart(const scenario *run, uint64_t nth, bool warm, result *out) {
  memset(&shared->result, 0, sizeof(shared->result));
  fflush(NULL);
  pid_t process = fork();
  if (process == 0) {
    run_here(run, nth, warm);
  }
  int how = 0;
  if (process < 0 || waitpid(process, &how, 0) != process) {
    (void)fprintf(stderr, "no process for a scenario\n");
    return false;
  }
  *out = shared->result;
  if (how != 0) {
    (void)fprintf(stderr, "FAILED  %s\n", out->problem[0] != 0 ? out->problem : run->name);
    (void)fprintf(stderr, "        request %llu, %s, wait status 0x%x\n", (unsigned long long)nth, warm ? "warm" : "cold", how);
  }
  return how == 0;
}

static bool compare(const scenario *run, uint64_t nth, const result *whole, const result *failed) {
  const char *difference = state_difference(&whole->state, &failed->state);
  if (difference != NULL) {
    (void)fprintf(stderr, "FAILED  %s, request %llu: the state differs: %s\n", run->name, (unsigned long long)nth, difference);
  }
  if (whole->blocks != failed->blocks || whole->bytes != failed->bytes) {
    (void)fprintf(stderr, "FAILED  %s, request %llu: %lld blocks of %lld bytes are kept, not %lld of %lld\n", run->name,
                  (unsigned long long)nth, (long long)failed->blocks, (long long)failed->bytes, (long long)whole->blocks,
                  (long long)whole->bytes);
    return false;
  }
  return difference == NULL;
}

// Fails one request after the other. Answers the number of failures met, or -1.
static int run_all(const scenario *run, bool warm) {
  static result whole;
  static result failed;
  bool good = run_apart(run, 0, warm, &whole);
  int met = 0;
  for (uint64_t nth = 1; good && nth <= MAX_NTH; nth++) {
    if (!run_apart(run, nth, warm, &failed)) {
      good = false;
    } else if (!failed.met) {
      return met;
    } else {
      good = compare(run, nth, &whole, &failed);
      met++;
    }
  }
  return -1;
}

static const scenario *const tables[] = {fault_scenarios_core, fault_scenarios_graph,   fault_scenarios_comm,
                                         fault_scenarios_op,   fault_scenarios_first,   fault_scenarios_quiet,
                                         fault_scenarios_pool, fault_scenarios_validate};

static bool run_scenario(const scenario *run) {
  int cold = run_all(run, false);
  int warm = run->first_use ? 0 : run_all(run, true);
  if (cold >= 0 && warm >= 0) {
    printf("ok      %s: %d failures, %d when warm\n", run->name, cold, warm);
  }
  return cold >= 0 && warm >= 0;
}

static bool was_called(const char *function) {
  for (size_t i = 0; i < shared->called; i++) {
    if (strcmp(shared->functions[i], function) == 0) {
      return true;
    }
  }
  return false;
}

// Every exported function must have been called by a scenario.
static bool check_exports(const char *path) {
  FILE *file = fopen(path, "r");
  char line[256];
  size_t count = 0;
  bool complete = true;
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (line[0] == 0 || line[0] == '#') {
      continue;
    }
    count++;
    if (!was_called(line)) {
      (void)fprintf(stderr, "FAILED  no scenario calls %s: add one to c/tests/faults\n", line);
      complete = false;
    }
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  printf("%zu exported functions, %zu called\n", count, shared->called);
  return complete && count > 0;
}

int main(int argc, char **argv) {
  bool good = argc >= 2;
  void *memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!good || memory == MAP_FAILED) {
    (void)fprintf(stderr, "usage: %s EXPORTS [SCENARIO [NTH]]\n", argv[0]);
    return 64;
  }
  shared = memory;
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
    for (const scenario *run = tables[t]; run->name != NULL; run++) {
      if (argc == 2 || (argc == 3 && strcmp(argv[2], run->name) == 0)) {
        good = run_scenario(run) && good;
      } else if (argc > 3 && strcmp(argv[2], run->name) == 0) {
        run_here(run, strtoull(argv[3], NULL, 10), false);  // for a debugger
      }
    }
  }
  return (argc > 2 || check_exports(argv[1])) && good ? 0 : 1;
}
