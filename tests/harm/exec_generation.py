"""The number of times that a process replaced itself is known, whatever the names of the files, and for each function
of exec. The summary names the last program."""
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

# Each function of exec; and children, forked or vforked, which begin at 0.
every = support.compile(r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments) {
    int step = count > 1 ? atoi(arguments[1]) : 0;
    char next[2] = {(char)('1' + step), 0}, *list[] = {"every", next, 0}, *none[] = {0}, *self = "/proc/self/exe";
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
    case 8: return getenv("MEMSTOW_EXEC") == 0;
    }
    return 9 + (none[0] != 0);
}
''', "every")
(support.HERE / "all").mkdir()
support.memstow("run", "--quiet", "-o", "all/%p.%n.%x.mst", every)
reports = {p.name: support.report(p)["process"] for p in pathlib.Path("all").iterdir()}
main = [p for p in reports.values() if p["name"] in ("every", "last") and p["fork_depth"] == 0]
assert sorted(p["exec_generation"] for p in main) == list(range(9)), json.dumps(reports, indent=1)
children = {p["name"]: p["exec_generation"] for p in reports.values() if "forked" in p["name"]}
assert children == {"vforked": 0, "forked": 0}, children

# A program that gets an environment without the library gets nothing added to it.
done = support.memstow("run", "--quiet", "-o", "clean.mst", "sh", "-c", "exec env -i env")
assert "MEMSTOW" not in done.stdout and "LD_PRELOAD" not in done.stdout, done.stdout
