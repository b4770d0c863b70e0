// Call stacks in a forked child: it goes on in frames that its parent made.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <sys/wait.h>

enum { BEFORE = 10007, CHILD = 10009, CHILD_UP = 10037, PARENT = 10039 };

static pid_t child;

FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}
FRAME static void forks(void) {
    allocate(BEFORE);
    child = fork();
    allocate(child ? PARENT : CHILD);
    STAY;
}
FRAME static void descend(unsigned depth) {
    if (depth)
        descend(depth - 1);
    else
        forks();
    if (depth == 3 && !child) allocate(CHILD_UP);
    STAY;
}

int main(void) {
    descend(6);
    if (!child) return 0;
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    EXPECT_STACK(BEFORE, "allocate<forks<descend{7}<main");
    EXPECT_STACK(PARENT, "allocate<forks<descend{7}<main");
    say("expect@%d stack %u allocate<forks<descend{7}<main", (int)child, CHILD);
    say("expect@%d stack %u allocate<descend{4}<main", (int)child, CHILD_UP);
    return 0;
}
