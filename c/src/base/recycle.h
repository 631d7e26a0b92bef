// recycle.h: memory that lives as long as an operation, and is then used again: a program that repeats its steps stops allocating.
#ifndef VT_BASE_RECYCLE_H
#define VT_BASE_RECYCLE_H

#include <stddef.h>

// Gives at least `bytes` bytes, aligned for any type. NULL where there is no memory.
void *vt__recycle_get(size_t bytes);

// Takes them back, on any thread. NULL is fine.
void vt__recycle_put(void *ptr);

#endif
