// main.c: runs the checks of all files.
#include "unit.h"

int unit_failures;

int main(void) {
  unit_cpus();
  unit_bell();
  printf("%d failed\n", unit_failures);
  return unit_failures != 0;
}
