"""Forks in the middle of other threads' allocations. Every child runs, and is exact about its own memory. Its inherited
bytes are exact except for operations in flight. The parent is exact."""
import _fork

reports = _fork.run(r'''
enum { THREADS = 3, SIZE = 1000, LARGE = 70000, CHILDREN = 60 };
static volatile int stop;
static void *churn(void *unused) {
    unsigned i = 0;
    while (!stop) {
        void *p = malloc(++i % 64 ? SIZE : LARGE);
        p = realloc(p, SIZE / 2);
        free(p);
    }
    return 0;
}
int main(void) {
    pthread_t threads[THREADS];
    void *volatile kept = malloc(123456);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], 0, churn, 0);
    for (int i = 0; i < CHILDREN; i++) {
        if (!fork()) {
            char name[20];
            void *a = malloc(500), *b = malloc(80000);
            free(kept);
            free(a);
            snprintf(name, sizeof name, "child%d", i);
            say(name, 80000, 1, -1, 123456);
            exit(0);
        }
        if (i % 4 == 3)
            wait(0);
    }
    while (wait(0) > 0)
        ;
    stop = 1;
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    say("parent", 123456, 1, 0, 0);
    return 0;
}
''', "churning", count=61)
base = 123456
for who, report in reports.items():
    if who != "parent":
        inherited = report["process"]["inherited"]["bytes_at_fork"]
        assert base <= inherited <= base + 3 * (70000 + 1500) + 3 * 4096, (who, inherited)
