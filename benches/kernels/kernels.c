// kernels.c: the reduction kernels of each instruction set, one thread, beside what memory allows.
//
// usage: kernels [BYTES [RANKS]]
//
// Prints GB/s of result: RANKS sources of BYTES bytes, in place in all of them as an all-reduce does it. Rows are measured in
// rounds, the references in between, and the best round counts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/reduce/kernels.h"

enum { ROUNDS = 7, MAX_RANKS = 64, OPS = VT_REDUCE_COUNT };

static const vt_dtype dtypes[] = {VT_DTYPE_F32, VT_DTYPE_F64, VT_DTYPE_F16, VT_DTYPE_BF16,
                                  VT_DTYPE_I8,  VT_DTYPE_U8,  VT_DTYPE_I32, VT_DTYPE_I64};
static const char *const ops[OPS] = {"sum", "max", "min", "prod", "avg"};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

#if defined(__x86_64__)
static const vt__reduce_table *const tables[] = {&vt__reduce_sse2, &vt__reduce_avx2, &vt__reduce_avx512};
static const char *const sets[] = {"sse2", "avx2", "avx512"};
#else
static const vt__reduce_table *const tables[] = {&vt__reduce_neon};
static const char *const sets[] = {"neon"};
#endif
enum { SETS = sizeof sets / sizeof sets[0] };

static int set_count;  // those that this machine has

static void find_sets(void) {
  set_count = 1;
#if defined(__x86_64__)
  set_count += __builtin_cpu_supports("avx2") != 0;
  set_count += set_count == 2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
}

static char *buffers[MAX_RANKS];
static int32_t ranks = 2;
static size_t bytes = 65536;
static vt__reduce_kernel kernel;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void copy(void) {
  memcpy(buffers[0], buffers[1], bytes);
  __asm__ volatile("" : : "r"(buffers[0]) : "memory");
}

static void add(void) {
  float *a = (float *)buffers[0];
  float *b = (float *)buffers[1];
  for (size_t i = 0; i < bytes / sizeof *a; i++) {
    float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

static void reduce(void) {
  vt__reduce_operands operands = {(const void *const *)buffers, (void *const *)buffers, 0, 0, ranks, ranks};
  kernel(&operands, bytes);
}

// Halves of about 1, whatever the type is: no result is subnormal at once, which some processors take long for.
static void fill(void) {
  for (int32_t r = 0; r < ranks; r++) {
    for (size_t i = 0; i < bytes / 2; i++) {
      memcpy(buffers[r] + 2 * i, &(uint16_t){(uint16_t)(0x3f80 + i % 16)}, 2);
    }
  }
}

static void measure(void (*work)(void), double *best) {
  size_t turns = ((size_t)4 << 20) / bytes + 1;
  fill();
  double begin = now_ns();
  for (size_t i = 0; i < turns; i++) {
    work();
  }
  double took = (now_ns() - begin) / (double)turns;
  *best = *best > 0 && *best < took ? *best : took;
}

static double times[DTYPES][OPS][SETS];
static double copy_time;
static double add_time;

static void measure_all(void) {
  for (int d = 0; d < DTYPES; d++) {
    for (int op = 0; op < OPS; op++) {
      for (int s = 0; s < set_count; s++) {
        kernel = (*tables[s])[dtypes[d]][op];
        measure(reduce, &times[d][op][s]);
      }
    }
    measure(copy, &copy_time);
    measure(add, &add_time);
  }
}

static void print_all(void) {
  printf("%zu bytes, %d ranks; GB/s: memcpy %.1f, a = b = a + b %.1f\n%10s", bytes, ranks, (double)bytes / copy_time,
         (double)bytes / add_time, "");
  for (int s = 0; s < set_count; s++) {
    printf("%8s", sets[s]);
  }
  for (int row = 0; row < DTYPES * OPS; row++) {
    printf("\n%5s %4s", vt_dtype_get_name(dtypes[row / OPS]), ops[row % OPS]);
    for (int s = 0; s < set_count; s++) {
      printf("%8.1f", (double)bytes / times[row / OPS][row % OPS][s]);
    }
  }
  printf("\n");
}

int main(int count, char **arguments) {
  bytes = count > 1 ? strtoul(arguments[1], NULL, 0) / 64 * 64 : bytes;
  ranks = count > 2 ? atoi(arguments[2]) : ranks;
  if (bytes == 0 || ranks < 2 || ranks > MAX_RANKS) {
    fprintf(stderr, "usage: kernels [BYTES [RANKS]], BYTES from 64, RANKS from 2 to %d\n", MAX_RANKS);
    return 2;
  }
  find_sets();
  for (int32_t r = 0; r < ranks; r++) {
    buffers[r] = aligned_alloc(64, bytes);
    if (buffers[r] == NULL) {
      return 1;
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    measure_all();
  }
  print_all();
  return 0;
}
