"""The inherited bytes of a child are exact if the threads of its parent stand still. A child of the child inherits in
turn."""
import _fork

reports = _fork.run(r'''
static void *hold(void *size) {
    void *volatile p = malloc((size_t)size);
    pause();
    return p;
}
int main(void) {
    pthread_t thread;
    void *a = malloc(1000), *b = malloc(200000), *c = aligned_alloc(8192, 8192), *d = malloc(77);
    char *p = mmap(0, 40960, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(d);
    say("parent", 1000 + 200000 + 8192 + 40960, 4, 0, 0);
    if (!fork()) {
        free(a);
        void *volatile e = malloc(5);
        munmap(p, 40960); /* of the parent: no mapping of this process's ledger */
        say("child", 5, 1, 209192, 1000);
        if (!fork()) {
            free(e), free(b), free(c);
            void *volatile f = calloc(1, 9);
            say("grandchild", 9, 1, 208197, 5 + 200000 + 8192);
            exit(0);
        }
        wait(0);
        exit(0);
    }
    wait(0);
    return 0;
}
''', "inherited", count=3)
assert reports["child"]["process"]["fork_depth"] == 1 and reports["grandchild"]["process"]["fork_depth"] == 2
assert reports["child"]["process"]["parent_pid"] == reports["parent"]["process"]["pid"]
