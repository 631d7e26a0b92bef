// traits.c: see traits.h.
#include "comm/traits.h"

#define NAMED(op) .name = #op, .function = "vt_comm_" #op, .has_data = true
#define MEETING(op) .name = #op, .function = "vt_comm_" #op

const vt__comm_traits vt__comm_traits_all[VT_COMM_OP_COUNT + 1] = {
    [VT_COMM_OP_NONE] = {.name = "nothing", .function = "vt_comm"},
    [VT_COMM_OP_ALL_REDUCE] = {NAMED(all_reduce), .reduces = true},
    [VT_COMM_OP_ALL_GATHER] = {NAMED(all_gather), .recvs_parts = true},
    [VT_COMM_OP_SEND] = {NAMED(send)},
    [VT_COMM_OP_RECV] = {NAMED(recv)},
    [VT_COMM_OP_BARRIER] = {MEETING(barrier)},
    [VT_COMM_OP_REDUCE] = {NAMED(reduce), .reduces = true, .has_root = true, .root_recvs = true},
    [VT_COMM_OP_BROADCAST] = {NAMED(broadcast), .has_root = true, .root_sends = true, .others_recv = true},
    [VT_COMM_OP_GATHER] = {NAMED(gather), .has_root = true, .recvs_parts = true, .root_recvs = true},
    [VT_COMM_OP_SCATTER] = {NAMED(scatter), .has_root = true, .sends_parts = true, .root_sends = true},
    [VT_COMM_OP_REDUCE_SCATTER] = {NAMED(reduce_scatter), .reduces = true, .sends_parts = true},
    [VT_COMM_OP_ALL_TO_ALL] = {NAMED(all_to_all), .sends_parts = true, .recvs_parts = true},
    [VT_COMM_OP_ALL_GATHERV] = {NAMED(all_gatherv), .has_parts = true},
    [VT_COMM_OP_REDUCE_SCATTERV] = {NAMED(reduce_scatterv), .reduces = true, .has_parts = true},
    [VT_COMM_OP_ALL_TO_ALLV] = {NAMED(all_to_allv), .has_parts = true},
    [VT_COMM_OP_SPLIT] = {MEETING(split)},
    [VT_COMM_OP_FINALIZE] = {MEETING(finalize)},
    [VT_COMM_OP_COUNT] = {.name = "unknown", .function = "vt_comm"},
};
