"""A handler that forks interrupts malloc and free anywhere. Parent and children go on. If the handler comes within the
few instructions that count an event, the child, too, runs the rest of these instructions, and may write to the parent's
ledger. Each such fork makes the parent's figures wrong by one operation at most."""
import _fork

FORKS, LARGEST = 150, 1900
reports = _fork.run(r'''
static volatile int forks;
static void *held[100];
static volatile pid_t parent;
static void handle(int number) {
    if (getpid() != parent || forks >= 150)
        return;
    forks++;
    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) /* not libc's fork: its handlers take malloc's locks */
        setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
}
int main(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 1000}, {0, 1000}};
    parent = getpid();
    for (int i = 0; i < 100; i++)
        held[i] = malloc(100);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    while (forks < 150 && getpid() == parent)
        for (int i = 0; i < 100; i++)
            free(held[i]), held[i] = malloc(100 + i % 7 * 300);
    if (getpid() != parent) { /* goes on from wherever it was interrupted */
        for (int round = 0; round < 50; round++)
            for (int i = 0; i < 100; i++)
                free(held[i]), held[i] = malloc(50);
        _exit(0);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    int status, bad = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    for (int i = 0; i < 100; i++)
        free(held[i]);
    say("parent", -1, -1, 0, 0);
    return bad != 0;
}
''', "handler", count=1)
totals = reports["parent"]["totals"]
off = totals["live_blocks"], totals["live_bytes"]
print(f"after {FORKS} forks off by {off[0]} blocks, {off[1]} bytes")
assert abs(off[0]) <= FORKS / 3 and abs(off[1]) <= FORKS / 3 * LARGEST, off
