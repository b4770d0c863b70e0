/* progress.c — see progress.h. A thread of its own shows the line, because one step of the work may take long: the
 * reading of a large file, or the first look into a large library. */
#include "tools/base/progress.h"
#include "tools/base/duration.h"
#include "tools/base/text.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const uint64_t AFTER_NS = SECOND_NS, EVERY_NS = SECOND_NS / 5;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static pthread_t shower;
static bool has_shower;
/* The lock guards these. */
static uint64_t begun_ns, said_ns; /* begun_ns is 0 while no progress is reported, said_ns while no line is shown */
static char words[512];            /* "": nothing was said */
static bool hidden;

/* Whether standard error is a terminal. If standard output is a terminal, too, it gets a large buffer. The buffer keeps
 * the output back until the end of the command, or until the output is longer than the buffer. Without the buffer, the
 * output would run into the progress line. */
static bool has_terminal(void) {
    static char held[1 << 20];
    static int terminal = -1;
    if (terminal >= 0) return terminal;
    terminal = isatty(STDERR_FILENO);
    if (terminal && isatty(STDOUT_FILENO)) setvbuf(stdout, held, _IOFBF, sizeof held);
    return terminal;
}

/* Shows the words if it is time. The caller has the lock. */
static void progress_show(void) {
    uint64_t now = duration_now();
    if (!begun_ns || !*words || hidden || now - begun_ns < AFTER_NS || now - said_ns < EVERY_NS) return;
    fprintf(stderr, "\r\033[K%s (%.0f s)", text_fit(words, 72).s, (double)(now - begun_ns) / 1e9);
    fflush(stderr);
    said_ns = now;
}

/* The thread `shower`. It shows the words again and again, until progress_end. */
static void *progress_repeat(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (begun_ns) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)EVERY_NS;
        if (until.tv_nsec >= (long)SECOND_NS) until.tv_sec++, until.tv_nsec -= (long)SECOND_NS;
        pthread_cond_clockwait(&over, &lock, CLOCK_MONOTONIC, &until);
        progress_show();
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void fork_begins(void) { pthread_mutex_lock(&lock); }

static void fork_is_done(void) { pthread_mutex_unlock(&lock); }

/* A forked child has no thread `shower`, and shows nothing. */
static void fork_made_child(void) {
    begun_ns = said_ns = 0;
    has_shower = false;
    over = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_unlock(&lock);
}

/* Starts the thread `shower`. This thread blocks all signals, so that signals go to the command's own thread and
 * interrupt its waits. If the thread `shower` cannot be started, only progress_say shows the line. */
static void shower_start(void) {
    static bool forks;
    sigset_t all, before;
    if (has_shower) return;
    if (!forks) forks = pthread_atfork(fork_begins, fork_is_done, fork_made_child) == 0;
    if (!forks) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_shower = pthread_create(&shower, NULL, progress_repeat, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_begin(void) {
    if (!has_terminal()) return;
    pthread_mutex_lock(&lock);
    begun_ns = duration_now();
    pthread_mutex_unlock(&lock);
    shower_start();
}

void progress_say(const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&lock);
    if (begun_ns) {
        va_start(arguments, format);
        vsnprintf(words, sizeof words, format, arguments);
        va_end(arguments);
        hidden = false;
        progress_show();
    }
    pthread_mutex_unlock(&lock);
}

/* Removes the line. The caller has the lock. */
static void line_remove(void) {
    if (said_ns) fputs("\r\033[K", stderr);
    said_ns = 0;
}

void progress_hide(void) {
    pthread_mutex_lock(&lock);
    line_remove();
    hidden = true;
    pthread_mutex_unlock(&lock);
}

void progress_go_on(void) {
    pthread_mutex_lock(&lock);
    hidden = false;
    pthread_mutex_unlock(&lock);
}

void progress_end(void) {
    pthread_mutex_lock(&lock);
    line_remove();
    begun_ns = 0;
    *words = 0;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
    if (has_shower) pthread_join(shower, NULL);
    has_shower = false;
}
