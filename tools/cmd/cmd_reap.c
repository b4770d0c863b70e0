/* cmd_reap.c — memstow reap: lists or ends the processes that a program left behind. They are found by the program's
 * process_registry.json. Such a file is called a list here. An entry of a list is valid only if there is a process with
 * the registered boot, pid and start time. Only processes of this user are ended. */
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/base/duration.h"
#include "tools/watch/ending.h"
#include "preload/shared/kin.h"
#include "preload/shared/os.h"
#include "tools/base/list.h"
#include "tools/proc/process.h"
#include "tools/proc/proc_table.h"
#include "tools/watch/registry.h"
#include "tools/watch/started.h"
#include "tools/base/text.h"

#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPTION_END = 256 };
/* Marks of processes. MARK_KEEP: the process stays, and so do its children and the members of a group or session that
 * it leads. MARK_SPARE: the process itself is not ended, but it protects no process that it started. MARK_END: the
 * process is to be ended. */
enum { MARK_KEEP = -2, MARK_SPARE, MARK_END = 1 };
#define PATIENCE_NS (5 * SECOND_NS)

struct reap {
    bool end, boot_known;
    uint8_t boot_id[16];
    struct registry registry;
    struct proc_table table;
    size_t found, stayed;
    struct registered *claimed; /* processes that any list protects: the list's program runs, or the list keeps them */
    size_t claims, claim_capacity;
    struct registered *programs; /* programs that run and have a list */
    size_t program_count, program_capacity;
    bool over; /* the program and all processes of the list that was read last have ended */
};

static int cmd_reap_help(void) {
    puts("usage: memstow reap [--end] [FILE...]\n"
         "\n"
         "Lists the processes that a program left running when it ended: those in its\n"
         "registry FILE, their descendants, and their process groups. The default is\n" REGISTRY_FILE
         ", and process_registry.PID.json of earlier programs in\n"
         "the same folder.\n"
         "\n"
         "  --end   end them: SIGTERM, and SIGKILL after 5 seconds\n"
         "\n"
         "A process is left alone if it belongs to another user, if it is to be kept, or\n"
         "if its program still runs. It is also left alone if its start time is not the\n"
         "registered one: then another process has the pid.\n"
         "Exit code: 0 nothing is left, or all of it was ended; 1 something is left;\n"
         "2 wrong usage; 3 the registry is unreadable or damaged.");
    return complain_finish(EXIT_FINE);
}

static bool is_alive(const struct proc_entry *entry) { return process_is_alive(entry->state, entry->threads); }

static struct proc_entry *process_find(const struct proc_table *table, const struct registered *registered) {
    struct proc_entry *entry = proc_table_find(table, registered->pid);
    return entry && entry->start_ticks == registered->start_ticks && is_alive(entry) ? entry : NULL;
}

static bool is_own(pid_t pid) {
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Gives MARK_SPARE to memstow itself and its ancestors, whatever the registry says. */
static void mark_ancestors(struct proc_table *table) {
    struct proc_entry *entry = proc_table_find(table, getpid());
    for (size_t depth = 0; entry && depth < table->count; depth++) {
        entry->mark = MARK_SPARE;
        entry = entry->parent > 0 ? proc_table_find(table, entry->parent) : NULL;
    }
}

static void mark_claimed(struct reap *reap) {
    for (size_t i = 0; i < reap->claims; i++) {
        struct proc_entry *entry = process_find(&reap->table, &reap->claimed[i]);
        if (entry && entry->mark == 0) entry->mark = MARK_KEEP;
    }
}

static bool is_registered(const struct registry *registry, const struct registered *program) {
    for (size_t i = 0; i < registry->count; i++)
        if (registry->processes[i].pid == program->pid && registry->processes[i].start_ticks == program->start_ticks)
            return true;
    return false;
}

/* Gives MARK_KEEP to programs that run and have a list of their own, because such a program ends its processes itself.
 * The program of this list may be among them, if a launcher has started it again. Two programs get no mark here: a
 * program that is in this registry, and process 1, because its mark would keep all its children. */
static void mark_programs(struct reap *reap) {
    for (size_t i = 0; i < reap->program_count; i++) {
        struct proc_entry *entry = process_find(&reap->table, &reap->programs[i]);
        if (entry && entry->mark == 0 && entry->pid != 1 && !is_registered(&reap->registry, &reap->programs[i]))
            entry->mark = MARK_KEEP;
    }
}

static void mark_registered(struct reap *reap, bool keep) {
    for (size_t i = 0; i < reap->registry.count; i++) {
        const struct registered *registered = &reap->registry.processes[i];
        struct proc_entry *entry = registered->keep == keep ? process_find(&reap->table, registered) : NULL;
        if (entry && entry->mark == 0) entry->mark = keep ? MARK_KEEP : MARK_END;
    }
}

/* --- processes whose starter has ended --- */

/* Whether a registered process stays: its list says so, or it has MARK_KEEP. */
static bool cmd_reap_stays(const struct reap *reap, const struct registered *registered) {
    const struct proc_entry *entry = process_find(&reap->table, registered);
    return registered->keep || (entry && entry->mark == MARK_KEEP);
}

/* If `keep` is true: whether `mark` is the inherited mark (started.h) of a registered process that stays, or of a
 * process that another list protects. If `keep` is false: whether `mark` is the inherited mark of a registered process
 * that does not stay. */
static bool is_behind(const struct reap *reap, const char *mark, bool keep) {
    const struct registry *registry = &reap->registry;
    for (size_t i = 0; i < registry->count; i++)
        if (strcmp(registry->processes[i].mark, mark) == 0 && cmd_reap_stays(reap, &registry->processes[i]) == keep)
            return true;
    for (size_t i = 0; keep && i < reap->claims; i++)
        if (strcmp(reap->claimed[i].mark, mark) == 0) return true;
    return false;
}

static bool some_have_marks(const struct registered *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (list[i].mark[0]) return true;
    return false;
}

/* Gives MARK_KEEP or, if `keep` is false, MARK_END to the processes whose environment has a mark that is_behind()
 * finds. A later process with the same pid is safe: its start time differs from the one in the table. Returns whether
 * any process was marked. */
static bool mark_behind(struct reap *reap, bool keep) {
    const struct registry *registry = &reap->registry;
    char mark[STARTED_MARK];
    bool more = false;
    if (!some_have_marks(registry->processes, registry->count) && !some_have_marks(reap->claimed, reap->claims))
        return false;
    for (size_t i = 0; i < reap->table.count; i++) {
        struct proc_entry *entry = &reap->table.entries[i];
        if (entry->mark || !started_mark_of(entry->pid, mark) || !is_behind(reap, mark, keep)) continue;
        entry->mark = keep ? MARK_KEEP : MARK_END;
        more = true;
    }
    return more;
}

/* --- relatives of marked processes --- */

static bool is_with_survivor(const struct proc_table *table, const struct proc_entry *entry) {
    struct kin kin = {(uint32_t)entry->parent, (uint32_t)entry->group, (uint32_t)entry->session};
    for (size_t i = 0; i < table->count; i++)
        if (table->entries[i].mark == MARK_KEEP && kin_with((uint32_t)table->entries[i].pid, kin)) return true;
    return false;
}

static bool mark_survivors(struct proc_table *table) {
    bool more = false;
    for (size_t i = 0; i < table->count; i++) {
        struct proc_entry *entry = &table->entries[i];
        if (entry->mark || !is_with_survivor(table, entry)) continue;
        entry->mark = MARK_KEEP;
        more = true;
    }
    return more;
}

static bool mark_started(struct proc_table *table, signed char mark) {
    bool more = false;
    for (size_t i = 0; i < table->count; i++) {
        struct proc_entry *entry = &table->entries[i];
        const struct proc_entry *parent = entry->mark ? NULL : proc_table_find(table, entry->parent);
        if (!parent || parent->mark != mark) continue;
        entry->mark = mark;
        more = true;
    }
    return more;
}

/* Gives MARK_END to the members of process groups whose leader has MARK_END. Returns whether it marked any process. */
static bool mark_groups(struct proc_table *table) {
    bool more = false;
    for (size_t i = 0; i < table->count; i++) {
        struct proc_entry *entry = &table->entries[i];
        const struct proc_entry *leader = entry->mark ? NULL : proc_table_find(table, entry->group);
        if (!leader || leader->mark != MARK_END) continue;
        entry->mark = MARK_END;
        more = true;
    }
    return more;
}

static void spread_end(struct proc_table *table) {
    while (mark_started(table, MARK_END) || mark_groups(table)) continue;
}

/* Marks the processes that are to be kept, and those that are to be ended. A process keeps the first mark that it gets,
 * so the order of the steps decides:
 * - Processes that are to be kept are marked first, whatever else the registry says.
 * - Running programs are kept, and so are their children, except for registered children.
 * - A registered process is ended even if it shares a session or group with a running program, as all processes of a
 *   service do.
 * - A process that is not registered, but is in a session or group that a kept process leads, stays even if it has an
 *   inherited mark. It is ended only if a process that is to be ended has started it, or leads its group. */
static void cmd_reap_mark(struct reap *reap) {
    struct proc_table *table = &reap->table;
    mark_ancestors(table);
    mark_claimed(reap);
    mark_registered(reap, true);
    while (mark_survivors(table) || mark_behind(reap, true)) continue;
    mark_programs(reap);
    mark_registered(reap, false);
    while (mark_started(table, MARK_KEEP)) continue;
    spread_end(table);
    while (mark_survivors(table)) continue;
    mark_behind(reap, false);
    spread_end(table);
}

/* The name under which the process is registered. "": the process is not registered, or is registered under its own
 * name. */
static const char *registered_name(const struct reap *reap, const struct proc_entry *entry) {
    for (size_t i = 0; i < reap->registry.count; i++) {
        const struct registered *registered = &reap->registry.processes[i];
        if (registered->pid == entry->pid && registered->start_ticks == entry->start_ticks)
            return strcmp(registered->name, entry->name) == 0 ? "" : registered->name;
    }
    return "";
}

static void cmd_reap_describe(const struct reap *reap, const struct proc_entry *entry, const char *what) {
    struct process process = {.start_ticks = entry->start_ticks};
    const char *name = registered_name(reap, entry);
    printf("  %s%s%s%s, pid %d, %s, %s old: %s\n", text_fit(entry->name, 31).s, *name ? " (" : "", text_fit(name, 63).s,
           *name ? ")" : "", (int)entry->pid, text_size(entry->rss).s, text_duration(process_age(&process)).s, what);
}

static size_t cmd_reap_list(struct reap *reap, struct ending *endings) {
    size_t count = 0;
    for (size_t i = 0; i < reap->table.count; i++) {
        const struct proc_entry *entry = &reap->table.entries[i];
        if (entry->mark != MARK_END || !is_alive(entry)) continue;
        reap->found++;
        if (is_own(entry->pid)) {
            endings[count++] = (struct ending){.pid = entry->pid, .start_ticks = entry->start_ticks};
        } else {
            cmd_reap_describe(reap, entry, "belongs to another user: left alone");
            reap->stayed++;
        }
    }
    return count;
}

static void endings_tell(struct reap *reap, const struct ending *endings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct proc_entry *entry = proc_table_find(&reap->table, endings[i].pid);
        if (!reap->end)
            cmd_reap_describe(reap, entry, "left");
        else
            cmd_reap_describe(reap, entry, ending_words(endings[i].result));
        if (!reap->end || endings[i].result >= ENDING_REFUSED) reap->stayed++;
    }
}

static bool is_this_boot(const struct reap *reap) {
    return reap->boot_known && memcmp(reap->boot_id, reap->registry.boot_id, sizeof reap->boot_id) == 0;
}

static bool program_runs(const struct reap *reap) {
    return is_this_boot(reap) && process_find(&reap->table, &reap->registry.parent);
}

/* The reason why no process of the list may be ended; NULL: its processes may be ended. */
static const char *left_alone(const struct reap *reap) {
    if (!reap->boot_known) return "it is not known whether the machine was started again since: left alone";
    if (!is_this_boot(reap)) return "written before this machine was started: none of its processes is there";
    return program_runs(reap) ? "the program that wrote it still runs: left alone" : NULL;
}

static int list_fault(struct reap *reap) {
    snprintf(reap->registry.error, sizeof reap->registry.error, "/proc cannot be read, or not enough memory");
    return -1;
}

/* Loads a list and the table of processes. Returns 0, or -1 with the reason in registry.error. */
static int list_load(struct reap *reap, const char *path) {
    if (registry_load(&reap->registry, path) < 0) return -1;
    return proc_table_read(&reap->table) < 0 ? list_fault(reap) : 0;
}

static int reap_file(struct reap *reap, const char *path) {
    size_t stayed = reap->stayed;
    struct ending *endings = NULL;
    int result = list_load(reap, path);
    if (result == 0 && !(endings = calloc(reap->table.count + 1, sizeof *endings))) result = list_fault(reap);
    if (result < 0) {
        complain("%s", reap->registry.error);
        return EXIT_UNREADABLE;
    }
    const char *why = left_alone(reap);
    if (why) {
        printf("%s: %s\n", TEXT_SAFE(path), why);
    } else {
        cmd_reap_mark(reap);
        size_t before = reap->found, count = cmd_reap_list(reap, endings);
        if (reap->end) ending_all(endings, count, PATIENCE_NS, NULL, NULL);
        endings_tell(reap, endings, count);
        if (reap->found == before) printf("%s: none of its processes is left\n", TEXT_SAFE(path));
    }
    reap->over = reap->stayed == stayed && reap->boot_known && !program_runs(reap);
    free(endings);
    return EXIT_FINE;
}

static void reap_clear(struct reap *reap) {
    registry_clear(&reap->registry);
    proc_table_clear(&reap->table);
}

static int note_program(struct reap *reap) {
    if (!LIST_GROW(reap->programs, reap->program_count, reap->program_capacity)) return -1;
    reap->programs[reap->program_count++] = reap->registry.parent;
    return 0;
}

/* Adds the processes that this list protects to reap->claimed. If the list's program runs, these are all processes of
 * the list, otherwise those that are to be kept. They stay, whatever other lists say. Returns 0, or -1 with the reason
 * in registry.error. */
static int note_claims(struct reap *reap, const char *path) {
    if (list_load(reap, path) < 0) return -1;
    if (!list_grow(&reap->claimed, sizeof *reap->claimed, reap->claims, reap->registry.count, &reap->claim_capacity))
        return list_fault(reap);
    bool all = program_runs(reap), counts = is_this_boot(reap);
    if (all && note_program(reap) < 0) return list_fault(reap);
    for (size_t i = 0; counts && i < reap->registry.count; i++)
        if (all || reap->registry.processes[i].keep) reap->claimed[reap->claims++] = reap->registry.processes[i];
    return 0;
}

/* Reads the protected processes of all lists. If one list is unreadable, no process is ended, because that list might
 * protect it. The user can remove the list, or name the other files. */
static int note_all_claims(struct reap *reap, char *const *files, size_t count) {
    size_t unreadable = 0;
    for (size_t i = 0; i < count; i++) {
        bool fine = note_claims(reap, files[i]) == 0;
        if (!fine && reap->end) complain("%s", reap->registry.error);
        unreadable += !fine;
        reap_clear(reap);
    }
    if (!unreadable || !reap->end) return EXIT_FINE;
    complain("no process was ended: %s may name processes that must not be ended%s",
             unreadable > 1 ? "these lists" : "this list",
             count > unreadable ? " (remove what cannot be read, or name only the other lists)" : "");
    return EXIT_UNREADABLE;
}

/* Lists the processes of each list, and ends them with --end. `found`: the lists were found in the folder, and the user
 * did not name them. If `found` is true, --end also removes a numbered list when none of its processes is left. */
static int reap_files(struct reap *reap, char *const *files, size_t count, bool found) {
    int code = note_all_claims(reap, files, count);
    if (code != EXIT_FINE) return code;
    for (size_t i = 0; i < count; i++) {
        int result = reap_file(reap, files[i]);
        if (result != EXIT_FINE) code = result;
        if (result == EXIT_FINE && found && reap->end && reap->over && registry_is_numbered(files[i])) unlink(files[i]);
        reap_clear(reap);
    }
    return code;
}

static int is_own_numbered(const struct dirent *entry) {
    struct stat st;
    return registry_is_numbered(entry->d_name) && stat(entry->d_name, &st) == 0 && st.st_uid == geteuid();
}

static int reap_folder(struct reap *reap) {
    static char usual[] = REGISTRY_FILE;
    struct dirent **entries = NULL;
    int found = scandir(".", &entries, is_own_numbered, alphasort);
    size_t numbered = found > 0 ? (size_t)found : 0, count = 0;
    char **files = calloc(numbered + 1, sizeof *files);
    if (files && (!numbered || access(usual, F_OK) == 0)) files[count++] = usual;
    for (size_t i = 0; files && i < numbered; i++) files[count++] = entries[i]->d_name;
    if (!files) complain("not enough memory");
    int code = files ? reap_files(reap, files, count, true) : EXIT_UNREADABLE;
    if (files && !numbered && access(usual, F_OK) != 0)
        complain("a program that registers processes keeps this list in its folder: see memstow-reap(1)");
    for (size_t i = 0; i < numbered; i++) free(entries[i]);
    free(entries);
    free(files);
    return code;
}

int cmd_reap(int argc, char **argv) {
    static const struct option options[] = {
        {"end", no_argument, NULL, OPTION_END}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct reap reap = {0};
    reap.boot_known = os_boot_id(reap.boot_id);
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (option == 'h') return cmd_reap_help();
        if (option != OPTION_END) return complain_option("reap", option, argv);
        reap.end = true;
    }
    int code = optind < argc ? reap_files(&reap, argv + optind, (size_t)(argc - optind), false) : reap_folder(&reap);
    free(reap.claimed);
    free(reap.programs);
    if (reap.stayed && !reap.end) puts("nothing was ended: --end ends these processes");
    if (code == EXIT_FINE && reap.stayed) code = EXIT_OVER;
    return complain_finish(code);
}
