// survey.h: what a program, or a shared library, sees of its copy of the runtime.
#ifndef SURVEY_H
#define SURVEY_H

#include <stddef.h>

// Registers the provider "early" for "consumer.op" and for "vt.barrier", below the native one. For constructors.
void survey_early(void);

// Registers a provider for "consumer.op" under this name, which is kept. 0 if it went well.
int survey_register(const char *name);

// Uses a queue and a communicator, then writes all devices, and each operation with its providers. 0 if it went well.
int survey_text(char *buffer, size_t capacity);

#endif
