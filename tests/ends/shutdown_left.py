"""The coordinator reports the following as left of a C program, whether they are registered or not:
- the program's children and their descendants;
- a process that was a descendant when a stage began, although its parent has ended;
- a process in the program's group or session;
- a process that inherited the program's mark;
- threads of all kinds.
The coordinator does not report processes that are to live on, the rest of a pipeline, or strangers, even if a
stranger's mark resembles the program's. The log names each process that is left, and says how it is known."""
import json, os, pathlib, subprocess, time

from support import MEMSTOW, ROOT, compile, memstow, start

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))
#define CHECK(x) ((x) ? 0 : (printf("line %d: %s (%s)\n", __LINE__, #x, CALL(error)()), fflush(stdout), _exit(2), 0))

enum { STAY = 1, OWN_GROUP = 2, OWN_SESSION = 4, EXEC = 8 };
static pid_t *shared; /* who was started, by whichever process */

static void stay(void) {
    alarm(60); /* should the test fail */
    for (;;) pause();
}

/* Whether the process has gone on as `sleep`. */
static int sleeps(pid_t pid) {
    char path[32], word[8] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && !fgets(word, sizeof word, file)) *word = 0;
    if (file) fclose(file);
    return !strcmp(word, "sleep");
}

/* Starts a child, which starts another process. `first` and `second` are flags for the child and the other process. */
static pid_t two(int first, int second) {
    pid_t child = fork();
    if (child == 0) {
        if (first & OWN_GROUP) setpgid(0, 0);
        if (fork() == 0) {
            if (second & OWN_SESSION) setsid();
            if (second & OWN_GROUP) setpgid(0, 0);
            close(0), close(1), close(2);
            shared[1] = getpid();
            if (second & EXEC) execlp("sleep", "sleep", "60", NULL);
            stay();
        }
        close(0), close(1), close(2);
        while (!shared[1]) usleep(1000);
        if (!(first & STAY)) _exit(0);
        stay();
    }
    shared[0] = child;
    while (!shared[1]) usleep(1000);
    if (!(first & STAY)) CHECK(waitpid(child, NULL, 0) == child);
    while ((second & EXEC) && !sleeps(shared[1])) usleep(1000);
    usleep(20000); /* its environment is there soon after its arguments */
    return child;
}

static int32_t end_first(void *nothing) {
    (void)nothing;
    kill(shared[0], SIGKILL);
    waitpid(shared[0], NULL, 0);
    return 0;
}

static void mark(int pad) {
    char text[64], *stat = malloc(4096), *at = NULL;
    FILE *file = fopen("/proc/self/stat", "r");
    CHECK(fgets(stat, 4096, file));
    fclose(file);
    char *word = strtok_r(strrchr(stat, ')') + 2, " ", &at);
    for (int field = 3; field < 22; field++) word = strtok_r(NULL, " ", &at);
    if (pad) {
        char *long_one = calloc(1, (size_t)pad + 1);
        clearenv();
        setenv("LONG", memset(long_one, 'x', (size_t)pad), 1);
    }
    snprintf(text, sizeof text, "%d.%s", (int)getpid(), word);
    setenv("MEMSTOW_PROGRAM", text, 1);
}

static int arrived;
static void *thread(void *nothing) {
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
    stay();
    return nothing;
}

int main(int argc, char **argv) {
    const char *word = argv[1];
    pthread_t id;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(word, "children")) two(STAY, 0);
    if (!strcmp(word, "other session")) two(STAY, OWN_SESSION);
    if (!strcmp(word, "group")) CHECK(setpgid(0, 0) == 0), two(0, 0);
    if (!strcmp(word, "session")) CHECK(setsid() > 0), two(0, OWN_GROUP);
    if (!strcmp(word, "its group")) two(STAY | OWN_GROUP, 0); /* of which the first ends */
    if (!strcmp(word, "cut")) two(STAY, OWN_SESSION);
    if (!strcmp(word, "ended")) CHECK(CALL(shutdown_process)(two(STAY, OWN_SESSION), "registered", 0) == 0);
    if (!strcmp(word, "marked")) mark(0), two(0, OWN_SESSION | EXEC);
    if (!strncmp(word, "marked behind", 13)) mark(atoi(word + 13)), two(0, OWN_SESSION | EXEC);
    if (!strcmp(word, "lives on")) CHECK(CALL(shutdown_process)(two(STAY, OWN_SESSION), "kept", 1) == 0);
    if (!strcmp(word, "threads")) for (int i = 0; i < 3; i++) pthread_create(&id, NULL, thread, NULL);
    while (!strcmp(word, "threads") && __atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 3) usleep(1000);
    if (!strcmp(word, "limit")) {
        CHECK(CALL(shutdown_process)(two(STAY, 0), "registered", 0) == 0);
        if (fork() == 0) { close(0), close(1), close(2); stay(); }
        CHECK(CALL(shutdown_begin)("the test", 300, 77) == 0);
        for (;;) pause();
    }
    while (!strcmp(word, "pipeline") && access("there", F_OK)) usleep(1000);
    if (!strcmp(word, "pipeline")) CHECK(getpgid(0) == getpid());
    if (!strcmp(word, "strangers")) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        getchar(); /* until they are there */
    }
    struct memstow_handler handler = {sizeof handler, MEMSTOW_CLEAN, "end the first", "", 0, 0, end_first, NULL};
    if (!strcmp(word, "cut") || !strcmp(word, "its group")) CHECK(CALL(shutdown_handler)(&handler) == 0);
    int64_t sum = CALL(shutdown)("the test", 0, 76);
    int32_t pids[4] = {0};
    int64_t left = CALL(shutdown_left)(pids, 4);
    CHECK(CALL(shutdown_left)(NULL, 0) == left);
    if (left) CHECK(CALL(shutdown_left)((void *)8, 4) == -14 /* EFAULT */);
    printf("%d %d", (int)sum, (int)left);
    for (int i = 0; i < left; i++)
        printf(" %s", pids[i] == shared[0] ? "first" : pids[i] == shared[1] ? "second" : "other");
    putchar('\n');
    for (int i = 0; i < 2; i++) if (shared[i] > 1) kill(shared[i], SIGKILL);
    return 0;
}
""", "left", ("-O1", "-g", "-pthread", "-Wno-all", "-I", ROOT / "include"))
BY_PARENT, BEFORE, BY_GROUP, BY_MARK = ("started by this program", "came from this program before its parent ended",
                                        "in a group or session of this program", "has this program's mark")


def steps():
    lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
    return lines, [line for line in lines if line["step"] == "left process"]


def begin(word):
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    return start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", program, word, stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, text=True)


def life(word, status=0, process=None):
    """Lets a life come to its end. Returns the output of the life, all lines of its log, and the lines of the log that
    name a left process."""
    process = process or begin(word)
    out = process.communicate("\n", timeout=60)[0]
    assert process.returncode == status, (word, process.returncode, out)
    return out.strip(), *steps()


known = {"children": ("2 2 first second", [BY_PARENT, BY_PARENT]),
         "other session": ("2 2 first second", [BY_PARENT, BY_PARENT]), "group": ("1 1 second", [BY_GROUP]),
         "session": ("1 1 second", [BY_GROUP]), "its group": ("1 1 second", [BY_GROUP]),
         "cut": ("1 1 second", [BEFORE]), "ended": ("1 1 second", [BEFORE]), "marked": ("1 1 second", [BY_MARK]),
         "lives on": ("0 0", [])}
# The coordinator reads an environment in chunks. These marks lie near the border between two chunks.
known |= {f"marked behind {pad}": ("1 1 second", [BY_MARK]) for pad in range(16384 - 100, 16384 + 40, 7)}
for word, (said, links) in known.items():
    out, lines, left = life(word)
    assert out == said and [line["known_by"] for line in left] == links, (word, out, left)
    assert lines[-1]["step"] == "end" and lines[-1]["processes_left"] == len(links), (word, lines[-1])
    assert lines[-1]["threads_left"] == 0, (word, lines[-1])
    for line in left:
        assert line["process"] > 1, line
        assert line["name"] == line["program"] == ("sleep" if "marked" in word else "left"), line
        assert line["age_ms"] < 60000 and line["rss_bytes"] > 0 and line["parent"] > 0 and "result" not in line, line

out, lines, left = life("threads")
assert out == "3 0" and lines[-1]["threads_left"] == 3 and not left, (out, lines[-1])
threads = [line for line in lines if line["step"] == "left thread"]
assert len(threads) == 3, threads
assert all(line["name"] == "left" and line["age_ms"] < 60000
           and "left+0x" in line["started_by"] for line in threads), threads

out, lines, left = life("limit", 77) # a process that the coordinator ends itself is not left
assert [(line["name"], line["known_by"]) for line in left] == [("left", BY_PARENT)], left
os.kill(left[0]["process"], 9)

# The program leads a pipeline. The other part of the pipeline has the same parent as the program, and processes of its
# own. None of them counts as left.
pathlib.Path("shutdown.log").unlink(missing_ok=True)
memstow("run", "--quiet", "-o", "x.mst", "--", "bash", "-c", f"""set -m
{program} pipeline >out.txt | sh -c 'touch there; sleep 60; true' &
until grep -q . out.txt; do sleep 0.05; done
kill -9 %1""")
_, left = steps()
assert pathlib.Path("out.txt").read_text() == "0 0\n" and not left, left

# Strangers begin later, in the same session, with marks that are nearly the same as the program's. They are not taken
# for processes of the program.
process = begin("strangers")
pid = process.stdout.readline().strip()
began = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
time.sleep(0.05)
marks = [{"MEMSTOW_PROGRAM": f"{pid}.{began}0"}, {"MEMSTOW_PROGRAM": f"{pid}.{began[:-1]}"},
         {"MEMSTOW_STARTED": f"{pid}.{began}"}, {"XMEMSTOW_PROGRAM": f"{pid}.{began}"},
         {"MEMSTOW_STARTED": f"1{pid}.{began}.1"}, {}]
strangers = [start("sleep", "60", env={**os.environ, **mark}) for mark in marks]
out, lines, left = life("strangers", process=process)
assert out == "0 0" and not left, (out, left)
