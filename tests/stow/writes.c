/* writes.c — writes MODE WRITES THREADS: threads write to memory that is moved out and back meanwhile. Each thread
 * counts its writes, and at the end the memory must have all of them. In the mode "comparing" nobody may write during a
 * move. So in this mode the threads write only between moves, to stowed memory and to memory that is back. */
#include "moving.h"

#include <pthread.h>

enum { LENGTH = 12 * MIB, WORDS = LENGTH / 8, MOST = 16, CYCLES = 10 };

static uint64_t *memory;
static uint64_t each, made;
static uint32_t running;
static uint64_t cycles, moved_bytes;

/* In modes in which writers rest during moves, a writer holds this lock for reading, and the mover takes it for
 * writing. */
static pthread_rwlock_t writing;
static bool rests;

static void begin_to_write(void) {
    if (rests) pthread_rwlock_rdlock(&writing);
}
static void rest(void) {
    if (rests) pthread_rwlock_unlock(&writing);
}

static void let_them_rest(void) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    MUST(pthread_rwlock_init(&writing, &attributes) == 0);
    rests = true;
}

static void *count_up(void *context) {
    uint64_t state = (uint64_t)(uintptr_t)context * 0x9E3779B97F4A7C15u + 1;
    uint64_t done = 0;
    begin_to_write();
    for (; done < each || __atomic_load_n(&cycles, __ATOMIC_RELAXED) < CYCLES; done++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        __atomic_fetch_add(&memory[state % (WORDS - PAGE / 8)], 1, __ATOMIC_RELAXED);
        if (done % 256 == 255) rest(), begin_to_write();
    }
    rest();
    __atomic_fetch_add(&made, done, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Makes the kernel write to the last page, by reads from a pipe into it, and checks the page's content. */
static void *read_into(void *unused) {
    (void)unused;
    int ends[2];
    uint64_t *word = memory + WORDS - 1, n = 0;
    MUST(pipe(ends) == 0);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        uint64_t next = n + 1;
        MUST(write(ends[1], &next, 8) == 8);
        begin_to_write();
        MUST(__atomic_load_n(word, __ATOMIC_RELAXED) == n);
        MUST(read(ends[0], word, 8) == 8);
        rest();
        n = next;
    }
    MUST(*word == n);
    *word = 0;
    return NULL;
}

/* In the mode that promises an idle owner, no thread writes during the move. Threads write again after it. */
static int64_t alone(int64_t (*move)(const struct stow_options *options), const struct stow_options *options) {
    if (rests) pthread_rwlock_wrlock(&writing);
    int64_t moved = move(options);
    if (rests) pthread_rwlock_unlock(&writing), usleep(2000);
    return moved;
}

static uint32_t why;
static int64_t all_out(const struct stow_options *options) { return out(memory, LENGTH, options, &why); }
static int64_t all_in(const struct stow_options *options) { return in(memory, LENGTH, options); }

static void cycle(const struct stow_options *options, bool use) {
    int64_t moved = alone(all_out, options);
    if (moved < 0) fprintf(stderr, "out: %ld, %s\n", (long)moved, stow_text_(why));
    MUST(moved >= 0);
    moved_bytes += (uint64_t)moved;
    cycles++;
    if (use && cycles % 3 == 0) return; /* out once more, without having been back as a whole */
    moved = alone(all_in, rests ? options : NULL);
    MUST(moved > 0);
}

int main(int argc, char **argv) {
    MUST(argc == 4);
    bool remap = !strcmp(argv[1], "remap"), comparing = !strcmp(argv[1], "comparing");
    struct stow_options options = {.method = comparing ? STOW_BY_COMPARING
                                             : remap   ? STOW_BY_REMAP
                                                       : STOW_BY_MOVE,
                                   .idle = remap || comparing};
    uint32_t threads = (uint32_t)atoi(argv[3]);
    pthread_t writers[MOST], reader;
    find_engine();
    memory = (uint64_t *)map_memory(LENGTH);
    memory[0] = 0;
    if (comparing) let_them_rest();
    if (!comparing && !has_userfaultfd()) skip("this process may not use userfaultfd");
    char *probe = map_memory(PAGE);
    *probe = 1;
    if (out(probe, PAGE, &options, &why) < 0) skip("%s", stow_text_(why));
    MUST(threads && threads <= MOST);
    each = strtoull(argv[2], NULL, 10) / threads;
    running = threads;
    for (uint32_t i = 0; i < threads; i++)
        MUST(pthread_create(&writers[i], NULL, count_up, (void *)(uintptr_t)(i + 1)) == 0);
    MUST(pthread_create(&reader, NULL, read_into, NULL) == 0);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) cycle(&options, !remap);
    for (uint32_t i = 0; i < threads; i++) pthread_join(writers[i], NULL);
    pthread_join(reader, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++) sum += memory[i];
    printf("%llu writes, %lld lost, in %llu cycles that moved %llu MiB\n", (unsigned long long)made,
           (long long)(made - sum), (unsigned long long)cycles, (unsigned long long)(moved_bytes / MIB));
    return sum == made ? 0 : 1;
}
