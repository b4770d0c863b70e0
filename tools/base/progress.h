/* progress.h — one line on the terminal while a command takes longer than a second.
 * In: words for the work that is being done now. Out: a line on standard error, rewritten five times a second at most,
 * and removed before anything else is printed. If standard error is not a terminal, there is no line. Commands that
 * print while they work, such as watch, do not call progress_begin. */
#ifndef MEMSTOW_PROGRESS_H
#define MEMSTOW_PROGRESS_H

/* Begins to count seconds. From now on, up to 1 MiB of output on a terminal is kept back until the end. */
void progress_begin(void);
/* Sets the text of the line, which ends with the seconds so far. Does nothing before progress_begin and after
 * progress_end. */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the line until progress_go_on or progress_say is called. complain() and complain_usage() themselves call
 * progress_hide and progress_go_on. */
void progress_hide(void);
void progress_go_on(void);
/* Removes the line for good; complain_finish() calls this itself. */
void progress_end(void);

#endif
