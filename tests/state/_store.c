/* _store.c — a program that uses the store through the ABI. `_store CASE` runs a case, and `_store` lists the cases.
 * Each case has its own checks. store.py runs the cases under the library. */
#include "../prog/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    ((condition) ? (void)0                                                                                             \
                 : (fprintf(stderr, "%d: %s does not hold (errno %d; %s)\n", __LINE__, #condition, errno,              \
                            abi_memstow_error()),                                                                      \
                    exit(1)))

enum { MIB = 1 << 20, SMALL = 3 * MIB + 77 };

static const char *folder; /* folder of this test's files */

static int64_t open_loop(const char *name, const char *prefix, uint32_t in_file) {
    struct memstow_state_options options = {
        .size = sizeof options, .in_file = in_file, .prefix = prefix, .directory = prefix ? folder : NULL};
    return abi_memstow_state_open(name, &options);
}

static int64_t loop_of(const char *name) {
    int64_t loop = open_loop(name, NULL, 0);
    MUST(loop > 0);
    return loop;
}

/* Bytes that depend on their position and on a number. */
static unsigned char byte_at(size_t i, int number) { return (unsigned char)(i * 7 + i / 251 + (size_t)number * 13); }

static void *made(size_t length, int number) {
    unsigned char *bytes = malloc(length);
    for (size_t i = 0; i < length; i++) bytes[i] = byte_at(i, number);
    return bytes;
}

static int64_t try_put(int64_t loop, const char *id, size_t length, int number) {
    unsigned char *bytes = made(length, number);
    struct memstow_state_part parts[] = {{(uint64_t)bytes, length / 2},
                                         {(uint64_t)bytes + length / 2, length - length / 2}};
    int64_t owner = abi_memstow_state_put(loop, id, "BYTES", parts, 2);
    free(bytes);
    return owner;
}

static uint32_t put(int64_t loop, const char *id, size_t length, int number) {
    int64_t owner = try_put(loop, id, length, number);
    MUST(owner > 0);
    return (uint32_t)owner;
}

static struct memstow_state_value value_of(int64_t loop, const char *id) {
    struct memstow_state_value value = {.size = sizeof value};
    MUST(abi_memstow_state_get(loop, id, &value) == 0);
    return value;
}

static bool view_holds(const struct memstow_state_value *value, size_t length, int number) {
    size_t done = 0;
    if (value->bytes != length || value->parts != 2) return false;
    for (uint32_t i = 0; i < value->parts; i++)
        for (const unsigned char *at = (unsigned char *)value->view + value->part[i].start,
                                 *end = at + value->part[i].length;
             at < end; at++, done++)
            if (*at != byte_at(done, number)) return false;
    return done == length;
}

static void drop_view(const struct memstow_state_value *value) { MUST(munmap(value->view, value->view_length) == 0); }

static bool holds(int64_t loop, const char *id, size_t length, int number) {
    struct memstow_state_value value = value_of(loop, id);
    bool does = view_holds(&value, length, number);
    drop_view(&value);
    return does;
}

static bool holds_committed(int64_t loop, const char *id, size_t length, int number) {
    struct memstow_state_value value = {.size = sizeof value};
    MUST(abi_memstow_state_get_committed(loop, id, &value) == 0);
    bool does = view_holds(&value, length, number);
    drop_view(&value);
    return does;
}

static bool is_uncommitted(int64_t loop, const char *id) {
    struct memstow_state_value value = {.size = sizeof value};
    return abi_memstow_state_get_committed(loop, id, &value) == -ENOENT;
}

static bool is_gone(int64_t loop, const char *id) {
    struct memstow_state_value value = {.size = sizeof value};
    return abi_memstow_state_get(loop, id, &value) == -ENOENT;
}

static struct memstow_figures figures_of(uint32_t owner) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(owner, &figures) == 0);
    return figures;
}

/* --- when values become visible --- */

static void generations(void) {
    int64_t loop = loop_of("generations");
    MUST(abi_memstow_state_generation(loop) == 0 && is_gone(loop, "x"));
    MUST(try_put(loop, "x", SMALL, 1) == -EPERM);
    MUST(abi_memstow_state_begin(loop) == 1 && abi_memstow_state_begin(loop) == -EBUSY);
    put(loop, "x", SMALL, 1);
    put(loop, "kept", 100, 5);
    MUST(holds(loop, "x", SMALL, 1) && is_uncommitted(loop, "x"));
    MUST(abi_memstow_state_commit(loop) == 1 && abi_memstow_state_commit(loop) == -EPERM);
    MUST(holds_committed(loop, "x", SMALL, 1));
    MUST(abi_memstow_state_begin(loop) == 2);
    put(loop, "x", SMALL, 2);
    put(loop, "new", 10, 2);
    MUST(holds(loop, "x", SMALL, 2) && holds_committed(loop, "x", SMALL, 1) && is_uncommitted(loop, "new"));
    MUST(abi_memstow_state_abandon(loop) == 0 && abi_memstow_state_abandon(loop) == 0);
    MUST(holds(loop, "x", SMALL, 1) && is_gone(loop, "new") && abi_memstow_state_generation(loop) == 1);
    MUST(abi_memstow_state_begin(loop) == 2);
    put(loop, "x", SMALL, 3);
    put(loop, "x", SMALL, 4); /* the last put counts */
    MUST(abi_memstow_state_commit(loop) == 2);
    MUST(holds(loop, "x", SMALL, 4) && holds(loop, "kept", 100, 5));
    struct memstow_state_value values[3];
    MUST(abi_memstow_state_list(loop, values, 3, sizeof *values) == 2);
    for (int i = 0; i < 2; i++)
        MUST(strcmp(values[i].id, "x") ? !strcmp(values[i].id, "kept") && values[i].generation == 1
                                       : values[i].generation == 2 && values[i].bytes == SMALL);
    MUST(abi_memstow_state_list(loop, values, 1, sizeof *values) == 2 && abi_memstow_state_list(loop, NULL, 0, 0) == 2);
    MUST(abi_memstow_state_release(loop, "x") == 0 && abi_memstow_state_release(loop, "x") == -ENOENT);
    MUST(is_gone(loop, "x") && is_uncommitted(loop, "x") && holds(loop, "kept", 100, 5));
    MUST(abi_memstow_state_close(loop, 0) == 0 && abi_memstow_state_close(loop, 0) == -ENOENT);
    MUST(is_gone(loop, "kept") && abi_memstow_state_begin(loop) == -ENOENT);
}

/* Only the reader itself sees what it writes to its view. The view outlives a move and the release of the value, and
 * the end of the loop. */
static void views(void) {
    int64_t loop = loop_of("views");
    for (uint32_t in_file = 0; in_file < 2; in_file++) {
        loop = in_file ? open_loop("in file", NULL, 1) : loop;
        MUST(abi_memstow_state_begin(loop) == 1);
        uint32_t owner = put(loop, "x", SMALL, 1);
        MUST(abi_memstow_state_commit(loop) == 1);
        struct memstow_state_value first = value_of(loop, "x"), second = value_of(loop, "x");
        memset((char *)first.view + first.part[0].start, 0, first.part[0].length);
        MUST(view_holds(&second, SMALL, 1) && holds(loop, "x", SMALL, 1));
        MUST(first.place == (in_file ? MEMSTOW_STATE_FILE : MEMSTOW_STATE_MEMORY));
        MUST(abi_memstow_stow(owner) >= 0 && view_holds(&second, SMALL, 1));
        MUST(abi_memstow_state_release(loop, "x") == 0);
        MUST(abi_memstow_state_close(loop, 0) == 0);
        MUST(view_holds(&second, SMALL, 1) && ((char *)first.view)[first.part[0].start] == 0);
        drop_view(&first);
        drop_view(&second);
    }
}

/* --- owners, moves --- */

static void moves(void) {
    int64_t loop = loop_of("moves");
    MUST(abi_memstow_state_begin(loop) == 1);
    uint32_t owner = put(loop, "x", SMALL, 1), other = put(loop, "y", SMALL, 2);
    struct memstow_state_value before = value_of(loop, "x");
    struct memstow_figures figures = figures_of(owner);
    MUST(figures.kind == MEMSTOW_STATE && figures.live_bytes == before.held_bytes && figures.live_blocks == 1);
    MUST(figures.resident_bytes == figures.live_bytes && !figures.stowed_bytes &&
         figures.movable_bytes == figures.live_bytes);
    MUST(abi_memstow_owner_discard(owner, 1) == -EINVAL); /* the content of a value is never dropped */
    MUST(abi_memstow_stow(owner) == (int64_t)before.held_bytes);
    MUST(abi_memstow_stow(owner) == 0); /* the value is stowed already */
    figures = figures_of(owner);
    MUST(figures.live_bytes == before.held_bytes && figures.stowed_bytes == before.held_bytes &&
         !figures.resident_bytes);
    MUST(!figures_of(other).stowed_bytes && view_holds(&before, SMALL, 1) && holds(loop, "x", SMALL, 1));
    MUST(abi_memstow_state_commit(loop) == 1 && value_of(loop, "x").place == MEMSTOW_STATE_STOWED);
    MUST(abi_memstow_restore(owner) == (int64_t)before.held_bytes && abi_memstow_restore(owner) == 0);
    MUST(!figures_of(owner).stowed_bytes && holds(loop, "x", SMALL, 1) && view_holds(&before, SMALL, 1));
    MUST(abi_memstow_owner_policy(owner, MEMSTOW_STOW, 0) == 0 &&
         abi_memstow_owner_policy(other, MEMSTOW_FREE, 0) == 0);
    MUST(abi_memstow_trigger(MEMSTOW_RUN_ENDED, "run") == (int64_t)before.held_bytes);
    MUST(value_of(loop, "x").place == MEMSTOW_STATE_STOWED && value_of(loop, "y").place == MEMSTOW_STATE_MEMORY);
    MUST(holds(loop, "x", SMALL, 1) && holds(loop, "y", SMALL, 2));
    MUST(abi_memstow_state_begin(loop) == 2 && put(loop, "x", SMALL, 3) == owner); /* owner and policy stay */
    MUST(figures_of(owner).live_bytes == 2 * before.held_bytes && figures_of(owner).stowed_bytes == before.held_bytes);
    MUST(abi_memstow_state_commit(loop) == 2 && figures_of(owner).live_bytes == before.held_bytes);
    MUST(abi_memstow_scope_enter(owner) == -EINVAL && abi_memstow_owner_retire(owner) == -EINVAL);
    MUST(abi_memstow_assign(owner, &before, sizeof before) == -EINVAL &&
         abi_memstow_owner_adopt(owner, other) == -EINVAL);
    MUST(abi_memstow_owner_open(MEMSTOW_STATE, "state", "", 1, 1) == -EINVAL);
    MUST(abi_memstow_state_close(loop, 0) == 0 && !figures_of(owner).live_bytes && figures_of(owner).retired);
    drop_view(&before);
}

/* Above the limit, values go to files. The committed values and those of the present iteration count together. */
static void ram_limit(void) {
    struct memstow_state_options options = {.size = sizeof options, .ram_limit = 2 * MIB};
    int64_t loop = abi_memstow_state_open("limit", &options);
    MUST(loop > 0 && abi_memstow_state_begin(loop) == 1);
    put(loop, "a", MIB, 1);
    put(loop, "b", MIB / 2, 2);
    put(loop, "c", MIB, 3);
    MUST(value_of(loop, "a").place == MEMSTOW_STATE_MEMORY && value_of(loop, "b").place == MEMSTOW_STATE_MEMORY);
    MUST(value_of(loop, "c").place == MEMSTOW_STATE_FILE && abi_memstow_state_commit(loop) == 1);
    MUST(abi_memstow_state_begin(loop) == 2);
    put(loop, "a", MIB, 4);
    MUST(value_of(loop, "a").place == MEMSTOW_STATE_FILE && holds(loop, "a", MIB, 4) && holds(loop, "c", MIB, 3));
    MUST(abi_memstow_state_commit(loop) == 2 && abi_memstow_state_begin(loop) == 3);
    put(loop, "a", MIB, 5);
    MUST(value_of(loop, "a").place == MEMSTOW_STATE_MEMORY);
}

static uint64_t peak_of_memory(void) {
    char line[256];
    uint64_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lu", &kib) == 1) break;
    fclose(status);
    return kib * 1024;
}

static uint64_t cached(const struct memstow_state_value *value) {
    uint64_t pages = value->view_length / 4096, there = 0;
    unsigned char *list = malloc(pages);
    MUST(mincore(value->view, value->view_length, list) == 0);
    for (uint64_t i = 0; i < pages; i++) there += list[i] & 1;
    free(list);
    return there * 4096;
}

/* Puts a value of two gibibytes. All of its parts are the same buffer of eight mebibytes, so any further growth of the
 * process's memory is due to the store. */
static void large(void) {
    enum { PIECE = 8 * MIB + 64, PIECES = 256 };
    int64_t loop = open_loop("large", NULL, 1);
    unsigned char *bytes = made(PIECE, 1);
    struct memstow_state_part parts[PIECES];
    for (int i = 0; i < PIECES; i++) parts[i] = (struct memstow_state_part){(uint64_t)bytes, PIECE};
    MUST(loop > 0 && abi_memstow_state_begin(loop) == 1);
    uint64_t before = peak_of_memory();
    MUST(abi_memstow_state_put(loop, "x", "BYTES", parts, PIECES) > 0);
    uint64_t after = peak_of_memory();
    MUST(abi_memstow_state_commit(loop) == 1);
    struct memstow_state_value value = value_of(loop, "x");
    uint64_t in_cache = cached(&value);
    printf("beyond: %lu KiB, in the page cache: %lu KiB\n", (after - before) >> 10, in_cache >> 10);
    MUST(after - before <= 64 * (uint64_t)MIB && in_cache <= MIB);
    for (int i = 0; i < PIECES; i += 51) MUST(!memcmp((char *)value.view + value.part[i].start, bytes, PIECE));
    drop_view(&value);
}

/* --- bad arguments, failures, forks, signals, threads --- */

static void hostile(void) {
    char long_id[300], nothing[1];
    struct memstow_state_part part = {16, 4096},
                              parts[2] = {{(uint64_t)long_id, 10}, {(uint64_t)long_id, UINT64_MAX / 2}};
    struct memstow_state_value value = {.size = 8};
    struct memstow_state_options options = {.size = 4};
    memset(long_id, 'i', sizeof long_id);
    long_id[201] = 0;
    MUST(abi_memstow_state_open(NULL, NULL) == -EINVAL && abi_memstow_state_open("", NULL) == -EINVAL);
    MUST(abi_memstow_state_open((char *)16, NULL) == -EFAULT && abi_memstow_state_open(long_id, NULL) == -EINVAL);
    MUST(abi_memstow_state_open("x", (void *)16) == -EFAULT && abi_memstow_state_open("x", &options) == -EINVAL);
    options = (struct memstow_state_options){.size = sizeof options, .in_file = 2};
    MUST(abi_memstow_state_open("x", &options) == -EINVAL);
    options = (struct memstow_state_options){.size = sizeof options, .prefix = "p"};
    MUST(abi_memstow_state_open("x", &options) == -EINVAL); /* the directory is missing */
    options.directory = "/nowhere";
    MUST(abi_memstow_state_open("x", &options) == -ENOENT);
    int64_t loop = loop_of("x");
    MUST(abi_memstow_state_open("x", NULL) == -EEXIST);
    MUST(abi_memstow_state_begin(0) == -ENOENT && abi_memstow_state_begin(-1) == -ENOENT &&
         abi_memstow_state_begin(loop) == 1);
    MUST(abi_memstow_state_put(loop, long_id, "t", NULL, 0) == -EINVAL &&
         abi_memstow_state_put(loop, "", "t", NULL, 0) == -EINVAL);
    MUST(abi_memstow_state_put(loop, NULL, "t", NULL, 0) == -EINVAL &&
         abi_memstow_state_put(loop, "x", long_id, NULL, 0) == -EINVAL);
    MUST(abi_memstow_state_put(loop, "x", "t", NULL, 1) == -EFAULT &&
         abi_memstow_state_put(loop, "x", "t", &part, 1) == -EFAULT);
    MUST(abi_memstow_state_put(loop, "x", "t", parts, 2) == -EINVAL);
    MUST(abi_memstow_state_put(loop, "x", "t", &part, UINT32_MAX) == -EINVAL && is_gone(loop, "x"));
    int64_t in_file = open_loop("in file", NULL, 1);
    MUST(in_file > 0 && abi_memstow_state_begin(in_file) == 1);
    MUST(abi_memstow_state_put(in_file, "x", "t", &part, 1) == -EFAULT && is_gone(in_file, "x"));
    part.length = 4 * MIB;
    MUST(abi_memstow_state_put(in_file, "x", "t", &part, 1) == -EFAULT && is_gone(in_file, "x"));
    long_id[200] = 0;
    MUST(abi_memstow_state_put(loop, long_id, NULL, NULL, 0) > 0);
    MUST(abi_memstow_state_get(loop, long_id, &value) == -EINVAL &&
         abi_memstow_state_get(loop, long_id, NULL) == -EFAULT);
    MUST(abi_memstow_state_list(loop, (void *)16, 1, sizeof value) == -EFAULT);
    MUST(abi_memstow_state_list(loop, &value, 1, 8) == -EINVAL && abi_memstow_state_close(loop, 2) == -EINVAL);
    value.size = sizeof value;
    MUST(abi_memstow_state_get(loop, long_id, &value) == 0 && value.parts == 0 && !strcmp(value.id, long_id));
    MUST(abi_memstow_state_get(loop, nothing, (void *)16) == -EFAULT);
}

/* If a put fails, a new id gets no owner, and a value that was there before keeps its owner. */
static void failed_puts(void) {
    struct memstow_state_part nowhere = {16, 4096};
    int64_t loop = loop_of("failed");
    MUST(abi_memstow_state_begin(loop) == 1);
    uint32_t owner = put(loop, "kept", 100, 1);
    MUST(abi_memstow_state_commit(loop) == 1 && abi_memstow_state_begin(loop) == 2);
    MUST(abi_memstow_state_put(loop, "kept", "t", &nowhere, 1) == -EFAULT && !figures_of(owner).retired);
    for (int i = 0; i < 5; i++) {
        char id[] = "lost 0";
        id[sizeof id - 2] += i;
        MUST(abi_memstow_state_put(loop, id, "t", &nowhere, 1) == -EFAULT);
    }
    MUST(abi_memstow_state_abandon(loop) == 0 && holds(loop, "kept", 100, 1));
    MUST(abi_memstow_state_begin(loop) == 2 && put(loop, "kept", 100, 2) == owner);
}

/* The program closes the store's descriptors. A value in memory cannot be read any more, but it can be stowed, because
 * the store still has it mapped. The stowed value has a new descriptor, so it can be read again. Nothing else fails.
 * The program also opens a file, which gets the number of a closed descriptor. The store does not close this file. */
static void closed_descriptors(void) {
    int64_t loop = loop_of("closed");
    MUST(abi_memstow_state_begin(loop) == 1);
    uint32_t owner = put(loop, "x", SMALL, 1);
    MUST(abi_memstow_state_commit(loop) == 1);
    struct memstow_state_value value = {.size = sizeof value};
    for (int fd = 3; fd < 100; fd++) close(fd);
    int mine = open("/dev/zero", O_RDONLY);
    MUST(abi_memstow_state_get(loop, "x", &value) == -EIO);
    MUST(abi_memstow_stow(owner) > 0 && holds(loop, "x", SMALL, 1)); /* the bytes are still there */
    MUST(abi_memstow_state_begin(loop) == 2);
    put(loop, "x", SMALL, 2);
    MUST(abi_memstow_state_commit(loop) == 2 && holds(loop, "x", SMALL, 2) && abi_memstow_state_close(loop, 0) == 0);
    MUST(fcntl(mine, F_GETFD) == 0);
}

static void forks(void) {
    int status;
    int64_t loop = loop_of("forks");
    MUST(abi_memstow_state_begin(loop) == 1);
    put(loop, "x", SMALL, 1);
    struct memstow_state_value value = value_of(loop, "x");
    pid_t child = fork();
    if (!child) {
        MUST(is_gone(loop, "x") && abi_memstow_state_commit(loop) == -ENOENT && view_holds(&value, SMALL, 1));
        int64_t own = loop_of("forks");
        MUST(abi_memstow_state_begin(own) == 1);
        put(own, "x", 100, 7);
        MUST(abi_memstow_state_commit(own) == 1 && holds(own, "x", 100, 7));
        exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    MUST(abi_memstow_state_commit(loop) == 1 && holds(loop, "x", SMALL, 1));
}

/* One thread puts large values into files, and a timer's signals interrupt it. Meanwhile another thread forks children,
 * which put values of their own. */
enum { QUEUED = 17 * MIB + 77, CHILDREN = 6 };

static volatile sig_atomic_t signals;
static bool over;

static void note_signal(int number) { signals += number == SIGALRM; }

static void put_own(void) {
    int64_t loop = open_loop("child", NULL, 1);
    MUST(abi_memstow_state_begin(loop) == 1);
    put(loop, "x", QUEUED, 9);
    MUST(abi_memstow_state_commit(loop) == 1 && holds(loop, "x", QUEUED, 9));
    _exit(0);
}

static void *fork_on(void *context) {
    int status;
    (void)context;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (!child) put_own();
        MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void queued(void) {
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
    const struct sigaction action = {.sa_handler = note_signal}; /* no SA_RESTART: system calls are interrupted */
    pthread_t forker;
    sigset_t alarm;
    int64_t loop = open_loop("queued", NULL, 1), turn = 0;
    char *aligned = mmap(NULL, QUEUED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct memstow_state_part parts[] = {{(uint64_t)aligned, 9 * MIB}, {(uint64_t)aligned + 9 * MIB, QUEUED - 9 * MIB}};
    for (size_t i = 0; i < QUEUED; i++) aligned[i] = (char)byte_at(i, 5);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL); /* the new thread inherits this mask */
    MUST(!pthread_create(&forker, NULL, fork_on, NULL));
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    MUST(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        MUST(abi_memstow_state_begin(loop) == ++turn);
        put(loop, "x", QUEUED, (int)turn);
        MUST(abi_memstow_state_put(loop, "aligned", "BYTES", parts, 2) > 0);
        MUST(abi_memstow_state_commit(loop) == turn);
        MUST(holds(loop, "x", QUEUED, (int)turn) && holds(loop, "aligned", QUEUED, 5));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(forker, NULL);
    MUST(signals > 0);
}

/* SIGINT comes before, during or after a put, and its handler jumps to the code behind the put. During the put, the
 * library delays the signal until the put is done. So the new value is complete, unless the signal comes before the
 * put: in that case the old value is still there. No file stays open. */
enum { INTERRUPTS = 60, LONGEST_US = 12000 };

static sigjmp_buf after_put;

static void leave_put(int number) { siglongjmp(after_put, number); }

static void *interrupt_later(void *context) {
    usleep((useconds_t)rand() % LONGEST_US);
    MUST(!pthread_kill(*(pthread_t *)context, SIGINT));
    return NULL;
}

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void interrupted(void) {
    const struct sigaction action = {.sa_handler = leave_put};
    pthread_t self = pthread_self(), sender;
    volatile int waited = 0, held = 0;
    int files = 0;
    int64_t loop = open_loop("interrupted", NULL, 1);
    MUST(!sigaction(SIGINT, &action, NULL));
    for (volatile int turn = 1; turn <= INTERRUPTS; turn++) {
        unsigned char *bytes = made(QUEUED, turn);
        struct memstow_state_part parts[] = {{(uint64_t)bytes, MIB}, {(uint64_t)bytes + MIB, QUEUED - MIB}};
        MUST(abi_memstow_state_begin(loop) == turn);
        if (turn == 1) put(loop, "x", QUEUED, held = turn);
        if (!sigsetjmp(after_put, 1)) {
            MUST(!pthread_create(&sender, NULL, interrupt_later, &self));
            MUST(abi_memstow_state_put(loop, "x", "BYTES", parts, 2) > 0);
            while (true) pause(); /* the put is over before the signal comes */
        }
        MUST(!pthread_join(sender, NULL) && abi_memstow_state_commit(loop) == turn);
        if (holds(loop, "x", QUEUED, turn)) waited++, held = turn;
        MUST(holds(loop, "x", QUEUED, held));
        if (turn == 1) files = open_files();
        MUST(open_files() == files);
        free(bytes);
    }
    MUST(waited > 1);
}

/* Each iteration puts two values that are made of the same number. Meanwhile four threads read the first value, which
 * must always match its generation. Another thread stows and restores the first value, and two more threads use loops
 * of their own. */
enum { TURNS = 60, THREADS = 4, LENGTH = 70000 };
static int64_t shared_loop;
static uint32_t shared_owner;

static void *read_on(void *context) {
    uint64_t last = 0;
    (void)context;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        struct memstow_state_value value = {.size = sizeof value};
        if (abi_memstow_state_get(shared_loop, "a", &value) == -ENOENT) continue;
        MUST(view_holds(&value, LENGTH, (int)value.generation));
        MUST(value.generation >= last);
        last = value.generation;
        drop_view(&value);
    }
    return NULL;
}

static void *move_on(void *context) {
    (void)context;
    for (bool out = true; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); out = !out) {
        uint32_t owner = __atomic_load_n(&shared_owner, __ATOMIC_ACQUIRE);
        if (owner) MUST((out ? abi_memstow_stow : abi_memstow_restore)(owner) >= 0);
    }
    return NULL;
}

static void *other_loop(void *context) {
    char name[20];
    snprintf(name, sizeof name, "other %d", *(int *)context);
    for (int turn = 1; turn <= TURNS; turn++) {
        int64_t loop = loop_of(name);
        MUST(abi_memstow_state_begin(loop) == 1);
        put(loop, "a", LENGTH, turn);
        MUST((turn % 2 ? abi_memstow_state_commit(loop) : abi_memstow_state_abandon(loop)) == turn % 2);
        MUST(turn % 2 ? holds(loop, "a", LENGTH, turn) : is_gone(loop, "a"));
        MUST(abi_memstow_state_close(loop, 0) == 0);
    }
    return NULL;
}

static void threads(void) {
    pthread_t readers[THREADS], mover, others[2];
    int numbers[2] = {1, 2};
    shared_loop = loop_of("shared");
    for (int i = 0; i < THREADS; i++) MUST(!pthread_create(&readers[i], NULL, read_on, NULL));
    for (int i = 0; i < 2; i++) MUST(!pthread_create(&others[i], NULL, other_loop, &numbers[i]));
    MUST(!pthread_create(&mover, NULL, move_on, NULL));
    for (int turn = 1; turn <= TURNS; turn++) {
        MUST(abi_memstow_state_begin(shared_loop) == turn);
        put(shared_loop, "b", LENGTH, turn);
        __atomic_store_n(&shared_owner, put(shared_loop, "a", LENGTH, turn), __ATOMIC_RELEASE);
        MUST(abi_memstow_state_commit(shared_loop) == turn);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) pthread_join(readers[i], NULL);
    for (int i = 0; i < 2; i++) pthread_join(others[i], NULL);
    pthread_join(mover, NULL);
    MUST(holds(shared_loop, "a", LENGTH, TURNS) && holds(shared_loop, "b", LENGTH, TURNS));
    MUST(figures_of(shared_owner).live_blocks == 1);
}

/* If there is no room for a value, put leaves nothing behind, and the values of the last iteration are still there. */
static void no_room(void) {
    struct rlimit limit;
    int64_t loop = loop_of("no room"), in_file = open_loop("in file", NULL, 1);
    MUST(abi_memstow_state_begin(loop) == 1 && in_file > 0 && abi_memstow_state_begin(in_file) == 1);
    put(loop, "x", 1000, 1);
    put(in_file, "x", 1000, 1);
    MUST(abi_memstow_state_commit(loop) == 1 && abi_memstow_state_commit(in_file) == 1);
    MUST(abi_memstow_state_begin(loop) == 2 && abi_memstow_state_begin(in_file) == 2);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = MIB;
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    MUST(try_put(loop, "x", SMALL, 2) == -EFBIG && try_put(in_file, "x", SMALL, 2) == -EFBIG);
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit few = {3, limit.rlim_max};
    MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
    MUST(try_put(loop, "x", SMALL, 2) == -EMFILE && try_put(in_file, "x", SMALL, 2) == -EMFILE);
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    MUST(abi_memstow_state_abandon(loop) == 0 && abi_memstow_state_abandon(in_file) == 0);
    MUST(holds(loop, "x", 1000, 1) && holds(in_file, "x", 1000, 1));
}

/* Runs until it is killed. Each iteration sets two values to the same number, under a prefix; a third value never
 * changes. Prints the iteration where it resumed, and each generation after its commit. */
static void persist(void) {
    int64_t loop = open_loop("persist", "a loop/of two", 0), at;
    MUST(loop > 0);
    at = abi_memstow_state_generation(loop);
    if (at) {
        MUST(holds(loop, "a/1", LENGTH, (int)at) && holds(loop, "b", 100, (int)at) && holds(loop, "stays", 5000, 0));
        MUST(abi_memstow_state_list(loop, NULL, 0, 0) == 3);
    }
    printf("from %ld, pid %d\n", at, getpid());
    fflush(stdout);
    for (;;) {
        MUST(abi_memstow_state_begin(loop) == at + 1);
        if (!at) put(loop, "stays", 5000, 0);
        put(loop, "a/1", LENGTH, (int)at + 1);
        put(loop, "b", 100, (int)at + 1);
        MUST(abi_memstow_state_commit(loop) == ++at);
        printf("%ld\n", at);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"generations", generations},
                 {"views", views},
                 {"moves", moves},
                 {"ram_limit", ram_limit},
                 {"hostile", hostile},
                 {"failed_puts", failed_puts},
                 {"forks", forks},
                 {"queued", queued},
                 {"interrupted", interrupted},
                 {"threads", threads},
                 {"closed_descriptors", closed_descriptors},
                 {"no_room", no_room},
                 {"large", large}};
    abi_find();
    folder = getenv("FOLDER");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 2)
            puts(cases[i].name);
        else if (!strcmp(argv[1], cases[i].name))
            return cases[i].run(), 0;
    if (argc > 1 && !strcmp(argv[1], "persist")) persist();
    return argc > 1;
}
