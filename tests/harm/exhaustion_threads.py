# timeout: 200
# alone
"""Two thousand threads live at the same time, and after them another two thousand. Every block is counted, and the
later threads use the slots of the earlier ones."""
import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { THREADS = 2000 };
static volatile int go;
static void *blocks[2][THREADS];
static void *work(void *at) {
    void *volatile p = malloc(500);
    *(void **)at = malloc(1000);
    while (!go) usleep(20000);
    free(p);
    return 0;
}
int main(void) {
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int round = 0; round < 2; round++) {
        go = 0;
        for (int t = 0; t < THREADS; t++)
            if (pthread_create(&threads[t], &small, work, &blocks[round][t])) return 77;
        go = 1;
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
    }
    for (int t = 0; t < THREADS; t++) free(blocks[0][t]);
    return 0;
}
''', "threads", flags=("-w", "-O1", "-pthread", "-fno-builtin"))
if support.run(program, status=None).returncode == 77:
    support.skip("2,000 threads are not allowed here")
support.track(program)
report = support.report()
module = [m for m in report["modules"] if m["module"] == str(program)][0]
print("threads:", len(report["threads"]), "peak:", report["totals"]["host"]["peak_bytes"], "lost:", report["lost"])
assert (module["live_bytes"], module["live_blocks"]) == (2000 * 1000, 2000), module
assert not any(v for k, v in report["lost"].items() if k not in ("reasons", "blocks")), report["lost"]
assert 1900 <= len(report["threads"]) < 2100, len(report["threads"])
assert 2000 * 1500 <= report["totals"]["host"]["peak_bytes"] <= 4000 * 1500 + (4 << 20), report["totals"]
