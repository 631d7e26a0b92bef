// program.c: one program: the first bytes choose the queues, each step one call, and in the end nothing is left.
#include "fuzz.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t programs;
static uint64_t calls;

uint64_t fuzz_programs(void) {
  return programs;
}

__attribute__((destructor)) static void report(void) {
  fprintf(stderr, "%llu programs, %llu checked calls\n", (unsigned long long)programs, (unsigned long long)calls);
}

uint8_t fuzz_byte(fuzz_input *in) {
  if (in->left == 0) {
    return 0;
  }
  in->left--;
  return *in->data++;
}

vt_status fuzz_check(const char *file, int line, const char *call, uint32_t allowed, vt_status status) {
  calls++;
  if ((ONE_OF(status) & allowed) == 0) {
    fprintf(stderr, "%s:%d: %s: %s is not possible here (0x%x): %s\n", file, line, call, vt_status_get_name(status), allowed,
            status < 0 ? vt_last_error()->message : "");
    abort();
  }
  if (status < 0 && (vt_last_error()->status != status || vt_last_error()->message[0] == 0)) {
    fprintf(stderr, "%s:%d: %s: no record of %s\n", file, line, call, vt_status_get_name(status));
    abort();
  }
  return status;
}

void fuzz_must(const char *file, int line, const char *what, int held) {
  if (!held) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
  }
}

void fuzz_await_handles(vt_handle_kind kind, size_t count) {
  time_t end = time(NULL) + 60;
  while (vt_handle_get_live_count(kind) > count) {
    if (time(NULL) > end) {
      fprintf(stderr, "%zu handles of kind %d are alive, not %zu\n", vt_handle_get_live_count(kind), kind, count);
      abort();
    }
    sched_yield();
  }
}

static void check_nothing_is_left(void) {
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    fuzz_await_handles(kind, 0);
  }
  for (int32_t index = 0; index < 2; index++) {
    for (int32_t kind = VT_MEMORY_DEVICE; kind <= VT_MEMORY_PINNED; kind++) {
      vt_memory_stats stats = VT_MEMORY_STATS_INIT;
      CALL(FUZZ_OK, vt_memory_get_stats((vt_device){VT_DEVICE_CPU, index}, kind, &stats));
      MUST(stats.live_count == 0 && stats.live_bytes == 0);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static stream s;
  static ranks r;
  static plain p;
  static memory m;
  fuzz_input in = {data, size};
  setenv("VT_CPU_DEVICES", "2", 1);
  memset(&s, 0, sizeof(s));
  memset(&r, 0, sizeof(r));
  memset(&p, 0, sizeof(p));
  memset(&m, 0, sizeof(m));
  stream_begin(&s, &in);
  while (in.left > 0) {
    uint8_t what = fuzz_byte(&in);
    if (what < 192) {
      stream_step(&s, &in);
    } else if (what < 208) {
      memory_step(&m, &s, &in);
    } else if (what < 224) {
      plain_step(&p, &in, stream_is_capturing(&s));
    } else if (what < 248) {
      ranks_step(&r, &in, stream_is_capturing(&s));
    } else {
      void *const wrong[] = {NULL, s.events[0], p.arenas[0], r.group, s.graphs[0].graph};
      plain_wrong_handles(&in, wrong, sizeof(wrong) / sizeof(wrong[0]));
    }
  }
  stream_end(&s);
  ranks_end(&r);
  plain_end(&p);
  memory_end(&m);
  check_nothing_is_left();
  programs++;
  return 0;
}
