#!/usr/bin/env python3
# needs: cc
"""Checks what the runner reports of tests that pass, fail, skip and hang, and of programs with expectations. Also
checks the runner's closing line, and how names choose tests. A test marked "alone" runs alone. The reported processor
time of a test includes the time of its children."""
import re, shutil

import _runner, support

NOTE = 'import pathlib, time\nlog = open(pathlib.Path(__file__).parent / "log", "a", buffering=1)\n'
BUSY = NOTE + 'log.write("busy\\n"); time.sleep(0.5); log.write("busy\\n")\n'
ALONE = "# alone\n" + NOTE + 'log.write("alone\\n"); time.sleep(0.5); log.write("end\\n")\n'
HANG = """# timeout: 5
import subprocess, time
print("child", subprocess.Popen(["sleep", "1000"]).pid, flush=True)
time.sleep(1000)
"""
SPIN = """import subprocess, sys
source = "import time\\nwhile time.process_time() < 0.5: pass"
subprocess.run([sys.executable, "-c", source], check=True)
"""
PROGRAM = '#include <stdio.h>\nint main(void) {{ puts("expect totals.live_bytes {}"); }}\n'

command = _runner.make(
    spin=SPIN, busy1=BUSY, busy2=BUSY, alone1=ALONE, alone2=ALONE, hang=HANG,
    fail='print("why"); raise SystemExit(3)\n', skip='print("first\\nno such device"); raise SystemExit(77)\n',
    unmet="# needs: mimalloc\nraise SystemExit(1)\n", late="# long\n# needs: torch deb:gdb\nprint('what')\n",
    _part="raise SystemExit(1)\n")
for name, expectation in (("right", ">= 0"), ("wrong", "< 0")):
    program = support.compile(PROGRAM.format(expectation), name)
    for folder in ("tests/prog", "build/dev/tests/prog"):
        (support.HERE / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(f"{name}.c", "tests/prog")
    shutil.move(program, "build/dev/tests/prog")


def check(*arguments, status=0):
    return support.run(*command, *arguments, status=status)


lines = check(status=1).stdout.split("\n")
shown = "\n".join(lines)
before, _, after = shown.partition("\nfailed:\n")
assert re.sub("\n    .*", "", after) == (
    "  cli/fail\n  cli/hang\n  prog/wrong\n\n"
    "skipped:\n  cli/skip: no such device\n  cli/unmet: built without mimalloc\n"
    "6 passed, 3 failed, 2 skipped\n"), shown
assert all("    why\n    exit status 3\n" in part for part in (before, after)), shown
assert "    expect totals.live_bytes < 0: it is" in shown, shown
assert "no end after 5 s\n    child " in shown, shown
child = next(line.split()[1] for line in lines if line.startswith("    child "))
seconds = {name: (float(all_of_it), float(processors)) for name, all_of_it, processors in re.findall(
    r"^passed  (\S+)  (\S+) s, processors (\S+) s$", shown, re.M)}
assert seconds["cli/spin"][1] >= 0.5 and seconds["cli/alone1"][0] - seconds["cli/alone1"][1] > 0.3, seconds
support.wait_for(lambda: support.is_gone(child), what="the end of what a test that hangs has started")
assert (support.HERE / "tests/cli/log").read_text() == "busy\n" * 4 + "alone\nend\n" * 2

assert check("--list", "cli/*1", "tests/prog/right.c").stdout == "cli/alone1\ncli/busy1\nprog/right\n"
assert check("--list", "prog").stdout == "prog/right\nprog/wrong\n"
assert check("--needs", "--long", "cli").stdout == "deb:gdb\ntorch\n"
assert check("cli/nothing", status=1).stderr == "no test is named cli/nothing\n"
assert check("cli/late", status=1).stderr == "no test is named cli/late\n"
late = check("--long", "cli/late").stdout # the output of a long test is shown
assert late.endswith(" s\n    what\n1 passed, 0 failed, 0 skipped\n"), late
