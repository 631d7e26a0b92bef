// main.c: prints what the program sees of the runtime.
#include <stdio.h>

#include "survey.h"

__attribute__((constructor)) static void register_early(void) {
  survey_early();
}

int main(void) {
  static char text[16384];
  int bad = survey_text(text, sizeof(text));
  fputs(text, stdout);
  return bad;
}
