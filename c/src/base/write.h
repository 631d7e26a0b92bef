// write.h: writing to a file inside a program that isn't ours.
#ifndef VT_BASE_WRITE_H
#define VT_BASE_WRITE_H

#include <stddef.h>

// Writes all of a text to a descriptor that was opened with O_NONBLOCK. Answers 0 or the errno that ended it. It raises no signal,
// isn't interrupted by the cancellation of the thread, and waits for a reader that doesn't read for one second at most.
int vt__write_all(int fd, const char *text, size_t bytes);

// Puts the cancellation of this thread off, where it would leave a lock behind. The second one takes what the first one answered.
int vt__cancel_off(void);
void vt__cancel_restore(int before);

#endif
