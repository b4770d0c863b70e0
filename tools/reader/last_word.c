/* last_word.c — see last_word.h. */
#include "tools/reader/last_word.h"
#include "tools/reader/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether the header is of the process that ended. A program that was replaced by exec has recorded that in its own
 * header; the exit status belongs to the last program. */
static bool last_word_is_of(const struct snap_header *header, const uint8_t run_id[16], pid_t pid) {
    return header->kind == SNAP_LEDGER && header->pid == (uint32_t)pid && header->state != SNAP_EXECED &&
           memcmp(header->run_id, run_id, sizeof header->run_id) == 0;
}

static void write_to(int fd, int status) {
    const struct {
        uint32_t ended, ended_with;
    } word = {WIFSIGNALED(status) ? SNAP_ENDED_KILLED : SNAP_ENDED_EXITED,
              (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))};
    _Static_assert(offsetof(struct snap_header, ended_with) == offsetof(struct snap_header, ended) + 4, "side by side");
    ssize_t written = pwrite(fd, &word, sizeof word, offsetof(struct snap_header, ended));
    (void)written; /* nothing depends on this write */
}

static void ledger_look_at(int directory, const char *name, const uint8_t run_id[16], pid_t pid, int status) {
    struct snap_header header;
    struct source source;
    char error[160];
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || source_file(&source, fd) < 0) return;
    if (reader_header(&header, &source, error, sizeof error) == 0 && last_word_is_of(&header, run_id, pid))
        write_to(fd, status);
    source_close(&source);
}

void last_word_write(const char *path, const uint8_t run_id[16], pid_t pid, int status) {
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
            ledger_look_at(dirfd(directory), entry->d_name, run_id, pid, status);
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
        snprintf(line.s, sizeof line.s, "ended without telling (a raw exit, or killed)");
    return line;
}
