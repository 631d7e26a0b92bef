// unit.h: checks of what the public interface does not show.
#ifndef VT_TESTS_UNIT_H
#define VT_TESTS_UNIT_H

#include <stdbool.h>
#include <stdio.h>

extern int unit_failures;

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: wrong: %s\n", __FILE__, __LINE__, #condition); \
      unit_failures++;                                                       \
    }                                                                        \
  } while (0)

// Each file's checks.
void unit_cpus(void);
void unit_bell(void);

#endif
