"""The shutdown coordinator works for a program in C. Stages run in order, and so do handlers that depend on each other.
Independent handlers run side by side. A handler that takes too long is abandoned. If a drain fails, the cancel handlers
run. Registered processes and their groups are ended by SIGTERM or SIGKILL. The coordinator waits for registered
threads. Every step is in the log, and takes the documented time. If something never ends, the process ends at the limit
with the requested status."""
import json, os, pathlib, time

from support import compile, is_gone, memstow, wait_for

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "memstow.h"

static int failed, ending;
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))
#define CHECK(x) ((x) ? 0 : (failed = 1, printf("line %d: %s\n", __LINE__, #x)))

static int32_t quick(void *text) { (void)text; return 0; }
static int32_t tell(void *text) { (void)text; __atomic_store_n(&ending, 1, __ATOMIC_RELEASE); return 0; }
static int32_t nap(void *text) { (void)text; usleep(400000); return 0; }
static int32_t fails(void *text) { (void)text; return -EIO; }
static int32_t stuck(void *text) { (void)text; for (;;) pause(); return 0; }

static int add(unsigned stage, const char *name, const char *after, int ms, int parallel, int32_t (*run)(void *)) {
    struct memstow_handler handler = {sizeof handler, stage, name, after, ms, parallel, run, NULL};
    return CALL(shutdown_handler)(&handler);
}

static pid_t child(int ignore, int group) {
    pid_t pid = fork();
    if (pid == 0) {
        if (group) setpgid(0, 0);
        if (ignore) signal(SIGTERM, SIG_IGN);
        if (group && fork() == 0) { printf("grandchild %d\n", (int)getpid()); fflush(stdout); }
        close(1), close(2); /* who waits for the end of the output does not wait for us */
        for (;;) pause();
    }
    return pid;
}

static void *ends(void *nothing) { /* while threads are waited for, which is five seconds later */
    CHECK(CALL(shutdown_thread)("ends") == 0);
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) usleep(1000);
    usleep(6500000);
    return nothing;
}
static void *goes_on(void *nothing) {
    CHECK(CALL(shutdown_thread)("goes on") == 0);
    for (;;) pause();
    return nothing;
}
static void *has_ended(void *nothing) { CHECK(CALL(shutdown_thread)("has ended") == 0); return nothing; }

static void *endless(void *nothing) { for (volatile int i = 0;; i++); return nothing; }

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "memstow_shutdown")) return 99;
    errno = 5;
    CHECK(add(MEMSTOW_CLEAN, "last", "nap a,nap b, stuck", 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_CLEAN, "nap a", "first", 0, 1, nap) == 0);
    CHECK(add(MEMSTOW_CLEAN, "nap b", "first", 0, 1, nap) == 0);
    CHECK(add(MEMSTOW_CLEAN, "first", NULL, 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_CLEAN, "stuck", "first", 300, 1, stuck) == 0);
    CHECK(add(MEMSTOW_STOP_ACCEPTING, "listener", NULL, 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_DRAIN, "queue", NULL, 0, 0, strcmp(argv[1], "drains") ? fails : quick) == 0);
    CHECK(add(MEMSTOW_CANCEL, "cancel", NULL, 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_CLEAN, "tell", "last", 0, 0, tell) == 0);
    CHECK(add(MEMSTOW_CLEAN, "circle a", "circle b", 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_CLEAN, "circle b", "circle a", 0, 0, quick) == 0);
    CHECK(add(MEMSTOW_CLEAN, "last", NULL, 0, 0, quick) == -EEXIST);
    CHECK(add(MEMSTOW_CLEAN, "", NULL, 0, 0, quick) == -EINVAL);
    CHECK(add(MEMSTOW_CLEAN, "a,b", NULL, 0, 0, quick) == -EINVAL);
    CHECK(add(0, "x", NULL, 0, 0, quick) == -EINVAL);
    CHECK(add(MEMSTOW_CLEAN, "x", NULL, 0, 0, NULL) == -EINVAL);
    CHECK(CALL(shutdown_handler)(NULL) == -EFAULT);
    CHECK(CALL(shutdown_handler)((void *)8) == -EFAULT);
    CHECK(CALL(shutdown_end)(0) == -ENOENT);
    CHECK(CALL(shutdown_run)(5) == -EINVAL);
    CHECK(CALL(shutdown_stage)(0) == -EINVAL && CALL(shutdown_stage)(7) == -EINVAL && CALL(shutdown_stage)(6) == 0);
    CHECK(CALL(shutdown_process)(1, "init", 0) == -ESRCH);
    CHECK(CALL(shutdown_process)(getpid(), "self", 0) == -ESRCH);
    CHECK(CALL(shutdown_process)(4194303, "none", 0) == -ESRCH);
    CHECK(CALL(shutdown_launched)(4194303, "none", 0, 1) == -ESRCH);
    CHECK(CALL(shutdown_launched)(getppid(), "no number", 0, 0) == -EINVAL);
    CHECK(CALL(shutdown_forget)(12345) == -ENOENT);
    CHECK(CALL(shutdown_on_signal)(SIGUSR2, 0, 0) == -EINVAL);
    CHECK(CALL(shutdown_thread)("first") == -EINVAL);
    CHECK(CALL(shutdown_threads)(0) == 0);
    CHECK(errno == 5);
    pid_t plain = child(0, 0), stubborn = child(strcmp(argv[1], "fails") != 0, 1), kept = child(0, 0);
    usleep(300000);
    CHECK(CALL(shutdown_launched)(plain, "plain", 0, 7) == 0);
    CHECK(CALL(shutdown_process)(stubborn, "stubborn", 0) == 0);
    CHECK(CALL(shutdown_process)(kept, "kept", 1) == 0);
    printf("kept %d\n", (int)kept);
    fflush(stdout);
    if (!strcmp(argv[1], "crash")) { CALL(shutdown_forget)(kept); kill(getpid(), SIGKILL); }
    if (!strcmp(argv[1], "limit")) {
        pthread_t thread;
        pthread_create(&thread, NULL, endless, NULL);
        CHECK(CALL(shutdown_begin)("the test", 1500, 77) == 0);
        CHECK(CALL(shutdown_begin)("again", 1500, 78) == -EALREADY);
        if (failed) return 2;
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        endless(NULL);
    }
    if (!strcmp(argv[1], "drains")) {
        pthread_t thread;
        pthread_create(&thread, NULL, has_ended, NULL);
        pthread_join(thread, NULL);
        pthread_create(&thread, NULL, ends, NULL);
        pthread_create(&thread, NULL, goes_on, NULL);
        usleep(100000);
    }
    int64_t left = CALL(shutdown)("the test", 0, 76);
    printf("left %d\n", (int)left);
    printf("plain %d, stubborn %d, kept %d\n", kill(plain, 0), kill(stubborn, 0), kill(kept, 0));
    return failed;
}
""", "coordinated", ("-O1", "-g", "-pthread", "-I", pathlib.Path(__file__).resolve().parent.parent.parent / "include"))


def steps():
    lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
    assert all(line["kind"] == "SHUTDOWN" and line["pid"] > 1 and line["wall_ms"] > 1.7e12 for line in lines), lines
    pathlib.Path("shutdown.log").unlink()
    return lines


def life(word, status=0):
    begun = time.monotonic()
    done = memstow("run", "--quiet", "-o", "x.mst", "--", program, word, status=status)
    return done.stdout, steps() if pathlib.Path("shutdown.log").exists() else [], time.monotonic() - begun


out, lines, seconds = life("drains")
order = [(line["step"], line.get("name")) for line in lines]
places = {name: at for at, (step, name) in enumerate(order) if step in ("stop accepting", "drain", "clean")}
assert order[0] == ("begin", None) and ("cancel", "cancel") not in order, order
assert places["listener"] < places["queue"] < places["first"] < places["nap a"], order
assert places["nap b"] < places["last"], order
assert places["stuck"] < places["last"] and "circle a" in places and "circle b" in places, order
assert ("circle", "circle a") in order, order
results = {line["name"]: line["result"] for line in lines if line["step"] == "clean"}
assert results["stuck"] == -110 and results["nap a"] == results["last"] == 0, results
begun = {line["name"]: line["ms"] - line.get("took_ms", 0) for line in lines if line["step"] == "clean"}
ends = {line["name"]: line["ms"] for line in lines if line["step"] == "clean"}
assert begun["nap a"] < ends["nap b"] and begun["nap b"] < ends["nap a"], begun # side by side
ended = {line["name"]: line["ended"] for line in lines if line["step"] == "process"}
assert ended == {"plain": "SIGTERM", "stubborn": "SIGKILL"}, lines
took = {line["name"]: line["took_ms"] for line in lines if line["step"] == "process"}
assert lines[0]["limit_ms"] == 30000 and 4900 < took["stubborn"] < 8000, (lines[0], took)
# the stubborn process gets SIGKILL 5 s after SIGTERM, and threads have 3 s to end
assert ("thread", "has ended") not in order and 8.5 < seconds < 15, (order, seconds)
took = {line["name"]: (line["result"], line["took_ms"]) for line in lines if line["step"] == "thread"}
assert took["ends"][0] == 0 and took["ends"][1] < 2900 and took["goes on"][0] == -110, took
assert 2900 < took["goes on"][1] < 5000, took
assert any(line["step"] == "left thread" and line["waits_in"] for line in lines), lines  # the stuck handler's
assert lines[-1]["step"] == "end" and lines[-1]["processes_left"] == 0 and lines[-1]["threads_left"] == 2, lines[-1]
words = out.split()
kept, grandchild = int(words[words.index("kept") + 1]), int(words[words.index("grandchild") + 1])
wait_for(lambda: is_gone(grandchild), 10)
assert not is_gone(kept)
listed = json.loads(pathlib.Path("process_registry.json").read_text())["processes"]
assert {p["name"]: p["keep"] for p in listed}["kept"] is True, listed
os.kill(kept, 9)

out, lines, seconds = life("fails")
# the thread of the stuck handler is not waited for
assert seconds < 8 and not any(line["step"] == "thread" for line in lines), seconds
order = [(line["step"], line.get("name"), line.get("result")) for line in lines]
assert order.index(("drain", "queue", -5)) < order.index(("cancel", "cancel", 0)), order
os.kill(int(out.split()[out.split().index("kept") + 1]), 9)

out, lines, seconds = life("limit", status=77)
assert lines[-1]["step"] in ("process", "left thread") and any(line["step"] == "forced" for line in lines), lines
forced = next(line for line in lines if line["step"] == "forced")
assert 1400 < forced["ms"] and forced["status"] == 77, forced
os.kill(int(out.split()[out.split().index("kept") + 1]), 9)

done = memstow("run", "--quiet", "-o", "y.mst", "--", program, "crash", status=137)
text = memstow("reap", status=1).stdout
# the process without a name is a child of "stubborn"
assert [text.count(f"coordinated{name}, pid") for name in (" (plain)", " (stubborn)", "")] == [1, 1, 1], text
memstow("reap", "--end")
assert "none of its processes is left" in memstow("reap").stdout
os.kill(int(done.stdout.split()[done.stdout.split().index("kept") + 1]), 9)
