"""The ledger says how many times a process has replaced itself by exec. This holds for all names of ledgers and for
each function of exec. The summary names the last program."""
import json, pathlib

import support

CHAIN = 'exec env bash -c "exec env cat /dev/null"'
NAMES = ["sh", "env", "bash", "env", "cat"]


def generations(pattern):
    reports = [support.report(file)["process"] for file in pathlib.Path(".").glob(pattern)]
    return [p["name"]
            for p in sorted(reports, key=lambda p: p["start_time"])], sorted(p["exec_generation"] for p in reports)


done = support.memstow("run", "sh", "-c", CHAIN)
assert generations("memstow.*") == (NAMES, list(range(5))), generations("memstow.*")
file = done.stderr.split("memstow report ")[1].strip()
assert support.report(file)["process"]["name"] == "cat", done.stderr
for number, name in enumerate(NAMES):
    kept = [support.report(f)["process"] for f in pathlib.Path(".").glob(f"memstow.{name}.*")]
    assert number in [p["exec_generation"] for p in kept], kept

support.memstow("run", "--quiet", "-o", "x%x.mst", "sh", "-c", CHAIN)
assert [support.report(f"x{i}.mst")["process"]["name"] for i in range(5)] == NAMES
support.memstow("run", "--quiet", "-o", "%n-%x.mst", "sh", "-c", CHAIN)
assert sorted(p.name for p in pathlib.Path(".").glob("*-?.mst")) == sorted(f"{n}-{i}.mst" for i, n in enumerate(NAMES))

# Each function of exec begins the next generation. Children, forked or vforked, begin at generation 0.
every = support.compile(r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments) {
    int step = count > 1 ? atoi(arguments[1]) : 0;
    char next[] = {(char)('0' + (step + 1) / 10), (char)('0' + (step + 1) % 10), 0};
    char *list[] = {"every", next, 0}, *none[] = {0}, *self = "/proc/self/exe";
    free(malloc(1));
    if (step == 3 && !vfork()) execl("/bin/true", "vforked", (char *)0);
    if (step == 3 && !fork()) {
        free(malloc(2));
        execl("/bin/true", "forked", (char *)0);
    }
    while (wait(0) > 0) {}
    switch (step) {
    case 0: execve("/nowhere", list, environ); execve(self, list, environ); break;
    case 1: execv(self, list); break;
    case 2: execvp(arguments[0][0] == '/' ? arguments[0] : self, list); break;
    case 3: execvpe(self, list, environ); break;
    case 4: fexecve(open(self, O_RDONLY), list, environ); break;
    case 5: execl(self, "every", next, (char *)0); break;
    case 6: execle(self, "every", next, (char *)0, environ); break;
    case 7: execlp(self, "last", next, (char *)0); break;
    case 8: execveat(AT_FDCWD, self, list, environ, 0); break;
    case 9: syscall(SYS_execve, self, list, environ); break;
    case 10: syscall(SYS_execveat, open(self, O_RDONLY), "", list, environ, AT_EMPTY_PATH); break;
    case 11: return getenv("MEMSTOW_EXEC") == 0;
    }
    return 9 + (none[0] != 0);
}
''', "every")
(support.HERE / "all").mkdir()
support.memstow("run", "--quiet", "-o", "all/%p.%n.%x.mst", every)
reports = {p.name: support.report(p)["process"] for p in pathlib.Path("all").iterdir()}
main = [p for p in reports.values() if p["name"] in ("every", "last") and p["fork_depth"] == 0]
assert sorted(p["exec_generation"] for p in main) == list(range(12)), json.dumps(reports, indent=1)
children = {p["name"]: p["exec_generation"] for p in reports.values() if "forked" in p["name"]}
assert children == {"vforked": 0, "forked": 0}, children

# If a program is started with an environment without the library, memstow adds nothing to this environment.
done = support.memstow("run", "--quiet", "-o", "clean.mst", "sh", "-c", "exec env -i env")
assert "MEMSTOW" not in done.stdout and "LD_PRELOAD" not in done.stdout, done.stdout

# If an exec is done by a system call that the library does not see, the exit status is still that of the last program.
# This holds whichever way the last program ends.
unseen = support.compile(r'''
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments) {
    char *end = arguments[1], *list[] = {"last", end, "again", 0};
    free(malloc(1));
    if (count == 2)
        __asm__ volatile("syscall" : : "a"(SYS_execve), "D"("/proc/self/exe"), "S"(list), "d"(environ)
                         : "rcx", "r11", "memory");
    if (*end == 's') __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(4) : "rcx", "r11", "memory");
    return 3;
}
''', "first")
for end, state, status in (("return", "exited", 3), ("system call", "raw_exit", 4)):
    support.memstow("run", "--quiet", "-o", "%n-unseen.mst", unseen, end, status=status)
    ends = [support.report(f"{name}-unseen.mst")["process"] for name in ("first", "last")]
    assert [(p["state"], p["exit_status"]) for p in ends] == [("execed", None), (state, status)], ends

# A ledger with this process's id and start time, but of an earlier boot, is not taken for a ledger of this process.
(support.HERE / "reboot.py").write_text(f"""
import os, pathlib, sys
sys.path.insert(0, {str(support.ROOT / "tests/cli")!r})
from _ledger import simple
now = bytes.fromhex(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
simple(state=4, pid=os.getpid(), boot_id=now if sys.argv[1] == "same" else bytes(range(16)), start_ticks=ticks,
       exec_generation=5).save("boot.mst")
env = dict(os.environ, LD_PRELOAD={str(support.LIBRARY)!r}, MEMSTOW_OUT=os.path.abspath("boot.mst"))
os.execve("/bin/true", ["true"], env)
""")
for boot, generation in (("same", 6), ("other", 0)):
    support.run(support.PYTHON, "reboot.py", boot)
    process = support.report("boot.mst")["process"]
    assert (process["name"], process["exec_generation"]) == ("true", generation), (boot, process)
    for file in pathlib.Path(".").glob("boot.mst*"):
        file.unlink()
