# needs: cc
"""The head of a report says how the process ended. It knows this from the ledger, or else from the command that waited
for the process. A process that ended by a raw exit, as Go programs do, is not called killed, even if nobody has waited
for it."""
import support
from _ledger import ABRUPT, ENDED_EXITED, ENDED_KILLED, EXECED, EXITED, RUNNING, FORK_CHILD, simple
from support import memstow, report

for state, ended, words, key in ((EXITED, (0, 0), "exited", "exited"),
                                 (ABRUPT, (0, 0), "ended by _exit", "abrupt_exit"),
                                 (ABRUPT, (ENDED_EXITED, 3), "ended by _exit", "abrupt_exit"),
                                 (RUNNING, (0, 0), "ended unseen, by a raw exit or a signal", "ended_unseen"),
                                 (RUNNING, (ENDED_EXITED, 3),
                                  "exited with 3, by a system call that memstow does not see", "raw_exit"),
                                 (RUNNING, (ENDED_KILLED, 9), "was killed by SIGKILL", "killed"),
                                 (RUNNING, (ENDED_KILLED, 40), "was killed by signal 40", "killed"),
                                 (RUNNING, (77, 9), "ended unseen, by a raw exit or a signal", "ended_unseen"),
                                 (EXECED, (0, 0), "replaced itself by another program (exec)", "execed"),
                                 (99, (0, 0), "in an unknown state", "unknown")):
    simple(state=state, ended=ended).save("x.mst")
    head = memstow("report", "x.mst").stdout.split("\n")[0]
    assert head == f"program (pid 1000), {words}", head
    process = report("x.mst")["process"]
    assert process["state"] == key
    assert process["exit_status"] == (ended[1] if ended[0] == ENDED_EXITED else None)
    assert process["signal"] == {9: "SIGKILL", 40: "signal 40"}.get(ended[1] if ended[0] == ENDED_KILLED else None)
simple(flags=FORK_CHILD, parent_pid=99, inherited=2048).save("x.mst")
assert "forked     from process 99, with 2.0 KiB live" in memstow("report", "x.mst").stdout

# `run` waits for a real process, and writes into the ledger how the process ended, even if the library could not.
program = support.compile("""
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *kept;
int main(int argc, char **argv) { /* STATUS, or a signal */
    kept = malloc(100000);
    if (atoi(argv[1]) >= 0) /* not by libc's syscall, which is seen */
        __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(atoi(argv[1])) : "rcx", "r11", "memory");
    raise(-atoi(argv[1]));
    return argc;
}
""", "leaves")


def ended(status, *options):
    """Runs the program. status: its exit status, or the negative number of the signal that ends it. Returns what `run`
    said, and how the process ended according to the report."""
    done = memstow("run", *options, "-o", "x.mst", "--", program, status,
                   status=status if status >= 0 else 128 - status)
    process = report("x.mst")["process"]
    return done.stderr, (process["state"], process["exit_status"], process["signal"])


for options in ((), ("--quiet",)):
    said, how = ended(3, *options)
    assert how == ("raw_exit", 3, None), how
    words = "it exited with 3, by a system call that memstow does not see: resident memory could not be measured"
    assert (words in " ".join(said.split())) == (not options), said
    said, how = ended(-9, *options)
    assert how == ("killed", None, "SIGKILL") and "system call" not in said, (how, said)
said = memstow("report", "x.mst").stdout
assert "\nResident memory was not measured: the process was killed by SIGKILL.\n" in said, said
memstow("watch", "--quiet", "-o", "x.mst", "--", program, 5, status=5)
assert report("x.mst")["process"]["state"] == "raw_exit"
memstow("run", "--quiet", "-o", "x.mst", "--", "true")
process = report("x.mst")["process"]
assert (process["state"], process["exit_status"]) in (("exited", 0), ("abrupt_exit", 0)), process
# If the parent is not memstow, the ledger has only what the library itself could note of the end.
memstow("run", "--quiet", "-o", "x.mst", "--", "sh", "-c", f"{program} 3; exit 7", status=7)
[child] = support.HERE.glob("x.mst.*")
assert (memstow("report", child).stdout.startswith("leaves (pid ")
        and "), ended unseen, by a raw exit or a signal\n" in memstow("report", child).stdout)
process = report(child)["process"]
assert (process["state"], process["exit_status"], process["signal"]) == ("ended_unseen", None, None), process
assert report("x.mst")["process"]["exit_status"] == 7
