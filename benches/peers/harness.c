// harness.c: see harness.h.
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "inputs.h"

enum { LINE = 128, WARM_UP = 2, LEAST_CALLS = 3, SPINS = 20000 };

struct harness_shared {
  _Alignas(LINE) atomic_size_t arrived;  // only grows
  _Alignas(LINE) atomic_bool ready;      // the semaphores are made
  sem_t go[HARNESS_MAX_WORLD];           // a command is there
  bool end;                              // of the program
  harness_case row;
  size_t calls;
  double ms;
  bool stop;  // of the measurement
  bool correct[HARNESS_MAX_WORLD];
  void *send[HARNESS_MAX_WORLD];
  void *recv[HARNESS_MAX_WORLD];
  double begin_us[HARNESS_MAX_WORLD][HARNESS_MAX_CALLS];
  double end_us[HARNESS_MAX_WORLD][HARNESS_MAX_CALLS];
};

static const char *const op_names[OP_COUNT] = {
    [OP_ALL_REDUCE] = "all_reduce",
    [OP_ALL_GATHER] = "all_gather",
    [OP_REDUCE_SCATTER] = "reduce_scatter",
    [OP_BROADCAST] = "broadcast",
    [OP_ALL_TO_ALL] = "all_to_all",
    [OP_PING_PONG] = "ping_pong",
    [OP_EMPTY] = "empty",
    [OP_LINE] = "line",
};

void harness_require(bool ok, const char *what, const char *why) {
  if (!ok) {
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(1);
  }
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// Where it is refused, the scheduler decides. Answers how many processors there are.
static int pin(int rank) {
  cpu_set_t allowed;
  harness_require(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity", "refused");
  int cpus = CPU_COUNT(&allowed);
  int wanted = rank % cpus;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      (void)sched_setaffinity(0, sizeof(one), &one);
    }
  }
  return cpus;
}

static harness_shared *map_shared(void) {
  const char *path = getenv("PEERS_SHARED");
  harness_require(path != NULL, "PEERS_SHARED", "not set");
  int fd = open(path, O_RDWR);
  harness_require(fd >= 0 && ftruncate(fd, sizeof(harness_shared)) == 0, path, "can't be opened");
  void *map = mmap(NULL, sizeof(harness_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  harness_require(map != MAP_FAILED, path, "can't be mapped");
  close(fd);
  return map;
}

// Spins where every rank has a processor, else yields.
static void barrier(const harness_rank *rank, bool spins) {
  atomic_size_t *arrived = &rank->shared->arrived;
  size_t world = (size_t)rank->world;
  // acq_rel: partners are the loads below and the other ranks' increments.
  size_t ticket = atomic_fetch_add_explicit(arrived, 1, memory_order_acq_rel);
  size_t round_end = (ticket / world + 1) * world;
  // acquire: partner is the increment above.
  for (size_t polls = 0; atomic_load_explicit(arrived, memory_order_acquire) < round_end; polls++) {
    if (spins && polls < SPINS) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }
}

// The buffers of one row, filled once so that their pages are there.
static void make_buffers(harness_rank *rank) {
  const harness_case *row = &rank->row;
  bool in_place = row->op == OP_ALL_REDUCE || row->op == OP_BROADCAST;
  size_t bytes = (row->bytes + LINE - 1) / LINE * LINE + LINE;
  rank->send = aligned_alloc(LINE, bytes);
  rank->recv = in_place ? rank->send : aligned_alloc(LINE, bytes);
  harness_require(rank->send != NULL && rank->recv != NULL, "buffers", "out of memory");
  memset(rank->send, 0, bytes);
  memset(rank->recv, 0, bytes);
  rank->shared->send[rank->rank] = rank->send;
  rank->shared->recv[rank->rank] = rank->recv;
}

static void free_buffers(harness_rank *rank) {
  if (rank->recv != rank->send) {
    free(rank->recv);
  }
  free(rank->send);
}

static void measure(harness_rank *rank, const harness_library *library, bool spins) {
  harness_shared *shared = rank->shared;
  int me = rank->rank;
  bool correct = true;
  size_t done = 0;
  double start = now_us();
  for (;; done++) {
    if (me == 0) {
      shared->stop = done >= shared->calls || (done >= WARM_UP + LEAST_CALLS && now_us() - start > shared->ms * 1000);
    }
    barrier(rank, spins);
    if (shared->stop) {
      break;
    }
    if (done == 1) {
      correct = inputs_correct(rank, 0);
    }
    inputs_fill(rank, done);
    barrier(rank, spins);
    shared->begin_us[me][done] = now_us();
    library->call(rank);
    shared->end_us[me][done] = now_us();
  }
  shared->correct[me] = correct && inputs_correct(rank, done - 1);
  if (me == 0) {
    shared->calls = done;
  }
}

static void answer(const harness_rank *rank) {
  const harness_shared *shared = rank->shared;
  double share = rank->row.op == OP_PING_PONG ? 0.5 : 1;
  bool correct = true;
  printf("{\"us\": [");
  for (size_t i = WARM_UP; i < shared->calls; i++) {
    double begin = shared->begin_us[0][i];
    double end = shared->end_us[0][i];
    for (int r = 1; r < rank->world; r++) {
      begin = shared->begin_us[r][i] < begin ? shared->begin_us[r][i] : begin;
      end = shared->end_us[r][i] > end ? shared->end_us[r][i] : end;
    }
    printf("%s%.3f", i == WARM_UP ? "" : ", ", (end - begin) * share);
  }
  for (int r = 0; r < rank->world; r++) {
    correct = correct && shared->correct[r];
  }
  printf("], \"correct\": %s}\n", correct ? "true" : "false");
  fflush(stdout);
}

static void parse(harness_shared *shared, int world, char *line) {
  char op[32];
  char dtype[8];
  harness_case *row = &shared->row;
  int fields = sscanf(line, "%31s %7s %zu %zu %lf", op, dtype, &row->bytes, &shared->calls, &shared->ms);
  harness_require(fields == 5, "not a command", line);
  row->op = 0;
  while (row->op < OP_COUNT && strcmp(op, op_names[row->op]) != 0) {
    row->op++;
  }
  harness_require(row->op < OP_COUNT, "no such operation", op);
  row->bf16 = strcmp(dtype, "bf16") == 0;
  harness_require(row->bf16 || strcmp(dtype, "f32") == 0, "no such type", dtype);
  row->count = row->bytes / harness_element_bytes(row);
  row->part = row->count / (size_t)world;
  shared->calls = shared->calls < HARNESS_MAX_CALLS ? shared->calls : HARNESS_MAX_CALLS;
}

// Takes the next command, or false at the end.
static bool next_command(harness_rank *rank) {
  harness_shared *shared = rank->shared;
  if (rank->rank == 0) {
    char line[256];
    shared->end = fgets(line, sizeof(line), stdin) == NULL;
    if (!shared->end) {
      parse(shared, rank->world, line);
    }
    for (int r = 1; r < rank->world; r++) {
      sem_post(&shared->go[r]);
    }
  } else {
    while (sem_wait(&shared->go[rank->rank]) != 0) {
    }
  }
  rank->row = shared->row;
  return !shared->end;
}

static void meet(harness_rank *rank) {
  harness_shared *shared = rank->shared;
  if (rank->rank == 0) {
    for (int r = 0; r < rank->world; r++) {
      harness_require(sem_init(&shared->go[r], 1, 0) == 0, "sem_init", "refused");
    }
    // release: partner is the load below.
    atomic_store_explicit(&shared->ready, true, memory_order_release);
  }
  // acquire: partner is the store above.
  while (!atomic_load_explicit(&shared->ready, memory_order_acquire)) {
    usleep(1000);
  }
}

void harness_serve(harness_rank *rank, const harness_library *library) {
  harness_require(rank->world <= HARNESS_MAX_WORLD, "world", "too large");
  bool spins = rank->world <= pin(rank->rank);
  rank->shared = map_shared();
  meet(rank);
  if (rank->rank == 0) {
    printf("{\"version\": \"%s\", \"transport\": \"%s\"}\n", library->version, library->transport);
    fflush(stdout);
  }
  while (next_command(rank)) {
    const char *why = library->refuses(rank);
    if (why == NULL) {
      make_buffers(rank);
      measure(rank, library, spins);
    }
    barrier(rank, spins);  // the others have read the command, and are done with this rank's buffers
    if (why == NULL) {
      free_buffers(rank);
    }
    if (rank->rank == 0 && why == NULL) {
      answer(rank);
    } else if (rank->rank == 0) {
      printf("{\"skip\": \"%s\"}\n", why);
      fflush(stdout);
    }
  }
}

typedef struct thread_start {
  int rank;
  int world;
  void (*body)(int rank, int world);
} thread_start;

static void *thread_main(void *argument) {
  thread_start *start = argument;
  start->body(start->rank, start->world);
  return NULL;
}

void harness_threads(int world, void (*body)(int rank, int world)) {
  pthread_t threads[HARNESS_MAX_WORLD];
  thread_start starts[HARNESS_MAX_WORLD];
  harness_require(world > 0 && world <= HARNESS_MAX_WORLD, "world", "out of range");
  for (int r = 0; r < world; r++) {
    starts[r] = (thread_start){r, world, body};
    harness_require(pthread_create(&threads[r], NULL, thread_main, &starts[r]) == 0, "pthread_create", "refused");
  }
  for (int r = 0; r < world; r++) {
    pthread_join(threads[r], NULL);
  }
}

void *harness_send_of(const harness_rank *rank, int peer) {
  return rank->shared->send[peer];
}

void *harness_recv_of(const harness_rank *rank, int peer) {
  return rank->shared->recv[peer];
}

size_t harness_element_bytes(const harness_case *row) {
  return row->bf16 ? 2 : 4;
}
