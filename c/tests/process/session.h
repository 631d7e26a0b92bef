// session.h: what vt_session.so, an engine in a library that is loaded at run time, offers to the program that loads it.
#ifndef VT_TESTS_SESSION_H
#define VT_TESTS_SESSION_H

// Each function answers NULL, or what went wrong.

// Counts devices and looks one up.
typedef const char *vt_session_fn(void);
vt_session_fn vt_session_enumerate;

// Makes and uses a group, then gives it back.
vt_session_fn vt_session_meet;

// Makes one of everything and leaves it busy: work in flight, a rank that waits for its peer, a thread that waits for that.
vt_session_fn vt_session_begin;

// Uses what begin() has made, and gives it back.
vt_session_fn vt_session_use;

// Waits inside the library, for what use() ends.
vt_session_fn vt_session_block;

// First use from eight threads at once, each registering the same backend three times.
vt_session_fn vt_session_race;

// Makes one public call, which is the first one of the process: number `n` of a list. "no such call" behind its end.
typedef const char *vt_session_first_fn(int n);
vt_session_first_fn vt_session_first;

// Has `fn` called when the library's destructors run.
typedef void vt_session_at_end_fn(void (*fn)(void));
vt_session_at_end_fn vt_session_at_end;

#endif
