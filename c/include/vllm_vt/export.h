// export.h: symbol visibility and the version of the library.
#ifndef VLLM_VT_EXPORT_H
#define VLLM_VT_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VT_API __attribute__((visibility("default")))
#define VT_PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define VT_API
#define VT_PRINTF_LIKE(format_index, first)
#endif

#define VT_VERSION_MAJOR 0
#define VT_VERSION_MINOR 1
#define VT_VERSION_PATCH 0
#define VT_VERSION (VT_VERSION_MAJOR * 10000 + VT_VERSION_MINOR * 100 + VT_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

// A function pointer of no particular type. Cast it back to its real type before calling it.
typedef void (*vt_fn)(void);

// Reads the version of the library that is linked, in the form of VT_VERSION.
//
// Order    none
// Memory   none
// Units    major * 10000 + minor * 100 + patch
// Threads  any
// Capture  allowed
// Errors   none
VT_API int32_t vt_version(void);

#ifdef __cplusplus
}
#endif

#endif
