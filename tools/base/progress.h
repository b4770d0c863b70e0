/* progress.h — one line on the terminal while a command takes longer than a second.
 * In: what is being done now. Out: a line on standard error, rewritten five times a second at most, and removed before
 * anything else is printed. Prints nothing where standard error is not a terminal. */
#ifndef MEMSTOW_PROGRESS_H
#define MEMSTOW_PROGRESS_H

/* The seconds count from here; without this call, from the first progress_say(). */
void progress_begin(void);
/* Says what is being done. The line ends with the seconds so far. */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the line; complain() and finish_output() do it themselves. */
void progress_end(void);

#endif
