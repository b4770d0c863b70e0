/* ledger.c — see ledger.h. Sections are cut off the front of the mapped file. When the file is full, it is opened again
 * by its path, checked to be the same file, extended by a preallocated piece, mapped and closed.
 *
 * The file is mapped piece by piece into reserved address space. The address space is reserved in windows, each as
 * large as all windows before it. A program may have little address space (RLIMIT_AS): one window for the largest
 * ledger would take most of a limit of 2 GB. No section lies in two windows. */
#include "preload/ledger/ledger.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/arena.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"

enum {
    FIRST_EXTENT = 256 * 1024, /* preallocated at the start */
    LARGEST_EXTENT = 4 * 1024 * 1024,
    FIRST_WINDOW = 4 * 1024 * 1024,
    WINDOWS = 32,
    MEMORY_ONLY_SIZE = 64 * 1024 * 1024, /* address space; only touched pages cost memory */
    SECTION_ALIGN = 64,
    STRING_SECTION = 16 * 1024,
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
    uint32_t window; /* the last window: new sections are made there */
    size_t mapped;   /* mapped bytes, from the start of the file (or memory) */
    size_t used;     /* bytes in use, from the start of the file */
    bool file;       /* false: memory only */
    bool written;    /* memory only: it was written to its file at a presumed end */
    bool elsewhere;  /* another copy of this library keeps a ledger of this process */
    struct lock growing;
    uint32_t noting;
    dev_t device;
    ino_t inode;
    char path[4096];
} ledger;

static struct {
    bool ours;
    char pad[OS_PAGE - 1];
} wiped __attribute__((aligned(OS_PAGE))); /* the kernel wipes it in a forked child */

enum { STRING_SECTIONS_KNOWN = 1024 };
static struct {
    struct snap_section *section;
    char *bytes;
    uint64_t capacity;
    uint32_t known_count;
    struct snap_section *known[STRING_SECTIONS_KNOWN]; /* for ledger_text, in file order */
} strings;

/* --- the file --- */

/* Whether preallocated space on this file system is certain. Elsewhere a write through the mapping may be refused later
 * (SIGBUS). On an overlay the upper file system decides; the usual ones are in this list. */
static bool preallocation_holds(int fd) {
    struct statfs fs;
    if (os_call(SYS_fstatfs, fd, &fs) < 0) return false;
    switch ((unsigned long)fs.f_type) {
    case EXT4_SUPER_MAGIC: /* also ext2, ext3 */
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

/* Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which kills. */
static bool size_allowed(uint64_t size) { return size <= os_file_limit(); }

static char *address_of(size_t offset) {
    return ledger.windows[ledger.window].base + (offset - ledger.windows[ledger.window].start);
}

static size_t window_end(void) { return ledger.windows[ledger.window].start + ledger.windows[ledger.window].length; }

/* Extends the file behind its mapped part. 0 or -errno. */
static long extend_file(int fd, size_t length) {
    if (ledger.mapped + length > window_end()) return -ENOMEM;
    if (!size_allowed(ledger.mapped + length)) return -EFBIG;
    long error;
    do error = os_call(SYS_fallocate, fd, 0, ledger.mapped, length);
    while (error == -EINTR);
    if (!error) error = os_map_file(address_of(ledger.mapped), length, fd, ledger.mapped);
    if (!error) ledger.mapped += length;
    return error;
}

/* Opens the file that was made at the start. -errno: also when its name leads to another file by now. */
static int reopen(void) {
    struct stat now;
    int fd = os_open(ledger.path, O_RDWR | O_NOFOLLOW, 0);
    if (fd >= 0 && (os_stat_fd(fd, &now) < 0 || now.st_dev != ledger.device || now.st_ino != ledger.inode)) {
        os_close(fd);
        fd = -ENOENT;
    }
    return fd;
}

static bool grow(size_t need) {
    if (!ledger.file || !seal_settles()) return false;
    size_t step = ledger.mapped < LARGEST_EXTENT ? ledger.mapped : LARGEST_EXTENT;
    size_t left = window_end() - ledger.mapped, length = need > step ? need : step;
    length = os_round_up(length < left ? length : need, OS_PAGE);
    int fd = reopen();
    if (fd < 0) return false;
    long error = extend_file(fd, length);
    if (error && length > need) error = extend_file(fd, os_round_up(need, OS_PAGE));
    os_close(fd);
    return !error;
}

/* Reserves address space for the file from `start` on: `wanted` bytes, or less if there is little, but at least `need`.
 * `need` is in whole pages. */
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

/* The size of a memory-only ledger. It cannot grow, but should not take much from a program with little address
 * space. */
static size_t memory_room(void) {
    struct rlimit limit;
    if (os_call(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit) < 0 || limit.rlim_cur / 32 >= MEMORY_ONLY_SIZE)
        return MEMORY_ONLY_SIZE;
    return limit.rlim_cur / 32;
}

/* What is at the path already. */
enum found {
    FOUND_FOREIGN,
    FOUND_OLD,
    FOUND_SAME, /* a ledger of this process, from before an exec */
    FOUND_HERE, /* a ledger of this process, by another copy of this library */
    FOUND_IN_USE
};

static bool still_written(const struct snap_header *old) {
    uint8_t boot_id[sizeof old->boot_id];
    return old->kind == SNAP_LEDGER && old->state == SNAP_RUNNING && old->start_ticks && os_boot_id(boot_id) &&
           !memcmp(old->boot_id, boot_id, sizeof boot_id) && os_start_ticks(old->pid) == old->start_ticks;
}

/* Whether the ledger is still mapped here. After an exec it is not. */
static bool is_mapped_here(const struct snap_header *old) {
    const struct snap_header *there = (const struct snap_header *)old->ledger_map.start;
    uint64_t began;
    return old->state == SNAP_RUNNING && old->ledger_map.length >= sizeof *old &&
           os_peek(&began, &there->start_wall_ns, sizeof began) && began == old->start_wall_ns;
}

static enum found look_at_file(int fd, uint32_t *exec_generation) {
    struct stat is;
    static struct snap_header old; /* not on the stack: see residency.h */
    if (os_stat_fd(fd, &is) < 0 || !S_ISREG(is.st_mode) || is.st_uid != (uid_t)os_call(SYS_geteuid))
        return FOUND_FOREIGN;
    if (os_pread(fd, &old, sizeof old, 0) != sizeof old || memcmp(old.magic, SNAP_MAGIC, sizeof old.magic) != 0)
        return FOUND_FOREIGN;
    *exec_generation = old.exec_generation;
    if (old.kind == SNAP_LEDGER && old.pid == os_pid() && old.start_ticks == os_start_ticks(0))
        return is_mapped_here(&old) ? FOUND_HERE : FOUND_SAME;
    return still_written(&old) ? FOUND_IN_USE : FOUND_OLD;
}

/* Another process has the path: use FILE.PID, as a child does. */
static bool step_aside(void) {
    size_t length = strlen(ledger.path);
    if (length + 24 > sizeof ledger.path) return false;
    ledger.path[length] = '.';
    os_decimal(ledger.path + length + 1, os_pid());
    return true;
}

/* Keeps the ledger from before an exec under the name PATH.x<generation>. */
static bool keep_earlier_image(uint32_t generation) {
    static char aside[sizeof ledger.path + 24];
    strcpy(aside, ledger.path);
    strcat(aside, ".x");
    os_decimal(aside + strlen(aside), generation);
    return os_call(SYS_renameat2, AT_FDCWD, ledger.path, AT_FDCWD, aside, 0) == 0;
}

/* Opens a file without a name in the directory of the path. -errno: also where the file system cannot do that. */
static int open_nameless(void) {
    static char directory[sizeof ledger.path];
    const char *slash = strrchr(ledger.path, '/');
    os_copy(directory, sizeof directory, slash == ledger.path ? "/" : slash ? ledger.path : ".");
    if (slash > ledger.path) directory[slash - ledger.path] = 0;
    return os_open(directory, O_RDWR | O_TMPFILE, 0600);
}

static long give_name(int fd) {
    char link[40] = "/proc/self/fd/";
    os_decimal(link + strlen(link), (uint32_t)fd);
    return os_call(SYS_linkat, AT_FDCWD, link, AT_FDCWD, ledger.path, AT_SYMLINK_FOLLOW);
}

static long write_header(int fd) {
    if (!size_allowed(SNAP_HEADER_SIZE)) return -EFBIG;
    long n = os_call(SYS_pwrite64, fd, &scratch, sizeof scratch, 0);
    return n == sizeof scratch ? 0 : n < 0 ? n : -ENOSPC;
}

/* Makes a new file with a header. The header is written before the file gets its name, so a process that is killed in
 * between leaves no broken file. Where that is not possible, the header is written as soon as it can be. */
static int open_new(void) {
    int fd = open_nameless();
    long error = fd < 0 ? fd : write_header(fd);
    if (!error) error = give_name(fd);
    if (fd >= 0) os_close(fd);
    if (!error) /* opened by its name, so that /proc/PID/maps shows the name */
        return os_open(ledger.path, O_RDWR | O_NOFOLLOW, 0);
    if (error == -EEXIST) return -EEXIST;
    fd = os_open(ledger.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    error = fd < 0 ? 0 : write_header(fd);
    if (error) {
        os_call(SYS_unlink, ledger.path);
        os_close(fd);
        return (int)error;
    }
    return fd;
}

/* Makes a new file with a header at the path. It replaces an old ledger of ours, and sets *exec_generation. If a
 * running process has its ledger there, that file stays, and ours gets a path of its own. Returns the descriptor or
 * -errno. */
static int create_file(uint32_t *exec_generation) {
    bool aside = false;
    for (int attempt = 0; attempt < 4; attempt++) {
        int fd = open_new();
        if (fd != -EEXIST) return fd;
        fd = os_open(ledger.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd < 0) return fd;
        uint32_t generation = 0;
        enum found found = look_at_file(fd, &generation);
        os_close(fd);
        if (found == FOUND_FOREIGN || (found == FOUND_IN_USE && (aside || !step_aside()))) return -EEXIST;
        ledger.elsewhere = found == FOUND_HERE;
        if (ledger.elsewhere) return -EEXIST;
        aside |= found == FOUND_IN_USE;
        if (found == FOUND_SAME) {
            if (*exec_generation <= generation) *exec_generation = generation + 1;
            keep_earlier_image(generation);
        } else if (found == FOUND_OLD) {
            os_call(SYS_unlink, ledger.path);
        }
    }
    return -EEXIST;
}

static bool begin_in_file(uint32_t *exec_generation) {
    struct stat made;
    int fd = create_file(exec_generation);
    if (fd < 0) return false;
    bool good = preallocation_holds(fd) && !os_stat_fd(fd, &made) && extend_file(fd, FIRST_EXTENT) == 0;
    os_close(fd);
    if (!good) {
        os_call(SYS_unlink, ledger.path);
        return false;
    }
    ledger.device = made.st_dev;
    ledger.inode = made.st_ino;
    ledger.file = true;
    return true;
}

/* Memory that `memstow report PID` can still find: a memfd, visible in /proc/PID/maps. */
static bool begin_in_memory(void) {
    close_windows();
    if (!open_window(0, 0, FIRST_EXTENT, memory_room())) return false;
    size_t length = ledger.windows[0].length;
    char *base = ledger.windows[0].base;
    int fd = -1;
    if (!seal_is_set() && size_allowed(length)) fd = (int)os_call(SYS_memfd_create, "memstow-ledger", MFD_CLOEXEC);
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

/* --- sections --- */

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

static bool make_room(size_t length) {
    if (ledger.used + length <= ledger.mapped) return true;
    if (ledger.used + length > window_end() && !skip_to_next_window(os_round_up(length, OS_PAGE))) return false;
    return grow(ledger.used + length - ledger.mapped);
}

static struct snap_section *carve(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first) {
    size_t length = os_round_up(sizeof(struct snap_section) + record_size * capacity, SECTION_ALIGN);
    if (!ledger.windows[0].base || !make_room(length)) return NULL;
    struct snap_section *section = (void *)address_of(ledger.used);
    *section = (struct snap_section){
        .type = type, .version = 1, .record_size = (uint16_t)record_size, .length = length, .first = first};
    ledger.used += length;
    __atomic_store_n(&ledger_head->size, ledger.used, __ATOMIC_RELEASE);
    return section;
}

static struct snap_section *new_section(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first) {
    struct snap_section *section = NULL;
    if (lock_wait(&ledger.growing)) {
        section = carve(type, record_size, capacity, first);
        lock_let_go(&ledger.growing);
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

static uint32_t segment_first(const struct series *self, uint32_t k) {
    return (uint32_t)(((uint64_t)1 << (self->first_bits + k)) - (1u << self->first_bits));
}

static bool make_segment(struct series *self, uint32_t k) {
    if (!lock_wait(&ledger.growing)) return false;
    if (!self->segments[k]) {
        struct snap_section *section =
            carve(self->type, self->record_size, (uint64_t)1 << (self->first_bits + k), segment_first(self, k));
        if (section) {
            self->sections[k] = section;
            if (self->anchored) *(uint64_t *)(void *)(section + 1) = (uintptr_t)(section + 1);
            __atomic_store_n(&self->segments[k], (char *)(section + 1), __ATOMIC_RELEASE);
        }
    }
    lock_let_go(&ledger.growing);
    return self->segments[k] != NULL;
}

bool series_reserve(struct series *self, uint32_t id) {
    uint32_t k = series_place(self, id).segment;
    if (id >= self->limit || k >= SERIES_SEGMENTS) return false;
    if (likely(__atomic_load_n(&self->segments[k], __ATOMIC_ACQUIRE)) || make_segment(self, k)) return true;
    ledger_lost(SNAP_LOST_FILE);
    return false;
}

uint32_t series_take_run(struct series *self, uint32_t count) {
    uint64_t next = os_load(&self->next), first;
    uint32_t k;
    do {
        if (next + 2 * (uint64_t)count > self->limit || !ledger_is_ours() || !series_reserve(self, (uint32_t)next))
            return SERIES_NONE;
        k = series_place(self, (uint32_t)next).segment;
        first = next;
        if (next + count > segment_first(self, k + 1)) { /* the records do not fit into the rest of their segment */
            first = segment_first(self, ++k);
            if (!series_reserve(self, (uint32_t)first)) return SERIES_NONE;
        }
    } while (!__atomic_compare_exchange_n(&self->next, &next, first + count, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (first > next) os_raise(&self->sections[k - 1]->count, first - segment_first(self, k - 1));
    os_raise(&self->sections[k]->count, first + count - segment_first(self, k));
    return (uint32_t)first;
}

uint32_t series_take(struct series *self) {
    uint64_t next = os_load(&self->next);
    do
        if (next >= self->limit || !ledger_is_ours() || !series_reserve(self, (uint32_t)next)) return SERIES_NONE;
    while (!__atomic_compare_exchange_n(&self->next, &next, next + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct series_place place = series_place(self, (uint32_t)next);
    os_raise(&self->sections[place.segment]->count, place.record + 1);
    return (uint32_t)next;
}

uint32_t series_id(const struct series *self, const void *record) {
    for (uint32_t k = 0; k < SERIES_SEGMENTS && self->segments[k]; k++) {
        size_t offset = (size_t)((const char *)record - self->segments[k]);
        if (offset < (size_t)self->record_size << (self->first_bits + k))
            return segment_first(self, k) + (uint32_t)(offset / self->record_size);
    }
    return SERIES_NONE;
}

void series_reset(struct series *self) {
    self->next = 0;
    memset(self->segments, 0, sizeof self->segments);
    memset(self->sections, 0, sizeof self->sections);
}

uint32_t ledger_string(const char *text) {
    size_t length = strlen(text) + 1;
    if (length == 1 || length > STRING_SECTION || !lock_wait(&ledger.growing)) return 0;
    struct snap_section *section = strings.section;
    if (!section || section->count + length > strings.capacity) {
        uint64_t first = section ? section->first + section->count : 0;
        section = carve(SNAP_STRINGS, 1, STRING_SECTION, first);
        if (section) {
            strings.section = section;
            strings.bytes = (char *)(section + 1);
            strings.capacity = STRING_SECTION;
            section->count = first ? 0 : 1; /* offset 0 is "" */
            if (strings.known_count < STRING_SECTIONS_KNOWN) {
                strings.known[strings.known_count] = section;
                __atomic_store_n(&strings.known_count, strings.known_count + 1, __ATOMIC_RELEASE);
            }
        }
    }
    uint32_t at = 0;
    if (section) {
        at = (uint32_t)(section->first + section->count);
        memcpy(strings.bytes + section->count, text, length);
        __atomic_store_n(&section->count, section->count + length, __ATOMIC_RELEASE);
    }
    lock_let_go(&ledger.growing);
    return at;
}

const char *ledger_text(uint32_t at) {
    for (uint32_t i = 0, count = __atomic_load_n(&strings.known_count, __ATOMIC_ACQUIRE); at && i < count; i++) {
        const struct snap_section *section = strings.known[i];
        uint64_t used = __atomic_load_n(&section->count, __ATOMIC_ACQUIRE);
        if (at >= section->first && at - section->first < used)
            return (const char *)(section + 1) + (at - section->first);
    }
    return "";
}

static struct series facts = {
    .type = SNAP_PROCESS, .record_size = sizeof(struct snap_fact), .first_bits = 5, .limit = 1024};

void ledger_fact(enum snap_fact_key key, const char *text) {
    struct snap_fact *fact = series_at(&facts, series_take(&facts));
    if (fact) *fact = (struct snap_fact){key, ledger_string(text)};
}

/* --- begin and end --- */

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
    if (path && strlen(path) < sizeof ledger.path) {
        strcpy(ledger.path, path);
        if (!seal_is_set() && open_window(0, 0, FIRST_EXTENT, FIRST_WINDOW) && begin_in_file(exec_generation))
            return true;
    }
    if (!ledger.elsewhere && begin_in_memory()) return true;
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
    memset(&strings, 0, sizeof strings);
    series_reset(&facts);
    ledger_head = &scratch.head;
}

static void write_out(void) {
    if (!ledger.path[0] || seal_is_set() || !size_allowed(ledger.used)) return;
    uint32_t generation = 0;
    int fd = create_file(&generation);
    if (fd < 0) return;
    ledger.written = os_write(fd, ledger.windows[0].base, ledger.used) == 0;
    if (!ledger.written) os_call(SYS_unlink, ledger.path);
    os_close(fd);
}

/* Gives the unused rest of the file back. All pages in use stay, because other threads may still write events. */
static void give_room_back(void) {
    size_t keep = os_round_up(ledger.used, OS_PAGE);
    int fd = keep < ledger.mapped ? reopen() : -1;
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
    if (!lock_wait(&ledger.growing)) return;
    give_room_back();
    lock_let_go(&ledger.growing);
}

void ledger_resume(void) {
    if (!ledger.windows[0].base) return;
    if (ledger.written) os_call(SYS_unlink, ledger.path);
    ledger.written = false;
    ledger_head->end_ns = 0;
    __atomic_store_n(&ledger_head->state, SNAP_RUNNING, __ATOMIC_RELEASE);
}

const char *ledger_path(void) { return ledger.file ? ledger.path : ""; }

bool ledger_made_by_us(const char *path) {
    uint32_t generation;
    int fd = os_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) return false;
    enum found found = look_at_file(fd, &generation);
    os_close(fd);
    return found == FOUND_SAME;
}

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
    int fd = ledger.file && !seal_is_set() ? reopen() : -1;
    if (fd < 0) return;
    os_call(SYS_unlink, ledger.path);
    os_close(fd);
}
