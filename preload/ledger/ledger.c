/* ledger.c — see ledger.h. New sections come one behind the other in the mapped file. When the file is full, it is
 * opened again by its path, checked to be the same file, extended by a preallocated piece, mapped and closed.
 *
 * The file is mapped piece by piece into reserved address space. The address space is reserved in windows, each as
 * large as all windows before it. A program may have little address space (RLIMIT_AS): one window for the largest
 * ledger would take most of a limit of 2 GB. No section lies in two windows. */
#include "preload/ledger/ledger.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/base/lock.h"
#include "preload/base/seal.h"
#include "preload/ledger/ledger_file.h"
#include "preload/ledger/ledger_inside.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/shared/os.h"

enum {
    FIRST_EXTENT = 256 * 1024, /* preallocated at the start */
    LARGEST_EXTENT = 4 * 1024 * 1024,
    FIRST_WINDOW = 4 * 1024 * 1024,
    WINDOWS = 32,
    MEMORY_ONLY_SIZE = 64 * 1024 * 1024, /* address space; only touched pages cost memory */
    SECTION_ALIGN = 64,
};

/* The header while there is no ledger. A new file begins with a copy of it. */
static union {
    struct snap_header head;
    char page[SNAP_HEADER_SIZE];
} scratch;
struct snap_header *ledger_head = &scratch.head;

static struct {
    struct window {
        char *base;
        size_t start, length; /* the window shows the file from `start` on */
    } windows[WINDOWS];
    uint32_t window; /* index of the newest window: new sections are made there */
    size_t mapped;   /* mapped bytes, from the start of the file or memory */
    size_t used;     /* bytes in use, from the start of the file */
    bool file;       /* false: memory only */
    bool written;    /* for memory only: it was written to a file, because the process seemed to end */
    uint32_t noting; /* 1: a thread is in ledger_note_own_memory */
} ledger;
struct lock ledger_growing;

static struct {
    bool ours;
    char pad[OS_PAGE - 1];
} wiped __attribute__((aligned(OS_PAGE))); /* the kernel wipes this page in a forked child; ours: see ledger_is_ours */

/* --- the mapped file, and the windows that it is mapped into --- */

static char *address_of(size_t offset) {
    return ledger.windows[ledger.window].base + (offset - ledger.windows[ledger.window].start);
}

static size_t window_end(void) { return ledger.windows[ledger.window].start + ledger.windows[ledger.window].length; }

/* Extends the file behind its mapped part. Returns 0 or -errno. */
static long extend_file(int fd, size_t length) {
    if (ledger.mapped + length > window_end()) return -ENOMEM;
    if (!ledger_file_size_allowed(ledger.mapped + length)) return -EFBIG;
    long error;
    do error = os_call(SYS_fallocate, fd, 0, ledger.mapped, length);
    while (error == -EINTR);
    if (!error) error = os_map_file(address_of(ledger.mapped), length, fd, ledger.mapped);
    if (!error) ledger.mapped += length;
    return error;
}

static bool ledger_grow(size_t need) {
    if (!ledger.file || !seal_settles()) return false;
    size_t step = ledger.mapped < LARGEST_EXTENT ? ledger.mapped : LARGEST_EXTENT;
    size_t left = window_end() - ledger.mapped, length = need > step ? need : step;
    length = os_round_up(length < left ? length : need, OS_PAGE);
    int fd = ledger_file_reopen();
    if (fd < 0) return false;
    long error = extend_file(fd, length);
    if (error && length > need) error = extend_file(fd, os_round_up(need, OS_PAGE));
    os_close(fd);
    return !error;
}

/* Reserves address space for the file from `start` on: `wanted` bytes, or fewer if they are not free, but at least
 * `need`, which is a multiple of a page. False: not even `need` bytes are free, or there are already WINDOWS
 * windows. */
static bool open_window(uint32_t i, size_t start, size_t need, size_t wanted) {
    size_t length = os_round_up(wanted > need ? wanted : need, OS_PAGE);
    if (i >= WINDOWS) return false;
    char *base = os_reserve_apart(length);
    while (!base && length > need) {
        length = length / 2 > need ? os_round_up(length / 2, OS_PAGE) : need;
        base = os_reserve_apart(length);
    }
    if (!base) return false;
    ledger.windows[i] = (struct window){base, start, length};
    ledger.window = i;
    return true;
}

static void close_windows(void) {
    for (uint32_t i = 0; i < WINDOWS; i++)
        if (ledger.windows[i].base) os_unmap(ledger.windows[i].base, ledger.windows[i].length);
    memset(ledger.windows, 0, sizeof ledger.windows);
    ledger.window = 0;
}

/* The size of a memory-only ledger, which cannot grow: MEMORY_ONLY_SIZE, but at most 1/32 of the program's address
 * space (RLIMIT_AS). */
static size_t memory_capacity(void) {
    struct rlimit limit;
    if (os_call(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit) < 0 || limit.rlim_cur / 32 >= MEMORY_ONLY_SIZE)
        return MEMORY_ONLY_SIZE;
    return limit.rlim_cur / 32;
}

static bool begin_in_file(uint32_t *exec_generation) {
    int fd = ledger_file_create(&scratch, exec_generation);
    if (fd < 0) return false;
    ledger.file = ledger_file_settle(fd) && extend_file(fd, FIRST_EXTENT) == 0;
    os_close(fd);
    if (!ledger.file) ledger_file_remove();
    return ledger.file;
}

/* Makes the ledger in memory. A memfd is visible in /proc/PID/maps, so `memstow report PID` still finds the ledger. If
 * there can be no memfd, the ledger is in private memory. */
static bool begin_in_memory(void) {
    close_windows();
    if (!open_window(0, 0, FIRST_EXTENT, memory_capacity())) return false;
    size_t length = ledger.windows[0].length;
    char *base = ledger.windows[0].base;
    int fd = -1;
    if (!seal_is_set() && ledger_file_size_allowed(length)) fd = os_open_memory("memstow-ledger", MFD_CLOEXEC);
    if (fd >= 0) {
        bool good = os_call(SYS_ftruncate, fd, length) == 0 && os_map_file(base, length, fd, 0) == 0;
        os_close(fd);
        if (good) {
            ledger.mapped = length;
            return true;
        }
    }
    if (os_call(SYS_mprotect, base, length, (long)(PROT_READ | PROT_WRITE)) < 0) return false;
    ledger.mapped = length;
    return true;
}

/* --- making a section --- */

/* Goes on in the next window when a section does not fit into the present one. The rest of the window becomes a section
 * without a type, which readers skip. */
static bool skip_to_next_window(size_t need) {
    struct snap_section *filler = (void *)address_of(ledger.used);
    size_t start = ledger.mapped, wanted = start > FIRST_WINDOW ? start : FIRST_WINDOW;
    if (!ledger.file || !seal_settles() || !open_window(ledger.window + 1, start, need, wanted)) return false;
    if (start > ledger.used)
        *filler = (struct snap_section){.version = 1, .record_size = 1, .length = start - ledger.used};
    ledger.used = start;
    ledger_note_own_memory();
    return true;
}

static bool ledger_grow_for(size_t length) {
    if (ledger.used + length <= ledger.mapped) return true;
    if (ledger.used + length > window_end() && !skip_to_next_window(os_round_up(length, OS_PAGE))) return false;
    return ledger_grow(ledger.used + length - ledger.mapped);
}

struct snap_section *ledger_carve(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first) {
    size_t length = os_round_up(sizeof(struct snap_section) + record_size * capacity, SECTION_ALIGN);
    if (!ledger.windows[0].base || !ledger_grow_for(length)) return NULL;
    struct snap_section *section = (void *)address_of(ledger.used);
    *section = (struct snap_section){
        .type = type, .version = 1, .record_size = (uint16_t)record_size, .length = length, .first = first};
    ledger.used += length;
    __atomic_store_n(&ledger_head->size, ledger.used, __ATOMIC_RELEASE);
    return section;
}

static struct snap_section *new_section(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first) {
    struct snap_section *section = NULL;
    if (lock_wait(&ledger_growing)) {
        section = ledger_carve(type, record_size, capacity, first);
        lock_let_go(&ledger_growing);
    }
    if (!section) ledger_lost(SNAP_LOST_FILE);
    return section;
}

void *ledger_section(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first) {
    struct snap_section *section = new_section(type, record_size, capacity, first);
    if (!section) return NULL;
    __atomic_store_n(&section->count, capacity, __ATOMIC_RELEASE);
    return section + 1;
}

/* --- the ledger begins and ends --- */

static void fill_header(struct snap_header *head, const struct ledger_identity *identity) {
    memcpy(head->magic, SNAP_MAGIC, sizeof head->magic);
    head->major = SNAP_MAJOR;
    head->minor = SNAP_MINOR;
    head->byte_order = SNAP_BYTE_ORDER;
    head->header_size = SNAP_HEADER_SIZE;
    head->kind = SNAP_LEDGER;
    head->size = SNAP_HEADER_SIZE;
    head->flags = identity->flags;
    head->state = SNAP_RUNNING;
    head->pid = os_pid();
    head->parent_pid = (uint32_t)os_call(SYS_getppid);
    if (!seal_is_set()) {
        head->start_ticks = os_start_ticks(0);
        os_boot_id(head->boot_id);
    }
    memcpy(head->run_id, identity->run_id, sizeof head->run_id);
    head->uid = (uint32_t)os_call(SYS_geteuid);
    head->exec_generation = identity->exec_generation;
    head->fork_depth = identity->fork_depth;
    head->stacks = identity->stacks;
    head->sample_bytes = identity->sample_bytes;
    head->allocator = identity->allocator;
    head->page_size = OS_PAGE;
    os_copy(head->name, sizeof head->name, identity->name);
    head->start_wall_ns = os_wall_now();
    head->start_ns = os_now();
    head->picture_buffer = 2;
    head->inherited_bytes = identity->inherited_bytes;
    head->header_overhead = identity->header_overhead;
}

static bool begin_somewhere(const char *path, uint32_t *exec_generation) {
    if (path && ledger_file_name(path) && !seal_is_set() && open_window(0, 0, FIRST_EXTENT, FIRST_WINDOW) &&
        begin_in_file(exec_generation))
        return true;
    if (!ledger_file_is_elsewhere() && begin_in_memory()) return true;
    close_windows();
    return false;
}

bool ledger_is_ours(void) { return __atomic_load_n(&wiped.ours, __ATOMIC_RELAXED); }

bool ledger_begin(const struct ledger_identity *identity) {
    arena_grown = ledger_note_own_memory;
    os_call(SYS_madvise, &wiped, sizeof wiped, MADV_WIPEONFORK);
    wiped.ours = true;
    uint32_t exec_generation = identity->exec_generation;
    fill_header(&scratch.head, identity);
    if (!begin_somewhere(identity->path, &exec_generation)) {
        scratch.head.pid = 0;
        return false;
    }
    struct snap_header *head = (struct snap_header *)ledger.windows[0].base;
    *head = scratch.head;
    head->flags |= ledger.file ? 0 : SNAP_MEMORY_ONLY;
    head->exec_generation = exec_generation;
    head->ledger_map = (struct snap_range){(uintptr_t)ledger.windows[0].base, ledger.windows[0].length};
    ledger.used = SNAP_HEADER_SIZE;
    ledger_head = head;
    if (!ledger.file && identity->path) ledger_lost(SNAP_LOST_FILE);
    ledger_fact(SNAP_FACT_EXE, identity->exe);
    ledger_fact(SNAP_FACT_COMMAND, identity->command);
    return true;
}

void ledger_abandon(void) {
    close_windows();
    memset(&scratch, 0, sizeof scratch);
    memset(&ledger, 0, sizeof ledger);
    ledger_file_forget();
    ledger_growing = (struct lock){0};
    ledger_strings_abandon();
    ledger_head = &scratch.head;
}

static void write_out(void) {
    if (!ledger_file_path()[0] || seal_is_set() || !ledger_file_size_allowed(ledger.used)) return;
    uint32_t generation = 0;
    int fd = ledger_file_create(&scratch, &generation);
    if (fd < 0) return;
    ledger.written = os_write(fd, ledger.windows[0].base, ledger.used) == 0;
    if (!ledger.written) ledger_file_remove();
    os_close(fd);
}

/* Gives the unused rest of the file back. All pages in use stay, because other threads may still write events. */
static void give_capacity_back(void) {
    size_t keep = os_round_up(ledger.used, OS_PAGE);
    int fd = keep < ledger.mapped ? ledger_file_reopen() : -1;
    if (fd < 0) return;
    ledger.mapped = keep;
    os_call(SYS_ftruncate, fd, keep);
    os_close(fd);
}

void ledger_end(enum snap_state state) {
    if (!ledger.windows[0].base) return;
    ledger_head->end_ns = os_now();
    __atomic_store_n(&ledger_head->state, state, __ATOMIC_RELEASE);
    if (seal_is_set()) return;
    if (!ledger.file) {
        write_out();
        return;
    }
    if (!lock_wait(&ledger_growing)) return;
    give_capacity_back();
    lock_let_go(&ledger_growing);
}

void ledger_resume(void) {
    if (!ledger.windows[0].base) return;
    if (ledger.written) ledger_file_remove();
    ledger.written = false;
    ledger_head->end_ns = 0;
    __atomic_store_n(&ledger_head->state, SNAP_RUNNING, __ATOMIC_RELEASE);
}

const char *ledger_path(void) { return ledger.file ? ledger_file_path() : ""; }

static uint32_t later_windows(struct snap_range *out, uint32_t capacity) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < WINDOWS && count < capacity && ledger.windows[i].base; i++)
        out[count++] = (struct snap_range){(uintptr_t)ledger.windows[i].base, ledger.windows[i].length};
    return count;
}

void ledger_note_own_memory(void) {
    struct dl_find_object found;
    struct snap_header *head = ledger_head;
    if (__atomic_exchange_n(&ledger.noting, 1, __ATOMIC_ACQUIRE)) return; /* another thread is doing it */
    uint32_t own = arena_ranges(head->own);
    head->own_ranges = own + later_windows(head->own + own, ARENA_RANGES - own);
    if (_dl_find_object((void *)ledger_note_own_memory, &found) == 0)
        head->library_map = (struct snap_range){(uintptr_t)found.dlfo_map_start,
                                                (uintptr_t)found.dlfo_map_end - (uintptr_t)found.dlfo_map_start};
    __atomic_store_n(&ledger.noting, 0, __ATOMIC_RELEASE);
}

void ledger_unlink(void) {
    int fd = ledger.file && !seal_is_set() ? ledger_file_reopen() : -1;
    if (fd < 0) return;
    ledger_file_remove();
    os_close(fd);
}
