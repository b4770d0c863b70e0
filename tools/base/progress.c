/* progress.c — see progress.h. */
#include "tools/base/progress.h"
#include "tools/base/duration.h"
#include "tools/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static const uint64_t AFTER_NS = SECOND_NS, EVERY_NS = SECOND_NS / 5;

static uint64_t begun_ns, said_ns; /* begun_ns 0: no progress is shown now; said_ns 0: no line is shown */

/* Whether standard error is a terminal. If standard output is one, too, gives it a large buffer, so that the output is
 * kept back until the end of the command, or until it is longer than the buffer. Otherwise it would run into the
 * progress line. */
static bool has_terminal(void) {
    static char held[1 << 20];
    static int terminal = -1;
    if (terminal >= 0) return terminal;
    terminal = isatty(STDERR_FILENO);
    if (terminal && isatty(STDOUT_FILENO)) setvbuf(stdout, held, _IOFBF, sizeof held);
    return terminal;
}

void progress_begin(void) { begun_ns = has_terminal() ? duration_now() : 0; }

void progress_say(const char *format, ...) {
    char words[512];
    va_list arguments;
    if (!begun_ns) return;
    uint64_t now = duration_now();
    if (now - begun_ns < AFTER_NS || now - said_ns < EVERY_NS) return;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\r\033[K%s (%.0f s)", text_fit(words, 72).s, (double)(now - begun_ns) / 1e9);
    fflush(stderr);
    said_ns = now;
}

void progress_hide(void) {
    if (said_ns) fputs("\r\033[K", stderr);
    said_ns = 0;
}

void progress_end(void) {
    progress_hide();
    begun_ns = 0;
}
