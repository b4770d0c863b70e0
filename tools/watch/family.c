/* family.c — see family.h. */
#include "tools/watch/family.h"
#include "tools/base/list.h"
#include "tools/base/duration.h"
#include "preload/shared/kin.h"
#include "tools/proc/process.h"
#include "tools/proc/proc_table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHAIN_MOST = 4096 };

/* Children that this process had before the program started. It has such children if it was a shell that became memstow
 * by exec. They are listed here, because start times in ticks are too coarse to recognise them. */
static struct proc_table brought_along;

static void keep_children(struct proc_table *table) {
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->entries[i].parent == getpid()) table->entries[kept++] = table->entries[i];
    table->count = kept;
}

bool family_adopt(void) {
    proc_table_clear(&brought_along);
    if (proc_table_read(&brought_along) == 0) keep_children(&brought_along);
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

static bool was_brought_along(const struct proc_entry *entry) {
    const struct proc_entry *before = proc_table_find(&brought_along, entry->pid);
    return before && before->start_ticks == entry->start_ticks;
}

void family_begin(struct family *family, pid_t main, const struct exempt *exempt) {
    struct process process;
    *family = (struct family){.main = main, .exempt = exempt};
    if (process_look(&process, main) == 0) family->main_start = process.start_ticks;
}

static void forget_growth(struct member *member) {
    if (!member->growth) return;
    growth_end(member->growth);
    free(member->growth);
    member->growth = NULL;
}

void family_end(struct family *family) {
    for (size_t i = 0; i < family->count; i++) forget_growth(&family->members[i]);
    free(family->members);
    *family = (struct family){0};
}

/* --- which processes belong to the family --- */

/* Returns 1 if the process belongs to the family, and -1 if it does not. Children that memstow had before the program
 * started do not belong to it, and neither do their descendants. Returns 0 if the chain of parents is too long to
 * tell. */
static signed char is_ours(const struct family *family, const struct proc_table *table, struct proc_entry *entry,
                           int depth) {
    if (entry->mark || depth == CHAIN_MOST) return entry->mark;
    if (entry->pid == family->main)
        entry->mark = entry->start_ticks == family->main_start ? 1 : -1;
    else if (entry->start_ticks < family->main_start || entry->pid == getpid() || was_brought_along(entry))
        entry->mark = -1;
    else if (entry->parent == getpid())
        entry->mark = 1;
    else {
        struct proc_entry *parent = proc_table_find(table, entry->parent);
        entry->mark = parent ? is_ours(family, table, parent, depth + 1) : -1;
    }
    return entry->mark;
}

static struct member *find_member(const struct family *family, pid_t pid, uint64_t start_ticks) {
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].pid == pid && family->members[i].start_ticks == start_ticks) return &family->members[i];
    return NULL;
}

static struct member *add_member(struct family *family, const struct proc_entry *entry) {
    if (!LIST_GROW(family->members, family->count, family->capacity)) return NULL;
    struct member *member = &family->members[family->count++];
    *member = (struct member){.pid = entry->pid,
                              .start_ticks = entry->start_ticks,
                              .since_ns = family->looked_ns,
                              .since_rss = entry->rss,
                              .parent = entry->parent == getpid() ? 0 : entry->parent};
    return member;
}

static void member_note(const struct family *family, struct member *member, const struct proc_entry *entry) {
    uint64_t tick_ns = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
    bool alive = process_is_alive(entry->state, entry->threads);
    member->here = alive && !member->exempt;
    member->stays = alive && member->exempt;
    member->state = entry->state;
    member->orphan = entry->parent == getpid() && entry->pid != family->main;
    if (!member->orphan) member->parent = entry->parent;
    member->session = entry->session;
    member->group = entry->group;
    member->threads = entry->threads;
    member->rss = entry->rss;
    member->processor_ns = entry->processor_ticks * tick_ns;
    if (member->rss > member->peak_rss) member->peak_rss = member->rss;
    memcpy(member->name, entry->name, sizeof member->name);
}

static int take_ours(struct family *family, const struct proc_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        struct proc_entry *entry = &table->entries[i];
        if (is_ours(family, table, entry, 0) != 1) continue;
        struct member *member = find_member(family, entry->pid, entry->start_ticks);
        if (!member && !(member = add_member(family, entry))) return -1;
        member_note(family, member, entry);
    }
    return 0;
}

/* Marks the entries of processes that the last look (family_look) found to be members. This is necessary, because if a
 * parent ended while /proc was read, nothing else tells that its children are members. */
static void mark_known(struct family *family, const struct proc_table *table) {
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        struct proc_entry *entry = member->here || member->stays ? proc_table_find(table, member->pid) : NULL;
        if (entry && entry->start_ticks == member->start_ticks) entry->mark = 1;
        member->here = member->stays = false;
    }
}

/* --- which processes are exempt --- */

static void family_exempt(struct member *member) {
    member->exempt = member->stays = true;
    member->here = false;
}

/* Marks the processes of a list as exempt, if a member of the family, alive or ended, has written the list. */
static void exempt_registered(struct family *family, const char *folder, const char *name) {
    struct registry registry;
    char path[4400];
    snprintf(path, sizeof path, "%.4096s/%.255s", folder, name);
    exempt_load_registered(family->exempt, path, &registry);
    bool is_ours = find_member(family, registry.parent.pid, registry.parent.start_ticks);
    for (size_t i = 0; is_ours && i < registry.count; i++) {
        const struct registered *process = &registry.processes[i];
        struct member *member = find_member(family, process->pid, process->start_ticks);
        if (member && member->here && member->pid != family->main) family_exempt(member);
    }
    registry_clear(&registry);
}

/* Reads all lists of processes (registry.h) in a folder. The name of a list has a number if several programs share the
 * folder, or after an exec. */
static void exempt_listed(struct family *family, const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strcmp(entry->d_name, REGISTRY_FILE) == 0 || registry_is_numbered(entry->d_name))
            exempt_registered(family, folder, entry->d_name);
    if (entries) closedir(entries);
}

/* Whether the folder differs from the folder of the last call. Most processes of a tree share one folder, so most calls
 * return false, and the caller need not read the folder again. */
static bool is_other_folder(const char *folder, struct stat *last) {
    struct stat now;
    if (stat(folder, &now) < 0) return false;
    bool other = now.st_dev != last->st_dev || now.st_ino != last->st_ino;
    *last = now;
    return other;
}

/* Whether an exempt process is the member's parent, or leads its group or session (the rule of kin.h). A parent that
 * was seen in an earlier look counts even if it has ended. */
static bool is_of_exempt(const struct family *family, const struct member *member) {
    for (size_t i = 0; i < family->count; i++) {
        const struct member *other = &family->members[i];
        if (!other->exempt) continue;
        /* `member->parent` is only a pid, and the kernel may give the pid of an ended process to a new one. If `other`
         * has ended, but the member's parent still lives, the parent is not `other`, even if the pids are equal. */
        bool is_parent = other->stays || member->orphan;
        struct kin kin = {is_parent ? (uint32_t)member->parent : 0, (uint32_t)member->group, (uint32_t)member->session};
        if (kin_with((uint32_t)other->pid, kin)) return true;
    }
    return false;
}

static bool exempt_below(struct family *family) {
    bool more = false;
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        if (!member->here || member->pid == family->main || !is_of_exempt(family, member)) continue;
        family_exempt(member);
        more = true;
    }
    return more;
}

/* Finds the exempt members. A member is exempt if a list (registry.h) or its name exempts it, or if it is kin of an
 * exempt process. The program itself is never exempt. */
static void exempt_some(struct family *family) {
    char folder[32];
    const char *first = family->exempt->folder ? family->exempt->folder : ".";
    struct stat last = {0};
    if (is_other_folder(first, &last)) exempt_listed(family, first);
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        if (!member->here) continue;
        snprintf(folder, sizeof folder, "/proc/%d/cwd", (int)member->pid);
        if (is_other_folder(folder, &last)) exempt_listed(family, folder);
        if (member->pid != family->main && exempt_has_process(family->exempt, member->pid, member->name))
            family_exempt(member);
    }
    while (exempt_below(family)) continue;
}

static void sum_up(struct family *family) {
    family->here = family->stays = family->rss = family->threads = 0;
    for (size_t i = 0; i < family->count; i++) {
        const struct member *member = &family->members[i];
        family->stays += member->stays;
        if (!member->here) continue;
        family->here++;
        family->rss += member->rss;
        family->threads += member->threads;
    }
}

int family_look(struct family *family) {
    struct proc_table table = {0};
    family->looked_ns = duration_now();
    int result = proc_table_read(&table);
    mark_known(family, &table);
    if (result == 0) result = take_ours(family, &table);
    if (family->exempt) exempt_some(family);
    sum_up(family);
    proc_table_clear(&table);
    if (family->rss > family->peak_rss) family->peak_rss = family->rss;
    if (family->threads > family->most_threads) family->most_threads = family->threads;
    if (family->here > family->most_here) family->most_here = (uint32_t)family->here;
    return result;
}

/* --- growth since family_mark --- */

void family_mark(struct family *family, bool ledgers) {
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        if (!member->here) continue;
        member->since_ns = family->looked_ns;
        member->since_rss = member->rss;
        member->since_processor_ns = member->processor_ns;
        forget_growth(member);
        if (!ledgers || !(member->growth = calloc(1, sizeof *member->growth))) continue;
        if (growth_begin(member->growth, member->pid) < 0) forget_growth(member);
    }
}

double family_member_growth(const struct member *member, uint64_t now_ns) {
    if (now_ns < member->since_ns + SECOND_NS / 2) return 0;
    return ((double)member->rss - (double)member->since_rss) * 1e9 / (double)(now_ns - member->since_ns);
}
