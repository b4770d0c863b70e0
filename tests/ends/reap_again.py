"""Several programs keep their lists in one folder: a program that crashed and was started again, two programs that run
side by side, a forked child, and many programs that begin at once. No program writes over the list of another program,
and reap finds the processes of all of them. If no process on a list is left, the list is replaced, so that lists do not
pile up."""
import json, os, pathlib, signal, subprocess

from support import MEMSTOW, ROOT, compile, expect_exit, is_gone, memstow, start, wait_for

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))

/* One word a line: who is to be registered, or what is to be done. */
int main(int argc, char **argv) {
    char word[32];
    printf("%d 0\n", (int)getpid());
    fflush(stdout);
    while (scanf("%31s", word) == 1) {
        int result = 0;
        pid_t pid = 0;
        if (!strcmp(word, "end")) return CALL(shutdown)("the test", 0, 76) != 0;
        if (!strcmp(word, "exec")) execv(argv[0], argv);
        if (!strcmp(word, "fork")) {
            pid = fork(); /* it answers from now on, and this one when it is gone */
            if (pid) { pause(); continue; }
            pid = getpid();
        } else if (!strcmp(word, "take")) {
            if (scanf("%d", &pid) == 1) result = CALL(shutdown_process)(pid, "taken", 0);
        } else if ((pid = fork()) == 0) {
            close(0), close(1), close(2);
            for (;;) pause();
        } else {
            result = CALL(shutdown_process)(pid, word, !strcmp(word, "kept"));
        }
        printf("%d %d\n", (int)pid, result);
        fflush(stdout);
    }
    for (;;) pause();
}
""", "lister", ("-O1", "-g", "-I", ROOT / "include"))
MAIN = pathlib.Path("process_registry.json")


class Life:
    def __init__(self):
        self.process = start(MEMSTOW, "run", "--quiet", "-o", "%p.mst", "--", program, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.pid = self.hear()

    def say(self, word):
        print(word, file=self.process.stdin, flush=True)

    def hear(self):
        pid, result = map(int, self.process.stdout.readline().split())
        assert result == 0, result
        return pid

    def do(self, word):
        self.say(word)
        return self.hear()

    def end(self):
        self.say("end")
        expect_exit(self.process, seconds=30)

    def crash(self):
        os.kill(self.pid, signal.SIGKILL)
        expect_exit(self.process, 128 + signal.SIGKILL, seconds=30)


def lists():
    return sorted(path.name for path in pathlib.Path().glob("process_registry*"))


def pids_in(path):
    return [one["pid"] for one in json.loads(pathlib.Path(path).read_text())["processes"]]


def ended(*children):
    text = memstow("reap", "--end").stdout
    assert all(f"pid {child}, " in text for child in children), (children, text)
    wait_for(lambda: all(map(is_gone, children)), 10)
    assert "ended" not in memstow("reap", "--end", status=None).stdout


# Three lives that crash, each with a child.
lives = []
for _ in range(3):
    life = Life()
    lives.append((life.pid, life.do("child")))
    life.crash()
aside = [f"process_registry.{pid}.json" for pid, _ in lives[:2]]
assert lists() == sorted([*aside, MAIN.name]), lists()
assert "nothing was ended" in memstow("reap", status=1).stdout and not any(is_gone(child) for _, child in lives)
third = memstow("reap", "--end", MAIN.name).stdout # a list that is named is read alone
assert f"pid {lives[2][1]}, " in third and f"pid {lives[0][1]}, " not in third, third
ended(*(child for _, child in lives[:2]))
assert lists() == [MAIN.name], lists()

# A running life takes over a process of an earlier life: reap leaves this process alone while the later life runs.
life = Life()
old = life.do("child")
life.crash()
life = Life()
life.do("child")
life.say("take")
assert life.do(str(old)) == old and len(lists()) == 2, lists()
assert f"pid {old}, " not in memstow("reap", "--end").stdout and not is_gone(old)
life.crash()
memstow("reap", "--end")
wait_for(lambda: is_gone(old), 10)

# If only processes that are to be kept are left of the earlier life, its list is replaced. A damaged list is replaced,
# too.
life = Life()
gone, kept = life.do("child"), life.do("kept")
life.crash()
memstow("reap", "--end")
assert not is_gone(kept)
life = Life()
child = life.do("child")
assert lists() == [MAIN.name] and pids_in(MAIN) == [child], lists()
life.end()
assert lists() == [] and is_gone(child)
os.kill(kept, signal.SIGKILL)
MAIN.write_text("{")
life = Life()
life.do("child")
assert lists() == [MAIN.name], lists()

# A second program runs beside the first program, and forks a child. The first program goes on to write its list, and
# ends in order.
second = Life()
of_second = second.do("child")
beside = f"process_registry.{second.pid}.json"
first_two = [*pids_in(MAIN), life.do("child")]
assert pids_in(MAIN) == first_two and pids_in(beside) == [of_second] and lists() == sorted([MAIN.name, beside]), lists()
forked = second.do("fork")
of_forked = second.do("child")
assert pids_in(beside) == [of_second] and pids_in(f"process_registry.{forked}.json") == [of_forked]
assert memstow("reap", "--end").stdout.count("still runs: left alone") == 3
life.end()
assert not MAIN.exists() and all(map(is_gone, first_two)) and not is_gone(of_second)
second.crash()
os.kill(forked, signal.SIGKILL)
wait_for(lambda: is_gone(forked), 10)
ended(of_second, of_forked)
assert lists() == [], lists()

# A program becomes another one by exec. The new one registers more processes.
life = Life()
before = life.do("child")
assert life.do("exec") == life.pid
after = life.do("child")
assert pids_in(MAIN) == [after] and pids_in(f"process_registry.{life.pid}.json") == [before], lists()
life.crash()
ended(before, after)

# Many programs at once, beside a list without any process.
assert lists() == [MAIN.name]
crowd = [Life() for _ in range(8)]
for life in crowd:
    life.say("child")
children = [life.hear() for life in crowd]
found = [pid for path in lists() for pid in pids_in(path)]
assert sorted(found) == sorted(children) and not list(pathlib.Path().glob("*.new")), (lists(), found, children)
for life in crowd:
    life.crash()
ended(*children)

# If a file with the list's name is not a list, or is a hostile list, its content is ignored, and the program does not
# fail. If this file cannot be replaced, it stays, and the list is written beside it.
boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def document(parent, processes):
    return (f'{{"format": "memstow-processes", "version": 1, "boot_id": "{boot}", "parent": {parent}, '
            f'"processes": {processes}}}')


precious = pathlib.Path("precious")
precious.write_text("precious")
for text in ("", "[]", "{" * 5000, document(7, "[]"), document('{"pid": 4194303, "start_ticks": 1}', '{"a": 1}'),
             document('{"pid": 99999999999999999999, "start_ticks": 1}', "[]"),
             document('{"pid": 4194303, "start_ticks": 1}', '[1, "x", {"pid": -5}, {"pid": 0, "start_ticks": 0}]')):
    MAIN.write_text(text)
    life = Life()
    child = life.do("child")
    assert lists() == [MAIN.name] and pids_in(MAIN) == [child], (text[:80], lists())
    life.end()


def link():
    MAIN.symlink_to(precious)
    return lambda: MAIN.is_symlink() and precious.read_text() == "precious"


def folder():
    MAIN.mkdir()
    return MAIN.is_dir


def long():
    MAIN.write_text(" " * (1 << 20) + "{}")
    return lambda: MAIN.stat().st_size == (1 << 20) + 2


def of_another_user():
    MAIN.write_text("{}")
    os.chown(MAIN, 65534, 65534)
    return lambda: MAIN.read_text() == "{}"


for make in (link, folder, long, *([of_another_user] if os.getuid() == 0 else [])):
    is_as_it_was = make()
    life = Life()
    child = life.do("child")
    assert pids_in(f"process_registry.{life.pid}.json") == [child] and len(lists()) == 2, (make, lists())
    assert is_as_it_was(), (make, lists())
    life.end()
    assert lists() == [MAIN.name] and is_as_it_was(), make
    MAIN.rmdir() if MAIN.is_dir() and not MAIN.is_symlink() else MAIN.unlink()
