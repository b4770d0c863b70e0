#!/usr/bin/env python3
"""bash completes commands, options and files. It completes processes for each command whose usage names a PID."""
import re

import support

SCRIPT = """
. "$1"; shift
COMP_CWORD=$1; shift
COMP_WORDS=("$@")
_memstow 2>/dev/null # outside of a completion compopt complains
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(line):
    """The words that bash offers at the end of the line."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith((" ", "=")) else [])
    found = support.run("bash", "-c", SCRIPT, "bash", support.ROOT / "tools/completion/memstow.bash", len(words) - 1,
                        *words, env={"PATH": f"{support.MEMSTOW.rpartition('/')[0]}:/usr/bin:/bin"})
    return set(found.stdout.split())


(support.HERE / "this.mst").touch()
commands = set(re.findall(r"^  ([a-z]+)  +\S", support.memstow("--help").stdout, re.M))
assert complete("memstow ") >= commands | {"help"} and complete("memstow rep") == {"report"}, complete("memstow ")
assert complete("memstow help trig") == {"trigger"}
assert {"-o", "--stacks=", "--quiet"} <= complete("memstow run -"), complete("memstow run -")
assert "this.mst" in complete("memstow report t") and complete("memstow check --baseline=th") == {"this.mst"}

support.start(support.MEMSTOW, "run", "--quiet", "-o", "sleeps.mst", "--", "sleep", "100")
pid = support.wait_for(lambda: re.search(rf'"pid":\s*(\d+)[^{{}}]*{re.escape(str(support.HERE))}/sleeps.mst',
                                         support.memstow("ps", "--json").stdout), what="a tracked process")[1]
of_processes = {command for command in commands
                if re.search(r"\bPID\b", support.memstow(command, "--help").stdout.split("\n\n")[0])}
assert of_processes >= {"report", "stow", "metrics", "push"}, of_processes
for command in commands:
    assert (pid in complete(f"memstow {command} ")) == (command in of_processes), (command, of_processes)
