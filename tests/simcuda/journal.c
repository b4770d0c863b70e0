/* journal.c — what was called: counters by name, the last calls, and a file if the environment names one. The functions
 * here run under the driver's lock. */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAMES = 512, LINES = 8192 };
static struct counter {
    const char *name; /* a literal */
    uint64_t calls, good;
} counters[NAMES];
static uint64_t calls, good;
static struct line {
    const char *name;
    uint64_t number, a, b;
    CUresult result;
    pid_t thread;
} lines[LINES];
static uint64_t written;
static int file = -1, requests = -1;

static struct counter *counter_of(const char *name) {
    uint64_t hash = 5381;
    for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
    for (int i = 0; i < NAMES; i++) {
        struct counter *at = &counters[(hash + (uint64_t)i) % NAMES];
        if (!at->name || !strcmp(at->name, name)) return at;
    }
    return NULL;
}

static int open_file(const char *path) { return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }
void journal_open(const char *path) { file = open_file(path); }
void journal_open_requests(const char *path) { requests = open_file(path); }

void journal_request(const char *name, int version, uint64_t flags, int status) {
    if (requests >= 0) dprintf(requests, "%s %d %lu %d\n", name, version, (unsigned long)flags, status);
}

static int print(char *to, size_t room, const struct line *line) {
    return snprintf(to, room, "%lu %d %s %d %lu %lu\n", (unsigned long)line->number, line->thread, line->name,
                    line->result, (unsigned long)line->a, (unsigned long)line->b);
}

static void write_line(const struct line *line) {
    char text[160];
    int length = print(text, sizeof text, line);
    if (write(file, text, (size_t)length) != length) file = -1;
}

void journal_add(const char *name, CUresult result, uint64_t a, uint64_t b) {
    struct counter *counter = counter_of(name);
    if (counter) {
        counter->name = name;
        counter->calls++;
        counter->good += !result;
    }
    good += !result;
    struct line *line = &lines[written++ % LINES];
    *line = (struct line){name, ++calls, a, b, result, (pid_t)syscall(SYS_gettid)};
    if (file >= 0) write_line(line);
}

#define EXPORTED __attribute__((visibility("default")))

static uint64_t count(const char *name, bool only_good) {
    pthread_mutex_lock(&sim_lock);
    struct counter all = {"*", calls, good}, none = {0};
    struct counter *found = strcmp(name, "*") ? counter_of(name) : &all;
    if (!found) found = &none;
    uint64_t result = only_good ? found->good : found->calls;
    pthread_mutex_unlock(&sim_lock);
    return result;
}

EXPORTED uint64_t sim_count(const char *name) { return count(name, false); }
EXPORTED uint64_t sim_count_ok(const char *name) { return count(name, true); }

EXPORTED void sim_count_reset(void) {
    pthread_mutex_lock(&sim_lock);
    memset(counters, 0, sizeof counters);
    calls = good = written = 0;
    pthread_mutex_unlock(&sim_lock);
}

EXPORTED size_t sim_log_text(char *to, size_t room) {
    size_t length = 0;
    pthread_mutex_lock(&sim_lock);
    for (uint64_t i = written > LINES ? written - LINES : 0; i < written; i++) {
        char text[160];
        size_t n = (size_t)print(text, sizeof text, &lines[i % LINES]);
        if (length + n < room) memcpy(to + length, text, n + 1);
        length += n;
    }
    pthread_mutex_unlock(&sim_lock);
    return length;
}
