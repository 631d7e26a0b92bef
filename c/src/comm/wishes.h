// wishes.h: which algorithms a group was told to use, and what it uses, as text.
#ifndef VT_COMM_WISHES_H
#define VT_COMM_WISHES_H

#include "comm/algo/algo.h"
#include "core/text.h"
#include "vllm_vt/status.h"

// Reads "operation:algorithm,..."; NULL and "" wish nothing. VT_ERR_NOT_FOUND names what there is not.
vt_status vt__wishes_read(const char *text, vt__algo_wishes *out);

// "reduce: post up to 1024 bytes, root up to 8192 bytes, slices", one line for each operation. `crowded` as in vt__algo_call.
void vt__wishes_describe(const vt__algo_wishes *wishes, bool crowded, vt__text *text);

#endif
