// replay.c: runs kept programs, and random ones, without libFuzzer.
//
//   vt_fuzz [--random COUNT SEED] [FILE...]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { PROGRAM_BYTES = 512 };

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

// A program that fails is left behind for a debugger, under this name.
static void keep(const unsigned char *program, size_t bytes) {
  const char *path = getenv("VT_FUZZ_KEEP");
  FILE *file = path == NULL ? NULL : fopen(path, "wb");
  if (file != NULL) {
    (void)fwrite(program, 1, bytes, file);
    (void)fclose(file);
  }
}

static void run_random(uint64_t count, uint64_t seed) {
  unsigned char program[PROGRAM_BYTES];
  for (uint64_t i = 0; i < count; i++) {
    uint64_t state = mix(seed + i * UINT64_C(0xd1342543de82ef95) + 1);
    size_t bytes = 16 + state % (PROGRAM_BYTES - 16);
    for (size_t k = 0; k < bytes; k++) {
      state += UINT64_C(0x9e3779b97f4a7c15);
      program[k] = (unsigned char)mix(state);
    }
    keep(program, bytes);
    (void)LLVMFuzzerTestOneInput(program, bytes);
  }
}

static int run_file(const char *path) {
  static unsigned char program[1 << 16];
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "can't read %s\n", path);
    return 1;
  }
  size_t bytes = fread(program, 1, sizeof(program), file);
  (void)fclose(file);
  (void)LLVMFuzzerTestOneInput(program, bytes);
  return 0;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--random") == 0 && i + 2 < argc) {
      run_random(strtoull(argv[i + 1], NULL, 10), strtoull(argv[i + 2], NULL, 10));
      i += 2;
    } else {
      failed |= run_file(argv[i]);
    }
  }
  return failed != 0 || fuzz_programs() == 0;
}
