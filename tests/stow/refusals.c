/* refusals.c CASE — each case has a reason why memory may not move. The move is refused with this reason, and the
 * memory stays whole. */
#include "moving.h"

#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

enum { LENGTH = 4 * MIB, NR_MSEAL = 462 };

static const struct stow_options idle = {.idle = true}, by_remap = {.method = STOW_BY_REMAP, .idle = true};

static void whole(char *p) {
    MUST(holds(p, LENGTH, 1));
    MUST(!is_stowed_(p));
    p[0] ^= 1;
    p[0] ^= 1;
}

static void refused_with(char *p, const struct stow_options *options, int64_t error, uint32_t reason) {
    uint32_t why;
    MUST_BE(out(p, LENGTH, options, &why), error);
    if (why != reason) fprintf(stderr, "%s\n", stow_text_(why));
    MUST_BE(why, reason);
    MUST(strlen(stow_text_(why)) > 5);
}

static char *filled(void) {
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    return p;
}

static void refused(char *p, uint32_t reason) {
    refused_with(p, &idle, -ENOTSUP, reason);
    whole(p);
}

static void moves_now(char *p) {
    MUST_BE(out(p, LENGTH, &idle, NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
}

static void locked(void) {
    char *p = filled();
    if (mlock(p, LENGTH)) skip("RLIMIT_MEMLOCK is too low");
    refused(p, STOW_LOCKED);
    MUST_BE(munlock(p, LENGTH), 0);
    moves_now(p);
}

static void locks_future(void) {
    char *p = filled();
    if (mlockall(MCL_FUTURE)) skip("RLIMIT_MEMLOCK is too low");
    refused(p, STOW_LOCKS_FUTURE);
    munlockall();
    moves_now(p);
}

static void shared(void) {
    char *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(p, LENGTH, 1);
    refused(p, STOW_NOT_PRIVATE);
}

static void read_only(void) {
    char *p = filled();
    MUST_BE(mprotect(p, LENGTH, PROT_READ), 0);
    uint32_t why;
    MUST(out(p, LENGTH, &idle, &why) == -ENOTSUP && why == STOW_NO_ACCESS);
    MUST(holds(p, LENGTH, 1));
}

static void memory_policy(void) {
    char *p = map_memory(LENGTH);
    unsigned long nodes = 1;
    if (syscall(SYS_mbind, p, LENGTH, MPOL_BIND, &nodes, 8, 0)) skip("mbind: %s", strerror(errno));
    fill(p, LENGTH, 1);
    refused(p, STOW_MEMORY_POLICY);
}

static void protection_key(void) {
    char *p = filled();
    int key = pkey_alloc(0, 0);
    if (key < 0 || pkey_mprotect(p, LENGTH, PROT_READ | PROT_WRITE, key)) skip("this processor has no protection keys");
    refused(p, STOW_KEY);
}

static void sealed(void) {
    char *p = filled();
    if (syscall(NR_MSEAL, p, LENGTH, 0)) skip("mseal: %s", strerror(errno));
    refused(p, STOW_SEALED);
}

static void no_dump(void) {
    char *p = filled();
    MUST_BE(madvise(p, LENGTH, MADV_DONTDUMP), 0);
    refused(p, STOW_NO_DUMP);
    char *q = filled();
    MUST_BE(out(q, LENGTH, &idle, NULL), LENGTH);
    MUST_BE(madvise(q, LENGTH, MADV_DONTDUMP), 0); /* brings it back, and stays in force */
    whole(q);
    refused(q, STOW_NO_DUMP);
}

static void fork_advice(void) {
    char *p = filled(), *q = filled();
    MUST_BE(madvise(p, LENGTH, MADV_WIPEONFORK), 0);
    refused(p, STOW_FORK_ADVICE);
    MUST_BE(madvise(q, LENGTH, MADV_DONTFORK), 0);
    refused(q, STOW_FORK_ADVICE);
    MUST_BE(madvise(q, LENGTH, MADV_DOFORK), 0);
    moves_now(q);
}

static void own_userfaultfd(void) {
    char *p = filled();
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register request = {.range = {(uint64_t)p, LENGTH}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &request))
        skip("this process may not use userfaultfd");
    refused(p, STOW_FAULTS_TAKEN);
}

static void own_stack(void) {
    char local[64];
    uint32_t why;
    MUST(out((char *)((uintptr_t)local & ~(uintptr_t)0xFFF) - PAGE, 2 * PAGE, &idle, &why) == -ENOTSUP);
    MUST_BE(why, STOW_STACK);
}

static void *move_own_stack(void *stack) {
    uint32_t why;
    MUST_BE(out(stack, MIB, &idle, &why), -ENOTSUP);
    MUST_BE(why, STOW_STACK);
    return NULL;
}

static void stack_of_the_mover(void) {
    char *stack = map_memory(MIB);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    MUST_BE(pthread_attr_setstack(&attributes, stack, MIB), 0);
    MUST_BE(pthread_create(&thread, &attributes, move_own_stack, stack), 0);
    pthread_join(thread, NULL);
}

static void registered(void) {
    char *p = filled();
    MUST_BE(stow_lock_(p + MIB, MIB), 0);
    refused(p, STOW_REGISTERED);
    stow_unlock_(p + MIB, MIB);
    moves_now(p);
    MUST_BE(stow_lock_(p, LENGTH), 0); /* brings it back first */
    MUST(!is_file_backed(p));
    refused(p, STOW_REGISTERED);
}

/* If pinned pages cannot be seen, pages may only move by a method that checks each page; other methods are refused. */
static void held_unseen(void) {
    struct stow_options remap = {.method = STOW_BY_REMAP, .idle = true, .held_unseen = true};
    struct stow_options comparing = {.method = STOW_BY_COMPARING, .idle = true, .held_unseen = true};
    struct stow_options move = {.held_unseen = true};
    char *p = filled();
    uint32_t why;
    refused_with(p, &remap, -ENOTSUP, STOW_HELD_UNSEEN);
    refused_with(p, &comparing, -ENOTSUP, STOW_HELD_UNSEEN);
    whole(p);
    MUST(out(p, LENGTH, &move, &why) == LENGTH || why == STOW_NOT_IDLE);
    MUST(holds(p, LENGTH, 1));
}

/* If pinned pages cannot be seen, stowed pages that the program has written to may be pinned. So such pages do not
 * move. */
static void held_unseen_while_stowed(void) {
    struct stow_options options = {.idle = true, .held_unseen = true};
    char *p = filled();
    uint32_t why;
    MUST_BE(out(p, LENGTH, &idle, NULL), LENGTH);
    MUST_BE(in(p, LENGTH, &options), LENGTH); /* nothing was written to */
    MUST_BE(out(p, LENGTH, &idle, NULL), LENGTH);
    *(volatile char *)(p + MIB) = *(volatile char *)(p + MIB);
    for (int is_idle = 0; is_idle < 2; is_idle++) {
        struct stow_piece piece = {.start = (uint64_t)p, .length = LENGTH};
        options.idle = is_idle;
        if (!is_idle && !has_userfaultfd()) continue;
        MUST_BE(stow_in_(&piece, 1, &options), -ENOTSUP);
        MUST_BE(piece.refusal, STOW_HELD_UNSEEN);
        out(p, LENGTH, &options, &why);
        MUST_BE(why, STOW_HELD_UNSEEN);
        MUST_BE(pages_in(p + MIB, PAGE, true), 1);
    }
    MUST_BE(in(p, LENGTH, &idle), LENGTH);
    whole(p);
}

/* io_uring keeps the pages of registered buffers. */
static void pinned(void) {
    struct io_uring_params parameters = {0};
    char *p = filled();
    struct iovec buffer = {p + MIB, PAGE};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) skip("io_uring: %s", strerror(errno));
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1))
        skip("io_uring: %s", strerror(errno));
    refused(p, STOW_PINNED);
    refused_with(p, &by_remap, -ENOTSUP, STOW_PINNED);
    whole(p);
    struct stow_options comparing = {.idle = true, .method = STOW_BY_COMPARING};
    refused_with(p, &comparing, -ENOTSUP, STOW_PINNED);
    whole(p);
    close(ring);
    int64_t moved;
    uint32_t why; /* the kernel releases the buffers later */
    for (int turn = 0; (moved = out(p, LENGTH, &idle, &why)) < 0 && why == STOW_PINNED && turn < 1000; turn++)
        usleep(10000);
    MUST_BE(moved, LENGTH);
    MUST(holds(p, LENGTH, 1));
}

/* Pages that the kernel pinned while they were stowed are not replaced, because it would not write to their
 * replacements. */
static void pinned_while_stowed(void) {
    struct io_uring_params parameters = {0};
    char *p = filled();
    uint32_t why;
    MUST_BE(out(p, LENGTH, &idle, NULL), LENGTH);
    struct iovec buffer = {p + MIB, PAGE};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) skip("io_uring: %s", strerror(errno));
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1))
        skip("io_uring: %s", strerror(errno));
    for (int is_idle = 0; is_idle < 2; is_idle++) {
        struct stow_options options = {.idle = is_idle};
        struct stow_piece piece = {.start = (uint64_t)p, .length = LENGTH};
        if (!is_idle && !has_userfaultfd()) continue;
        MUST_BE(stow_in_(&piece, 1, &options), -ENOTSUP);
        MUST_BE(piece.refusal, STOW_PINNED);
        out(p, LENGTH, &options, &why);
        MUST_BE(why, STOW_PINNED);
        MUST_BE(pages_in(p + MIB, PAGE, true), 1);
    }
    MUST(!mremap(p, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE) || errno == ENOMEM);
    close(ring);
    int64_t moved;
    for (int turn = 0; (moved = in(p, LENGTH, &idle)) < 0 && turn < 1000; turn++) usleep(10000);
    MUST_BE(moved, LENGTH);
    whole(p);
}

/* Without an atomic method only idle owners move. */
static void not_idle(void) {
    struct stow_options remap = {.method = STOW_BY_REMAP}, comparing = {.method = STOW_BY_COMPARING};
    char *p = filled();
    refused_with(p, &comparing, -ENOTSUP, STOW_NOT_IDLE);
    refused_with(p, &remap, -ENOTSUP, STOW_NOT_IDLE);
    whole(p);
}

static void file_limit(void) {
    char *p = filled();
    struct rlimit limit = {MIB, RLIM_INFINITY};
    MUST_BE(setrlimit(RLIMIT_FSIZE, &limit), 0);
    refused_with(p, &idle, -ENOSPC, STOW_FILE_LIMIT);
    whole(p);
    limit.rlim_cur = RLIM_INFINITY;
    MUST_BE(setrlimit(RLIMIT_FSIZE, &limit), 0);
    moves_now(p);
}

static volatile bool stop;

static void *change_limit(void *unused) {
    (void)unused;
    for (struct rlimit limit = {0, RLIM_INFINITY}; !stop; limit.rlim_cur = limit.rlim_cur ? 0 : RLIM_INFINITY)
        setrlimit(RLIMIT_FSIZE, &limit), usleep(500);
    return NULL;
}

/* The program may lower its limit for files after memstow has checked the limit, and before memstow writes. The
 * move then fails, but the program gets no SIGXFSZ. */
static void file_limit_falls(void) {
    char *p = filled();
    pthread_t thread;
    uint32_t why, seen = 0;
    MUST_BE(pthread_create(&thread, NULL, change_limit, NULL), 0);
    for (int i = 0; i < 100; i++) {
        int64_t moved = out(p, LENGTH, &idle, &why);
        MUST(moved == LENGTH || (moved == -ENOSPC && why == STOW_FILE_LIMIT));
        seen += moved < 0;
        MUST(holds(p, LENGTH, 1));
        in(p, LENGTH, &idle);
    }
    stop = true;
    pthread_join(thread, NULL);
    MUST(seen > 0);
}

static void descriptor_limit(void) {
    char *p = filled();
    struct rlimit before, limit;
    MUST_BE(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    for (rlim_t most = 3; most < 8; most++) {
        limit.rlim_cur = most;
        MUST_BE(setrlimit(RLIMIT_NOFILE, &limit), 0);
        uint32_t why;
        int64_t moved = out(p, LENGTH, &idle, &why);
        if (moved == LENGTH) break;
        MUST(moved < 0 && most < 7);
        whole(p);
    }
    MUST(holds(p, LENGTH, 1));
}

static void address_space_limit(void) {
    char *p = filled();
    struct rlimit limit;
    MUST_BE(getrlimit(RLIMIT_AS, &limit), 0);
    for (size_t room = 0; room < 96 * (size_t)MIB; room += 3 * MIB) {
        limit.rlim_cur = proc_bytes("/proc/self/status", "VmSize") + room;
        MUST_BE(setrlimit(RLIMIT_AS, &limit), 0);
        uint32_t why;
        int64_t moved = out(p, LENGTH, &idle, &why);
        MUST(moved == LENGTH || moved == -ENOMEM || moved == -ENOTSUP);
        if (moved < 0) whole(p);
        MUST(holds(p, LENGTH, 1));
        moved = in(p, LENGTH, &idle);
        MUST(moved == LENGTH || moved == 0 || moved == -ENOMEM);
        MUST(holds(p, LENGTH, 1));
        if (is_stowed_(p)) {
            limit.rlim_cur = RLIM_INFINITY;
            MUST_BE(setrlimit(RLIMIT_AS, &limit), 0);
            MUST_BE(in(p, LENGTH, &idle), LENGTH);
        }
    }
}

/* Stowed memory was written to, and the process has no address space left in which memstow could note the next move.
 * The refusal gives this reason. */
static void address_space_for_what_is_stowed(void) {
    enum { STEP = 16 << 10, MOST = 2 << 20 };
    char *p = filled();
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    uint32_t why = STOW_DONE, refused = 0;
    int64_t moved = 0;
    MUST_BE(out(p, LENGTH, &idle, NULL), LENGTH);
    fill(p, LENGTH, 1);
    for (size_t room = 0; room < MOST && moved <= 0; room += STEP) {
        limit.rlim_cur = proc_bytes("/proc/self/status", "VmSize") + room;
        MUST_BE(setrlimit(RLIMIT_AS, &limit), 0);
        moved = out(p, LENGTH, &idle, &why);
        if (moved > 0) break;
        if (moved == 0 || why == STOW_EMPTY) fprintf(stderr, "%zu: %ld, %u\n", room, (long)moved, why);
        MUST(moved < 0 && why != STOW_EMPTY);
        refused += why == STOW_ADDRESS_SPACE;
        MUST(holds(p, LENGTH, 1));
    }
    MUST(refused);
    limit.rlim_cur = RLIM_INFINITY;
    MUST_BE(setrlimit(RLIMIT_AS, &limit), 0);
    MUST(holds(p, LENGTH, 1));
}

/* Near vm.max_map_count no mapping is cut into more. */
static void many_mappings(void) {
    char *p = filled(), line[32] = {0};
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY);
    MUST(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
    close(fd);
    long most = atol(line);
    if (most > 300000) skip("vm.max_map_count is %ld", most);
    char *many = mmap(NULL, (size_t)most * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(many != MAP_FAILED);
    for (long i = 0; i < most - 300; i += 2)
        if (mprotect(many + i * PAGE, PAGE, PROT_READ)) break;
    refused_with(p, &idle, -ENOMEM, STOW_MAPPINGS);
    whole(p);
    munmap(many, (size_t)most * PAGE);
    moves_now(p);
}

static void no_directory(void) {
    static const struct {
        const char *path;
        uint32_t reason;
    } targets[] = {
        {"/nowhere/at/all", STOW_NO_DIRECTORY}, {"/dev/shm", STOW_MEMORY_TARGET}, {"/etc/passwd", STOW_NO_DIRECTORY}};
    char *p = filled();
    for (int i = 0; i < 3; i++) {
        struct stow_options options = {.idle = true, .directory = targets[i].path};
        if (i == 1 && access("/dev/shm", W_OK)) continue;
        refused_with(p, &options, -ENOTSUP, targets[i].reason);
        whole(p);
    }
    moves_now(p);
}

static void cannot_be_read(void) {
    uint32_t why;
    MUST(out((void *)4096, LENGTH, &idle, &why) == 0 && why == STOW_EMPTY);
    MUST(out((void *)-4096, LENGTH, &idle, &why) == 0 && why == STOW_EMPTY);
    struct stow_piece many[3] = {{.start = 0, .length = UINT64_MAX}, {.start = UINT64_MAX, .length = 1}, {.length = 0}};
    many[0].length = 4096;
    MUST_BE(stow_out_(many, 3, &idle), 0);
    MUST_BE(stow_in_(many, 3, &idle), 0);
    MUST_BE(stow_out_(many, 0, NULL), 0);
}

static bool not_there(const struct stow_piece *piece, void *context) {
    (void)piece;
    return *(bool *)context;
}

static void freed_before(void) {
    bool there = false;
    struct stow_options options = {.idle = true, .is_there = not_there, .context = &there};
    char *p = filled();
    refused_with(p, &options, -ENOTSUP, STOW_GONE);
    there = true;
    MUST_BE(out(p, LENGTH, &options, NULL), LENGTH);
}

static uint64_t no_more; /* 1: the thread is to end */

static void *move_large(void *p) {
    struct stow_options options = {.idle = true, .end = {&no_more, 1}};
    out(p, 512 * (size_t)MIB, &options, NULL);
    return NULL;
}

static void one_at_a_time(void) {
    char *p = filled(), *large = map_memory(512 * (size_t)MIB);
    memset(large, 1, 512 * (size_t)MIB);
    pthread_t thread;
    MUST_BE(pthread_create(&thread, NULL, move_large, large), 0);
    while (!stow_progress_().at_work) usleep(100);
    int64_t moved = out(p, LENGTH, &idle, NULL);
    MUST(moved == -EBUSY || moved == LENGTH);
    MUST(holds(p, LENGTH, 1));
    __atomic_store_n(&no_more, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    MUST(moved == LENGTH || out(p, LENGTH, &idle, NULL) == LENGTH);
}

static const struct test_case CASES[] = {
    {"locked", locked},
    {"locks_future", locks_future},
    {"shared", shared},
    {"read_only", read_only},
    {"memory_policy", memory_policy},
    {"protection_key", protection_key},
    {"sealed", sealed},
    {"fork_advice", fork_advice},
    {"no_dump", no_dump},
    {"own_userfaultfd", own_userfaultfd},
    {"own_stack", own_stack},
    {"stack_of_the_mover", stack_of_the_mover},
    {"registered", registered},
    {"held_unseen", held_unseen},
    {"held_unseen_while_stowed", held_unseen_while_stowed},
    {"pinned", pinned},
    {"pinned_while_stowed", pinned_while_stowed},
    {"not_idle", not_idle},
    {"file_limit", file_limit},
    {"file_limit_falls", file_limit_falls},
    {"descriptor_limit", descriptor_limit},
    {"address_space_limit", address_space_limit},
    {"address_space_for_what_is_stowed", address_space_for_what_is_stowed},
    {"many_mappings", many_mappings},
    {"no_directory", no_directory},
    {"cannot_be_read", cannot_be_read},
    {"freed_before", freed_before},
    {"one_at_a_time", one_at_a_time},
};

int main(int argc, char **argv) {
    if (argc < 2) {
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) puts(CASES[i].name);
        return 0;
    }
    return run_case(CASES, sizeof CASES / sizeof *CASES, argv[1]);
}
