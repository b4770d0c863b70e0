/* sandboxed.c CASE — what a program does to its stowed memory in a sandbox. The sandbox kills at the calls in `killed`,
 * such as open and clone. Calls that only change memory are allowed. */
#include "methods.h"

#include "../harm/sandbox.h"

#include <sys/prctl.h>

static const int killed[] = {SYS_open,  SYS_openat, SYS_clone,  SYS_clone3, SYS_userfaultfd, SYS_close_range, SYS_pipe2,
                             SYS_fcntl, SYS_gettid, SYS_getpid, SYS_tgkill, SYS_nanosleep,   SYS_eventfd2};

static void go_in(void) { sandbox_enter("prctl", killed, sizeof killed / sizeof *killed); }

/* MADV_DONTNEED on stowed memory fails, because the protection that the memory must keep cannot be read. */
static void dontneed(void) {
    char *p = stowed(LENGTH, 1), *q = map_memory(MIB);
    fill(q, MIB, 2);
    go_in();
    MUST(madvise(p + MIB, MIB, MADV_DONTNEED) == -1 && errno == ENOMEM);
    MUST(madvise(q, MIB, MADV_DONTNEED) == 0 && !q[0]);
    MUST(holds(p, LENGTH, 1));
}

static void other_advice(void) {
    char *p = stowed(LENGTH, 1);
    go_in();
    MUST_BE(madvise(p, LENGTH, MADV_DONTDUMP), 0);
    MUST_BE(madvise(p, LENGTH, MADV_DONTFORK), 0);
    MUST(holds(p, LENGTH, 1));
}

static void resized(void) {
    char *p = malloc(LENGTH);
    fill(p, LENGTH, 1);
    MUST(out(p, LENGTH, usual(), NULL) > LENGTH / 2);
    go_in();
    p = realloc(p, 2 * LENGTH);
    MUST(p && holds(p, LENGTH, 1));
    free(p);
}

static void locked(void) {
    char *p = stowed(LENGTH, 1);
    go_in();
    MUST_BE(mlock(p, MIB), 0);
    MUST(holds(p, LENGTH, 1));
}

static void moved(void) {
    char *p = stowed(LENGTH, 1);
    go_in();
    MUST(mremap(p, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
    MUST(holds(p, LENGTH, 1));
}

static void unmapped(void) {
    char *p = stowed(LENGTH, 1);
    go_in();
    MUST_BE(munmap(p, MIB), 0);
    MUST(mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p && !p[0]);
    MUST_BE(stow_bytes_(0), LENGTH - MIB);
}

static const struct test_case CASES[] = {
    {"dontneed", dontneed}, {"other_advice", other_advice}, {"resized", resized}, {"locked", locked},
    {"moved", moved},       {"unmapped", unmapped},
};

int main(int argc, char **argv) { _exit(name_or_run(CASES, sizeof CASES / sizeof *CASES, argc, argv)); }
