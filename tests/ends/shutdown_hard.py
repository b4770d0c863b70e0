"""The coordinator works under bad conditions: the program has no descriptor left; no file may grow; the disk is full;
the coordinator runs in a forked child; two threads run the same stage; the leader of a group ends before the group's
other members; or a group contains a process that is to be kept."""
import json, os, pathlib

from support import ROOT, compile, is_gone, memstow, wait_for

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memstow.h"

#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))
#define CHECK(x) ((x) ? 0 : (printf("line %d: %s (%s)\n", __LINE__, #x, CALL(error)()), fflush(stdout), _exit(2), 0))
static const char *word;
static int runs, released;

static int32_t count(void *nothing) {
    (void)nothing;
    __atomic_fetch_add(&runs, 1, __ATOMIC_SEQ_CST);
    usleep(100000);
    return 0;
}
static int32_t held(void *nothing) {
    __atomic_fetch_add(&runs, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST)) usleep(1000);
    return nothing != NULL;
}
static int32_t stuck(void *nothing) { (void)nothing; for (;;) pause(); return 0; }

static void add(const char *name, int ms, int32_t (*run)(void *)) {
    struct memstow_handler handler = {sizeof handler, MEMSTOW_CLEAN, name, "", ms, 0, run, NULL};
    CHECK(CALL(shutdown_handler)(&handler) == 0);
}

static void say(int number) { (void)number; close(open("polite", O_WRONLY | O_CREAT, 0600)); _exit(0); }
static void later(int number) { signal(SIGALRM, say); alarm(1); (void)number; }

/* A group of two processes. The leader ends on SIGTERM. The member ignores SIGTERM, or ends a second after it. */
static pid_t leader(void) {
    int ready[2];
    char c;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        pid_t member = fork();
        if (member == 0) {
            signal(SIGTERM, !strcmp(word, "polite") ? later : SIG_IGN);
            printf("member %d\n", (int)getpid());
            fflush(stdout);
            write(ready[1], "r", 1);
            close(1), close(2);
            for (;;) pause();
        }
        close(1), close(2);
        for (;;) pause();
    }
    CHECK(read(ready[0], &c, 1) == 1);
    close(ready[0]), close(ready[1]);
    CHECK(CALL(shutdown_process)(pid, "leader", 0) == 0);
    return pid;
}

/* Adds a process to the group, which is registered to live on. It does not ignore SIGTERM. */
static void keep_one(pid_t group) {
    pid_t pid = fork();
    if (pid == 0) { close(1), close(2); for (;;) pause(); }
    CHECK(setpgid(pid, group) == 0 && CALL(shutdown_process)(pid, "kept", 1) == 0);
    printf("kept %d\n", (int)pid);
    fflush(stdout);
}

static void use_up_descriptors(void) {
    struct rlimit few = {64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY) >= 0) continue;
}

static void *run_too(void *nothing) { CALL(shutdown_run)(MEMSTOW_CLEAN); return nothing; }

int main(int argc, char **argv) {
    word = argv[1];
    if (!strcmp(word, "group") || !strcmp(word, "polite")) {
        leader();
        printf("result %d\n", (int)CALL(shutdown)("the test", 0, 76));
    } else if (!strcmp(word, "keep") || !strcmp(word, "keep, limit")) {
        keep_one(leader());
        if (strcmp(word, "keep")) { CHECK(CALL(shutdown_begin)("the test", 300, 77) == 0); for (;;) pause(); }
        printf("result %d\n", (int)CALL(shutdown)("the test", 0, 76));
    } else if (!strcmp(word, "descriptors") || !strcmp(word, "limit")) {
        leader();
        use_up_descriptors();
        if (!strcmp(word, "limit")) { CHECK(CALL(shutdown_begin)("the test", 300, 77) == 0); for (;;) pause(); }
        printf("result %d\n", (int)CALL(shutdown)("the test", 0, 76));
    } else if (!strcmp(word, "size")) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_FSIZE, &none);
        add("count", 0, count);
        CHECK(CALL(shutdown_process)(getppid(), "parent", 1) == -EIO);
        CHECK(CALL(shutdown)("the test", 0, 76) == 0);
    } else if (!strcmp(word, "full")) {
        CHECK(CALL(shutdown_files)("/dev/full", "full/process_registry.json") == 0);
        CHECK(CALL(shutdown_process)(getppid(), "parent", 1) == -EIO);
        CHECK(CALL(shutdown)("the test", 0, 76) == 0);
    } else if (!strcmp(word, "moved")) {
        CHECK(CALL(shutdown_process)(getppid(), "parent", 1) == 0);
        CHECK(CALL(shutdown_files)(NULL, "none/elsewhere.json") == 0);
        CHECK(CALL(shutdown_process)(getppid(), "parent again", 1) == 0);
        kill(getpid(), SIGKILL);
    } else if (!strcmp(word, "fork")) {
        int status;
        CHECK(CALL(shutdown_process)(getppid(), "parent", 1) == 0);
        add("count", 0, count);
        CHECK(CALL(shutdown_begin)("the test", 0, 76) == 0 && CALL(shutdown_run)(MEMSTOW_CLEAN) == 0);
        pid_t child = fork();
        if (child == 0) {
            add("stuck", 200, stuck);
            _exit(CALL(shutdown)("the child's", 5000, 75) == 2 ? 0 : 1); /* the handler, and its thread */
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(access("process_registry.json", F_OK) == 0);
        CHECK(CALL(shutdown_end)(1) == 0);
    } else if (!strcmp(word, "twice")) {
        pthread_t thread;
        CHECK(CALL(shutdown_step)("before", "", 0) == 0);
        add("held", 0, held);
        for (int i = 1; i < 4; i++) { char name[8]; snprintf(name, 8, "count %d", i); add(name, 0, count); }
        CHECK(CALL(shutdown_begin)("the test", 0, 76) == 0);
        pthread_create(&thread, NULL, run_too, NULL);
        while (!__atomic_load_n(&runs, __ATOMIC_SEQ_CST)) usleep(1000);
        CHECK(CALL(shutdown_run)(MEMSTOW_CLEAN) == -EALREADY);
        __atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
        CHECK(CALL(shutdown_end)(0) == 0 && runs == 4);
    }
    return 0;
}
""", "hard", ("-O1", "-g", "-pthread", "-I", ROOT / "include"))


def life(word, status=0):
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    out = memstow("run", "--quiet", "-o", "x.mst", "--", program, word, status=status).stdout
    log = pathlib.Path("shutdown.log")
    return out, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def member(out, word="member"):
    return int(out.split()[out.split().index(word) + 1])


out, lines = life("group")
wait_for(lambda: is_gone(member(out)), 5)
assert [line["ended"] for line in lines if line["step"] == "process"] == ["SIGTERM, its group SIGKILL"], lines
out, lines = life("polite") # a process that reacts to SIGTERM gets its time, although its leader is gone
assert pathlib.Path("polite").exists() and "result 0" in out, out
assert [line["ended"] for line in lines if line["step"] == "process"] == ["SIGTERM"], lines

for word, status in (("keep", 0), ("keep, limit", 77)):
    out, lines = life(word, status)
    wait_for(lambda: is_gone(member(out)), 5)
    assert not is_gone(member(out, "kept")), out
    os.kill(member(out, "kept"), 9)
    assert [line["ended"] for line in lines if line["step"] == "process"] == \
        ["SIGKILL" if status else "SIGTERM, its group SIGKILL"], lines

out, lines = life("descriptors")
wait_for(lambda: is_gone(member(out)), 5)
steps = [line["step"] for line in lines]
assert steps[0] == "begin" and "process" in steps and steps[-1] == "end", lines
assert lines[-1]["processes_left"] == lines[-1]["threads_left"] == 0, lines[-1]
out, lines = life("limit", status=77)
wait_for(lambda: is_gone(member(out)), 5)
# no descriptor is reported as left: the program has opened nothing but /dev/null
assert [line["step"] for line in lines] == ["begin", "forced", "left thread", "process"], lines

out, lines = life("size")
assert not lines and not list(pathlib.Path().glob("*.new"))
out, lines = life("full")
life("moved", status=137) # the list stays where it is, and is updated there
listed = json.loads(pathlib.Path("process_registry.json").read_text())["processes"]
assert [one["name"] for one in listed] == ["parent again"], listed
assert sorted(path.name for path in pathlib.Path().glob("*.json*")) == ["process_registry.json"]
pathlib.Path("process_registry.json").unlink()
out, lines = life("fork")
assert not list(pathlib.Path().glob("*.new"))
ended = [(line["name"], line["result"]) for line in lines if line["step"] == "clean"]
assert ended == [("count", 0), ("stuck", -110)], lines
pathlib.Path("process_registry.json").unlink()
out, lines = life("twice")
assert lines[0]["step"] == "before" and sum(line["step"] == "clean" for line in lines) == 4, lines
