// digits.h: the handwritten digits and the network that reads them, as files. Formats: examples/data/README.md.
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  DIGITS_PIXELS = 64,
  DIGITS_CLASSES = 10,
  DIGITS_LAYERS = 3,
};

// The images, and what they show. Everything points into `file`.
typedef struct digits {
  uint8_t *file;
  size_t count;
  const uint8_t *pixels;   // [count][DIGITS_PIXELS], 0 to 16
  const uint8_t *labels;   // [count], 0 to 9
  const uint8_t *is_test;  // [count], 0 or 1
} digits;

// The network. Everything points into `file`.
typedef struct mlp {
  uint8_t *file;
  size_t sizes[DIGITS_LAYERS + 1];
  const float *weights[DIGITS_LAYERS];  // [sizes[k + 1]][sizes[k]]
  const float *bias[DIGITS_LAYERS];     // [sizes[k + 1]]
} mlp;

static inline uint32_t digits_u32(const uint8_t *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// Reads a whole file. NULL, and a line on stderr, if that fails.
static inline uint8_t *digits_read_file(const char *folder, const char *name, size_t *out_bytes) {
  char path[4096];
  uint8_t *bytes = NULL;
  long size = -1;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
    fprintf(stderr, "the path of %s is too long\n", name);
    return NULL;
  }
  FILE *file = fopen(path, "rb");
  if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
    bytes = malloc((size_t)size);
    if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
      free(bytes);
      bytes = NULL;
    }
  }
  if (file != NULL) {
    fclose(file);
  }
  if (bytes == NULL) {
    fprintf(stderr, "can't read %s\n", path);
  }
  *out_bytes = (size_t)size;
  return bytes;
}

// Loads the images of digits.bin. The file is given back with free(out->file), also after a failure.
static inline bool digits_load(const char *folder, digits *out) {
  const size_t header = 16;
  size_t bytes;
  out->file = digits_read_file(folder, "digits.bin", &bytes);
  if (out->file == NULL) {
    return false;
  }
  if (bytes < header || memcmp(out->file, "VTDIGIT1", 8) != 0 || digits_u32(out->file + 12) != DIGITS_PIXELS) {
    fprintf(stderr, "digits.bin isn't a file of digits\n");
    return false;
  }
  out->count = digits_u32(out->file + 8);
  if (out->count == 0 || bytes != header + out->count * (DIGITS_PIXELS + 2)) {
    fprintf(stderr, "digits.bin has %zu bytes, which is not %zu images\n", bytes, out->count);
    return false;
  }
  out->pixels = out->file + header;
  out->labels = out->pixels + out->count * DIGITS_PIXELS;
  out->is_test = out->labels + out->count;
  return true;
}

// Loads the network of mlp.bin. The file is given back with free(out->file), also after a failure.
static inline bool mlp_load(const char *folder, mlp *out) {
  const size_t header = 12 + 4 * (DIGITS_LAYERS + 1);
  size_t bytes;
  out->file = digits_read_file(folder, "mlp.bin", &bytes);
  if (out->file == NULL) {
    return false;
  }
  if (bytes < header || memcmp(out->file, "VTMLPF32", 8) != 0 || digits_u32(out->file + 8) != DIGITS_LAYERS) {
    fprintf(stderr, "mlp.bin isn't a network of %d layers\n", DIGITS_LAYERS);
    return false;
  }
  const float *next = (const float *)(const void *)(out->file + header);
  size_t expected = header;
  for (size_t k = 0; k <= DIGITS_LAYERS; k++) {
    out->sizes[k] = digits_u32(out->file + 12 + 4 * k);
  }
  for (size_t k = 0; k < DIGITS_LAYERS; k++) {
    out->weights[k] = next;
    out->bias[k] = next + out->sizes[k] * out->sizes[k + 1];
    next = out->bias[k] + out->sizes[k + 1];
    expected += (out->sizes[k] + 1) * out->sizes[k + 1] * sizeof(float);
  }
  if (bytes != expected || out->sizes[0] != DIGITS_PIXELS || out->sizes[DIGITS_LAYERS] != DIGITS_CLASSES) {
    fprintf(stderr, "mlp.bin has %zu bytes, or layers, that don't fit\n", bytes);
    return false;
  }
  return true;
}

// The share of images that `answers` names rightly, in percent.
static inline double digits_percent_right(const digits *set, const uint8_t *answers, bool test_only) {
  size_t right = 0;
  size_t count = 0;
  for (size_t i = 0; i < set->count; i++) {
    if (!test_only || set->is_test[i] != 0) {
      right += answers[i] == set->labels[i];
      count++;
    }
  }
  return 100.0 * (double)right / (double)(count == 0 ? 1 : count);
}

// Writes a file of `count` bytes. False, and a line on stderr, if that fails.
static inline bool digits_write_file(const char *path, const uint8_t *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  bool ok = file != NULL && fwrite(bytes, 1, count, file) == count;
  ok = file != NULL && fclose(file) == 0 && ok;
  if (!ok) {
    fprintf(stderr, "can't write %s\n", path);
  }
  return ok;
}

#endif
