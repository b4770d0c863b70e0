/* oracle.c — part of the test build libmemstow_oracle.so: compares the recorded stack of every allocation with
 * libunwind's, at once. If the variable MEMSTOW_ORACLE names a folder, each process has a file NAME.PID there, with
 * five 64-bit counters of stacks:
 *   compared
 *   wrong: another frame
 *   short: one of the two stacks ends earlier
 *   left out: libunwind itself allocates, or there is no site
 *   outer: there was no room for the whole stack, so an outer part of it was recorded
 * Details of the first few go to standard error. */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libunwind.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/ledger/ledger.h"
#include "preload/stacks/rule.h"
#include "preload/count/site.h"
#include "preload/stacks/stack.h"
#include "preload/stacks/tree.h"
#include "preload/stacks/generation.h"

enum { DEPTH = 4096, DETAILS = 5 };

struct counts {
    uint64_t compared, wrong, cut_short, left_out, outer;
};

static struct counts nowhere, *counts = &nowhere;
static uint32_t counting_pid;
static __thread bool busy __attribute__((tls_model("initial-exec")));
static __thread uint32_t generation __attribute__((tls_model("initial-exec")));

enum { PYTHON = 1 }; /* stands for the frame of an evaluation loop */

static __thread uint64_t ours[DEPTH];
static __thread void *all_theirs[DEPTH];

/* The recorded native frames, innermost first. */
static size_t recorded(uint32_t site, uint64_t *out) {
    size_t n = 0;
    for (uint32_t at = snap_site_stack(site_record(site)); at != TREE_ROOT && n < DEPTH; at = tree_outer(at)) {
        const struct snap_frame *frame = rule_frame(tree_frame(at));
        if (!frame) continue;
        bool python = frame->code && !(frame->code & SNAP_FRAME_INTERRUPTED);
        if (!python)
            out[n++] = frame->address;
        else if (!n || out[n - 1] != PYTHON)
            out[n++] = PYTHON;
    }
    return n;
}

/* Whether our frame equals the other unwinder's frame at *j. Nested evaluation loops are one loop in our stack. */
static bool same(uint64_t frame, void **theirs, size_t *j, size_t m) {
    if (frame != PYTHON) return frame == (uint64_t)theirs[(*j)++];
    size_t loops = 0;
    for (; *j < m && rule_how((uint64_t)theirs[*j]) & RULE_EVAL; loops++) ++*j;
    return loops > 0;
}

static bool equal(size_t n, void **theirs, size_t m, size_t *i, size_t *j) {
    for (*i = *j = 0; *i < n && *j < m; ++*i)
        if (!same(ours[*i], theirs, j, m)) return false;
    return *i == n && *j == m;
}

/* Whether our frames are an outer part of theirs, or we have no frames. */
static bool is_outer(size_t n, void **theirs, size_t m) {
    size_t i, j;
    for (size_t inner = 1; inner < m; inner++)
        if (equal(n, theirs + inner, m - inner, &i, &j)) return true;
    return !n;
}

static void say(const char *what, size_t n, void **theirs, size_t m) {
    static unsigned long said;
    if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) >= DETAILS) return;
    fprintf(stderr, "oracle: %s\n", what);
    for (size_t i = 0; i < n || i < m; i++) {
        Dl_info a = {0}, b = {0};
        if (i < n) dladdr((void *)(ours[i] - 1), &a);
        if (i < m) dladdr((char *)theirs[i] - 1, &b);
        fprintf(stderr, "  %2zu  %16lx %-40.40s %16lx %-40.40s\n", i, i < n ? ours[i] : 0,
                a.dli_sname ? a.dli_sname : "", i < m ? (unsigned long)theirs[i] : 0, b.dli_sname ? b.dli_sname : "");
        if (i < n && i < m && ours[i] != (uint64_t)theirs[i]) break;
    }
}

/* Unwinds by libunwind's slow way, which remembers nothing about code. The fast way remembers for each thread how to go
 * on from an address, and cannot be told to forget it. So after code was removed, the fast way reads invalid memory. */
static int step_by_step(void **out) {
    unw_context_t context;
    unw_cursor_t cursor;
    int n = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_word_t address;
        unw_get_reg(&cursor, UNW_REG_IP, &address);
        if (!address) break; /* the end, but libunwind goes on behind it */
        out[n++] = (void *)address;
    } while (n < DEPTH && unw_step(&cursor) > 0);
    return n;
}

enum verdict { EQUAL, SHORT, OUTER, WRONG, TOO_DEEP };

/* Compares our n frames with libunwind's stack of `all` frames. That stack begins inside the library. So only a part of
 * it is compared: *m frames, beginning with the frame *first. Sets *first and *m. */
static enum verdict judge(const struct caller *caller, size_t n, int all, size_t *first, size_t *m) {
    size_t i, j;
    *first = 0;
    *m = all > 0 ? (size_t)all : 0;
    while (*first < *m && (uintptr_t)all_theirs[*first] != caller->address) ++*first;
    *m -= *first;
    while (*m && !all_theirs[*first + *m - 1]) --*m;
    if (n >= DEPTH || *m + *first >= DEPTH) return TOO_DEEP;
    if (equal(n, all_theirs + *first, *m, &i, &j)) return EQUAL;
    if (__atomic_load_n(&ledger_head->lost[SNAP_LOST_STACKS], __ATOMIC_RELAXED) && is_outer(n, all_theirs + *first, *m))
        return OUTER;
    return i == n || j == *m ? SHORT : WRONG;
}

static void compare(const struct caller *caller, uint32_t site) {
    size_t first, m, n = recorded(site, ours);
    int all = generation ? step_by_step(all_theirs) : unw_backtrace(all_theirs, DEPTH);
    enum verdict verdict = judge(caller, n, all, &first, &m);
    if (verdict == TOO_DEEP) return;
    __atomic_fetch_add(&counts->compared, 1, __ATOMIC_RELAXED);
    if (verdict == OUTER) __atomic_fetch_add(&counts->outer, 1, __ATOMIC_RELAXED);
    if (verdict != SHORT && verdict != WRONG) return;
    __atomic_fetch_add(verdict == SHORT ? &counts->cut_short : &counts->wrong, 1, __ATOMIC_RELAXED);
    say(verdict == SHORT ? "short" : "WRONG", n, all_theirs + first, m);
}

/* Opens the file with the counters of this process. A forked process gets a file of its own. */
static void open_counts(void) {
    const char *folder = getenv("MEMSTOW_ORACLE");
    char path[4096];
    counting_pid = os_pid();
    counts = &nowhere;
    snprintf(path, sizeof path, "%s/%s.%u", folder ? folder : "", program_invocation_short_name, counting_pid);
    int fd = folder ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    if (ftruncate(fd, sizeof *counts) == 0) {
        void *shared = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shared != MAP_FAILED) counts = shared;
    }
    close(fd);
}

void oracle_check(const struct caller *caller, uint32_t site);
void oracle_check(const struct caller *caller, uint32_t site) {
    if (busy || !site) {
        __atomic_fetch_add(&counts->left_out, 1, __ATOMIC_RELAXED);
        return;
    }
    int error = errno;
    busy = true;
    if (counting_pid != os_pid()) open_counts();
    if (generation != generation_of_code) { /* libunwind keeps data about removed code */
        generation = generation_of_code;
        unw_flush_cache(unw_local_addr_space, 0, 0);
    }
    compare(caller, site);
    busy = false;
    errno = error;
}
