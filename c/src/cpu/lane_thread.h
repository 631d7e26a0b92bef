// lane_thread.h: threads that run a graph's branches.
//
// They are shared by all graphs and kept for the next launch. A launch takes all the threads it needs before it runs anything,
// since branches may wait for each other.
#ifndef VT_CPU_LANE_THREAD_H
#define VT_CPU_LANE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct vt__lane_thread vt__lane_thread;

// Takes `count` idle threads, starting what is missing. False if a thread can't be started: then none is taken.
bool vt__lane_threads_take(vt__lane_thread **out, uint32_t count);

// Gives threads back: such that were not run, or that were waited for.
void vt__lane_threads_return(vt__lane_thread **threads, uint32_t count);

// Lets a taken thread call fn(arg).
void vt__lane_thread_run(vt__lane_thread *thread, void (*fn)(void *arg), void *arg);

// Waits until the call has returned. The thread then uses nothing of the caller's any more, and is ready for its next job.
void vt__lane_thread_wait(vt__lane_thread *thread);

#endif
