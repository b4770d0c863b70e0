#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""Memory over time: a program grows, shrinks and grows. Its curve differs from the program's own figures by less than
the report says that it may (`within_bytes`). If there were more changes than points, the curve still has the first and
the newest state and the peak. The curve survives kill -9, even while memory changes at full speed. A forked child has a
curve of its own. The memory of all threads is added up. A snapshot keeps the curve. Runs, models and triggers are marks
on the curve."""
import bisect, os, pathlib, random, signal, struct, time

import support

COMMON = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void rest(int microseconds) {
    struct timespec t = {0, microseconds * 1000L};
    nanosleep(&t, NULL);
}
static struct { long long ns, bytes; } truth[1000];
static int known;
static void note(long long bytes) { truth[known].ns = now(), truth[known++].bytes = bytes; }
static void tell(void) {
    for (int i = 0; i < known; i++) printf("%lld %lld\n", truth[i].ns, truth[i].bytes);
}
"""
CURVE = COMMON + r"""
enum { SIZE = 1 << 19 };
static char *blocks[128];
int main(void) {
    static const int plan[] = {64, 16, 128};
    int held = 0;
    for (int i = 0; i < 3; i++)
        while (held != plan[i]) {
            if (held < plan[i]) blocks[held++] = malloc(SIZE);
            else free(blocks[--held]);
            note((long long)held * SIZE);
            rest(3000);
        }
    tell();
    return 0;
}
"""
THREADS = COMMON + r"""
enum { COUNT = 12, ROUNDS = 20, BLOCKS = 2000 };
static pthread_barrier_t barrier;
static long long held;
static void *work(void *number) {
    static __thread char *blocks[BLOCKS];
    static __thread int sizes[BLOCKS];
    unsigned seed = (unsigned)(long)number;
    for (int round = 0; round < ROUNDS; round++) {
        long long change = 0;
        for (int i = 0; i < BLOCKS; i++) {
            int k = rand_r(&seed) % BLOCKS;
            free(blocks[k]);
            change -= sizes[k];
            sizes[k] = 1 + rand_r(&seed) % 20000;
            blocks[k] = malloc((size_t)sizes[k]);
            change += sizes[k];
        }
        __atomic_fetch_add(&held, change, __ATOMIC_RELAXED);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) note(held), rest(3000);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[COUNT];
    pthread_barrier_init(&barrier, NULL, COUNT);
    for (long i = 0; i < COUNT; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    char *volatile last = malloc(1 << 20); /* a point that comes with what was there before it */
    last[0] = 1;
    tell();
    return 0;
}
"""
LONG = COMMON + r"""
int main(void) {
    enum { MIB = 1 << 20 };
    char *volatile first = malloc(3 * MIB), *volatile spike, *volatile block = NULL;
    rest(3000);
    spike = malloc(64 * MIB);
    free(spike);
    for (int i = 0; i < 5000; i++) {
        if (block) free(block), block = NULL;
        else block = malloc(MIB);
        rest(1100);
    }
    free(block);
    free(first);
    first = malloc(5 * MIB);
    return 0;
}
"""
SPEED = COMMON + r"""
int main(void) {
    puts("ready");
    fflush(stdout);
    for (unsigned seed = 1;;) {
        static char *blocks[64];
        int k = rand_r(&seed) % 64;
        free(blocks[k]);
        blocks[k] = malloc(1 + (size_t)rand_r(&seed) % (1 << 20));
    }
}
"""
WAITS = COMMON + r"""
int main(void) {
    for (int i = 0; i < 32; i++) {
        char *volatile block = malloc(1 << 20);
        block[0] = 1;
        rest(2000);
    }
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
"""
FORKS = COMMON + r"""
#include <sys/wait.h>
int main(void) {
    char *volatile block = malloc(8 << 20);
    pid_t child = fork();
    if (child == 0) {
        block = malloc(2 << 20);
        rest(2000);
        block = malloc(1 << 20);
        exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%d\n", child);
    return 0;
}
"""
MARKS = r"""
#include "TESTS/prog/abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    abi_find();
    uint32_t model = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 2);
    uint32_t node = (uint32_t)abi_memstow_owner_open(MEMSTOW_NODE, "sampler", "", 3, 4);
    abi_memstow_owner_policy(model, MEMSTOW_KEEP, 0);
    uint32_t run = (uint32_t)abi_memstow_run_begin("first");
    abi_memstow_scope_enter(model);
    abi_memstow_scope_enter(node);
    char *volatile block = malloc(9 << 20);
    memset(block, 1, 9 << 20);
    abi_memstow_scope_leave(node);
    abi_memstow_scope_leave(model);
    abi_memstow_owner_idle(model, 1);
    long long out = abi_memstow_stow(model), back = abi_memstow_restore(model);
    abi_memstow_run_end(run, MEMSTOW_FAILED);
    abi_memstow_trigger(MEMSTOW_RUN_ENDED, "end");
    free(block);
    abi_memstow_owner_retire(model);
    uint32_t old = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "old", "", 5, 6);
    abi_memstow_owner_policy(old, MEMSTOW_FREE, 0);
    abi_memstow_scope_enter(old);
    block = malloc(5 << 20);
    abi_memstow_scope_leave(old);
    abi_memstow_trigger_begin(MEMSTOW_REQUEST, "drop it", 0, NULL, 0, 0);
    free(block); /* as its policy says */
    abi_memstow_trigger_end();
    printf("%u %u %u %u %lld %lld\n", model, old, node, run, out, back);
    return 0;
}
"""


def history(file="out.mst"):
    found = support.report(file)["history"]
    found["bytes"] = [host + mapped for host, mapped in zip(found["host_bytes"], found["mapped_bytes"])]
    columns = {len(found[name]) for name in ("seconds", "host_bytes", "mapped_bytes", "runs", "nodes")}
    assert len(columns) == 1, columns
    assert found["seconds"] == sorted(found["seconds"])
    assert columns.pop() <= 4033 # 4032 points, and the present
    return found


def start_ns(file):
    return struct.unpack_from("<Q", pathlib.Path(file).read_bytes(), 152)[0]


def differences(program):
    """Yields two figures for each moment that the program knows: how far the curve is off, and how far it may be
    off."""
    truth = [tuple(map(int, line.split())) for line in support.track(program).stdout.splitlines()]
    curve, start = history(), start_ns("out.mst")
    for ns, held in truth:
        at = bisect.bisect_right(curve["seconds"], (ns - start) / 1e9) - 1
        yield abs(held - (curve["bytes"][at] if at >= 0 else 0)), curve["within_bytes"]


def curve_is_what_the_program_knows():
    for name, source in (("curve", CURVE), ("threads", THREADS)):
        off = list(differences(support.compile(source, name=name)))
        print(f"{name}: {max(o for o, _ in off):,} bytes off at most, in {len(off)} moments")
        assert len(off) >= 20 and all(o < within for o, within in off), off


def more_changes_than_points():
    support.track(support.compile(LONG, name="long"))
    curve, report = history(), support.report()
    print(f"long: {len(curve['seconds'])} points")
    assert len(curve["seconds"]) > 1000
    assert 3 << 20 <= curve["bytes"][0] < 4 << 20
    assert 67 << 20 <= max(curve["bytes"]) < 68 << 20
    live = report["totals"]["host"]["live_bytes"] + report["totals"]["mapped"]["live_bytes"]
    assert 5 << 20 <= curve["bytes"][-1] == live
    peak, = [mark for mark in curve["marks"] if mark["kind"] == "peak"]
    assert peak["bytes"] == report["totals"]["peak_bytes"], peak


def begin(program, file):
    process = support.start(support.MEMSTOW, "run", "--quiet", "-o", file, "--", program, stdout=-1, text=True)
    assert process.stdout.readline() == "ready\n"
    pid = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    return process, pid


def survives_a_kill():
    process, pid = begin(support.compile(WAITS, name="waits"), "waits.mst")
    running = history(str(pid))
    support.memstow("snapshot", str(pid), "-o", "copy.mst")
    copy = history("copy.mst")
    os.kill(pid, signal.SIGKILL)
    process.wait(60)
    killed = history("waits.mst")
    assert len(killed["bytes"]) >= 16 and 32 << 20 <= killed["bytes"][-1] < 33 << 20, killed["bytes"]
    assert killed["seconds"][-1] == killed["seconds"][-2] # when it was killed is not known
    for other in running, copy:
        assert other["seconds"][:-1] == killed["seconds"][:-1] and other["bytes"] == killed["bytes"]
    speed = support.compile(SPEED, name="speed")
    for i in range(12):
        process, pid = begin(speed, f"speed{i}.mst")
        time.sleep(random.uniform(0, 0.2)) # when it is killed must not matter
        history(str(pid))
        os.kill(pid, signal.SIGKILL)
        process.wait(60)
        killed = history(f"speed{i}.mst")
        assert not killed["bytes"] or max(killed["bytes"]) < 66 << 20, max(killed["bytes"])


def child_has_its_own():
    child = support.track(support.compile(FORKS, name="forks"), file="forks.mst").stdout.strip()
    parent, own = history("forks.mst"), history(f"forks.mst.{child}")
    assert max(parent["bytes"]) >= 8 << 20, parent["bytes"]
    assert own["bytes"] and max(own["bytes"]) < 4 << 20, own["bytes"]


def marks_say_what_happened():
    program = support.compile(MARKS.replace("TESTS", str(support.ROOT / "tests")), name="marks", flags=("-O1", "-ldl"))
    model, old, node, run, out, back = map(int, support.track(program).stdout.split())
    found = history()
    marks = [mark for mark in found["marks"] if mark["kind"] != "peak"]
    of_old = [mark for mark in marks if mark["owner"] == old]
    assert [mark["kind"] for mark in of_old] == ["came", "freed"], marks
    assert of_old[1]["bytes"] >= 5 << 20 and of_old[1]["owner_live_bytes"] == 0, of_old
    assert [mark["kind"] for mark in marks if mark["kind"] == "trigger"] == ["trigger"] * 2, marks
    marks = marks[:next(number for number, mark in enumerate(marks) if mark["owner"] == old)]
    moves = ["stowed"] * (out > 0) + ["restored"] * (back > 0)
    assert [m["kind"] for m in marks] == ["came", "run_began", *moves, "run_ended", "trigger", "kept", "retired"], marks
    by_kind = {mark["kind"]: mark for mark in marks}
    assert all(by_kind[kind]["owner"] == model and by_kind[kind]["name"] == "unet"
               for kind in ("came", *moves, "kept", "retired")), marks
    assert by_kind["run_began"]["owner"] == run and by_kind["run_ended"]["detail"] == "failed", marks
    assert by_kind["trigger"]["detail"] == "run_ended" and by_kind["trigger"]["rss_bytes"], marks
    assert by_kind["run_began"]["rss_bytes"] and not by_kind["came"]["rss_bytes"], marks
    assert by_kind["kept"]["owner_live_bytes"] >= 9 << 20, marks
    assert by_kind["run_ended"]["host_bytes"] + by_kind["run_ended"]["mapped_bytes"] >= 8 << 20, marks
    assert all(by_kind[kind]["bytes"] == moved for kind, moved in (("stowed", out), ("restored", back)) if moved > 0)
    assert (run, node) in zip(found["runs"], found["nodes"]), found
    owner, = found["owners"] # one point: it had nothing at the run's beginning, and moves change nothing
    assert owner["owner"] == model and owner["name"] == "unet", owner
    assert len(owner["seconds"]) == len(owner["live_bytes"]) == len(owner["cuda_bytes"]) == 1, owner
    assert owner["seconds"][0] == by_kind[moves[0] if moves else "run_ended"]["seconds"], (owner, marks)
    assert 9 << 20 <= owner["live_bytes"][0] < 10 << 20 and owner["cuda_bytes"] == [0], owner


if __name__ == "__main__":
    for test in (curve_is_what_the_program_knows, more_changes_than_points, survives_a_kill, child_has_its_own,
                 marks_say_what_happened):
        print(test.__name__, flush=True)
        test()
