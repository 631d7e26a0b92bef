// copy.c: a shared library in C with a copy of the runtime.
#include "survey.h"

__attribute__((constructor)) static void register_early(void) {
  survey_early();
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int copy_register(const char *name);
EXPORTED int copy_text(char *buffer, size_t capacity);

int copy_register(const char *name) {
  return survey_register(name);
}

int copy_text(char *buffer, size_t capacity) {
  return survey_text(buffer, capacity);
}
