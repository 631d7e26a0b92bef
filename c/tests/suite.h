// suite.h: the suite as its runners see it, and what its own files share.
#ifndef VT_SUITE_H
#define VT_SUITE_H

#include "vt_test.h"

// Results of a run, and the program's exit code when a case is stopped by its watchdog.
enum {
  VT_SUITE_PASS = 0,
  VT_SUITE_FAIL = 1,
  VT_SUITE_SKIP = 2,
  VT_SUITE_HANG_EXIT = 70,
};

// The runs: every case on every row it is listed for. A name is "row/case".
size_t vt_suite_count(void);
const char *vt_suite_name(size_t i);

// Why run i will be skipped; NULL if it won't.
const char *vt_suite_skip_reason(size_t i);

// Runs one. `message` gets the failures, or the reason of a skip.
int vt_suite_run(size_t i, char *message, size_t capacity);

// Rows, and how many cases at least must have run (not been skipped) on each.
size_t vt_suite_row_count(void);
const char *vt_suite_row_name(size_t row);
size_t vt_suite_row_minimum(size_t row);
size_t vt_suite_row_of(size_t i);

// Sets up the environment and registers the plug-in backend; may be called before main() and any number of times. Answers what the
// first registration answered.
vt_status vt_suite_init(void);

// The parts that the harness's own files share.

typedef struct vt_test_row_info {
  const char *name;
  vt_device_type device_type;
  uint32_t queue_flags;
  uint32_t offers;  // NEED_ bits
  int delays;       // seeded random delays before each operation
  size_t minimum;
  size_t slow_minimum;  // under a sanitizer or valgrind
} vt_test_row_info;

// A report of the validation layer with texts of its own.
typedef struct vt_test_report {
  vt_validate_report report;
  char message[1280];
  char now[64];
  char before[64];
  char now_symbol[160];
  char before_symbol[160];
} vt_test_report;

typedef struct vt_test_item {
  void (*fn)(void *arg);
  void *arg;
  struct vt_test_item *next;
} vt_test_item;

enum { VT_TEST_HOST = -1 };  // kind of a guarded host block; others are VT_MEMORY_ kinds

typedef struct vt_test_block {
  int32_t kind;
  void *ptr;
  void *base;  // of a host block
  size_t bytes;
  struct vt_test_block *next;
} vt_test_block;

#define VT_TEST_MAX_WATCHED 64
#define VT_TEST_MEMORY_SLOTS 10

// What is alive in the process: compared before and after a case.
typedef struct vt_test_census {
  size_t handles[VT_HANDLE_KIND_COUNT];
  uint64_t blocks[VT_TEST_MEMORY_SLOTS];
} vt_test_census;

struct vt_case {
  const vt_test_case *test;
  const vt_test_row_info *row;
  uint64_t seed;
  uint64_t grace_ns;  // how long queues that run their last work are waited for
  vt_test_census before;
  pthread_mutex_t mutex;  // guards what follows
  int failures;
  int skipped;
  size_t text_bytes;
  char text[8192];
  int checks_reports;
  int turned_on;          // validation, for this case
  size_t new_reports;     // since the last check
  vt_test_report report;  // the last one
  vt_test_item *items;
  vt_test_block *blocks;
  vt_comm_group *watched[VT_TEST_MAX_WATCHED];
  size_t watched_count;
};

// Sets the suite's host allocator. Before any other use of the library.
vt_status vt_test_alloc_begin(void);

void vt_test_census_take(vt_test_census *census);
// Gives back everything the case has, then looks for what was left behind.
void vt_test_clean_up(vt_case *c);

void vt_test_watch_begin(vt_case *c);
void vt_test_watch_end(vt_case *c);

// Sends the reports of the validation layer to the case.
void vt_test_reports_begin(vt_case *c);
void vt_test_reports_end(vt_case *c);

// Turns the random delays on or off.
void vt_test_delays_begin(uint64_t seed);
void vt_test_delays_end(void);

// Ends the program: the harness itself can't go on.
_Noreturn void vt_test_give_up(vt_case *c, const char *what);

#endif
