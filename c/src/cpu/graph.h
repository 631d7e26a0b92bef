// graph.h: a recorded graph: lanes of commands.
//
// Each queue of a capture records into a lane of its own. Order between lanes is kept by waits for (lane, position): so many
// commands of that lane are done.
#ifndef VT_CPU_GRAPH_H
#define VT_CPU_GRAPH_H

#include "cpu/cpu.h"
#include "cpu/lane_thread.h"

typedef struct vt__cpu_lane {
  vt__cpu_command *commands;
  uint32_t count;
  uint32_t capacity;
  vt__cpu_queue *queue;  // that records into it; NULL once the capture is closed
  // The commands that are done, over all launches: launch n (from 0) counts from n * count. Only those that signal are published.
  vt__counter progress;
} vt__cpu_lane;

struct vt__cpu_graph {
  _Atomic uint32_t refs;
  uint32_t lane_count;
  vt__cpu_lane **lanes;
  size_t node_count;

  pthread_mutex_t run_mutex;  // one launch at a time; guards what follows
  uint64_t launches;
  uint64_t queue_id;  // of the launch that runs
  char queue_name[VT__CPU_NAME_BYTES];
  vt__lane_thread **helpers;
  struct vt__lane_job *jobs;

  _Atomic uint32_t failed;  // this launch; see launch.c
  vt__saved_error error;    // of the first failure; read when all lanes have left
};

// Drops what was recorded and frees the graph.
void vt__cpu_graph_free(vt__cpu_graph *graph);

// Prepares a complete graph for launches. Fails with VT_ERR_OUT_OF_MEMORY.
vt_status vt__cpu_graph_prepare(vt__cpu_graph *graph);

#endif
