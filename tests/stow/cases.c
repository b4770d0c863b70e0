/* cases.c CASE — one case of moving memory. */
#include "methods.h"

#include "../prog/kernel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

/* --- there and back --- */

static void there_and_back(const struct stow_options *options) {
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    size_t before = rss();
    MUST_BE(out(p, LENGTH, options, NULL), LENGTH);
    MUST(before - rss() >= LENGTH / 100 * 95);
    MUST_BE(pages_in(p, LENGTH, false), 0);
    MUST(is_stowed_(p));
    MUST_BE(stow_bytes_(1), LENGTH);
    MUST_BE(stow_bytes_(2), 0);
    MUST(holds(p, LENGTH, 1)); /* use brings it back */
    p[5 * MIB] ^= 1;
    MUST_BE(in(p, LENGTH, options), LENGTH);
    MUST(!is_stowed_(p));
    MUST(!is_file_backed(p) && !is_file_backed(p + LENGTH - 1));
    MUST_BE(pages_in(p, LENGTH, true), LENGTH / PAGE);
    p[5 * MIB] ^= 1;
    MUST(holds(p, LENGTH, 1));
    MUST_BE(out(p, LENGTH, options, NULL), LENGTH);
    MUST_BE(in(p, LENGTH, options), LENGTH); /* nothing has used it before */
    MUST(holds(p, LENGTH, 1));
    MUST_BE(stow_bytes_(0), 0);
    MUST_BE(munmap(p, LENGTH), 0);
}

static void round_trip_by_move(void) {
    uint32_t why;
    char *p = map_memory(PAGE);
    *p = 1;
    if (out(p, PAGE, &by_move, &why) < 0 && why == STOW_NOT_IDLE) skip("the kernel has no UFFDIO_MOVE, or forbids it");
    munmap(p, PAGE);
    there_and_back(&by_move);
}

static void round_trip_by_remap(void) {
    need_userfaultfd();
    there_and_back(&by_remap);
}

static void round_trip_by_comparing(void) { there_and_back(&by_comparing); }

static void holes_stay_holes(void) {
    char *p = map_memory(LENGTH);
    fill(p + MIB, MIB, 1);
    p[20 * MIB] = 9;
    int64_t moved = out(p, LENGTH, usual(), NULL);
    MUST_BE(moved, MIB + PAGE);
    MUST_BE(pages_in(p, LENGTH, false), 0);
    MUST(holds(p + MIB, MIB, 1) && p[20 * MIB] == 9 && p[0] == 0 && p[12 * MIB] == 0 && p[20 * MIB + PAGE] == 0);
    uint32_t why;
    char *empty = map_memory(MIB);
    MUST_BE(out(empty, MIB, usual(), &why), 0);
    MUST_BE(why, STOW_EMPTY);
}

/* Pages that were only read all show the kernel's one shared page of zeros. They hold nothing, so they are not moved
 * out, and they cost nothing afterwards. */
static void only_read_stays(void) {
    if (!kernel_is(6, 7)) skip("Linux 6.7 tells the zero page from others");
    char *p = map_memory(LENGTH);
    MUST_BE(madvise(p, LENGTH, MADV_NOHUGEPAGE), 0);
    fill(p + LENGTH / 2, LENGTH / 2, 1);
    for (size_t i = 0; i < LENGTH / 2; i += PAGE) MUST(!((volatile char *)p)[i]);
    MUST_BE(pages_in(p, LENGTH, false), LENGTH / PAGE);
    size_t before = rss();
    MUST_BE(out(p, LENGTH, usual(), NULL), LENGTH / 2);
    MUST(!is_file_backed(p) && is_file_backed(p + LENGTH / 2));
    MUST_BE(in(p, LENGTH, usual()), LENGTH / 2);
    MUST(rss() < before + 2 * MIB && !p[0] && holds(p + LENGTH / 2, LENGTH / 2, 1));
    char *zeros = map_memory(MIB);
    uint32_t why;
    for (size_t i = 0; i < MIB; i += PAGE) MUST(!((volatile char *)zeros)[i]);
    MUST_BE(out(zeros, MIB, usual(), &why), 0);
    MUST_BE(why, STOW_EMPTY);
}

/* Pages are missing here and there. The pages around them move together, and the missing pages are read as zeros. */
static void small_holes(void) {
    char *p = map_memory(LENGTH);
    for (int method = 0; method < 3; method++) {
        for (size_t i = 0; i < LENGTH; i += 3 * PAGE) fill(p + i, PAGE, i + (size_t)method);
        MUST(out(p, LENGTH, method == 0 ? usual() : method == 1 ? &by_remap : &by_comparing, NULL) > 0);
        for (size_t i = 0; i + 2 * PAGE <= LENGTH; i += 3 * PAGE)
            MUST(holds(p + i, PAGE, i + (size_t)method) && !p[i + PAGE]);
        MUST_BE(munmap(p, LENGTH), 0);
        p = map_memory(LENGTH);
    }
}

/* Pieces in any order, each with its own result. */
static void many_pieces(void) {
    enum { PIECES = 2000, SIZE = 3 * PAGE };
    char *p = map_memory(PIECES * SIZE);
    struct stow_piece *pieces = calloc(PIECES, sizeof *pieces);
    fill(p, PIECES * SIZE, 1);
    for (size_t i = 0; i < PIECES; i++) {
        size_t k = i * 1237 % PIECES;
        pieces[i] = (struct stow_piece){.start = (uint64_t)p + k * SIZE, .length = k % 7 ? SIZE - PAGE : 0, .owner = 1};
        if (k % 11 == 0) madvise(p + k * SIZE, SIZE, MADV_DONTNEED);
    }
    MUST(stow_out_(pieces, PIECES, usual()) > 0);
    for (size_t i = 0; i < PIECES; i++) {
        size_t k = i * 1237 % PIECES;
        bool there = k % 7 && k % 11;
        MUST_BE(pieces[i].moved, there ? SIZE - PAGE : 0);
        MUST_BE(pieces[i].refusal, there ? STOW_DONE : STOW_EMPTY);
    }
    for (size_t k = 1; k < PIECES; k++)
        for (size_t i = 0; k % 11 && i < SIZE / 8; i += 32)
            MUST(((uint64_t *)p)[k * SIZE / 8 + i] == word_at(k * SIZE / 8 + i, 1));
}

static void huge_pages(void) {
    char *p = map_memory(64 * MIB);
    madvise(p, 64 * MIB, MADV_HUGEPAGE);
    fill(p, 64 * MIB, 3);
    MUST_BE(out(p, 64 * MIB, usual(), NULL), 64 * MIB);
    MUST(holds(p, 64 * MIB, 3));
    MUST_BE(in(p, 64 * MIB, usual()), 64 * MIB);
    MUST(holds(p, 64 * MIB, 3));
}

/* --- what the program does to stowed memory --- */

static void free_reads_nothing(void) {
    char *p = malloc(LENGTH);
    fill(p, LENGTH, 1);
    MUST(out(p, LENGTH, usual(), NULL) >= LENGTH - 2 * PAGE);
    size_t before = rss();
    uint64_t faults, after;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage), faults = (uint64_t)(usage.ru_majflt + usage.ru_minflt);
    free(p);
    getrusage(RUSAGE_SELF, &usage), after = (uint64_t)(usage.ru_majflt + usage.ru_minflt);
    MUST(rss() < before + MIB && after - faults < 100);
    MUST_BE(stow_bytes_(0), 0);
}

/* If a stowed block inside of the allocator's own heap is freed, the allocator gets back plain memory. */
static void free_inside_a_heap(void) {
    enum { BLOCKS = 64, SIZE = 100 * 1000 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        fill(blocks[i], SIZE, (uint64_t)i);
        MUST(out(blocks[i], SIZE, usual(), NULL) > SIZE - 3 * PAGE);
    }
    for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    for (int i = 1; i < BLOCKS; i += 2) MUST(holds(blocks[i], SIZE, (uint64_t)i));
    for (int i = 0; i < BLOCKS; i += 2) MUST(!is_file_backed(blocks[i] + 2 * PAGE));
    for (int i = 0; i < BLOCKS; i += 2) {
        char *p = calloc(1, SIZE);
        for (int k = 0; k < SIZE; k++) MUST(p[k] == 0);
    }
    for (int i = 1; i < BLOCKS; i += 2) free(blocks[i]);
    MUST_BE(stow_bytes_(0), 0);
}

static void munmap_in_part(void) {
    char *p = stowed(LENGTH, 1);
    MUST_BE(munmap(p + 4 * MIB, MIB), 0);
    MUST_BE(stow_bytes_(0), LENGTH - MIB);
    MUST(mmap(p + 4 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 4 * MIB);
    MUST(p[4 * MIB] == 0 && p[4 * MIB - 8] == (char)word_at((4 * MIB - 8) / 8, 1));
    fill(p + 4 * MIB, MIB, 2);
    MUST_BE(in(p, LENGTH, usual()), LENGTH - MIB);
    MUST(holds(p, 4 * MIB, 1) && holds(p + 4 * MIB, MIB, 2));
    MUST_BE(munmap(p, LENGTH), 0);
}

static void mapped_over(void) {
    char *p = stowed(LENGTH, 1);
    MUST(mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
    MUST_BE(stow_bytes_(0), LENGTH - MIB);
    MUST(p[0] == 0);
}

/* A call that the kernel refuses has changed nothing. */
static void asked_in_vain(void) {
    char *p = stowed(LENGTH, 1), *q = map_memory(MIB);
    const int fixed = MAP_PRIVATE | MAP_FIXED, both = PROT_READ | PROT_WRITE;
    const size_t backwards = (size_t)-2 * PAGE;
    MUST(mmap(p, MIB, both, fixed, -1, 0) == MAP_FAILED); /* no such file */
    MUST(mmap(p + 100, MIB, both, fixed | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    MUST(mremap(q, MIB, MIB, MREMAP_FIXED, p) == MAP_FAILED); /* without MREMAP_MAYMOVE */
    MUST(munmap(p + PAGE, backwards) && madvise(p + PAGE, backwards, MADV_DONTNEED));
    MUST(mprotect(p + PAGE, backwards, PROT_NONE));
    MUST_BE(stow_bytes_(0), LENGTH);
    MUST(is_stowed_(p));
    MUST_BE(madvise(p, MIB, MADV_DONTNEED), 0);
    MUST(p[0] == 0 && p[MIB - 1] == 0);
    MUST_BE(in(p, LENGTH, usual()), LENGTH - MIB);
}

/* Guard pages remove the content of their pages (Linux 6.13). */
static void guard_pages_mean_zeros(void) {
    enum { INSTALL = 102, REMOVE = 103 };
    char *p = stowed(LENGTH, 1);
    if (madvise(p + MIB, MIB, INSTALL)) skip("the kernel has no guard pages");
    MUST_BE(madvise(p + MIB, MIB, REMOVE), 0);
    for (int i = 0; i < MIB; i++) MUST(p[MIB + i] == 0);
    MUST(holds(p, MIB, 1));
}

/* MADV_DONTNEED must make stowed memory zero. The trap: on a mapping of a file, it brings the file's bytes back. */
static void dontneed_means_zeros(void) {
    char *p = stowed(LENGTH, 1);
    MUST_BE(madvise(p + MIB, MIB, MADV_DONTNEED), 0);
    for (int i = 0; i < MIB; i++) MUST(p[MIB + i] == 0);
    MUST(!is_file_backed(p + MIB) && is_file_backed(p));
    MUST_BE(madvise(p + 2 * MIB, MIB, MADV_FREE), 0);
    fill(p + 2 * MIB, MIB, 4);
    MUST(holds(p, MIB, 1) && holds(p + 2 * MIB, MIB, 4));
    MUST_BE(mprotect(p + 6 * MIB, MIB, PROT_READ), 0);
    MUST_BE(madvise(p + 6 * MIB, MIB, MADV_DONTNEED), 0);
    MUST(p[6 * MIB] == 0);
    char value = 1;
    int fds[2];
    MUST_BE(pipe(fds), 0);
    MUST(write(fds[1], &value, 1) == 1);
    MUST(read(fds[0], p + 6 * MIB, 1) == -1 && errno == EFAULT); /* still read-only */
}

static void wipeonfork_is_taken(void) {
    char *p = stowed(LENGTH, 1);
    MUST_BE(madvise(p, MIB, MADV_WIPEONFORK), 0);
    pid_t pid = fork();
    if (!pid) _exit(p[0] == 0 && holds(p + MIB, 8, 0) == false ? 0 : 3);
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Uses up the mappings that the process may have. give_mappings_back undoes it. */
static char *many;
static long most_mappings;

static void use_up_mappings(void) {
    char line[32] = {0};
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY);
    MUST(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
    close(fd);
    most_mappings = atol(line);
    if (most_mappings > 300000) skip("vm.max_map_count is %ld", most_mappings);
    size_t length = (size_t)most_mappings * PAGE;
    many = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(many != MAP_FAILED);
    for (long i = 0; i < most_mappings; i += 2)
        if (syscall(SYS_mprotect, many + i * PAGE, PAGE, PROT_READ)) break;
    for (long i = 1; i < most_mappings; i += 2)
        if (syscall(SYS_mprotect, many + i * PAGE, PAGE / 2 + 1, PROT_READ | PROT_WRITE)) break;
}

static void give_mappings_back(void) { MUST_BE(syscall(SYS_munmap, many, (size_t)most_mappings * PAGE), 0); }

/* If a munmap is refused because it would need more mappings than are allowed, it has changed nothing. */
static void munmap_is_refused(void) {
    char *p = stowed(LENGTH, 1);
    use_up_mappings();
    MUST(munmap(p + MIB, MIB) == -1 && errno == ENOMEM);
    give_mappings_back();
    MUST_BE(stow_bytes_(1), LENGTH);
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST(holds(p, LENGTH, 1));
}

/* When stowed memory cannot get a new mapping, MADV_DONTNEED fails. The file's bytes never come back in place of
 * zeros. */
static void dontneed_is_refused(void) {
    char *p = stowed(LENGTH, 1);
    use_up_mappings();
    MUST(madvise(p + MIB, MIB, MADV_DONTNEED) == -1 && errno == ENOMEM);
    give_mappings_back();
    MUST(is_stowed_(p + MIB) && holds(p, LENGTH, 1));
    MUST_BE(madvise(p + MIB, MIB, MADV_DONTNEED), 0);
    MUST(p[MIB] == 0 && p[2 * MIB - 1] == 0 && holds(p, MIB, 1));
}

/* From now on, only descriptors with a number below `count` can be opened. */
static void allow_descriptors(rlim_t count) {
    struct rlimit limit;
    MUST_BE(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count;
    MUST_BE(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void dontneed_without_descriptors(void) {
    char *p = stowed(LENGTH, 1);
    int next = dup(1); /* the lowest number that is free */
    MUST(next > 0 && close(next) == 0);
    allow_descriptors((rlim_t)next);
    MUST(dup(1) == -1 && errno == EMFILE);
    MUST_BE(madvise(p + MIB, MIB, MADV_DONTNEED), 0); /* memstow's thread for files has descriptors of its own */
    for (int i = 0; i < MIB; i++) MUST(p[MIB + i] == 0);
    allow_descriptors(0);
    MUST(madvise(p + 2 * MIB, MIB, MADV_DONTNEED) == -1 && errno == ENOMEM);
    MUST(madvise(p, LENGTH, MADV_DONTDUMP) == -1 && errno == ENOMEM);
    allow_descriptors(100);
    MUST(holds(p, MIB, 1) && is_stowed_(p + 2 * MIB));
    MUST_BE(madvise(p, LENGTH, MADV_DONTDUMP), 0);
    MUST(!is_stowed_(p) && holds(p, MIB, 1));
}

/* Memory goes to the directory that the environment named when the program started, even if the environment changes. */
static void environment_is_gone(void) {
    char line[4096], place[2048];
    bool found = false;
    snprintf(place, sizeof place, "%s/", getenv("MEMSTOW_STOW_DIR"));
    clearenv();
    char *p = stowed(LENGTH, 1);
    FILE *f = fopen("/proc/self/maps", "r");
    MUST(f);
    while (fgets(line, sizeof line, f)) found |= strstr(line, place) != NULL;
    fclose(f);
    MUST(found && is_file_backed(p));
}

static void exec_is_unmoved(void) {
    char *p = stowed(LENGTH, 1);
    (void)p;
    execl("/bin/true", "true", NULL);
    MUST(!"exec");
}

/* --- fork --- */

static void forked_child_reads(void) {
    char *p = stowed(LENGTH, 1);
    pid_t pid = fork();
    if (!pid) {
        if (!holds(p, LENGTH, 1)) _exit(3);
        fill(p, MIB, 2);
        if (in(p, LENGTH, usual()) != LENGTH || !holds(p, MIB, 2)) _exit(4);
        if (out(p, LENGTH, usual(), NULL) != LENGTH || !holds(p, MIB, 2)) _exit(5);
        _exit(0);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    MUST_BE(status, 0);
    MUST(holds(p, LENGTH, 1));
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST(holds(p, LENGTH, 1));
}

/* Pages that a child shares do not move with UFFDIO_MOVE (EBUSY). */
static void shared_with_a_child(void) {
    char *p = map_memory(LENGTH);
    int fds[2];
    fill(p, LENGTH, 1);
    MUST_BE(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        char c;
        close(fds[1]);
        MUST(read(fds[0], &c, 1) == 0);
        _exit(holds(p, LENGTH, 1) ? 0 : 3);
    }
    MUST_BE(out(p, LENGTH, usual(), NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
    close(fds[1]);
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    pid = fork(); /* a child that has ended leaves the pages marked as shared, too */
    if (!pid) _exit(0);
    MUST(waitpid(pid, &status, 0) == pid);
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST_BE(out(p, LENGTH, usual(), NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
}

static volatile bool stop;

static void *move_all_the_time(void *p) {
    while (!stop) {
        MUST_BE(out(p, LENGTH, usual(), NULL), LENGTH);
        MUST_BE(in(p, LENGTH, usual()), LENGTH);
    }
    return NULL;
}

static int by_clone(void *p) { _exit(holds(p, LENGTH, 1) ? 0 : 3); }

static pid_t fork_somehow(int method, char *p) {
    static char stack[256 * 1024] __attribute__((aligned(16)));
    switch (method % 4) {
    case 0:
        return fork();
    case 1:
        return _Fork();
    case 2:
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    default:
        return clone(by_clone, stack + sizeof stack, SIGCHLD, p);
    }
}

/* The trap: without precautions, a child that is forked in the middle of a move would read zeros. */
static void fork_in_the_middle(void) {
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    pthread_t mover;
    MUST_BE(pthread_create(&mover, NULL, move_all_the_time, p), 0);
    for (int i = 0; i < 40; i++) {
        usleep((useconds_t)(i * 1700 % 23000));
        pid_t pid = fork_somehow(i, p);
        MUST(pid >= 0);
        if (!pid) _exit(holds(p, LENGTH, 1) ? 0 : 3);
        int status;
        MUST(waitpid(pid, &status, 0) == pid);
        MUST_BE(status, 0);
    }
    stop = true;
    pthread_join(mover, NULL);
    MUST(holds(p, LENGTH, 1));
}

/* A child that is forked during its parent's move does not continue this move, and can move memory itself. */
static void child_moves_by_itself(void) {
    char *p = map_memory(LENGTH), *q = map_memory(LENGTH);
    fill(p, LENGTH, 1), fill(q, LENGTH, 2);
    pthread_t mover;
    MUST_BE(pthread_create(&mover, NULL, move_all_the_time, p), 0);
    for (int i = 0; i < 10; i++) {
        usleep((useconds_t)(i * 2300 % 17000));
        pid_t pid = fork();
        if (!pid) {
            alarm(30);
            if (out(q, LENGTH, usual(), NULL) != LENGTH || !holds(q, LENGTH, 2)) _exit(3);
            _exit(in(q, LENGTH, usual()) == LENGTH && holds(q, LENGTH, 2) ? 0 : 4);
        }
        int status;
        MUST(waitpid(pid, &status, 0) == pid);
        MUST_BE(status, 0);
    }
    stop = true;
    pthread_join(mover, NULL);
}

/* A program takes a lock before it forks, and frees memory under that lock. */
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

static void take(void) { pthread_mutex_lock(&taken); }
static void let_go(void) { pthread_mutex_unlock(&taken); }

static void *free_under_a_lock(void *unused) {
    while (!stop) {
        take();
        char *p = malloc(MIB);
        *p = 1;
        free(p);
        let_go();
    }
    return unused;
}

static void fork_takes_a_lock(void) {
    pthread_t threads[2];
    MUST_BE(pthread_atfork(take, let_go, let_go), 0);
    char *p = stowed(LENGTH, 1);
    for (int i = 0; i < 2; i++) MUST_BE(pthread_create(&threads[i], NULL, free_under_a_lock, NULL), 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (!pid) _exit(holds(p, PAGE, 1) ? 0 : 3);
        int status;
        MUST(waitpid(pid, &status, 0) == pid && status == 0);
    }
    stop = true;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* --- while it moves --- */

struct moved_blocks {
    struct stow_piece *pieces;
    uint32_t count;
};

static void *move_blocks(void *context) {
    struct moved_blocks *self = context;
    stow_out_(self->pieces, self->count, usual());
    return NULL;
}

/* Blocks are freed, and their addresses used again, while the engine moves them. */
static void freed_while_moving(void) {
    enum { BLOCKS = 16 };
    need_userfaultfd();
    unsigned seed = 1;
    for (int turn = 0; turn < 30; turn++) {
        struct stow_piece pieces[BLOCKS];
        char *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(2 * MIB);
            fill(blocks[i], 2 * MIB, (uint64_t)i);
            pieces[i] = (struct stow_piece){.start = (uint64_t)blocks[i], .length = 2 * MIB};
        }
        struct moved_blocks moved = {pieces, BLOCKS};
        pthread_t thread;
        MUST_BE(pthread_create(&thread, NULL, move_blocks, &moved), 0);
        usleep((useconds_t)(rand_r(&seed) % 20000));
        for (int i = 0; i < BLOCKS; i++) {
            int k = (i * 7) % BLOCKS;
            MUST(holds(blocks[k], 2 * MIB, (uint64_t)k));
            free(blocks[k]);
            blocks[k] = malloc(2 * MIB);
            fill(blocks[k], 2 * MIB, (uint64_t)k + 100);
        }
        pthread_join(thread, NULL);
        for (int i = 0; i < BLOCKS; i++) {
            MUST(holds(blocks[i], 2 * MIB, (uint64_t)i + 100));
            free(blocks[i]);
        }
        MUST_BE(stow_bytes_(0), 0);
    }
}

static uint64_t no_more; /* 1: the thread is to end */

static void *cancel_soon(void *unused) {
    (void)unused;
    struct stow_progress progress;
    do progress = stow_progress_();
    while (!progress.moved && !stop);
    MUST(stop || (progress.at_work && progress.wanted == 512 * (uint64_t)MIB));
    __atomic_store_n(&no_more, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void cancelled(void) {
    size_t length = (size_t)512 * MIB;
    char *p = map_memory(length);
    memset(p, 3, length);
    pthread_t thread;
    uint32_t why;
    struct stow_options options = *usual();
    options.end = (struct move_end){&no_more, 1};
    MUST_BE(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
    int64_t moved = out(p, length, &options, &why);
    stop = true;
    pthread_join(thread, NULL);
    MUST(moved > 0 && moved < (int64_t)length);
    MUST_BE(why, STOW_CANCELLED);
    MUST_BE(stow_bytes_(0), moved);
    MUST(!stow_progress_().at_work);
    for (size_t i = 0; i < length; i += PAGE) MUST(p[i] == 3);
    MUST(in(p, length, usual()) == moved);
}

static void *adopt_soon(void *unused) {
    struct stow_progress progress;
    do progress = stow_progress_();
    while (!progress.moved && !stop);
    stow_change_owner_(1, 2);
    return unused;
}

/* If memory is adopted while it moves, all of it belongs to the new owner. */
static void adopted_while_moving(void) {
    size_t length = (size_t)256 * MIB;
    char *p = map_memory(length);
    memset(p, 3, length);
    pthread_t thread;
    MUST_BE(pthread_create(&thread, NULL, adopt_soon, NULL), 0);
    MUST_BE(out(p, length, usual(), NULL), length);
    stop = true;
    pthread_join(thread, NULL);
    MUST_BE(stow_bytes_(1), 0);
    MUST_BE(stow_bytes_(2), length);
}

static int descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void leaves_no_descriptor(void) {
    int before = descriptors();
    char *p = stowed(LENGTH, 1);
    MUST_BE(descriptors(), before);
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST_BE(descriptors(), before);
    mlock(p, PAGE);
    out(p, LENGTH, usual(), NULL);
    MUST_BE(descriptors(), before);
}

static void *close_all(void *unused) {
    (void)unused;
    while (!stop) {
        for (int fd = 3; fd < 40; fd++) close(fd);
        int mine = open("user.txt", O_RDWR);
        (void)mine;
    }
    return NULL;
}

/* The trap: without precautions, a write would go to a descriptor number that the program has closed and used again. */
static void descriptors_closed_meanwhile(void) {
    int fd = open("user.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(write(fd, "mine", 4) == 4);
    close(fd);
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    pthread_t thread;
    MUST_BE(pthread_create(&thread, NULL, close_all, NULL), 0);
    for (int i = 0; i < 30; i++) {
        out(p, LENGTH, usual(), NULL);
        in(p, LENGTH, usual());
        MUST(holds(p, LENGTH, 1));
    }
    stop = true;
    pthread_join(thread, NULL);
    struct stat status;
    MUST(stat("user.txt", &status) == 0);
    MUST_BE(status.st_size, 4);
}

/* The directory is removed while an unlinked file in it holds stowed memory. That memory comes back. A move to the
 * removed directory is refused. */
static void directory_goes_away(void) {
    char path[512], *p = map_memory(LENGTH), *q = map_memory(LENGTH);
    uint32_t why;
    snprintf(path, sizeof path, "%s/gone", getenv("MEMSTOW_STOW_DIR"));
    MUST_BE(mkdir(path, 0700), 0);
    const struct stow_options there = {.idle = true, .directory = path};
    fill(p, LENGTH, 1);
    fill(q, LENGTH, 2);
    MUST_BE(out(p, LENGTH, &there, NULL), LENGTH);
    MUST_BE(rmdir(path), 0);
    MUST(out(q, LENGTH, &there, &why) == -ENOTSUP && why == STOW_NO_DIRECTORY && holds(q, LENGTH, 2));
    MUST(holds(p, LENGTH, 1));
    MUST_BE(in(p, LENGTH, &idle), LENGTH);
    MUST(holds(p, LENGTH, 1) && !is_file_backed(p));
}

/* A direct read (O_DIRECT) bypasses the page cache: the disk writes into the physical pages that the read was given,
 * even if other pages have been mapped at their address since. Memory that moves out during such a read must have the
 * data when the read has ended. */
enum { READ = 64 * 1024 };
static char on_disk[READ] __attribute__((aligned(4096)));
static pthread_mutex_t read_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static bool wanted;
static uint64_t reads;

static void read_once(int fd, char *to) {
    memset(to, 0, READ);
    MUST_BE(pread(fd, to, READ, 0), READ);
    MUST(!memcmp(to, on_disk, READ));
    reads++;
}

static void *read_directly(void *p) {
    char path[512];
    fill(on_disk, READ, 3);
    snprintf(path, sizeof path, "%s/read", getenv("MEMSTOW_STOW_DIR"));
    int fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    MUST(fd >= 0 && write(fd, on_disk, READ) == READ && unlink(path) == 0);
    for (size_t i = 0; !stop; i++) {
        while (__atomic_load_n(&wanted, __ATOMIC_ACQUIRE)) sched_yield();
        pthread_mutex_lock(&read_at_a_time);
        read_once(fd, (char *)p + i * 7919 % (LENGTH / READ) * READ);
        pthread_mutex_unlock(&read_at_a_time);
    }
    close(fd);
    return NULL;
}

static void read_past_the_cache_meanwhile(void) {
    char *p = map_memory(LENGTH), *probe = map_memory(PAGE);
    pthread_t thread;
    int refused = 0;
    *probe = 1;
    if (out(probe, PAGE, NULL, NULL) < 0) skip("the kernel cannot move pages one by one (UFFDIO_MOVE)");
    memset(p, 1, LENGTH);
    MUST_BE(pthread_create(&thread, NULL, read_directly, p), 0);
    for (int i = 0; i < 30; i++) {
        uint32_t why;
        MUST(out(p, LENGTH, NULL, &why) >= 0 || why == STOW_PINNED);
        refused += why == STOW_PINNED;
        __atomic_store_n(&wanted, true, __ATOMIC_RELEASE);
        pthread_mutex_lock(&read_at_a_time); /* no read may be on its way into memory that comes back */
        __atomic_store_n(&wanted, false, __ATOMIC_RELEASE);
        in(p, LENGTH, NULL);
        pthread_mutex_unlock(&read_at_a_time);
    }
    stop = true;
    pthread_join(thread, NULL);
    MUST(reads >= 30);
    printf("%llu reads, %d moves found one on its way\n", (unsigned long long)reads, refused);
}

/* A thread writes to the memory of an owner that is declared idle. The method that compares notices the writes. */
static void *increment(void *p) {
    while (!stop)
        for (size_t i = 0; i < LENGTH; i += 16 * PAGE)
            __atomic_fetch_add((uint64_t *)((char *)p + i), 1, __ATOMIC_RELAXED);
    return NULL;
}

static void comparing_finds_writers(void) {
    char *p = map_memory(LENGTH);
    pthread_t thread;
    uint32_t why;
    MUST_BE(pthread_create(&thread, NULL, increment, p), 0);
    while (!*(volatile uint64_t *)p) sched_yield();
    int refused = 0;
    for (int i = 0; i < 10; i++) { /* several tries, because a writer that does not run at the moment is not noticed */
        MUST(out(p, LENGTH, &by_comparing, &why) < LENGTH);
        refused += why == STOW_IN_USE;
    }
    MUST(refused > 0);
    stop = true;
    pthread_join(thread, NULL);
}

static void *increment_beside(void *p) {
    uint64_t count = 0;
    for (; !stop; count++)
        for (size_t i = 0; i < 4 * PAGE; i += 64) {
            ++*(volatile uint64_t *)((char *)p + 4 * MIB - 4 * PAGE + i);
            ++*(volatile uint64_t *)((char *)p + 12 * MIB + i);
        }
    return (void *)count;
}

/* Other threads write all the time to pages beside an idle owner's pages. No write is lost. */
static void comparing_beside_writers(void) {
    char *p = map_memory(LENGTH);
    void *count;
    pthread_t writer;
    fill(p + 4 * MIB, 8 * MIB, 1);
    MUST_BE(pthread_create(&writer, NULL, increment_beside, p), 0);
    for (int i = 0; i < 10; i++) {
        MUST_BE(out(p + 4 * MIB, 8 * MIB, &by_comparing, NULL), 8 * MIB);
        MUST_BE(in(p + 4 * MIB, 8 * MIB, &by_comparing), 8 * MIB);
    }
    stop = true;
    pthread_join(writer, &count);
    MUST(holds(p + 4 * MIB, 8 * MIB, 1));
    for (size_t i = 0; i < 4 * PAGE; i += 64) {
        MUST(*(uint64_t *)(p + 4 * MIB - 4 * PAGE + i) == (uint64_t)count);
        MUST(*(uint64_t *)(p + 12 * MIB + i) == (uint64_t)count);
    }
}

static const struct test_case CASES[] = {
    {"round_trip_by_move", round_trip_by_move},
    {"round_trip_by_remap", round_trip_by_remap},
    {"round_trip_by_comparing", round_trip_by_comparing},
    {"holes_stay_holes", holes_stay_holes},
    {"only_read_stays", only_read_stays},
    {"small_holes", small_holes},
    {"many_pieces", many_pieces},
    {"huge_pages", huge_pages},
    {"free_reads_nothing", free_reads_nothing},
    {"free_inside_a_heap", free_inside_a_heap},
    {"munmap_in_part", munmap_in_part},
    {"mapped_over", mapped_over},
    {"asked_in_vain", asked_in_vain},
    {"guard_pages_mean_zeros", guard_pages_mean_zeros},
    {"dontneed_means_zeros", dontneed_means_zeros},
    {"wipeonfork_is_taken", wipeonfork_is_taken},
    {"munmap_is_refused", munmap_is_refused},
    {"dontneed_is_refused", dontneed_is_refused},
    {"dontneed_without_descriptors", dontneed_without_descriptors},
    {"environment_is_gone", environment_is_gone},
    {"exec_is_unmoved", exec_is_unmoved},
    {"forked_child_reads", forked_child_reads},
    {"shared_with_a_child", shared_with_a_child},
    {"fork_in_the_middle", fork_in_the_middle},
    {"child_moves_by_itself", child_moves_by_itself},
    {"fork_takes_a_lock", fork_takes_a_lock},
    {"freed_while_moving", freed_while_moving},
    {"cancelled", cancelled},
    {"adopted_while_moving", adopted_while_moving},
    {"leaves_no_descriptor", leaves_no_descriptor},
    {"descriptors_closed_meanwhile", descriptors_closed_meanwhile},
    {"directory_goes_away", directory_goes_away},
    {"read_past_the_cache_meanwhile", read_past_the_cache_meanwhile},
    {"comparing_finds_writers", comparing_finds_writers},
    {"comparing_beside_writers", comparing_beside_writers},
};

int main(int argc, char **argv) { return name_or_run(CASES, sizeof CASES / sizeof *CASES, argc, argv); }
