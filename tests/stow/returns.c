/* returns.c CASE — stowed memory comes back, by request or because of a call of the program. */
#include "methods.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>

enum { MODEL = 1 /* MEMSTOW_MODEL */ };

/* --- by request --- */

static int reading;

static void *read_all_the_time(void *p) {
    size_t wrong = 0;
    while (__atomic_load_n(&reading, __ATOMIC_RELAXED)) wrong += !holds(p, 3 * LENGTH, 1);
    return (void *)wrong;
}

/* A thread reads the memory of an owner that is declared idle. The thread sees the right content at any time. */
static void back_beside_a_reader(void) {
    pthread_t reader;
    void *wrong;
    need_userfaultfd();
    char *p = map_memory(3 * LENGTH);
    fill(p, 3 * LENGTH, 1);
    reading = 1;
    MUST_BE(pthread_create(&reader, NULL, read_all_the_time, p), 0);
    for (int i = 0; i < 6; i++) {
        MUST(out(p, 3 * LENGTH, &idle, NULL) > 0);
        p[LENGTH] ^= 0; /* the page becomes private memory, no longer the file's */
        MUST_BE(in(p, 3 * LENGTH, &idle), 3 * LENGTH);
        MUST(!is_file_backed(p) && !is_file_backed(p + 3 * LENGTH - 1));
    }
    __atomic_store_n(&reading, 0, __ATOMIC_RELAXED);
    pthread_join(reader, &wrong);
    MUST(!wrong);
}

/* Memory comes back whole, even if the buffer that its content is read into lies directly below it. */
static void back_beside_its_room(void) {
    enum { LONG = 256 * MIB };
    char *p = map_memory(LONG);
    fill(p, LONG, 1);
    MUST_BE(out(p, LONG, &idle, NULL), LONG);
    MUST_BE(in(p, LONG, &idle), LONG);
    MUST(holds(p, LONG, 1));
}

/* Memory that was read and written to since it was stowed is moved out again, and then restored whole. */
static void written_since_and_moved_again(void) {
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    MUST_BE(out(p, LENGTH, usual(), NULL), LENGTH);
    fill(p + 3 * MIB, MIB, 2);
    p[20 * MIB] = 77;
    MUST(holds(p, 3 * MIB, 1));
    size_t before = rss();
    MUST(out(p, LENGTH, usual(), NULL) > 0);
    MUST(before - rss() >= 3 * MIB);
    MUST_BE(pages_in(p, LENGTH, false), 0);
    MUST(holds(p, 3 * MIB, 1) && holds(p + 3 * MIB, MIB, 2) && p[20 * MIB] == 77);
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST(holds(p, 3 * MIB, 1) && holds(p + 3 * MIB, MIB, 2) && p[20 * MIB] == 77);
    MUST(!is_file_backed(p + 3 * MIB));
}

/* --- memory comes back because of a call of the program --- */

static void realloc_keeps_content(void) {
    for (int i = 0; i < 2; i++) {
        size_t size = i ? 100 * 1000 : LENGTH;
        char *p = malloc(size);
        fill(p, size, 1);
        MUST(out(p, size, usual(), NULL) > 0);
        p = realloc(p, 3 * size);
        MUST(p && holds(p, size, 1));
        memset(p + size, 1, 2 * size);
        MUST(out(p, 3 * size, usual(), NULL) > 0);
        p = realloc(p, size / 2);
        MUST(p && holds(p, size / 2, 1));
        free(p);
    }
    MUST_BE(stow_bytes_(0), 0);
}

/* Truncates the file behind this memory to 0 bytes, so that the memory cannot be read any more. */
static void lose_file_of(const void *p) {
    char line[512], path[64];
    FILE *f = fopen("/proc/self/maps", "r");
    MUST(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2 || (uintptr_t)p < start || (uintptr_t)p >= end) continue;
        snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
        int fd = open(path, O_RDWR);
        if (fd < 0) skip("needs root, to open the file behind a mapping");
        MUST_BE(ftruncate(fd, 0), 0);
        close(fd);
    }
    fclose(f);
}

/* realloc fails if the content of a stowed block cannot be read any more. This is tried for a large block of malloc's,
 * and for a large block of a model, which is a mapping of its own. */
static void realloc_of_what_is_lost(void) {
    int64_t (*open_owner)(uint32_t, const char *, const char *, uint64_t, uint64_t) =
        (__typeof__(open_owner))dlsym(RTLD_DEFAULT, "memstow_owner_open");
    int32_t (*enter)(uint32_t) = (__typeof__(enter))dlsym(RTLD_DEFAULT, "memstow_scope_enter");
    for (int i = 0; i < 2; i++) {
        if (i) MUST_BE(enter((uint32_t)open_owner(MODEL, "model", "", 1, 0)), 0);
        char *p = malloc(LENGTH);
        fill(p, LENGTH, 1);
        MUST(out(p, LENGTH, usual(), NULL) > 0);
        lose_file_of(p + MIB);
        errno = 0;
        MUST(!realloc(p, 2 * LENGTH) && errno == ENOMEM);
        free(p);
    }
    MUST_BE(stow_bytes_(0), 0);
}

/* The trap: memory that has grown beyond the end of the file would give SIGBUS. */
static void mremap_grows(void) {
    char *p = stowed(LENGTH, 1);
    char *q = mremap(p, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
    MUST(q != MAP_FAILED && holds(q, LENGTH, 1));
    memset(q + LENGTH, 5, LENGTH);
    MUST(!is_file_backed(q));
    MUST_BE(stow_bytes_(0), 0);
}

static void *wait_for_ever(void *unused) {
    pause();
    return unused;
}

static void mremap_grows_beside_a_thread(void) {
    pthread_t thread;
    MUST_BE(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    mremap_grows();
    realloc_keeps_content();
}

static void protect_while_stowed(void) {
    char *p = stowed(LENGTH, 1);
    MUST_BE(mprotect(p, LENGTH, PROT_READ), 0);
    MUST(holds(p, LENGTH, 1));
    uint32_t why;
    struct stow_piece piece = {.start = (uint64_t)p, .length = LENGTH};
    MUST(stow_in_(&piece, 1, usual()) == -ENOTSUP && piece.refusal == STOW_NO_ACCESS);
    MUST_BE(mprotect(p, LENGTH, PROT_READ | PROT_WRITE), 0);
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST(holds(p, LENGTH, 1));
    MUST_BE(mprotect(p, LENGTH, PROT_READ), 0);
    MUST(out(p, LENGTH, usual(), &why) == -ENOTSUP && why == STOW_NO_ACCESS);
}

static void mlock_brings_back(void) {
    char *p = stowed(MIB, 1);
    if (mlock(p, MIB)) skip("RLIMIT_MEMLOCK is too low");
    MUST(!is_file_backed(p) && pages_in(p, MIB, true) == MIB / PAGE);
    MUST(holds(p, MIB, 1));
}

/* Locked memory refuses MADV_DONTNEED, and keeps its content. */
static void mlockall_brings_back(void) {
    char *p = stowed(MIB, 1);
    if (mlockall(MCL_CURRENT)) skip("RLIMIT_MEMLOCK is too low");
    MUST(!is_file_backed(p) && pages_in(p, MIB, true) == MIB / PAGE);
    MUST(madvise(p, MIB, MADV_DONTNEED) == -1 && errno == EINVAL);
    MUST(holds(p, MIB, 1));
    MUST_BE(munlockall(), 0);
}

static int told;
static void note_told(uint64_t moved, uint64_t wanted, void *context) {
    (void)moved, (void)wanted;
    MUST(context == &told);
    __atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

/* mlock brings memory back without a report of progress, because the function that the move out reported to may be
 * gone. */
static void mlock_tells_nobody(void) {
    struct stow_options options = *usual();
    options.tell = note_told, options.context = &told;
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    MUST_BE(out(p, LENGTH, &options, NULL), LENGTH);
    int before = told;
    MUST(before > 1);
    if (mlock(p, MIB)) skip("RLIMIT_MEMLOCK is too low");
    MUST(!is_file_backed(p) && holds(p, LENGTH, 1));
    MUST_BE(told, before);
}

/* A memory policy or a protection key would be lost when stowed memory gets a new mapping. So memory comes back before
 * the program sets one. */
static void memory_policy_brings_back(void) {
    unsigned long nodes = 1;
    uint32_t why;
    char *p = stowed(LENGTH, 1);
    if (syscall(SYS_mbind, p, LENGTH, 2 /* MPOL_BIND */, &nodes, 8, 0)) skip("mbind: %s", strerror(errno));
    MUST(!is_file_backed(p) && holds(p, LENGTH, 1));
    MUST(out(p, LENGTH, usual(), &why) == -ENOTSUP && why == STOW_MEMORY_POLICY);
    char *q = stowed(LENGTH, 2);
    MUST_BE(pkey_mprotect(q, LENGTH, PROT_READ, -1), 0); /* mprotect by another name */
    MUST(is_stowed_(q) && holds(q, LENGTH, 2));
    int key = pkey_alloc(0, 0);
    if (key < 0) return; /* this processor has none */
    /* Read-only memory cannot come back as a whole (docs/limits.md). */
    MUST(pkey_mprotect(q, LENGTH, PROT_READ, key) == -1 && errno == ENOMEM && holds(q, LENGTH, 2));
    MUST_BE(mprotect(q, LENGTH, PROT_READ | PROT_WRITE), 0);
    MUST_BE(pkey_mprotect(q, LENGTH, PROT_READ | PROT_WRITE, key), 0);
    MUST(!is_file_backed(q) && holds(q, LENGTH, 2));
}

/* Makes a call that changes memory and takes long, because it waits for a page. */
static void *lock_memory(void *p) {
    MUST_BE(mlock(p, PAGE), 0);
    return NULL;
}

static void *bring_back(void *p) { return (void *)in(p, LENGTH, NULL); }

/* Memory comes back only after the calls that the program began earlier have ended. */
static void back_after_what_began_before(void) {
    need_userfaultfd();
    char *p = stowed(LENGTH, 1), *q = map_memory(PAGE);
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uint64_t)q, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct uffd_msg message;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
        skip("userfaultfd: %s", strerror(errno));
    pthread_t locker, mover;
    void *back;
    MUST_BE(pthread_create(&locker, NULL, lock_memory, q), 0);
    MUST(read(fd, &message, sizeof message) == sizeof message); /* the locker waits for its page */
    MUST_BE(pthread_create(&mover, NULL, bring_back, p), 0);
    usleep(200000);
    MUST(is_stowed_(p));
    struct uffdio_zeropage zeros = {.range = {(uint64_t)q, PAGE}};
    MUST_BE(ioctl(fd, UFFDIO_ZEROPAGE, &zeros), 0);
    pthread_join(locker, NULL);
    pthread_join(mover, &back);
    MUST((int64_t)back == LENGTH || in(p, LENGTH, usual()) == LENGTH); /* the mover may have given up */
    MUST(holds(p, LENGTH, 1));
}

static void kernel_writes_into_it(void) {
    char *p = stowed(LENGTH, 1);
    int fd = open("/proc/self/exe", O_RDONLY);
    char head[PAGE];
    MUST(pread(fd, head, PAGE, 0) == PAGE && pread(fd, p + MIB, PAGE, 0) == PAGE);
    MUST(!memcmp(head, p + MIB, PAGE));
    MUST_BE(in(p, LENGTH, usual()), LENGTH);
    MUST(!memcmp(head, p + MIB, PAGE) && holds(p, MIB, 1));
}

static void run_on(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one)) skip("this process may not use processor %d", processor);
}

/* Trap: each processor has a list of the pages that it read last. MADV_PAGEOUT on another processor takes no page from
 * that list. */
static void read_by_another_processor(void) {
    char *p = stowed(LENGTH, 1);
    MUST_BE(madvise(p, LENGTH, MADV_RANDOM), 0); /* no pages beside those that are read */
    for (int i = 0; i < 20; i++) {
        run_on(0);
        for (size_t at = 0; at < (size_t)5 * MIB; at += MIB) MUST(*(uint64_t *)(p + at) == word_at(at / 8, 1));
        run_on(1);
        MUST_BE(out(p, LENGTH, usual(), NULL), 5 * PAGE);
        MUST_BE(pages_in(p, LENGTH, false), 0);
    }
}

static const struct test_case CASES[] = {
    {"back_beside_a_reader", back_beside_a_reader},
    {"back_beside_its_room", back_beside_its_room},
    {"written_since_and_moved_again", written_since_and_moved_again},
    {"realloc_keeps_content", realloc_keeps_content},
    {"realloc_of_what_is_lost", realloc_of_what_is_lost},
    {"mremap_grows", mremap_grows},
    {"mremap_grows_beside_a_thread", mremap_grows_beside_a_thread},
    {"protect_while_stowed", protect_while_stowed},
    {"mlock_brings_back", mlock_brings_back},
    {"mlock_tells_nobody", mlock_tells_nobody},
    {"mlockall_brings_back", mlockall_brings_back},
    {"memory_policy_brings_back", memory_policy_brings_back},
    {"back_after_what_began_before", back_after_what_began_before},
    {"kernel_writes_into_it", kernel_writes_into_it},
    {"read_by_another_processor", read_by_another_processor},
};

int main(int argc, char **argv) { return name_or_run(CASES, sizeof CASES / sizeof *CASES, argc, argv); }
