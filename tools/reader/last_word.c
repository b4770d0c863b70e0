/* last_word.c — see last_word.h. */
#include "tools/reader/last_word.h"
#include "tools/reader/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that has ended, and the last program that it ran. */
struct last {
    const uint8_t *run_id;
    pid_t pid;
    int status;
    uint64_t start_ns, start_ticks;
};

static bool last_word_is_of(const struct snap_header *header, const struct last *last) {
    return header->kind == SNAP_LEDGER && header->pid == (uint32_t)last->pid &&
           memcmp(header->run_id, last->run_id, sizeof header->run_id) == 0;
}

static void find_last(struct last *last, int fd, const struct snap_header *header) {
    (void)fd;
    if (header->start_ns < last->start_ns) return;
    last->start_ns = header->start_ns;
    last->start_ticks = header->start_ticks;
}

static void write_status(int fd, int status) {
    const struct {
        uint32_t ended, ended_with;
    } word = {WIFSIGNALED(status) ? SNAP_ENDED_KILLED : SNAP_ENDED_EXITED,
              (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))};
    _Static_assert(offsetof(struct snap_header, ended_with) == offsetof(struct snap_header, ended) + 4, "side by side");
    ssize_t written = pwrite(fd, &word, sizeof word, offsetof(struct snap_header, ended));
    (void)written; /* nothing depends on this write */
}

static void write_execed(int fd, uint64_t end_ns) {
    const uint32_t state = SNAP_EXECED;
    if (pwrite(fd, &end_ns, sizeof end_ns, offsetof(struct snap_header, end_ns)) != sizeof end_ns) return;
    ssize_t written = pwrite(fd, &state, sizeof state, offsetof(struct snap_header, state));
    (void)written;
}

/* Writes into a ledger how its program ended. The wait status is that of the process's last program; exec replaced
 * each earlier one. If the ledger of an earlier program does not have the state SNAP_EXECED, the library did not see
 * the exec, and the state is written now. */
static void write_end(struct last *last, int fd, const struct snap_header *header) {
    if (header->state == SNAP_EXECED) return;
    if (header->start_ns == last->start_ns)
        write_status(fd, last->status);
    else if (header->state == SNAP_RUNNING && header->start_ticks == last->start_ticks)
        write_execed(fd, last->start_ns);
}

typedef void last_word_visit(struct last *last, int fd, const struct snap_header *header);

static void ledger_look_at(int directory, const char *name, struct last *last, last_word_visit *visit) {
    struct snap_header header;
    struct source source;
    char error[160];
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || source_file(&source, fd) < 0) return;
    if (reader_header(&header, &source, error, sizeof error) == 0 && last_word_is_of(&header, last))
        visit(last, fd, &header);
    source_close(&source);
}

static void visit_ledgers(DIR *directory, struct last *last, last_word_visit *visit) {
    rewinddir(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
            ledger_look_at(dirfd(directory), entry->d_name, last, visit);
}

void last_word_write(const char *path, const uint8_t run_id[16], pid_t pid, int status) {
    struct last last = {.run_id = run_id, .pid = pid, .status = status};
    DIR *directory = opendir(path);
    if (!directory) return;
    visit_ledgers(directory, &last, find_last);
    visit_ledgers(directory, &last, write_end);
    closedir(directory);
}

struct text last_word_signal(int number) {
    struct text text;
    const char *name = sigabbrev_np(number);
    if (name)
        snprintf(text.s, sizeof text.s, "SIG%s", name);
    else
        snprintf(text.s, sizeof text.s, "signal %d", number);
    return text;
}

bool last_word_is_untold(const struct image *image) {
    return image->header.state == SNAP_RUNNING && image->header.kind == SNAP_LEDGER && !image->running;
}

struct text_line last_word_of_untold(const struct snap_header *header) {
    struct text_line line;
    int with = (int)header->ended_with;
    if (header->ended == SNAP_ENDED_EXITED)
        snprintf(line.s, sizeof line.s, "exited with %d, by a system call that memstow does not see", with);
    else if (header->ended == SNAP_ENDED_KILLED)
        snprintf(line.s, sizeof line.s, "was killed by %s", last_word_signal(with).s);
    else
        snprintf(line.s, sizeof line.s, "ended unseen, by a raw exit or a signal");
    return line;
}
