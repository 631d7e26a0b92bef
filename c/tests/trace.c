// trace.c: the trace file.
#include "vt_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm_rig.h"

// A trace file of one case. `text` is what it held when it was read last.
typedef struct trace_file {
  char path[64];
  char *text;
  double ts;  // of the event that was looked at last, in us
  double dur;
  unsigned tid;
} trace_file;

static void give_back(void *user) {
  trace_file *file = user;
  (void)vt_trace_set(NULL, NULL);
  (void)vt_trace_file_end();
  unlink(file->path);
  free(file->text);
  free(file);
}

// Given back by the harness, behind the case's last line.
static trace_file *new_file(vt_case *c) {
  trace_file *file = calloc(1, sizeof(*file));
  if (file == NULL) {
    abort();
  }
  strcpy(file->path, "/tmp/vt_trace_XXXXXX");
  int fd = mkstemp(file->path);
  EXPECT_TRUE(c, fd >= 0);
  close(fd);
  vt_test_defer(c, give_back, file);
  return file;
}

static void read_file(vt_case *c, trace_file *file) {
  free(file->text);
  file->text = NULL;
  size_t bytes = 0;
  FILE *in = fopen(file->path, "rb");
  EXPECT_TRUE(c, in != NULL && getdelim(&file->text, &bytes, '\0', in) > 0);
  if (in != NULL) {
    fclose(in);
  }
  if (file->text == NULL) {
    file->text = calloc(1, 1);
  }
}

static void end_and_read(vt_case *c, trace_file *file) {
  EXPECT_OK(c, vt_trace_file_end());
  read_file(c, file);
  size_t length = strlen(file->text);
  EXPECT_TRUE(c, length > 4 && memcmp(file->text, "[\n{", 3) == 0 && strcmp(file->text + length - 3, "\n]\n") == 0);
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
    count++;
  }
  return count;
}

static size_t events_in(const trace_file *file) {
  return count_of(file->text, "\"ph\":\"X\"");
}

// Looks at the first event whose line holds both parts.
static int look_at(trace_file *file, const char *part, const char *other) {
  for (const char *line = file->text; line != NULL; line = strchr(line, '\n')) {
    line += line[0] == '\n';
    char copy[1024];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    const char *at = strstr(copy, "\"tid\"");
    if (at != NULL && strstr(copy, part) != NULL && strstr(copy, other) != NULL) {
      return sscanf(at, "\"tid\":%u,\"ts\":%lf,\"dur\":%lf", &file->tid, &file->ts, &file->dur) >= 1;
    }
  }
  return 0;
}

static vt_queue *queue_named(vt_case *c, const char *name) {
  vt_queue_options options = vt_test_queue_options(c);
  options.name = name;
  return vt_test_queue_with(c, &options);
}

static void a_trace_file_shows_each_operation_on_the_track_of_its_queue(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = queue_named(c, "ma\"in\n");
  unsigned char *block = vt_test_alloc(c, 300);
  _Atomic int32_t calls = 0;
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_memset(queue, block, 1, 100));
  EXPECT_OK(c, vt_copy(queue, block + 100, block, 50));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, NULL));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  end_and_read(c, file);
  EXPECT_OK(c, vt_memset(queue, block, 2, 100));  // behind the end
  EXPECT_OK(c, vt_queue_synchronize(queue));
  char track[64];
  snprintf(track, sizeof track, "\"name\":\"ma\\u0022in\\u000a (queue %llu)\"", (unsigned long long)vt_queue_get_id(queue));
  REQUIRE_TRUE(c, look_at(file, "\"thread_name\"", track));
  unsigned tid = file->tid;
  EXPECT_TRUE(c, look_at(file, "\"name\":\"memset\",\"cat\":\"memset\"", "\"bytes\":100") && file->tid == tid);
  double begin = file->ts;
  EXPECT_TRUE(c, look_at(file, "\"name\":\"copy\",\"cat\":\"copy\"", "\"bytes\":50") && file->tid == tid && file->ts >= begin);
  EXPECT_TRUE(c, look_at(file, "\"name\":\"host function\",\"cat\":\"host\"", "\"sequence\"") && file->tid == tid);
  EXPECT_EQ(c, 3, events_in(file));
}

static void a_failed_operation_and_a_wait_say_so(vt_case *c) {
  trace_file *file = new_file(c);
  vt_test_latch latch = VT_TEST_LATCH_INIT;
  vt_queue *first = queue_named(c, "first");
  vt_queue *second = queue_named(c, "second");
  vt_event *event = vt_test_event(c, 0);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_queue_host_func(first, vt_test_host_wait, &latch, NULL));
  EXPECT_OK(c, vt_event_record(event, first));
  EXPECT_OK(c, vt_queue_after_event(second, event));
  vt_test_latch_await_waiter(&latch);
  vt_test_sleep_ns(2000000);
  vt_test_latch_open(&latch);
  EXPECT_OK(c, vt_queue_synchronize(second));
  EXPECT_OK(c, vt_queue_host_func(second, vt_test_host_fail, (void *)(uintptr_t) "on purpose", NULL));
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_queue_synchronize(second));
  end_and_read(c, file);
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\"waits_for\":%llu}", (unsigned long long)vt_queue_get_id(first));
  EXPECT_TRUE(c, look_at(file, "\"name\":\"wait\"", wanted));
  EXPECT_TRUE(c, look_at(file, "\"name\":\"host function\"", "\"status\":\"INTERNAL\""));
}

static void a_launch_in_a_trace_file_holds_its_nodes(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = queue_named(c, "main");
  vt_queue *side = queue_named(c, "side");
  vt_event *fork_event = vt_test_event(c, 0);
  vt_event *join_event = vt_test_event(c, 0);
  unsigned char *block = vt_test_alloc(c, 64);
  vt_graph *graph = NULL;
  EXPECT_OK(c, vt_graph_begin_capture(queue));
  EXPECT_OK(c, vt_memset(queue, block, 1, 32));
  EXPECT_OK(c, vt_event_record(fork_event, queue));
  EXPECT_OK(c, vt_queue_after_event(side, fork_event));
  EXPECT_OK(c, vt_memset(side, block + 32, 2, 16));
  EXPECT_OK(c, vt_event_record(join_event, side));
  EXPECT_OK(c, vt_queue_after_event(queue, join_event));
  REQUIRE_OK(c, vt_graph_end_capture(queue, &graph));
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_graph_launch(graph, queue));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  vt_graph_release(graph);
  end_and_read(c, file);
  REQUIRE_TRUE(c, look_at(file, "\"name\":\"graph\",\"cat\":\"graph\"", "\"ts\""));
  const trace_file launch = *file;
  EXPECT_TRUE(c, look_at(file, "\"name\":\"memset\"", "\"bytes\":32") && file->tid == launch.tid);
  EXPECT_TRUE(c, file->ts >= launch.ts && file->ts + file->dur <= launch.ts + launch.dur + 0.0005);
  EXPECT_TRUE(c, look_at(file, "\"name\":\"memset\"", "\"bytes\":16") && file->tid != launch.tid);
  unsigned branch = file->tid;
  char track[64];
  snprintf(track, sizeof track, "\"main (queue %llu) branch 1\"", (unsigned long long)vt_queue_get_id(queue));
  EXPECT_TRUE(c, look_at(file, "\"thread_name\"", track) && file->tid == branch);
  EXPECT_EQ(c, 2, count_of(file->text, "\"name\":\"wait\""));  // one at either end of the branch
  EXPECT_EQ(c, 5, events_in(file));
}

static void reduce_and_gather(vt_case *c, int32_t rank, void *user) {
  comm_rig *rig = user;
  float value[10] = {1};
  float all[20];
  EXPECT_OK(c, vt_comm_all_reduce(rig->comms[rank], rig->queues[rank], value, value, 10, VT_DTYPE_F32, VT_REDUCE_SUM, NULL));
  EXPECT_OK(c, vt_comm_all_gather(rig->comms[rank], rig->queues[rank], value, all, 10, VT_DTYPE_F32, NULL));
  EXPECT_OK(c, vt_comm_barrier(rig->comms[rank], rig->queues[rank], NULL));
  EXPECT_OK(c, vt_queue_synchronize(rig->queues[rank]));
}

static void a_trace_file_names_the_collectives_of_each_rank(vt_case *c) {
  trace_file *file = new_file(c);
  comm_rig *rig = rig_begin(c, 2, NULL);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  rig_run(rig, reduce_and_gather, rig);
  end_and_read(c, file);
  for (int32_t rank = 0; rank < 2; rank++) {
    char what[96];
    snprintf(what, sizeof what, "\"rank\":%d,\"world\":2,\"dtype\":\"f32\",\"count\":10,\"number\":", rank);
    EXPECT_TRUE(c, look_at(file, "\"name\":\"all_reduce\",\"cat\":\"collective\"", what));
    EXPECT_TRUE(c, look_at(file, "\"name\":\"all_gather\",\"cat\":\"collective\"", what));
    snprintf(what, sizeof what, "\"rank\":%d,\"world\":2,\"count\":0,\"number\":3", rank);
    EXPECT_TRUE(c, look_at(file, "\"name\":\"barrier\",\"cat\":\"collective\"", what));
  }
  EXPECT_EQ(c, 4, count_of(file->text, "\"bytes\":40"));
  EXPECT_EQ(c, 2, count_of(file->text, "\"count\":10,\"number\":1}"));
  EXPECT_EQ(c, 2, count_of(file->text, "\"count\":10,\"number\":2}"));
  EXPECT_EQ(c, 6, events_in(file));
}

static void a_trace_file_says_what_a_batch_holds(vt_case *c) {
  trace_file *file = new_file(c);
  comm_rig *rig = rig_begin(c, 2, NULL);
  int32_t value[2] = {1, 2};
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  for (int32_t kind = 0; kind < 2; kind++) {
    EXPECT_OK(c, vt_comm_batch_begin());
    for (int32_t i = 0; i < 2; i++) {
      EXPECT_OK(c, vt_comm_all_reduce(rig->comms[i], rig->queues[i], &value[i], &value[i], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL));
      if (kind == 0) {
        EXPECT_OK(c, vt_comm_all_reduce(rig->comms[i], rig->queues[i], &value[i], &value[i], 1, VT_DTYPE_I32, VT_REDUCE_MAX, NULL));
      } else {
        EXPECT_OK(c, vt_comm_barrier(rig->comms[i], rig->queues[i], NULL));
      }
    }
    EXPECT_OK(c, vt_comm_batch_end());
    for (int32_t i = 0; i < 2; i++) {
      EXPECT_OK(c, vt_queue_synchronize(rig->queues[i]));
    }
  }
  end_and_read(c, file);
  for (int32_t rank = 0; rank < 2; rank++) {
    char what[64];
    snprintf(what, sizeof what, "\"rank\":%d,\"world\":2,\"dtype\":\"i32\",\"count\":2", rank);
    EXPECT_TRUE(c, look_at(file, "\"name\":\"all_reduce\",\"cat\":\"collective\"", what));
    snprintf(what, sizeof what, "\"rank\":%d,\"world\":2,\"count\":1", rank);
    EXPECT_TRUE(c, look_at(file, "\"name\":\"batch\",\"cat\":\"collective\"", what));
  }
  EXPECT_EQ(c, 4, count_of(file->text, "\"operations\":2}"));
}

enum { THREADS = 4, FILLS = 700 };

static void fill_many_times(vt_case *c, int32_t index, void *user) {
  vt_queue **queues = user;
  unsigned char byte = 0;
  for (int i = 0; i < FILLS; i++) {
    EXPECT_OK(c, vt_memset(queues[index], &byte, i & 0xff, 1));
  }
  EXPECT_OK(c, vt_queue_synchronize(queues[index]));
}

static void many_threads_write_one_trace_file(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queues[THREADS];
  for (int32_t i = 0; i < THREADS; i++) {
    queues[i] = vt_test_queue(c);
  }
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  vt_test_threads(c, THREADS, fill_many_times, queues);
  // Before its end the file holds whole events already.
  read_file(c, file);
  EXPECT_TRUE(c, events_in(file) >= THREADS * (FILLS / 256 * 256));
  EXPECT_EQ(c, '}', file->text[strlen(file->text) - 1]);
  end_and_read(c, file);
  EXPECT_EQ(c, THREADS * FILLS, events_in(file));
  EXPECT_EQ(c, THREADS * FILLS + THREADS, count_of(file->text, ",\n{\"name\":"));
  EXPECT_EQ(c, THREADS * FILLS + THREADS + 1, count_of(file->text, "}}"));
  for (int32_t i = 0; i < THREADS; i++) {
    char queue[64];
    snprintf(queue, sizeof queue, "{\"queue\":%llu,\"sequence\"", (unsigned long long)vt_queue_get_id(queues[i]));
    EXPECT_EQ(c, FILLS, count_of(file->text, queue));
  }
}

static void count_ends(void *user, const vt_trace_event *event) {
  // relaxed: read after the queue was waited for.
  atomic_fetch_add_explicit((_Atomic int32_t *)user, event->is_end, memory_order_relaxed);
}

static void the_hook_and_the_trace_file_both_get_their_events(vt_case *c) {
  static _Atomic int32_t ends;
  trace_file *file = new_file(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  atomic_store(&ends, 0);
  EXPECT_OK(c, vt_trace_set(count_ends, &ends));
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_memset(queue, block, 1, 1));  // both
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_trace_set(NULL, NULL));
  EXPECT_OK(c, vt_memset(queue, block, 1, 2));  // file
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_trace_set(count_ends, &ends));
  end_and_read(c, file);
  EXPECT_OK(c, vt_memset(queue, block, 1, 3));  // hook
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_trace_set(NULL, NULL));
  EXPECT_OK(c, vt_memset(queue, block, 1, 4));  // nobody
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_EQ(c, 2, atomic_load(&ends));
  EXPECT_EQ(c, 2, events_in(file));
  EXPECT_TRUE(c, look_at(file, "memset", "\"bytes\":1}") && look_at(file, "memset", "\"bytes\":2}"));
}

static void an_operation_that_runs_while_the_trace_file_ends_is_left_out(vt_case *c) {
  trace_file *file = new_file(c);
  trace_file *next = new_file(c);
  vt_test_latch latch = VT_TEST_LATCH_INIT;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_wait, &latch, NULL));
  vt_test_latch_await_waiter(&latch);
  end_and_read(c, file);
  EXPECT_EQ(c, 0, events_in(file));
  REQUIRE_OK(c, vt_trace_file_begin(next->path));
  vt_test_latch_open(&latch);
  EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  end_and_read(c, next);
  EXPECT_EQ(c, 1, events_in(next));
  EXPECT_TRUE(c, look_at(next, "memset", "\"bytes\":8}"));
}

typedef struct filler {
  vt_queue *queue;
  _Atomic uint64_t done;
  _Atomic int32_t stop;
} filler;

static void fill_until_stopped(vt_case *c, filler *f) {
  unsigned char byte = 0;
  // relaxed, all: counts of this case; the file's own locks order the rest.
  while (atomic_load_explicit(&f->stop, memory_order_relaxed) == 0) {
    EXPECT_OK(c, vt_memset(f->queue, &byte, 1, 1));
    EXPECT_OK(c, vt_queue_synchronize(f->queue));
    atomic_fetch_add_explicit(&f->done, 1, memory_order_relaxed);
  }
}

static void end_while_filling(vt_case *c, int32_t index, void *user) {
  filler *f = user;
  if (index == 0) {
    fill_until_stopped(c, f);
    return;
  }
  for (int round = 0; round < 30; round++) {
    trace_file *file = new_file(c);
    EXPECT_OK(c, vt_trace_file_begin(file->path));
    uint64_t first = atomic_load_explicit(&f->done, memory_order_relaxed) + 1;  // that one may have begun before
    uint64_t last = first;
    while (last < first + 20) {
      vt_test_sleep_ns(100000);
      last = atomic_load_explicit(&f->done, memory_order_relaxed);
    }
    end_and_read(c, file);
    EXPECT_TRUE(c, events_in(file) >= last - first);
  }
  atomic_store_explicit(&f->stop, 1, memory_order_relaxed);
}

static void a_trace_file_that_ends_under_load_holds_all_that_was_done(vt_case *c) {
  filler f = {.queue = vt_test_queue(c)};
  vt_test_threads(c, 2, end_while_filling, &f);
}

static void a_forked_child_leaves_the_trace_file_alone(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(15);
    if (vt_trace_file_end() != VT_ERR_FAILED_PRECONDITION || vt_trace_file_begin("/dev/null") != VT_ERR_FAILED_PRECONDITION) {
      _exit(3);
    }
    exit(0);  // runs what is registered for the exit
  }
  int status = 0;
  REQUIRE_TRUE(c, child > 0 && waitpid(child, &status, 0) == child);
  EXPECT_TRUE(c, WIFEXITED(status) && WEXITSTATUS(status) != 3);
  read_file(c, file);
  EXPECT_EQ(c, 0, count_of(file->text, "]"));
  end_and_read(c, file);
  EXPECT_EQ(c, 1, events_in(file));
  EXPECT_EQ(c, 1, count_of(file->text, "]"));
}

static void a_trace_file_that_cannot_be_written_is_an_error(vt_case *c) {
  trace_file *file = new_file(c);
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "no trace file", vt_trace_file_end());
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_trace_file_begin(NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "empty", vt_trace_file_begin(""));
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "'/nonexistent/trace.json'", vt_trace_file_begin("/nonexistent/trace.json"));
  EXPECT_EQ(c, VT_DOMAIN_ERRNO, vt_last_error()->domain);
  EXPECT_EQ(c, 2, vt_last_error()->native);
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "errno 28", vt_trace_file_begin("/dev/full"));
  char longest[4200];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "4095", vt_trace_file_begin(longest));
  int other = open(file->path, O_WRONLY);  // as another process has it
  EXPECT_TRUE(c, other >= 0 && flock(other, LOCK_EX) == 0);
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "%p", vt_trace_file_begin(file->path));
  close(other);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, file->path, vt_trace_file_begin("/dev/null"));
  end_and_read(c, file);
  EXPECT_EQ(c, 0, events_in(file));
}

static void the_process_id_may_be_part_of_a_trace_files_name(vt_case *c) {
  trace_file *file = new_file(c);
  char pattern[96];
  char path[96];
  snprintf(pattern, sizeof pattern, "%s.%%p.json", file->path);
  snprintf(path, sizeof path, "%s.%d.json", file->path, (int)getpid());
  REQUIRE_OK(c, vt_trace_file_begin(pattern));
  EXPECT_OK(c, vt_trace_file_end());
  EXPECT_EQ(c, 0, unlink(path));
}

static void expect_no_signal(vt_case *c) {
  sigset_t pending;
  sigpending(&pending);
  EXPECT_TRUE(c, sigismember(&pending, SIGPIPE) == 0 && sigismember(&pending, SIGXFSZ) == 0);
}

static void count_messages(void *user, vt_log_level level, const char *message) {
  (void)level;
  *(int *)user += strstr(message, "trace file") != NULL;
}

static void a_write_that_fails_is_logged_once_and_answered_at_the_end(vt_case *c) {
  static int messages;
  trace_file *file = new_file(c);
  messages = 0;
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  vt_test_log(c, count_messages, &messages, VT_LOG_ERROR);
  struct rlimit before;
  REQUIRE_TRUE(c, getrlimit(RLIMIT_FSIZE, &before) == 0);
  struct rlimit small = {.rlim_cur = 8192, .rlim_max = before.rlim_max};
  void (*old)(int) = signal(SIGXFSZ, SIG_DFL);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 1000; i++) {
    EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  }
  vt_status status = vt_trace_file_end();
  expect_no_signal(c);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old);
  EXPECT_EQ(c, VT_ERR_INTERNAL, status);
  EXPECT_LAST_ERROR(c, VT_ERR_INTERNAL, "errno 27");
  EXPECT_EQ(c, 1, messages);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  end_and_read(c, file);
}

// The status of the end of a file into which more was written than a pipe holds.
static vt_status fill_and_end(vt_case *c, vt_queue *queue) {
  unsigned char *block = vt_test_alloc(c, 8);
  for (int i = 0; i < 2000; i++) {
    EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  }
  return vt_trace_file_end();
}

static void a_trace_file_may_be_a_pipe_and_its_reader_may_go(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = vt_test_queue(c);
  void (*old)(int) = signal(SIGPIPE, SIG_DFL);
  REQUIRE_TRUE(c, unlink(file->path) == 0 && mkfifo(file->path, 0600) == 0);
  EXPECT_FAILS(c, VT_ERR_FAILED_PRECONDITION, "errno 6", vt_trace_file_begin(file->path));
  int reader = open(file->path, O_RDONLY | O_NONBLOCK);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  close(reader);
  EXPECT_EQ(c, VT_ERR_INTERNAL, fill_and_end(c, queue));
  EXPECT_LAST_ERROR(c, VT_ERR_INTERNAL, "errno 32");
  expect_no_signal(c);
  reader = open(file->path, O_RDONLY | O_NONBLOCK);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_EQ(c, VT_ERR_INTERNAL, fill_and_end(c, queue));  // it doesn't read
  EXPECT_LAST_ERROR(c, VT_ERR_INTERNAL, "errno 11");
  close(reader);
  signal(SIGPIPE, old);
}

// Often enough that the file is written to before it looks whether it was cancelled.
static void *fill_until_cancelled(void *queue) {
  static unsigned char block[8];
  for (;;) {
    for (int i = 0; i < 1000; i++) {
      (void)vt_memset(queue, block, 1, 8);
    }
    pthread_testcancel();
  }
  return NULL;
}

static void a_thread_that_is_cancelled_leaves_the_trace_file_in_order(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = vt_test_queue(c);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  for (uint64_t i = 0; i < 20; i++) {
    pthread_t thread;
    REQUIRE_TRUE(c, pthread_create(&thread, NULL, fill_until_cancelled, queue) == 0);
    vt_test_sleep_ns(UINT64_C(1000000) + i * 7000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  end_and_read(c, file);
}

static void an_operation_in_a_trace_file_allocates_nothing(vt_case *c) {
  trace_file *file = new_file(c);
  vt_queue *queue = vt_test_queue(c);
  unsigned char *block = vt_test_alloc(c, 8);
  REQUIRE_OK(c, vt_trace_file_begin(file->path));
  EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  int64_t before = vt_test_alloc_calls();
  for (int i = 0; i < 2000; i++) {
    EXPECT_OK(c, vt_memset(queue, block, 1, 8));
  }
  EXPECT_EQ(c, before, vt_test_alloc_calls());
  end_and_read(c, file);
  EXPECT_EQ(c, 2001, events_in(file));
}

const vt_test_case vt_cases_trace[] = {
    {"a_trace_file_shows_each_operation_on_the_track_of_its_queue", NEED_CPU,
     a_trace_file_shows_each_operation_on_the_track_of_its_queue},
    {"a_failed_operation_and_a_wait_say_so", NEED_CPU | NEED_WORKER, a_failed_operation_and_a_wait_say_so},
    {"a_launch_in_a_trace_file_holds_its_nodes", NEED_GRAPH, a_launch_in_a_trace_file_holds_its_nodes},
    {"a_trace_file_names_the_collectives_of_each_rank", NEED_COMM | NEED_CPU, a_trace_file_names_the_collectives_of_each_rank},
    {"a_trace_file_says_what_a_batch_holds", NEED_COMM | NEED_CPU, a_trace_file_says_what_a_batch_holds},
    {"many_threads_write_one_trace_file", NEED_CPU, many_threads_write_one_trace_file},
    {"the_hook_and_the_trace_file_both_get_their_events", NEED_CPU, the_hook_and_the_trace_file_both_get_their_events},
    {"an_operation_that_runs_while_the_trace_file_ends_is_left_out", NEED_CPU | NEED_WORKER,
     an_operation_that_runs_while_the_trace_file_ends_is_left_out},
    {"a_trace_file_that_ends_under_load_holds_all_that_was_done", NEED_CPU,
     a_trace_file_that_ends_under_load_holds_all_that_was_done},
    {"a_forked_child_leaves_the_trace_file_alone", NEED_CPU | NEED_FORK, a_forked_child_leaves_the_trace_file_alone},
    {"a_trace_file_that_cannot_be_written_is_an_error", ONCE, a_trace_file_that_cannot_be_written_is_an_error},
    {"the_process_id_may_be_part_of_a_trace_files_name", ONCE, the_process_id_may_be_part_of_a_trace_files_name},
    {"a_write_that_fails_is_logged_once_and_answered_at_the_end", NEED_SYNC | NEED_CPU,
     a_write_that_fails_is_logged_once_and_answered_at_the_end},
    {"a_trace_file_may_be_a_pipe_and_its_reader_may_go", NEED_SYNC | NEED_CPU, a_trace_file_may_be_a_pipe_and_its_reader_may_go},
    {"a_thread_that_is_cancelled_leaves_the_trace_file_in_order", NEED_SYNC | NEED_CPU,
     a_thread_that_is_cancelled_leaves_the_trace_file_in_order},
    {"an_operation_in_a_trace_file_allocates_nothing", NEED_SYNC | NEED_CPU, an_operation_in_a_trace_file_allocates_nothing},
    VT_TEST_END};
