// target.h: functions between VT__TARGET_BEGIN("features") and VT__TARGET_END may use instructions beyond the baseline. No option
// of the compiler does it, so nothing that a header brings along before may use them.
#ifndef VT_COMM_REDUCE_TARGET_H
#define VT_COMM_REDUCE_TARGET_H

#define VT__PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define VT__TARGET_BEGIN(features) VT__PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define VT__TARGET_END VT__PRAGMA(clang attribute pop)
#else
#define VT__TARGET_BEGIN(features) VT__PRAGMA(GCC push_options) VT__PRAGMA(GCC target(features))
#define VT__TARGET_END VT__PRAGMA(GCC pop_options)
#endif

#endif
