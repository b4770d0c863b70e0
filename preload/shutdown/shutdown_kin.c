/* shutdown_kin.c — see shutdown_kin.h. */
#include "preload/shutdown/shutdown_kin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/shared/heapsort.h"
#include "preload/shared/os.h"

/* If the system has more than TABLE_MOST processes, the others are not looked at. */
enum { TABLE_MOST = 1 << 16, KNOWN_MOST = 1024, STAT_FIELDS = 24, CHUNK = 1 << 14, MARK_SIZE = 64 };

/* The bonds by which a process may be kin: its parent, its group and its session, each a number. Processes with the
 * same number in a bond form a list. The list belongs to the process whose pid is that number: `first` of this process
 * is the list's first member, and `next` of a member is the next one. */
enum { BY_PARENT, BY_GROUP, BY_SESSION, BONDS };
enum { GENERATIONS = 64 }; /* how many ancestors is_beside looks at, at most */

struct process {
    uint64_t start_ticks, rss_pages;
    uint32_t pid;
    struct kin kin;
    enum kin_link link;
    bool ended;
    char name[16];
    uint32_t first[BONDS], next[BONDS]; /* 1 + index in table.list; 0: none */
};

struct known {
    uint64_t start_ticks;
    uint32_t pid;
    enum kin_link link;
};

/* The data of one look. `self`: this process; `list`: all others; `known`: a copy of the kin that earlier looks have
 * found. `list` and `known` are sorted by pid. `waiting` has the indices of kin whose lists (`first`) are still to be
 * looked at. */
struct table {
    struct process self;
    uint32_t count, known_count, waiting_count;
    struct known known[KNOWN_MOST];
    uint32_t waiting[TABLE_MOST];
    struct process list[TABLE_MOST];
};

/* The kin that were found so far, each with the bond by which it was found first. Only one look at a time adds to the
 * list. */
static struct known known[KNOWN_MOST];
static uint32_t known_count, noting;

void shutdown_kin_reset(void) { known_count = noting = 0; }

const char *shutdown_kin_words(enum kin_link link) {
    static const char *const words[] = {
        [KIN_NONE] = "",
        [KIN_STARTED] = "started by this program",
        [KIN_KNOWN] = "came from this program before its parent ended",
        [KIN_GROUP] = "in a group or session of this program",
        [KIN_MARK] = "has this program's mark",
        [KIN_SEED] = "registered",
    };
    return words[link];
}

/* --- reading one process --- */

/* Reads the numbers of "PID (NAME) STATE PARENT GROUP SESSION …" from field 4 on. fields[n] gets field n. */
static void read_numbers(const char *at, uint64_t fields[STAT_FIELDS + 1]) {
    for (int field = 4; field <= STAT_FIELDS && *at == ' '; field++) {
        bool negative = *++at == '-';
        if (negative) at++;
        uint64_t number = os_take_decimal(&at);
        fields[field] = negative ? 0 : number;
    }
}

/* Reads a line of /proc/PID/stat. Returns false if the line has another form. Sets `ended` only if no thread runs. The
 * state in the line does not suffice for this, because it is the main thread's, and other threads may outlive that
 * thread. */
static bool shutdown_kin_parse(struct process *out, char *text) {
    uint64_t fields[STAT_FIELDS + 1] = {0};
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name || strlen(end) < 4) return false;
    *end = 0;
    os_copy(out->name, sizeof out->name, name + 1);
    read_numbers(end + 3, fields);
    out->ended = end[2] == 'X' || (end[2] == 'Z' && fields[20] < 2);
    out->kin = (struct kin){(uint32_t)fields[4], (uint32_t)fields[5], (uint32_t)fields[6]};
    out->start_ticks = fields[22], out->rss_pages = fields[24];
    return true;
}

static char *path_in_proc(char path[48], uint32_t pid, const char *file) {
    strcpy(path, "/proc/");
    strcpy(os_decimal(path + strlen(path), pid), file);
    return path;
}

static bool read_process(struct process *out, uint32_t pid) {
    char path[48], text[1024];
    int fd = os_open(path_in_proc(path, pid, "/stat"), O_RDONLY, 0);
    if (fd < 0) return false;
    long got = os_read(fd, text, sizeof text - 1);
    os_close(fd);
    text[got > 0 ? got : 0] = 0;
    *out = (struct process){.pid = pid};
    return shutdown_kin_parse(out, text);
}

bool shutdown_kin_of(uint32_t pid, struct kin *kin, bool *ended) {
    struct process process;
    if (!read_process(&process, pid)) return false;
    *kin = process.kin;
    *ended = process.ended;
    return true;
}

static bool take_process(void *context, const char *name) {
    struct table *table = context;
    if (name[0] < '1' || name[0] > '9' || strlen(name) > 10) return true;
    uint32_t pid = (uint32_t)os_take_decimal(&name);
    if (pid != table->self.pid && read_process(&table->list[table->count], pid)) table->count++;
    return table->count < TABLE_MOST;
}

/* --- finding a process by its pid --- */

static uint32_t pid_of(const struct process *process) { return process->pid; }

HEAPSORT(struct process, sort_processes, pid_of)

static uint32_t pid_of_known(const struct known *one) { return one->pid; }

HEAPSORT(struct known, sort_known, pid_of_known)

/* The index of the first entry with this pid or a higher one. `first` points to the pid of the first entry; entries are
 * `apart` bytes apart. */
static uint32_t index_of_pid(uint32_t pid, const uint32_t *first, size_t apart, uint32_t count) {
    uint32_t from = 0;
    for (uint32_t end = count; from < end;) {
        uint32_t middle = from + (end - from) / 2;
        if (*(const uint32_t *)((const char *)first + middle * apart) < pid)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

static struct process *find_process(struct table *table, uint32_t pid) {
    uint32_t at = index_of_pid(pid, &table->list->pid, sizeof *table->list, table->count);
    return at < table->count && table->list[at].pid == pid ? &table->list[at] : NULL;
}

/* The first entry with this pid; NULL: there is none. */
static const struct known *find_known(const struct table *table, uint32_t pid) {
    uint32_t at = index_of_pid(pid, &table->known->pid, sizeof *table->known, table->known_count);
    return at < table->known_count && table->known[at].pid == pid ? &table->known[at] : NULL;
}

static void take_known(struct table *table) {
    table->known_count = __atomic_load_n(&known_count, __ATOMIC_ACQUIRE);
    memcpy(table->known, known, table->known_count * sizeof *known);
    sort_known(table->known, table->known_count);
}

/* Whether the process is in `known`. Several processes may have had the same pid, one after the other. */
static bool is_known(const struct table *table, const struct process *process) {
    const struct known *at = find_known(table, process->pid), *end = table->known + table->known_count;
    for (; at && at < end && at->pid == process->pid; at++)
        if (at->start_ticks == process->start_ticks) return true;
    return false;
}

/* --- the inherited mark --- */

static bool is_of_this_namespace(uint32_t pid) {
    struct stat own, other;
    char path[48];
    return os_call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &own, 0) == 0 &&
           os_call(SYS_newfstatat, AT_FDCWD, path_in_proc(path, pid, "/ns/pid"), &other, 0) == 0 &&
           own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

/* Writes the text of a mark to `to`: `variable` (NAME=), "PID.START" of this process, and `end`. A process that was
 * started with such a variable has it in its environment, and so have its descendants. */
static void write_mark(char *to, const char *variable, const struct process *self, const char *end) {
    strcpy(to, variable);
    strcpy(os_decimal(to + strlen(to), self->pid), ".");
    strcpy(os_decimal(to + strlen(to), self->start_ticks), end);
}

struct marks {
    char program[MARK_SIZE]; /* a whole variable, which the program's processes inherit */
    char started[MARK_SIZE]; /* the beginning of a variable; a process's number follows */
};

static bool is_there(const char *text, size_t have, const char *mark, size_t length) {
    return have >= length && memcmp(text, mark, length) == 0;
}

/* Whether the environment that `fd` reads contains one of the marks. A mark may lie across the end of a chunk, so the
 * last bytes of each chunk are examined again with the next one. */
static bool has_variable(int fd, const struct marks *marks) {
    size_t program = strlen(marks->program) + 1, started = strlen(marks->started), held = 1;
    size_t most = program > started ? program : started;
    char text[CHUNK] = {0};
    for (long got; (got = os_read(fd, text + held, sizeof text - held)) > 0;) {
        size_t have = held + (size_t)got, at = 1;
        for (; at < have; at++)
            if (!text[at - 1] && (is_there(text + at, have - at, marks->program, program) ||
                                  is_there(text + at, have - at, marks->started, started)))
                return true;
        held = have < most ? have : most;
        memmove(text, text + have - held, held);
    }
    return false;
}

static bool has_mark(uint32_t pid, const struct marks *marks) {
    char path[48];
    int fd = os_open(path_in_proc(path, pid, "/environ"), O_RDONLY, 0);
    if (fd < 0) return false;
    bool found = has_variable(fd, marks);
    os_close(fd);
    return found && is_of_this_namespace(pid);
}

/* --- which processes are kin --- */

static void link_one(struct table *table, uint32_t pid, uint64_t start_ticks, enum kin_link link) {
    struct process *process = find_process(table, pid);
    if (process && !process->link && process->start_ticks == start_ticks) process->link = link;
}

/* Sets the link of processes that an earlier look has found. A process that was found by its parent may have another
 * parent by now, so its link becomes KIN_KNOWN. Links by other bonds still hold. */
static void link_known(struct table *table) {
    for (uint32_t i = 0; i < table->known_count; i++) {
        const struct known *one = &table->known[i];
        link_one(table, one->pid, one->start_ticks, one->link == KIN_STARTED ? KIN_KNOWN : one->link);
    }
}

/* Sets the link of processes whose environment has this process's mark. Older processes cannot have it. */
static void link_marked(struct table *table) {
    struct marks marks;
    write_mark(marks.program, "MEMSTOW_PROGRAM=", &table->self, "");
    write_mark(marks.started, "MEMSTOW_STARTED=", &table->self, ".");
    for (uint32_t i = 0; i < table->count; i++) {
        struct process *process = &table->list[i];
        if (process->link || process->ended || process->start_ticks < table->self.start_ticks) continue;
        if (has_mark(process->pid, &marks)) process->link = KIN_MARK;
    }
}

/* Whether `process` belongs to another command of the pipeline that this program is in. `process` is in the group or
 * session that this program leads: a shell may make this program the leader of the whole pipeline's group. The shell is
 * this program's parent, and the other commands and the processes that they start descend from the shell. So a process
 * that descends from this program's parent belongs to another command.
 * If the parent is init, only init's own children are taken for other commands. Their descendants are not, because a
 * child of init may also be an orphan of this program. */
static bool is_beside(struct table *table, const struct process *process) {
    uint32_t parent = table->self.kin.parent;
    for (int left = parent == 1 ? 1 : GENERATIONS; process && left; left--) {
        if (process->kin.parent == parent) return true;
        process = find_process(table, process->kin.parent);
    }
    return false;
}

/* Whether this process, or kin of it, began the group or session `number`, which `process` is in. The process with the
 * pid `number` began it, even if that process has ended: the kernel gives this pid to no other process while the group
 * or session has members. */
static bool is_number_of_kin(struct table *table, const struct process *process, uint32_t number) {
    if (number == table->self.pid) return !is_beside(table, process);
    const struct process *leader = find_process(table, number);
    return leader ? leader->link != KIN_NONE : find_known(table, number) != NULL;
}

/* Whether the parent of `process` is kin or this process. A process that is younger than `process` is not its parent:
 * the real parent has ended, and the younger process got the pid of the real parent. */
static bool is_started_by_kin(struct table *table, const struct process *process) {
    const struct process *parent =
        process->kin.parent == table->self.pid ? &table->self : find_process(table, process->kin.parent);
    return parent && parent->link && parent->start_ticks <= process->start_ticks;
}

/* If the process is kin by one of the bonds, sets its link and adds it to `waiting`. It is added because the processes
 * in its lists (`first`) may now be kin, too, and are still to be looked at. */
static void shutdown_kin_judge(struct table *table, struct process *process) {
    if (!process->link && process->start_ticks >= table->self.start_ticks) {
        if (is_started_by_kin(table, process))
            process->link = KIN_STARTED;
        else if (is_number_of_kin(table, process, process->kin.group) ||
                 is_number_of_kin(table, process, process->kin.session))
            process->link = KIN_GROUP;
        if (process->link) table->waiting[table->waiting_count++] = (uint32_t)(process - table->list);
    }
}

static void judge_named(struct table *table, const struct process *process) {
    for (int bond = 0; bond < BONDS; bond++)
        for (uint32_t at = process->first[bond]; at; at = table->list[at - 1].next[bond])
            shutdown_kin_judge(table, &table->list[at - 1]);
}

/* Finds the processes that have a bond with kin. They are kin, too, so the processes that have a bond with them are
 * found next, until no more are found. Judges each process once, and at most once more for each of its bonds. */
static void link_more(struct table *table) {
    table->waiting_count = 0;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->list[i].link) table->waiting[table->waiting_count++] = i;
    for (uint32_t i = 0; i < table->count; i++) shutdown_kin_judge(table, &table->list[i]);
    for (uint32_t i = 0; i < table->waiting_count; i++) judge_named(table, &table->list[table->waiting[i]]);
}

/* --- lists of processes with the same parent, group or session --- */

static void shutdown_kin_bind(struct table *table, uint32_t at, int bond, uint32_t number) {
    struct process *process = &table->list[at], *named = find_process(table, number);
    if (!named) return;
    process->next[bond] = named->first[bond];
    named->first[bond] = at + 1;
}

static void bind_all(struct table *table) {
    sort_processes(table->list, table->count);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct kin *kin = &table->list[i].kin;
        shutdown_kin_bind(table, i, BY_PARENT, kin->parent);
        shutdown_kin_bind(table, i, BY_GROUP, kin->group);
        shutdown_kin_bind(table, i, BY_SESSION, kin->session);
    }
}

static void link_all(struct table *table, const struct shutdown_seed *seeds, uint32_t count) {
    bind_all(table);
    take_known(table);
    for (uint32_t i = 0; i < count; i++) link_one(table, seeds[i].pid, seeds[i].start_ticks, KIN_SEED);
    link_more(table);
    link_known(table);
    link_marked(table);
    link_more(table);
}

/* --- a look at all processes --- */

/* Adds the kin of this look to the list `known`. If the list is full, it is emptied first. */
static void shutdown_kin_note(struct table *table) {
    if (__atomic_exchange_n(&noting, 1, __ATOMIC_ACQUIRE)) return;
    if (known_count == KNOWN_MOST) __atomic_store_n(&known_count, 0, __ATOMIC_RELEASE);
    take_known(table);
    for (uint32_t i = 0; i < table->count && known_count < KNOWN_MOST; i++) {
        const struct process *process = &table->list[i];
        if (!process->link || is_known(table, process)) continue;
        known[known_count] = (struct known){process->start_ticks, process->pid, process->link};
        __atomic_store_n(&known_count, known_count + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&noting, 0, __ATOMIC_RELEASE);
}

int shutdown_kin_look(const struct shutdown_seed *seeds, uint32_t count,
                      void (*visit)(void *context, const struct shutdown_relative *relative), void *context) {
    struct table *table = os_map(sizeof *table);
    if (!table) return -ENOMEM;
    bool can_be_told = read_process(&table->self, os_pid());
    table->self.link = KIN_SEED;
    if (can_be_told) os_each_name("/proc", take_process, table);
    if (can_be_told) link_all(table, seeds, count);
    shutdown_kin_note(table);
    for (uint32_t i = 0; visit && i < table->count; i++) {
        const struct process *process = &table->list[i];
        struct shutdown_relative relative = {
            process->pid, process->kin.parent, process->start_ticks, process->rss_pages * OS_PAGE, process->link, ""};
        os_copy(relative.name, sizeof relative.name, process->name);
        if (process->link && !process->ended) visit(context, &relative);
    }
    os_unmap(table, sizeof *table);
    return can_be_told ? 0 : -EIO;
}
