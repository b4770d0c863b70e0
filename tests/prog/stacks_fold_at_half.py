"""Dead call stacks give up their memory when half of the limit for call stacks is used. Live call stacks may use the
other half as well, and no stack is lost."""
import support

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *down(unsigned path, int depth);
static void *(*volatile next)(unsigned, int) = down;

/* One of two calls, by the lowest bit of the path. So each path is a call stack of its own. */
static void *down(unsigned path, int depth) {
    void *p;
    if (depth == 0)
        p = malloc(10);
    else if (path & 1)
        p = next(path >> 1, depth - 1);
    else
        p = next(path >> 1, depth - 1);
    __asm__ volatile("" : "+r"(p));
    return p;
}

int main(int argc, char **argv) {
    int dead = argc > 2 && strcmp(argv[1], "dead") == 0;
    for (int i = 0, n = atoi(argv[2]); i < n; i++) {
        void *p = down((unsigned)i, 16);
        if (dead) free(p);
        if (i % 1000 == 0) usleep(1000); /* a fold waits for the next slice */
    }
    return 0;
}
"""
STACKS, LIMIT = 50_000, 4_000_000
program = support.compile(PROGRAM, name="program", flags=("-O1", "-g", "-fno-crossjumping", "-fno-tree-tail-merge"))


def tracked(kind):
    """Runs the program, and returns the report, and how many call stacks with live blocks the report has."""
    support.track(program, kind, str(STACKS), options=[f"--stack-memory={LIMIT}"])
    report = support.report("out.mst", f"--top={STACKS + 100}")
    sites = [site for site in report["sites"] if any(frame.get("function") == "down" for frame in site["stack"])]
    assert report["totals"]["host"]["allocated_blocks"] >= STACKS and report["lost"]["stacks"] == 0, report["totals"]
    return report, len(sites)


# These stacks take about two thirds of the limit: more than half of it, but less than nearly all of it.
dead, stacks = tracked("dead")
assert dead["lost"]["folded"] > STACKS / 4 and stacks == 0, (dead["lost"], stacks)
live, stacks = tracked("live")
assert live["lost"]["folded"] == 0 and stacks == STACKS, (live["lost"], stacks)
