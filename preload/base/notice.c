/* notice.c — see notice.h. */
#include "preload/base/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/lock.h"
#include "preload/base/seal.h"
#include "preload/shared/os.h"

enum { PATIENCE_MS = 100 };

static struct stat at_start; /* standard error when this library was loaded; all 0: it was closed */

__attribute__((constructor)) static void remember_standard_error(void) {
    if (os_stat_fd(STDERR_FILENO, &at_start) < 0) at_start = (struct stat){0};
}

/* Whether descriptor 2 is still standard error. A program that has closed it may have a data file or a connection under
 * this number now. A file that was opened for appending counts as standard error, too: it is probably the program's
 * log. */
static bool is_standard_error(void) {
    struct stat now;
    if (os_stat_fd(STDERR_FILENO, &now) < 0) return false;
    if (now.st_dev == at_start.st_dev && now.st_ino == at_start.st_ino && at_start.st_mode) return true;
    long flags = os_call(SYS_fcntl, STDERR_FILENO, F_GETFL);
    return S_ISREG(now.st_mode) && flags > 0 && flags & O_APPEND;
}

/* Whether a line can be written at once, or soon. If not, descriptor 2 may be a full pipe whose reader is stuck. */
static bool takes_a_line(void) {
    struct pollfd look = {.fd = STDERR_FILENO, .events = POLLOUT};
    return os_call(SYS_poll, &look, 1, PATIENCE_MS) > 0 && look.revents & POLLOUT;
}

void notice_begin(struct notice *self) {
    self->used = 0;
    notice_put(self, "memstow: ");
}

void notice_put(struct notice *self, const char *text) {
    os_copy(self->text + self->used, sizeof self->text - self->used, text);
    self->used += strlen(self->text + self->used);
}

void notice_number(struct notice *self, uint64_t number) {
    char digits[24];
    os_decimal(digits, number);
    notice_put(self, digits);
}

/* Writes the notice. The caller has blocked the thread's signals. A write that fails may raise a signal (SIGPIPE: a
 * pipe without a reader; SIGXFSZ: a file at its limit). This signal is taken back, unless it was pending before. */
static void write_quietly(const struct notice *self) {
    uint64_t pending = 0;
    os_call(SYS_rt_sigpending, &pending, sizeof pending);
    long error = os_write(STDERR_FILENO, self->text, self->used);
    int number = error == -EPIPE ? SIGPIPE : error == -EFBIG ? SIGXFSZ : 0;
    const uint64_t set = number ? (uint64_t)1 << (number - 1) : 0;
    const struct timespec now = {0};
    if (set && !(pending & set)) os_call(SYS_rt_sigtimedwait, &set, NULL, &now, sizeof set);
}

void notice_write(struct notice *self) {
    uint64_t signals;
    if (self->used > sizeof self->text - 2) self->used = sizeof self->text - 2;
    self->text[self->used++] = '\n';
    if (seal_is_set() || !is_standard_error() || !takes_a_line() || !lock_out_signals(&signals)) return;
    write_quietly(self);
    lock_let_signals(signals);
}
