"""A child of a threaded program. Its inherited bytes are known exactly; its frees of inherited blocks and its own
allocations are counted in its own file; the parent's ledger stays exact. The threads hold blocks of all kinds, and
stand still meanwhile."""
import _fork

_fork.run(r'''
enum { THREADS = 8, EACH = 200 };
static void *blocks[THREADS][EACH];
static pthread_barrier_t ready, done;
static size_t size_of(int i) { return i % 50 == 0 ? 70000 + i : i % 7 == 0 ? 4096 : 10 + i * 3; }
static void *work(void *argument) {
    int t = (long)argument;
    for (int i = 0; i < EACH; i++)
        blocks[t][i] = i % 7 == 0 ? aligned_alloc(4096, size_of(i)) : malloc(size_of(i));
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
    for (int i = 0; i < EACH; i += 4)
        free(blocks[t][i]);
    return 0;
}
int main(void) {
    pthread_t threads[THREADS];
    long held = 0, kept = 0, freed = 0, live = 0, libc = 0;
    void *volatile first = malloc(1);
    pthread_barrier_init(&ready, 0, THREADS + 1);
    pthread_barrier_init(&done, 0, THREADS + 1);
    for (long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], 0, work, (void *)t);
    pthread_barrier_wait(&ready);
    for (int i = 0; i < EACH; i++)
        held += THREADS * size_of(i), kept += i % 4 ? THREADS * size_of(i) : 0;
    for (int round = 0; round < 3; round++)
        if (!fork()) {
            long count = 0;
            for (int t = 0; t < THREADS; t++)
                for (int i = 0; i < EACH; i++)
                    if (i % 3 == 0)
                        freed += size_of(i), free(blocks[t][i]);
                    else if (i % 3 == 1 && i % 7) {
                        freed += size_of(i), live += 3 * size_of(i) + 1, count++;
                        blocks[t][i] = realloc(blocks[t][i], 3 * size_of(i) + 1);
                    }
            say(round == 0 ? "child0" : round == 1 ? "child1" : "child2", live, count, -1, freed);
            exit(0);
        }
    while (wait(0) > 0)
        ;
    pthread_barrier_wait(&done);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    say("parent", kept + 1, THREADS * EACH * 3 / 4 + 1, 0, 0);
    return 0;
}
''', "threaded", count=4)
