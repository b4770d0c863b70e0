/* shutdown_audit.c — see shutdown_audit.h. */
#include "preload/shutdown/shutdown_audit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "preload/shared/os.h"
#include "preload/shared/socket_line.h"

/* TICK_NS: a record may seem older than its thread by this much, because the kernel gives a thread's start in
 * hundredths of a second. */
enum { LISTED_MOST = 256, PATH_SIZE = 64, LINK_SIZE = 4096, BUFFER = 1 << 14, STANDARD_ERROR = 2, TICK_NS = 20000000 };

static const struct shutdown_ledger *ledger; /* NULL: there is no ledger to ask */

void shutdown_audit_ask(const struct shutdown_ledger *asked) { __atomic_store_n(&ledger, asked, __ATOMIC_RELEASE); }

static const struct shutdown_ledger *who_knows(void) {
    const struct shutdown_ledger *one = __atomic_load_n(&ledger, __ATOMIC_ACQUIRE);
    return one && one->has_ledger() ? one : NULL;
}

static const struct shutdown_ledger *ledger_with_origins(void) {
    const struct shutdown_ledger *one = who_knows();
    return one && one->has_origins() ? one : NULL;
}

/* --- how much memory the process has --- */

/* Reads /proc/self/statm: "SIZE RESIDENT SHARED …", in pages. */
void shutdown_audit_memory(struct line *line) {
    const struct shutdown_ledger *knows = who_knows();
    uint64_t pages[3] = {0};
    char text[128];
    int fd = os_open("/proc/self/statm", O_RDONLY, 0);
    long got = fd < 0 ? 0 : os_read(fd, text, sizeof text - 1);
    if (fd >= 0) os_close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *at = text;
    for (int field = 0; field < 3; field++, at += *at == ' ') pages[field] = os_take_decimal(&at);
    if (got > 0) line_number(line, "rss_bytes", pages[1] * OS_PAGE);
    if (got > 0) line_number(line, "shared_bytes", pages[2] * OS_PAGE);
    if (knows) line_number(line, "live_bytes", knows->live_bytes());
}

/* --- which descriptors are open --- */

/* Writes the path of a file in the /proc folder of `thread` (0: the first thread). `thread` has the program's
 * descriptors. The calling thread may have descriptors of its own, so its folder is not used. */
static char *path_of(char path[PATH_SIZE], uint32_t thread, const char *file) {
    strcpy(path, "/proc/self/task/");
    strcpy(os_decimal(path + strlen(path), thread ? thread : os_pid()), file);
    return path;
}

struct list {
    uint32_t thread; /* whose folder in /proc is read; 0: the first thread */
    int64_t count;   /* all descriptors; the list holds the first ones */
    struct shutdown_descriptor listed[LISTED_MOST];
};

static bool read_fd(const char *name, uint32_t *fd) {
    *fd = (uint32_t)os_take_decimal(&name);
    return !*name;
}

/* Whether a descriptor with this target is the one through which the list of descriptors is read. The list has this
 * descriptor only if the reading thread shares the program's descriptors. */
static bool is_own_look(const char *target) {
    size_t length = strlen(target);
    return strncmp(target, "/proc/", 6) == 0 && length > 3 && strcmp(target + length - 3, "/fd") == 0;
}

/* Notes device and inode of what a descriptor leads to, as far as the kernel knows them. Asks no file server on the
 * network. */
static void look_at_thing(const char *path, struct shutdown_descriptor *descriptor) {
    struct statx st;
    if (os_call(SYS_statx, AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0) return;
    descriptor->device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    descriptor->inode = st.stx_ino;
}

static bool take_descriptor(void *context, const char *name) {
    struct list *list = context;
    struct shutdown_descriptor descriptor = {0};
    char path[PATH_SIZE], target[LINK_SIZE];
    if (!read_fd(name, &descriptor.fd) || descriptor.fd <= STANDARD_ERROR) return true;
    path_of(path, list->thread, "/fd/");
    strcat(path, name);
    long got = os_call(SYS_readlink, path, target, sizeof target - 1);
    target[got > 0 ? got : 0] = 0;
    if (got <= 0 || is_own_look(target) || strcmp(target, "/dev/null") == 0) return true;
    if (list->count++ >= LISTED_MOST) return true;
    descriptor.kind = handle_kind_of(target);
    look_at_thing(path, &descriptor);
    os_copy(descriptor.what, sizeof descriptor.what, target);
    list->listed[list->count - 1] = descriptor;
    return true;
}

static int64_t shutdown_audit_listed(const struct list *list) {
    return list->count < LISTED_MOST ? list->count : LISTED_MOST;
}

/* --- what the sockets are --- */

static void name_socket(struct list *list, const struct socket_line *socket) {
    for (int64_t i = 0; i < shutdown_audit_listed(list); i++) {
        struct shutdown_descriptor *one = &list->listed[i];
        if (one->kind == HANDLE_SOCKET && one->inode == socket->inode)
            os_copy(one->what, sizeof one->what, socket->text);
    }
}

/* Reads a table of /proc/PID/net, and writes into the listed sockets what the table says of them. If a line is longer
 * than the buffer, only its end is read. */
static void read_table(struct list *list, const char *table) {
    char path[PATH_SIZE], text[BUFFER];
    struct socket_line socket;
    size_t held = 0;
    strcat(path_of(path, list->thread, "/net/"), table);
    int fd = os_open(path, O_RDONLY, 0);
    for (long got; fd >= 0 && (got = os_call(SYS_read, fd, text + held, sizeof text - 1 - held)) > 0;) {
        char *at = text, *end;
        text[held + (size_t)got] = 0;
        for (; (end = strchr(at, '\n')); at = end + 1) {
            *end = 0;
            if (socket_line_parse(&socket, table, at)) name_socket(list, &socket);
        }
        held = strlen(at);
        if (held == sizeof text - 1) held = 0;
        memmove(text, at, held);
    }
    if (fd >= 0) os_close(fd);
}

static void name_sockets(struct list *list) {
    bool some = false;
    for (int64_t i = 0; i < shutdown_audit_listed(list); i++) some |= list->listed[i].kind == HANDLE_SOCKET;
    for (int i = 0; some && i < SOCKET_TABLES; i++) read_table(list, socket_tables[i]);
}

/* --- lines in the log --- */

static void put_origin(struct line *line, bool known, const struct shutdown_origin *origin, const char *by) {
    if (known && origin->inherited) line_string(line, by, "inherited");
    if (!known) line_string(line, by, "unseen");
    if (!known || origin->inherited) return;
    line_number(line, "age_ms", origin->age_ns / 1000000);
    if (origin->by[0]) line_string(line, by, origin->by);
}

static void log_descriptor(const struct shutdown_descriptor *descriptor) {
    const struct shutdown_ledger *knows = ledger_with_origins();
    struct shutdown_origin origin;
    struct line line;
    shutdown_log_line(&line, "left descriptor");
    line_number(&line, "descriptor", descriptor->fd);
    line_string(&line, "type", handle_kind_word(descriptor->kind, false));
    line_string(&line, "what", descriptor->what);
    if (knows) put_origin(&line, knows->descriptor(descriptor, &origin), &origin, "opened_by");
    shutdown_log_write(&line);
}

int64_t shutdown_audit_descriptors(uint32_t asks) {
    struct list *list = os_map(sizeof *list);
    char path[PATH_SIZE];
    if (!list) return 0;
    list->thread = asks;
    os_each_name(path_of(path, asks, "/fd"), take_descriptor, list);
    name_sockets(list);
    for (int64_t i = 0; i < shutdown_audit_listed(list); i++) log_descriptor(&list->listed[i]);
    int64_t count = list->count;
    os_unmap(list, sizeof *list);
    return count;
}

void shutdown_audit_thread(struct line *line, uint32_t tid) {
    const struct shutdown_ledger *knows = ledger_with_origins();
    struct shutdown_origin origin;
    bool known = knows && knows->thread(tid, &origin);
    /* The thread's age is read after the record's. In the other order, a pause in between would make the record seem
     * older than its thread. */
    uint64_t age_ns = shutdown_log_age_ms(os_start_ticks(tid)) * 1000000;
    line_number(line, "age_ms", age_ns / 1000000);
    bool of_an_earlier_thread = known && origin.age_ns > age_ns + TICK_NS;
    if (known && !of_an_earlier_thread && origin.by[0]) line_string(line, "started_by", origin.by);
}

static bool count_name(void *count, const char *name) {
    uint32_t fd;
    *(uint64_t *)count += read_fd(name, &fd);
    return true;
}

/* The number of descriptors includes the one by which they are counted, if the reading thread shares the program's
 * descriptors. */
void shutdown_audit_stage(const char *stage, uint32_t asks) {
    uint64_t count = 0;
    char path[PATH_SIZE];
    struct line line;
    os_each_name(path_of(path, asks, "/fd"), count_name, &count);
    shutdown_log_line(&line, "stage");
    line_string(&line, "name", stage);
    shutdown_audit_memory(&line);
    line_number(&line, "descriptors", count);
    shutdown_log_write(&line);
}
