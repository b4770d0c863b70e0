"""An exec fails, as in every search along PATH. The process and its ledger go on, also in a forked child with threads
of its own."""
import _fork, support

reports = _fork.run(r'''
static volatile int stop;
static void *churn(void *unused) {
    while (!stop) {
        void *p = malloc(2000);
        free(p);
    }
    return malloc(700);
}
static void with_threads(const char *who, long inherited) {
    pthread_t threads[3];
    char *const arguments[] = {"absent", 0};
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], 0, churn, 0);
    void *volatile p = malloc(100);
    for (int i = 0; i < 50; i++) {
        execv("/nowhere/absent", arguments);
        usleep(1000);
        execvp("absent-from-path", arguments);
        execl("/nowhere/absent", "absent", "a", "b", (char *)0);
    }
    stop = 1;
    for (int t = 0; t < 3; t++) pthread_join(threads[t], 0);
    say(who, 2200 + (inherited ? 0 : 5000), 4 + !inherited, inherited, 0);
}
int main(void) {
    void *volatile before = malloc(5000);
    if (!fork()) {
        with_threads("child", 5000);
        exit(0);
    }
    int status;
    wait(&status);
    with_threads("parent", 0);
    return status != 0;
}
''', "execs", count=2)
assert all(r["process"]["state"] == "exited" for r in reports.values())

# Then it succeeds: the new image has a file, and the file of the old image is kept beside it.
support.track("sh", "-c", "PATH=/nowhere:/absent:/usr/bin:/bin exec env true", file="found.mst")
assert support.report("found.mst")["process"]["name"] == "true"
