/* process.c — see process.h. */
#include "preload/life/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/count/account.h"
#include "preload/count/origins.h"
#include "preload/blocks/blocks.h"
#include "preload/life/closing.h"
#include "preload/control/control.h"
#include "preload/events/cuda_events.h"
#include "preload/blocks/header.h"
#include "preload/blocks/heaps.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_file.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/blocks/mappings.h"
#include "preload/life/misuse.h"
#include "preload/owners/moving.h"
#include "preload/owners/owners.h"
#include "preload/blocks/parts.h"
#include "preload/count/peak.h"
#include "preload/shared/digit.h"
#include "preload/shared/pressure.h"
#include "preload/count/sample.h"
#include "preload/count/site.h"
#include "preload/stacks/stack.h"
#include "preload/state/state_store.h"
#include "preload/stow/stow.h"
#include "preload/base/symbol.h"
#include "preload/count/tags.h"
#include "preload/ledger/trace.h"
#include "preload/triggers/trigger.h"
#include "preload/serve/serve_settings.h"
#include "preload/serve/rescue.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"
#include "preload/count/fold.h"

#define EXEC_VARIABLE "MEMSTOW_EXEC"

enum {
    DEFAULT_STACK_MEMORY = 64 * 1000 * 1000,
    VARIABLE_SIZE = 128 << 10, /* no variable of the environment is longer: the kernel refuses it at exec */
    LEDGER_PATH_SIZE = 4096,
};

/* The settings. They are copied from the environment once, because programs overwrite their environment
 * (setproctitle). */
static struct {
    bool out_named; /* the path is from -o FILE without any %: processes other than main_pid use FILE.PID */
    uint32_t main_pid, stacks;
    uint64_t stack_memory; /* bytes for call stacks, sites and counters */
    uint64_t sample_bytes;
    bool mimalloc;
    bool unread_stacks, unread_stack_memory, unread_allocator; /* these settings have unknown values */
    uint32_t unread_pressure;                                  /* bits: PRESSURE_UNREADABLE, PRESSURE_IDLE_UNREADABLE */
    uint8_t run_id[16];
    /* `out` and `follow` each have room for a whole variable of the environment, because a path or name whose end is
     * cut off would be another path or name. Pages beyond the text are never written, and take no memory. */
    char out[VARIABLE_SIZE]; /* template of the ledger's path */
    char follow[VARIABLE_SIZE];
} wish;

static bool begun_before; /* tracking has begun in this process, or in a process that it was forked from */
static bool ended;
static bool from_cupti;
static const char *heap_unseen; /* why the program's calls of malloc do not reach us; NULL: they do */
static uint32_t home_pid, fork_depth, exec_generation; /* home_pid: the process that ran process_begin_once last */
static bool ledger_survives_exec = true;
static char whole_name[256], name[64], exe[4096], command[4096]; /* name: the start of whole_name */

/* --- reading the environment --- */

static uint64_t process_decimal(const char *text) { return os_take_decimal(&text); }

static void read_run_id(const char *hex) {
    for (int i = 0; i < 32 && hex[i]; i++)
        wish.run_id[i / 2] = (uint8_t)(wish.run_id[i / 2] << 4 | (digit_value(hex[i]) & 15));
}

/* Sets wish.out to the file that the command uses by default, in the directory where the program starts. This is for a
 * library that was preloaded by hand, without `memstow run`. */
static void default_out(void) {
    static const char file[] = "/memstow.%n.%p.mst";
    char here[LEDGER_PATH_SIZE / 2 - sizeof file];
    long n = os_call(SYS_getcwd, here, sizeof here);
    if (n <= 0 || here[0] != '/') return;
    char *to = wish.out;
    for (const char *at = here; *at; *to++ = *at++)
        if (*at == '%') *to++ = '%'; /* doubled, so that it stays a % of the path */
    strcpy(to, file);
}

/* Reads from EXEC_VARIABLE how many images (programs, one after the other by exec) this process ran before the present
 * image. Returns 0 in a process that only inherited the variable: a child has another pid, and a later process with the
 * same pid has another start time. */
static uint32_t earlier_images(void) {
    const char *text = os_variable(EXEC_VARIABLE);
    if (os_take_decimal(&text) != os_pid() || *text++ != '.') return 0;
    if (os_take_decimal(&text) != os_start_ticks(0) || *text++ != '.') return 0;
    return (uint32_t)os_take_decimal(&text);
}

/* Reads a mode: full, none, sample or sample:BYTES. BYTES has digits only, because the command translates other forms.
 * Returns false if the text is none of these modes. */
static bool read_stacks(const char *mode) {
    static const char sample[] = "sample";
    size_t length = sizeof sample - 1;
    wish.stacks = strcmp(mode, "none") ? SNAP_STACKS_FULL : SNAP_STACKS_NONE;
    if (wish.stacks == SNAP_STACKS_NONE || !mode[0] || !strcmp(mode, "full")) return true;
    if (strncmp(mode, sample, length) != 0 || (mode[length] && mode[length] != ':')) return false;
    wish.stacks = SNAP_STACKS_SAMPLE;
    wish.sample_bytes = SAMPLE_DEFAULT;
    if (!mode[length]) return true;
    const char *digits = mode + length + 1;
    uint64_t bytes = os_take_decimal(&digits);
    bool fits = bytes && bytes <= SNAP_SAMPLE_MOST && !*digits;
    if (fits) wish.sample_bytes = bytes;
    return fits;
}

static bool read_stack_memory(const char *text) {
    const char *digits = text;
    uint64_t bytes = os_take_decimal(&digits);
    bool fits = bytes && !*digits;
    wish.stack_memory = fits ? bytes : DEFAULT_STACK_MEMORY;
    return fits || !text[0];
}

static bool read_allocator(const char *word) {
    wish.mimalloc = !strcmp(word, "mimalloc");
    return wish.mimalloc || !word[0] || !strcmp(word, "keep");
}

static void read_wishes(void) {
    os_copy(wish.out, sizeof wish.out, os_variable("MEMSTOW_OUT"));
    if (!wish.out[0]) default_out();
    wish.out_named = os_variable("MEMSTOW_OUT_NAMED")[0] == '1';
    os_copy(wish.follow, sizeof wish.follow, os_variable("MEMSTOW_FOLLOW"));
    wish.main_pid = (uint32_t)process_decimal(os_variable("MEMSTOW_MAIN"));
    wish.unread_stacks = !read_stacks(os_variable("MEMSTOW_STACKS"));
    wish.unread_stack_memory = !read_stack_memory(os_variable("MEMSTOW_STACK_MEMORY"));
    wish.unread_allocator = !read_allocator(os_variable("MEMSTOW_ALLOCATOR"));
    wish.unread_pressure = pressure_wish(os_variable("MEMSTOW_PRESSURE"), os_variable("MEMSTOW_IDLE"));
    read_run_id(os_variable("MEMSTOW_RUN"));
    exec_generation = earlier_images();
}

/* --- the identity of this process --- */

/* The name by which the program was called, as `ps` shows it: argv[0] without directories. */
static void name_from(const char *called) {
    const char *slash = strrchr(called, '/');
    os_copy(whole_name, sizeof whole_name, slash ? slash + 1 : called);
    if (!whole_name[0]) os_copy(whole_name, sizeof whole_name, "program");
    os_copy(name, sizeof name, whole_name);
}

static void read_identity(void) {
    int fd = os_open("/proc/self/cmdline", O_RDONLY, 0);
    long n = fd < 0 ? 0 : os_read(fd, command, sizeof command - 1);
    if (fd >= 0) os_close(fd);
    command[n > 0 ? n : 0] = 0;
    name_from(command);
    for (n = n > 0 ? n - 1 : 0, command[n] = 0; n-- > 0;)
        if (!command[n]) command[n] = ' ';
    n = os_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
}

static bool in_list(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && !strncmp(at, word, length)) return true;
    return false;
}

static bool process_wanted(void) {
    if (os_pid() == wish.main_pid || !wish.follow[0] || !strcmp(wish.follow, "all")) return true;
    return strcmp(wish.follow, "none") != 0 && in_list(wish.follow, whole_name);
}

/* --- the name of the ledger's file --- */

static void process_append(char *to, size_t capacity, const char *text) {
    size_t at = strlen(to);
    os_copy(to + at, capacity - at, text);
}

static void append_decimal(char *to, size_t capacity, uint64_t n) {
    char digits[24];
    os_decimal(digits, n);
    process_append(to, capacity, digits);
}

static void process_expand(char *to, size_t capacity, uint32_t generation) {
    to[0] = 0;
    for (const char *at = wish.out; *at; at++) {
        char plain[2] = {*at, 0};
        switch (*at == '%' ? at[1] : 0) {
        case 'n':
            process_append(to, capacity, name);
            break;
        case 'p':
            append_decimal(to, capacity, os_pid());
            break;
        case 'x':
            append_decimal(to, capacity, generation);
            break;
        case '%':
            process_append(to, capacity, "%");
            break;
        default:
            process_append(to, capacity, plain);
            continue;
        }
        at++;
    }
    if (wish.out_named && os_pid() != wish.main_pid) {
        process_append(to, capacity, ".");
        append_decimal(to, capacity, os_pid());
    }
}

/* --- beginning to track --- */

static void wipe_page(void) { tracked_page = (struct tracked_page){0}; }

static bool wiped_by_kernel; /* the kernel wipes the page in a forked child */

static void hide_from_valgrind(void) {
    struct dl_find_object us;
    if (_dl_find_object((void *)hide_from_valgrind, &us) == 0)
        os_hide_from_valgrind(us.dlfo_map_start, (size_t)((char *)us.dlfo_map_end - (char *)us.dlfo_map_start));
}

/* Returns the reason why memstow cannot see the heap, or NULL if it can. If the program defines malloc itself, its
 * malloc is called in place of ours. Valgrind's heap tools replace every malloc. */
static const char *look_for_heap(void) {
    if (symbol_before("malloc"))
        return "the program defines malloc itself: of its heap, memstow sees only the calls that this malloc passes on";
    if (symbol_before("_vgr10010ZU_VgSoSynsomalloc_malloc"))
        return "Valgrind serves the heap in place of the program's allocator: memstow cannot see the heap";
    return NULL;
}

/* This may run in the middle of the program's malloc, which holds a lock. So nothing of the program is called. */
static void begin_first(void) {
    begun_before = true;
    rescue_run = trigger_rescue;
    hide_from_valgrind();
    os_clock = LIBC(clock_gettime);
    read_wishes();
    read_identity();
    seal_watch_forks();
    wiped_by_kernel = os_call(SYS_madvise, &tracked_page, sizeof tracked_page, MADV_WIPEONFORK) == 0;
    heap_unseen = look_for_heap();
    if (!from_cupti) next_find(wish.mimalloc && !heap_unseen);
    os_close_holes();
}

static void end_at_quick_exit(void) { process_end(SNAP_ABRUPT_EXIT); }

/* Call it early, because libc goes by the order in which handlers were registered. Handlers that were registered first
 * run last at an exit, last before a fork, and first after a fork. Call it outside of hooks, because libc takes a lock
 * to register a handler, and may allocate. */
void process_watch(void) {
    /* Linux before 4.14 does not wipe tracked_page in a forked child, so the fork handler wipe_page does it. A child
     * that was made by the system call clone runs no fork handler, so on such an old Linux memstow does not notice this
     * child. */
    if (!wiped_by_kernel) pthread_atfork(NULL, NULL, wipe_page);
    stow_watch_forks();
    at_quick_exit(end_at_quick_exit);
}

/* Leaves the parent's ledger to the parent. Returns the bytes of the parent's live blocks, which the child has
 * inherited; 0 if the parent was not tracked. Inherited blocks are recognised by the generation in their headers. The
 * generation counts forks, but never beyond 255. */
static uint64_t leave_parent(void) {
    bool was_tracked = ledger_head->pid != 0;
    fork_depth++;
    exec_generation = 0;
    uint64_t inherited = account_inherited();
    forked_forget();
    ledger_abandon();
    ended = false;
    return was_tracked ? inherited : 0;
}

static bool begin_ledger(uint64_t inherited) {
    char path[LEDGER_PATH_SIZE + 1]; /* a path that does not fit is too long for a ledger, which then gets no file */
    struct ledger_identity identity = {
        .path = path,
        .name = name,
        .exe = exe,
        .command = command,
        .stacks = wish.stacks,
        .sample_bytes = wish.sample_bytes,
        .allocator = next_found == NEXT_MIMALLOC ? SNAP_ALLOCATOR_MIMALLOC : SNAP_ALLOCATOR_KEEP,
        .flags = (fork_depth ? SNAP_FORK_CHILD : 0) | (next_found == NEXT_FOREIGN ? SNAP_FOREIGN_ALLOCATOR : 0) |
                 (from_cupti ? SNAP_FROM_CUPTI : 0),
        .fork_depth = fork_depth,
        .exec_generation = exec_generation,
        .header_overhead = sizeof(struct header),
        .inherited_bytes = inherited,
    };
    memcpy(identity.run_id, wish.run_id, sizeof identity.run_id);
    /* With %x in the template, each image of this process gets a name of its own. */
    bool numbered = strstr(wish.out, "%x") != NULL;
    do process_expand(path, sizeof path, identity.exec_generation);
    while (numbered && ledger_file_made_by_us(path) && ++identity.exec_generation < 1000);
    if (!path[0]) identity.path = NULL;
    return ledger_begin(&identity);
}

/* Notes settings with unknown values. The command refuses them, but the environment may be set by hand. */
static void note_unreadable(void) {
    if (wish.unread_stacks)
        ledger_fact(SNAP_FACT_NOTE, "MEMSTOW_STACKS is not full, none, sample or sample:BYTES: it counts as full "
                                    "(as sample if it begins with sample:)");
    if (wish.unread_stack_memory)
        ledger_fact(SNAP_FACT_NOTE, "MEMSTOW_STACK_MEMORY is not a number of bytes above 0: it counts as not set");
    if (wish.unread_allocator)
        ledger_fact(SNAP_FACT_NOTE, "MEMSTOW_ALLOCATOR is neither keep nor mimalloc: it counts as keep");
    if (wish.unread_pressure & PRESSURE_UNREADABLE)
        ledger_fact(SNAP_FACT_NOTE,
                    "MEMSTOW_PRESSURE is not a list of sizes, N%, psi:N% and kept: it counts as not set");
    if (wish.unread_pressure & PRESSURE_IDLE_UNREADABLE)
        ledger_fact(SNAP_FACT_NOTE, "MEMSTOW_IDLE is not a number of seconds above 0: it counts as not set");
    if (serve_settings_unreadable()) ledger_fact(SNAP_FACT_NOTE, serve_settings_unreadable());
}

static void note_heap(void) {
    if (from_cupti)
        ledger_fact(SNAP_FACT_NOTE, "libmemstow.so was not preloaded: this ledger has CUDA memory as CUPTI lists it, "
                                    "and no memory of the host");
    else if (heap_unseen)
        ledger_fact(SNAP_FACT_NOTE, heap_unseen);
    else if (wish.mimalloc && next_found != NEXT_MIMALLOC)
        ledger_fact(SNAP_FACT_NOTE,
                    "this memstow was built without mimalloc: the program's own allocator serves memory");
}

static enum tracked_stage process_begin_once(void) {
    uint64_t inherited = 0;
    home_pid = seal_is_for_good() ? 0 : os_pid(); /* in a sandbox, os_pid is not allowed, and nobody reads home_pid */
    if (begun_before)
        inherited = leave_parent();
    else
        begin_first();
    if (!seal_settles()) /* a child of a sandboxed process: making a file may kill it */
        return TRACKED_NO;
    tracked_mark = header_mark(fork_depth < 255 ? fork_depth : 255, sizeof(struct header));
    if (!process_wanted() || !begin_ledger(inherited)) return TRACKED_NO;
    account_begin();
    sample_bytes = wish.sample_bytes;
    if (site_begin(wish.stacks, wish.stack_memory, exe)) fold_begin();
    blocks_open_ledger();
    note_heap();
    note_unreadable();
    ledger_note_own_memory();
    origins_note_inherited();
    return TRACKED_YES;
}

/* If stacks are off and mark_here (tracked.h) is set, malloc counts small blocks at the site sample_here, and looks up
 * no tag. So when tags come into use, mark_here becomes 0. If stacks are sampled, mark_here stays set: malloc looks up
 * tags in any case (hook_host.c), and free uses mark_here to recognise blocks at the site sample_here. */
void process_allow_fast_path(void) {
    tracked_page.note = header_note_sign(header_generation(tracked_mark));
    if (next_found == NEXT_FOREIGN) {
        if (!next_exempts()) __atomic_store_n(&tracked_page.keyed, tracked_mark, __ATOMIC_RELEASE);
        return;
    }
    tracked_page.mark_here = sample_here && (!tags_used || sample_bytes) ? tracked_mark + sample_here : 0;
    __atomic_store_n(&tracked_page.mark, tracked_mark, __ATOMIC_RELEASE);
    __atomic_store_n(&tracked_page.small, SNAP_LARGE_BYTES, __ATOMIC_RELEASE);
}

void process_is_from_cupti(void) { from_cupti = true; }

bool process_begin(void) {
    extern char **environ;
    uint32_t unset = TRACKED_UNSET;
    if (tracked_page.stage != TRACKED_UNSET) return tracked_page.stage == TRACKED_YES;
    if (!environ) /* libc is not set up yet */
        return false;
    /* If a signal handler forked this child, the interrupted code will go on in the child, and use the tables that were
     * there before the fork. So no new ledger may begin here. */
    if (begun_before && stack_is_interrupted()) return false;
    if (!__atomic_compare_exchange_n(&tracked_page.stage, &unset, TRACKED_BEGINNING, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE))
        return unset == TRACKED_YES;
    enum tracked_stage stage = process_begin_once();
    if (stage == TRACKED_YES) process_allow_fast_path();
    __atomic_store_n(&tracked_page.stage, stage, __ATOMIC_RELEASE);
    return stage == TRACKED_YES;
}

/* --- ending the ledger: at the end of the process, or at an exec --- */

/* Returns false in a forked child that has not begun tracking: in such a child tracked_page is wiped, so the stage is
 * TRACKED_UNSET. */
bool process_is_vfork_child(void) { return tracked_page.stage != TRACKED_UNSET && os_pid() != home_pid; }

/* Whether this process has a ledger of its own. False in a vfork child, and in a forked child that has had no event
 * yet. */
static bool is_ours_to_end(void) { return tracked_page.stage == TRACKED_YES && !process_is_vfork_child(); }

/* Whether the ledger is to end now. In a sandbox the kernel is not asked for the pid, so it is not known whether a
 * caller of _exit is the process itself or a vfork child in its memory. So in a sandbox, an _exit writes the end of the
 * ledger, but does not set `ended`. If the caller was a child, the process's own end comes later, and overwrites what
 * the child has written. */
static bool may_end(enum snap_state state) {
    if (seal_is_set() && state == SNAP_ABRUPT_EXIT)
        return tracked_page.stage == TRACKED_YES && !__atomic_load_n(&ended, __ATOMIC_ACQUIRE);
    bool ours = seal_is_set() ? tracked_page.stage == TRACKED_YES : is_ours_to_end();
    return ours && !__atomic_exchange_n(&ended, true, __ATOMIC_ACQ_REL);
}

void process_end(enum snap_state state) {
    if (!may_end(state)) return;
    control_end();
    closing_write();
    ledger_end(state);
}

/* A forked process that becomes another program needs no ledger, so the file of its ledger is removed. If the exec then
 * fails, the process gets a new ledger, as after a fork. The file stays if the process has other threads, which still
 * work in that ledger. In a sandbox the ledger stays as it is: the kernel is not asked for the pid, so it is not known
 * whether the caller is the process itself or a vfork child in its memory. */
void process_exec(bool before) {
    if (seal_is_set() || !is_ours_to_end()) return;
    if (before) {
        ledger_survives_exec = !fork_depth || !os_single_threaded();
        if (ledger_survives_exec)
            ledger_end(SNAP_EXECED);
        else
            ledger_unlink();
    } else if (!ledger_survives_exec) {
        wipe_page();
    } else {
        ledger_resume();
    }
}

/* Writes only to the caller's memory, because a vfork child (which gets false) and other threads may call it at the
 * same time. */
bool process_exec_variable(char to[PROCESS_EXEC_SIZE]) {
    if (seal_is_set() || !is_ours_to_end() || !ledger_survives_exec) return false;
    strcpy(to, EXEC_VARIABLE "=");
    append_decimal(to, PROCESS_EXEC_SIZE, home_pid);
    process_append(to, PROCESS_EXEC_SIZE, ".");
    append_decimal(to, PROCESS_EXEC_SIZE, ledger_head->start_ticks);
    process_append(to, PROCESS_EXEC_SIZE, ".");
    append_decimal(to, PROCESS_EXEC_SIZE, (uint64_t)ledger_head->exec_generation + 1);
    return true;
}
