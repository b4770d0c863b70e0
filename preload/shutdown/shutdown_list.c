/* shutdown_list.c — see shutdown_list.h. */
#include "preload/shutdown/shutdown_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "preload/base/line.h"
#include "preload/shared/jsontext.h"
#include "preload/shared/os.h"

enum { PATH_CAPACITY = SHUTDOWN_PATH + 32, READ_MOST = 1 << 20, TRIES = 8, NUMBERS = 100, NO_REPLACE = 1 };

static char asked_path[SHUTDOWN_PATH]; /* where new lists go, unless another process's list is there */
static char own_path[PATH_CAPACITY];   /* the list of this process; "": it has none */

bool shutdown_list_file(const char *path) { return !path[0] || shutdown_file_path(asked_path, path); }

/* --- the text of the list --- */

static void shutdown_list_put(struct shutdown_list *list, const char *text, size_t length) {
    if (!list->failed && (!shutdown_file_may_grow(list->fd, length) || os_write(list->fd, text, length) < 0))
        list->failed = true;
}

static void shutdown_list_put_text(struct shutdown_list *list, const char *text) {
    shutdown_list_put(list, text, strlen(text));
}

/* Writes the id of this boot, in hexadecimal. False: the id is unknown, and `to` gets zeros. */
static bool boot_of(char to[33]) {
    static const char digits[] = "0123456789abcdef";
    uint8_t boot_id[16] = {0};
    bool known = os_boot_id(boot_id);
    for (size_t i = 0; i < sizeof boot_id; i++) {
        to[2 * i] = digits[boot_id[i] >> 4];
        to[2 * i + 1] = digits[boot_id[i] & 15];
    }
    to[32] = 0;
    return known;
}

static void put_process(struct shutdown_list *list, uint32_t pid, uint64_t start_ticks, const char *name) {
    struct line line;
    line_begin(&line, "PROCESS");
    line_number(&line, "pid", pid);
    line_number(&line, "start_ticks", start_ticks);
    line_string(&line, "name", name);
    shutdown_list_put(list, line.text, line.used);
}

/* The temporary name of a list that is being written: unique to this process, in the folder of the final list. */
static void name_in_work(char *to) {
    os_copy(to, PATH_CAPACITY, own_path[0] ? own_path : asked_path);
    strcat(to, ".");
    strcpy(os_decimal(to + strlen(to), os_pid()), ".new");
}

bool shutdown_list_begin(struct shutdown_list *list) {
    char boot[33];
    if (!asked_path[0]) shutdown_file_path(asked_path, "process_registry.json");
    name_in_work(list->path);
    list->some = list->failed = false;
    os_call(SYS_unlink, list->path);
    list->fd = os_open(list->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (list->fd < 0) return false;
    boot_of(boot);
    shutdown_list_put_text(list, "{\"format\": \"memstow-processes\", \"version\": 1, \"boot_id\": \"");
    shutdown_list_put_text(list, boot);
    shutdown_list_put_text(list, "\",\n \"parent\": ");
    put_process(list, os_pid(), os_start_ticks(0), "");
    shutdown_list_put_text(list, "},\n \"processes\": [");
    return true;
}

static void put_number(struct shutdown_list *list, uint64_t number) {
    char text[24];
    os_decimal(text, number);
    shutdown_list_put_text(list, ", \"number\": ");
    shutdown_list_put_text(list, text);
}

void shutdown_list_add(struct shutdown_list *list, const struct shutdown_listed *process) {
    if (list->fd < 0) return;
    shutdown_list_put_text(list, list->some ? ",\n  " : "\n  ");
    put_process(list, process->pid, process->start_ticks, process->name);
    if (process->number) put_number(list, process->number);
    shutdown_list_put_text(list, process->keep ? ", \"keep\": true}" : ", \"keep\": false}");
    list->some = true;
}

/* --- whose list is there now? --- */

/* Whether an existing list is still needed. NOBODYS: nobody needs it. OF_ONE_GONE: the program that wrote the list is
 * gone, but a listed process still has to end. OF_ONE_THAT_RUNS: the program that wrote the list still runs. */
enum whose { NOBODYS, OF_ONE_GONE, OF_ONE_THAT_RUNS };

static bool number_in(struct jsontext object, const char *name, uint64_t *number) {
    struct jsontext value;
    return jsontext_member(object, name, &value) && jsontext_number(value, number);
}

static bool read_process(struct jsontext object, uint32_t *pid, uint64_t *start_ticks) {
    uint64_t number;
    if (!number_in(object, "pid", &number) || !number || number > INT_MAX) return false;
    *pid = (uint32_t)number;
    return number_in(object, "start_ticks", start_ticks);
}

/* Whether the process with this pid and start time still runs. True also if this cannot be found out. */
static bool shutdown_list_is_there(uint32_t pid, uint64_t start_ticks) {
    int fd = os_hold_process(pid, start_ticks);
    if (fd >= 0) {
        bool ended = os_has_ended(fd);
        os_close(fd);
        return !ended;
    }
    uint64_t now = os_start_ticks(pid);
    return fd != -ESRCH && (!now || now == start_ticks);
}

static bool is_this_boot(struct jsontext root) {
    struct jsontext value;
    char text[64], boot[33];
    size_t used = 0;
    if (!jsontext_member(root, "boot_id", &value) || !jsontext_string(value, text, sizeof text)) return false;
    for (const char *c = text; *c; c++)
        if (*c != '-') text[used++] = *c;
    text[used] = 0;
    return !boot_of(boot) || strcmp(text, boot) == 0;
}

/* Whether the list has a process that still runs and is not to be kept. */
static bool names_somebody(struct jsontext root) {
    struct jsontext list, process, keep;
    uint64_t start_ticks;
    uint32_t pid;
    if (!jsontext_member(root, "processes", &list) || *list.at != '[') return false;
    for (size_t next = 0; jsontext_next(list, &next, NULL, &process);) {
        bool survives = jsontext_member(process, "keep", &keep) && *keep.at == 't';
        if (!survives && read_process(process, &pid, &start_ticks) && shutdown_list_is_there(pid, start_ticks))
            return true;
    }
    return false;
}

/* Whose list the text is; *parent gets the pid of the list's program. A list that this process wrote before an exec
 * counts as that of a program that is gone. */
static enum whose whose_text(const char *text, size_t length, uint32_t *parent) {
    struct jsontext root = {text, length}, value;
    uint64_t start_ticks;
    if (!jsontext_is_object(text, length)) return NOBODYS;
    while (*root.at != '{') root.at++, root.length--;
    if (!is_this_boot(root) || !jsontext_member(root, "parent", &value) || !read_process(value, parent, &start_ticks))
        return NOBODYS;
    bool is_us = *parent == os_pid() && start_ticks == os_start_ticks(0);
    if (!is_us && shutdown_list_is_there(*parent, start_ticks)) return OF_ONE_THAT_RUNS;
    return names_somebody(root) ? OF_ONE_GONE : NOBODYS;
}

static enum whose whose_file(int fd, size_t size, uint32_t *parent) {
    char *text = os_map(size + 1);
    if (!text) return OF_ONE_THAT_RUNS;
    long got = os_read(fd, text, size);
    enum whose whose = got < 0 ? OF_ONE_THAT_RUNS : whose_text(text, (size_t)got, parent);
    os_unmap(text, size + 1);
    return whose;
}

/* --- the path of the list --- */

/* Renames a file to a name that does not exist yet. Returns -EEXIST if the name exists. Some file systems cannot check
 * this during the rename. There the name is looked up before the rename. */
static long rename_to_new(const char *from, const char *to) {
    struct stat there;
    long result = os_call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE);
    if (result != -EINVAL) return result;
    return os_call(SYS_newfstatat, AT_FDCWD, to, &there, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST
                                                                                   : os_call(SYS_rename, from, to);
}

/* Writes to `to` the path of a list beside asked_path, such as process_registry.PID.json. If `again` is not 0, its name
 * has PID-AGAIN instead of PID. */
static void shutdown_list_name_of(char *to, uint32_t pid, uint32_t again) {
    size_t length = strlen(asked_path), stem = length;
    if (length > 5 && strcmp(asked_path + length - 5, ".json") == 0) stem -= 5;
    memcpy(to, asked_path, stem);
    to[stem++] = '.';
    char *end = os_decimal(to + stem, pid);
    if (again) *end++ = '-', end = os_decimal(end, again);
    strcpy(end, ".json");
}

static bool rename_for(const char *from, uint32_t pid, char to[PATH_CAPACITY]) {
    for (uint32_t again = 0; again < NUMBERS; again++) {
        shutdown_list_name_of(to, pid, again);
        long result = rename_to_new(from, to);
        if (result != -EEXIST) return result == 0;
    }
    return false;
}

static bool is_still_there(const struct stat *file) {
    struct stat now;
    return os_call(SYS_newfstatat, AT_FDCWD, asked_path, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           now.st_dev == file->st_dev && now.st_ino == file->st_ino;
}

/* Frees the name of the old list, which is open as `fd`. If the list's program still runs, the list stays. If only a
 * listed process still has to end, the list is renamed. If nobody needs the list, it is removed. Returns false if the
 * name stays taken. Returns true if the caller can try to take the name; another process may be faster.
 * Two processes may call this at once. Each of them locks the file, and then checks that the name still leads to it. So
 * only one of them removes the old list, and neither removes the new list of the other. */
static bool shutdown_list_free_name(int fd) {
    struct stat file;
    uint32_t parent;
    char aside[PATH_CAPACITY];
    if (os_stat_fd(fd, &file) < 0 || !S_ISREG(file.st_mode) || file.st_uid != (uid_t)os_call(SYS_geteuid) ||
        file.st_size > READ_MOST || os_call(SYS_flock, fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    if (!is_still_there(&file)) return true;
    enum whose whose = whose_file(fd, (size_t)file.st_size, &parent);
    if (whose == NOBODYS) return os_call(SYS_unlink, asked_path) == 0;
    return whose == OF_ONE_GONE && rename_for(asked_path, parent, aside);
}

static bool take_asked_path(const char *made) {
    for (int i = 0; i < TRIES; i++) {
        long result = rename_to_new(made, asked_path);
        if (result == 0) os_copy(own_path, sizeof own_path, asked_path);
        if (result != -EEXIST) return result == 0;
        int fd = os_open(asked_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        bool may_be_free = fd < 0 ? fd == -ENOENT : shutdown_list_free_name(fd);
        if (fd >= 0) os_close(fd);
        if (!may_be_free) break;
    }
    bool done = rename_for(made, os_pid(), own_path);
    if (!done) own_path[0] = 0;
    return done;
}

bool shutdown_list_end(struct shutdown_list *list) {
    if (list->fd < 0) return false;
    shutdown_list_put_text(list, "\n ]}\n");
    os_close(list->fd);
    bool done =
        !list->failed && (own_path[0] ? os_call(SYS_rename, list->path, own_path) == 0 : take_asked_path(list->path));
    if (!done) os_call(SYS_unlink, list->path);
    return done;
}

void shutdown_list_remove(void) {
    if (own_path[0]) os_call(SYS_unlink, own_path);
    own_path[0] = 0;
}

void shutdown_list_reset(void) { own_path[0] = 0; }
