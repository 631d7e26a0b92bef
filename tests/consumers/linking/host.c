// host.c: a program with a copy of the runtime that loads libraries with copies of their own, and libvllm_vt.so.
//
//   host LIBVLLM_VT LIBRARY...
//
// Names are visible to everybody: the program is linked with -rdynamic, and the libraries are loaded with RTLD_GLOBAL. Each copy
// gets a provider named after it and must list that one alone.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <vllm_vt/vt.h>

#include "survey.h"

enum { MAX_COPIES = 8, TEXT_BYTES = 16384 };

typedef struct copy {
  char name[16];
  int (*add)(const char *name);
  int (*text)(char *buffer, size_t capacity);
} copy;

__attribute__((constructor)) static void register_early(void) {
  survey_early();
}

// ISO C has no way from an object pointer to a function pointer.
static int find(void *library, const char *name, void *out_fn) {
  void *address = dlsym(library, name);
  memcpy(out_fn, &address, sizeof(address));
  return address == NULL;
}

static int load(const char *path, copy *out) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL || find(library, "copy_register", &out->add) || find(library, "copy_text", &out->text)) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return 0;
}

// Every copy sees its own provider and none of the others'.
static int check(const copy *copies, int count, int own) {
  static char text[TEXT_BYTES];
  char quoted[20];
  int bad = copies[own].text(text, sizeof(text)) != 0;
  for (int other = 0; other < count; other++) {
    snprintf(quoted, sizeof(quoted), "\"%.15s\"", copies[other].name);
    bad |= (strstr(text, quoted) != NULL) != (other == own);
  }
  bad |= strstr(text, "sums 11 11\n") == NULL;
  if (bad) {
    fprintf(stderr, "%s sees:\n%s", copies[own].name, text);
  }
  return bad;
}

// Where one function of the library calls another one, that is its own too: its arena takes none of the program's memory.
static int check_calls_inside(void *library) {
  vt_device cpu = {VT_DEVICE_CPU, 0};
  vt_status (*create)(vt_device, size_t, vt_arena **);
  void (*release)(vt_arena *);
  vt_arena *arena = NULL;
  vt_memory_stats before = VT_MEMORY_STATS_INIT;
  vt_memory_stats after = VT_MEMORY_STATS_INIT;
  int bad = find(library, "vt_arena_create", &create) || find(library, "vt_arena_release", &release) ||
            vt_memory_get_stats(cpu, VT_MEMORY_DEVICE, &before) != VT_OK || create(cpu, 4096, &arena) != VT_OK ||
            vt_memory_get_stats(cpu, VT_MEMORY_DEVICE, &after) != VT_OK;
  if (!bad) {
    release(arena);
  }
  return bad || before.live_count != after.live_count;
}

// The shared library's functions, called by address: the program's own ones have the same names.
static int check_shared(const char *path) {
  vt_status (*intern)(const char *, vt_op_id *);
  size_t (*explain)(vt_op_id, vt_device_type, const vt_op_policy *, const void *, char *, size_t);
  vt_status (*refused)(vt_op_id, vt_device_type, const vt_op_provider *);
  const vt_error *(*last_error)(void);
  char text[TEXT_BYTES];
  vt_op_id op;
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL || find(library, "vt_op_intern", &intern) || find(library, "vt_op_explain", &explain) ||
      find(library, "vt_op_provider_register", &refused) || find(library, "vt_last_error", &last_error)) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int bad = check_calls_inside(library);
  (void)vt_queue_synchronize(NULL);  // an error of the program's own copy
  bad |= strcmp(last_error()->message, vt_last_error()->message) == 0;
  bad |= intern("consumer.op", &op) != VT_OK || explain(op, VT_DEVICE_CPU, NULL, NULL, text, sizeof(text)) >= sizeof(text);
  bad |= strstr(text, "\"early\"") != NULL || strstr(text, "\"copy") != NULL;
  bad |= refused(op, VT_DEVICE_CPU, NULL) == VT_OK || strcmp(last_error()->message, vt_last_error()->message) == 0;
  if (bad) {
    fprintf(stderr, "%s shares something with the program: \"%s\", \"%s\"\n%s", path, last_error()->message,
            vt_last_error()->message, text);
  }
  return bad;
}

int main(int argc, char **argv) {
  static copy copies[MAX_COPIES] = {{"copy 0", survey_register, survey_text}};
  int count = 1;
  if (argc < 2 || argc > MAX_COPIES) {
    return 64;
  }
  for (; count < argc - 1; count++) {
    snprintf(copies[count].name, sizeof(copies[count].name), "copy %d", count);
    if (load(argv[count + 1], &copies[count])) {
      return 1;
    }
  }
  int bad = 0;
  for (int i = 0; i < count; i++) {
    bad |= copies[i].add(copies[i].name);
  }
  for (int i = 0; i < count; i++) {
    bad |= check(copies, count, i);
  }
  bad |= check_shared(argv[1]);
  printf("%d copies and the shared library %s\n", count, bad ? "mix" : "keep apart");
  return bad;
}
