/* shutdown_processes.c — see shutdown_processes.h. */
#include "preload/shutdown/shutdown_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/kin.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shutdown/shutdown_kin.h"
#include "preload/shutdown/shutdown_list.h"
#include "preload/shutdown/shutdown_log.h"
#include "preload/stow/stow_work.h"

enum {
    MOST = 256,
    NAME = 64,
    REACH_MOST = 64,
    STEP_NS = 20000000,
    GROUP_STEP_NS = 100000000,
    KILL_NS = 200000000,
    LEFT_MOST = 256
};

struct child {
    uint64_t start_ticks, number; /* number: the last part of MEMSTOW_STARTED in its environment; 0: none */
    uint32_t pid;
    bool keep;
    char name[NAME];
};

static struct {
    int64_t count;
    int32_t pids[LEFT_MOST];
} left; /* the processes that the latest call of shutdown_processes_left found */

static struct child children[MOST];
static uint32_t count;
static struct lock lock;

void shutdown_processes_reset(void) {
    count = 0;
    left.count = 0;
    shutdown_list_reset();
    shutdown_kin_reset();
    memset(&lock, 0, sizeof lock);
}

static int write_list(void) {
    struct shutdown_list list;
    if (!count) {
        shutdown_list_remove();
        return 0;
    }
    if (!shutdown_list_begin(&list)) return -EIO;
    for (uint32_t i = 0; i < count; i++) {
        const struct child *child = &children[i];
        shutdown_list_add(&list, &(struct shutdown_listed){.pid = child->pid,
                                                           .start_ticks = child->start_ticks,
                                                           .number = child->number,
                                                           .name = child->name,
                                                           .keep = child->keep});
    }
    return shutdown_list_end(&list) ? 0 : -EIO;
}

/* Returns the index of the entry with this pid. If no entry has it, returns the index of a new entry, or -ENOSPC if
 * there is no room. An entry with this pid may belong to an earlier process with the same pid. */
static int shutdown_processes_slot_for(uint32_t pid) {
    for (uint32_t i = 0; i < count; i++)
        if (children[i].pid == pid) return (int)i;
    return count < MOST ? (int)count : -ENOSPC;
}

int shutdown_process_add(uint32_t pid, const char *name, bool keep, uint64_t number) {
    uint64_t start_ticks = os_start_ticks(pid);
    if (pid < 2 || pid == os_pid() || !start_ticks) return -ESRCH;
    if (!lock_wait(&lock)) return -EBUSY;
    int at = shutdown_processes_slot_for(pid), result = at < 0 ? at : 0;
    if (at >= 0) {
        /* A process that is registered again, for example to be kept, keeps its number. */
        if (!number && (uint32_t)at < count && children[at].start_ticks == start_ticks) number = children[at].number;
        children[at] = (struct child){.start_ticks = start_ticks, .number = number, .pid = pid, .keep = keep};
        os_copy(children[at].name, NAME, name);
        if ((uint32_t)at == count) __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
        result = write_list();
    }
    lock_let_go(&lock);
    return result;
}

int shutdown_process_forget(uint32_t pid) {
    int result = -ENOENT;
    if (!lock_wait(&lock)) return -EBUSY;
    for (uint32_t i = 0; i < count; i++) {
        if (children[i].pid != pid) continue;
        children[i] = children[--count];
        result = write_list();
        break;
    }
    lock_let_go(&lock);
    return result;
}

/* --- ending the processes --- */

enum { GROUP = 4 /* PIDFD_SIGNAL_PROCESS_GROUP: Linux 6.9 */ };

/* A process that is to end. `child` is a copy, because the program may register and forget processes meanwhile. */
struct held {
    struct child child;
    int fd;
    bool ended; /* the process has ended; members of its group may still run */
};

struct end {
    struct held held[MOST];
    struct child survivors[MOST]; /* processes to be kept: they live on even in the group of a process that ends */
    uint32_t count, survivor_count;
    uint64_t patience_ns, begun_ns;
    int64_t killed;
};

static int shutdown_processes_hold(const struct child *child) {
    return os_hold_process(child->pid, child->start_ticks);
}

static bool leads_group(const struct child *child) {
    return os_call(SYS_getpgid, child->pid) == (long)child->pid && os_call(SYS_getpgid, 0) != (long)child->pid &&
           os_start_ticks(child->pid) == child->start_ticks;
}

/* Signals the group that the process leads or led. Returns false if no signal was sent, for example because the group
 * is this process's own. Before Linux 6.9, a group can be named only by its leader's pid. It is then signalled only
 * while the leader is there, because later another group may have this pid as its number. */
static bool signal_group(const struct held *held, int number) {
    if (os_call(SYS_getpgid, 0) == (long)held->child.pid) return false;
    long result = os_call(SYS_pidfd_send_signal, held->fd, number, NULL, GROUP);
    if (result == -EINVAL && leads_group(&held->child)) result = os_call(SYS_kill, -(long)held->child.pid, number);
    return result == 0;
}

/* --- members of one group --- */

struct search {
    const struct end *end;
    uint32_t group;
    int number; /* the signal for each member; 0: only asks whether there are members */
    bool found, some_survive;
};

static bool is_survivor_itself(const struct end *self, uint32_t pid) {
    for (uint32_t i = 0; i < self->survivor_count; i++)
        if (self->survivors[i].pid == pid) return os_start_ticks(pid) == self->survivors[i].start_ticks;
    return false;
}

/* A list of the processes that can keep a process alive by the rule of kin.h. It begins with the process itself. For
 * each process in the list, it also has the parent, the group's leader and the session's leader. No process is in the
 * list twice. */
struct reach {
    uint32_t pids[REACH_MOST], count;
};

static void reach_add(struct reach *self, uint32_t pid) {
    bool known = pid < 2 || pid == os_pid() || self->count == REACH_MOST;
    for (uint32_t i = 0; i < self->count && !known; i++) known = self->pids[i] == pid;
    if (!known) self->pids[self->count++] = pid;
}

/* Whether a process lives on because it is a survivor (a process that is to be kept) or kin of one (kin.h). Kinship
 * through this process, its group or its session does not count. Otherwise a survivor that started this program, such
 * as a shell, would keep all of this program's processes alive. */
static bool is_survivor(const struct end *self, uint32_t pid) {
    struct reach reach = {.count = 0};
    struct kin kin;
    bool ended;
    if (!self->survivor_count) return false;
    uint32_t own_group = (uint32_t)os_call(SYS_getpgid, 0), own_session = (uint32_t)os_call(SYS_getsid, 0);
    reach_add(&reach, pid);
    for (uint32_t i = 0; i < reach.count; i++) {
        if (is_survivor_itself(self, reach.pids[i])) return true;
        if (!shutdown_kin_of(reach.pids[i], &kin, &ended)) continue;
        reach_add(&reach, kin.parent);
        if (kin.group != own_group) reach_add(&reach, kin.group);
        if (kin.session != own_session) reach_add(&reach, kin.session);
    }
    return false;
}

/* Sends a signal to one process of the group. Its start time was read before its group, so no later process with the
 * same pid gets the signal. */
static void signal_member(uint32_t pid, uint64_t start_ticks, int number) {
    int fd = os_hold_process(pid, start_ticks);
    if (fd < 0) return;
    os_call(SYS_pidfd_send_signal, fd, number, NULL, 0);
    os_close(fd);
}

static bool look_at_member(void *context, const char *name) {
    struct search *search = context;
    struct kin kin;
    bool ended = false;
    if (name[0] < '1' || name[0] > '9' || strlen(name) > 10) return true;
    uint32_t pid = (uint32_t)os_take_decimal(&name);
    uint64_t start_ticks = search->end->survivor_count ? os_start_ticks(pid) : 0;
    if (!shutdown_kin_of(pid, &kin, &ended) || kin.group != search->group) return true;
    if (is_survivor(search->end, pid)) {
        search->some_survive |= !ended;
        return true;
    }
    if (search->number && pid != search->group) signal_member(pid, start_ticks, search->number);
    search->found |= !ended;
    return search->number || search->end->survivor_count || ended;
}

/* Looks in the group for members that are to end, and for survivors. If `number` is not 0, sends this signal to each
 * member that is to end, except the leader. Whether a member lives is read from /proc, because a zombie still accepts
 * signals. */
static struct search look_at_members(const struct end *self, const struct held *held, int number) {
    struct search search = {.end = self, .group = held->child.pid, .number = number};
    if (signal_group(held, 0)) os_each_name("/proc", look_at_member, &search);
    return search;
}

static bool group_lives(const struct end *self, const struct held *held) {
    return look_at_members(self, held, 0).found;
}

/* Sends the signal to the process, and to those members of its group that are to end. If all members are to end, the
 * signal goes to the group as a whole, so that a process that is just being forked gets it, too. */
static void shutdown_processes_send(const struct end *self, const struct held *held, int number) {
    bool whole = !self->survivor_count || !look_at_members(self, held, 0).some_survive;
    if (whole && signal_group(held, number) && leads_group(&held->child)) return;
    if (!whole) look_at_members(self, held, number);
    os_call(SYS_pidfd_send_signal, held->fd, number, NULL, 0);
}

/* --- ending all registered processes --- */

static void copy_children(struct end *self) {
    bool locked = self->patience_ns && lock_wait(&lock);
    for (uint32_t i = 0, most = __atomic_load_n(&count, __ATOMIC_ACQUIRE); i < most; i++)
        if (children[i].keep)
            self->survivors[self->survivor_count++] = children[i];
        else
            self->held[self->count++].child = children[i];
    if (locked) lock_let_go(&lock);
}

/* Takes out of `held` the processes that live on because they are kin of a kept process. */
static void leave_survivors(struct end *self) {
    for (uint32_t i = 0; i < self->count;) {
        struct child *child = &self->held[i].child;
        bool stays = os_start_ticks(child->pid) == child->start_ticks && is_survivor(self, child->pid);
        if (stays)
            self->held[i] = self->held[--self->count];
        else
            i++;
    }
}

/* Opens a process. A process that has ended is opened, too, while members of its group live, because its pid identifies
 * the group until somebody has waited for the process. Returns a descriptor or -errno. This is -ESRCH if the process
 * and all members of its group have ended. */
static int hold_with_group(const struct end *self, struct held *held) {
    held->fd = shutdown_processes_hold(&held->child);
    held->ended = held->fd >= 0 && os_has_ended(held->fd);
    if (!held->ended || group_lives(self, held)) return held->fd;
    os_close(held->fd);
    return -ESRCH;
}

static void begin_end(struct end *self) {
    self->begun_ns = os_now();
    for (uint32_t i = 0; i < self->count; i++) {
        struct held *held = &self->held[i];
        held->fd = hold_with_group(self, held);
        if (held->fd < 0 && held->fd != -ESRCH) shutdown_log_step("process", held->child.name, held->fd, 0);
        if (held->fd >= 0 && self->patience_ns) shutdown_processes_send(self, held, SIGTERM);
    }
}

static void log_end(const struct end *self, const struct child *child, const char *how) {
    struct line line;
    shutdown_log_line(&line, "process");
    line_string(&line, "name", child->name);
    line_number(&line, "process", child->pid);
    line_string(&line, "ended", how);
    line_number(&line, "took_ms", (os_now() - self->begun_ns) / 1000000);
    shutdown_log_write(&line);
}

/* Whether any process in `held` has not ended. Marks the others as ended. */
static bool some_are_there(struct end *self) {
    bool some = false;
    for (uint32_t i = 0; i < self->count; i++) {
        struct held *held = &self->held[i];
        held->ended = held->fd < 0 || held->ended || os_has_ended(held->fd);
        some |= !held->ended;
    }
    return some;
}

static bool some_groups_live(const struct end *self) {
    for (uint32_t i = 0; i < self->count; i++)
        if (self->held[i].fd >= 0 && group_lives(self, &self->held[i])) return true;
    return false;
}

static void shutdown_processes_wait_for_all(struct end *self, uint64_t patience_ns) {
    const struct timespec step = {.tv_nsec = STEP_NS}, group_step = {.tv_nsec = GROUP_STEP_NS};
    for (uint64_t until = os_now() + patience_ns; os_now() < until;) {
        if (some_are_there(self))
            os_call(SYS_nanosleep, &step, NULL);
        else if (some_groups_live(self))
            os_call(SYS_nanosleep, &group_step, NULL);
        else
            return;
    }
}

static void kill_rest(struct end *self) {
    some_are_there(self);
    for (uint32_t i = 0; i < self->count; i++) {
        struct held *held = &self->held[i];
        if (held->fd < 0) continue;
        bool whole = held->ended && !group_lives(self, held);
        if (!whole) shutdown_processes_send(self, held, SIGKILL);
        self->killed += !whole;
        log_end(self, &held->child, !held->ended ? "SIGKILL" : whole ? "SIGTERM" : "SIGTERM, its group SIGKILL");
    }
}

static void end_all(void *context) {
    struct end *self = context;
    copy_children(self);
    leave_survivors(self);
    begin_end(self);
    if (self->patience_ns) shutdown_processes_wait_for_all(self, self->patience_ns);
    kill_rest(self);
    if (self->killed) shutdown_processes_wait_for_all(self, self->patience_ns ? self->patience_ns : KILL_NS);
    for (uint32_t i = 0; i < self->count; i++)
        if (self->held[i].fd >= 0) os_close(self->held[i].fd);
}

int64_t shutdown_processes_end(uint64_t patience_ns) {
    struct end *self = os_map(sizeof *self);
    bool own_files;
    if (!self) return -ENOMEM;
    self->patience_ns = patience_ns;
    if (patience_ns)
        stow_work_apart(end_all, self, &own_files);
    else
        end_all(self); /* the caller is the thread of the limit (shutdown.c), so no other thread is needed */
    int64_t killed = self->killed;
    os_unmap(self, sizeof *self);
    return killed;
}

static bool has_ended(const struct child *child) {
    int fd = shutdown_processes_hold(child);
    bool ended = fd == -ESRCH || (fd >= 0 && os_has_ended(fd));
    if (fd >= 0) os_close(fd);
    return ended;
}

/* --- processes that are left --- */

static const char *registered_name(const struct end *self, const struct shutdown_relative *relative) {
    for (uint32_t i = 0; i < self->count; i++) {
        const struct child *child = &self->held[i].child;
        if (child->pid == relative->pid && child->start_ticks == relative->start_ticks) return child->name;
    }
    return relative->name;
}

static void log_left(const struct end *self, const struct shutdown_relative *relative) {
    struct line line;
    shutdown_log_line(&line, "left process");
    line_string(&line, "name", registered_name(self, relative));
    line_number(&line, "process", relative->pid);
    line_string(&line, "program", relative->name);
    line_number(&line, "parent", relative->parent);
    line_string(&line, "known_by", shutdown_kin_words(relative->link));
    line_number(&line, "age_ms", shutdown_log_age_ms(relative->start_ticks));
    line_number(&line, "rss_bytes", relative->rss_bytes);
    shutdown_log_write(&line);
}

static void note_left(void *context, const struct shutdown_relative *relative) {
    const struct end *self = context;
    if (is_survivor(self, relative->pid)) return;
    if (left.count < LEFT_MOST) {
        left.pids[left.count] = (int32_t)relative->pid;
        log_left(self, relative);
    }
    left.count++;
}

static void look_for_left(struct end *self) {
    struct shutdown_seed seeds[MOST];
    for (uint32_t i = 0; i < self->count; i++)
        seeds[i] = (struct shutdown_seed){self->held[i].child.pid, self->held[i].child.start_ticks};
    int result = shutdown_kin_look(seeds, self->count, note_left, self);
    if (result < 0) shutdown_log_step("left processes", NULL, result, 0);
}

int64_t shutdown_processes_left(void) {
    struct end *self = os_map(sizeof *self);
    bool some = false;
    for (uint32_t i = 0; i < count && !some; i++) some = !has_ended(&children[i]);
    if (!some) shutdown_list_remove();
    left.count = 0;
    if (!self) return 0;
    copy_children(self);
    look_for_left(self);
    os_unmap(self, sizeof *self);
    return left.count;
}

int64_t shutdown_processes_were_left(int32_t *pids, uint32_t capacity) {
    for (uint32_t i = 0; i < capacity && i < LEFT_MOST && i < left.count; i++) pids[i] = left.pids[i];
    return left.count;
}
