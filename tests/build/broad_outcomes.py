#!/usr/bin/env python3
# timeout: 300
"""Checks what tests/real/broad reports of four kinds of programs: programs that do the same under memstow, programs
that do not, programs that cannot be compared, and programs that cannot be installed. tests/real/broad ends the
processes that the programs leave running. If fewer than forty programs ran, tests/real/broad counts as skipped, and
names the programs that are missing."""
import os, pathlib, shutil, sys

import support

TABLE = r"""
PROGRAMS = [
    Program("same", [], "echo right; exit 3", names=("bash",), exit=3),
    Program("by rule", [], "echo $RANDOM at last", names=("bash",), differs=((r"^\d+ at", "at", "it is by chance"),)),
    Program("other output", [], 'echo "[${LD_PRELOAD:-}]"', names=("bash",)),
    Program("other errors", [], 'echo "[${LD_PRELOAD:-}]" >&2', names=("bash",)),
    Program("other status", [], '[ -z "${LD_PRELOAD:-}" ]', names=("bash",)),
    Program("endless", [], '[ -z "${LD_PRELOAD:-}" ] || sleep 1000', names=("bash",), timeout=2),
    Program("unseen", [], "exit 0", names=("another",)),
    Program("seen", [], "exit 0", names=("bash",), unseen="it is said to be"),
    Program("fails", [], "echo why; exit 4", names=("bash",)),
    Program("by chance", [], "echo $RANDOM$RANDOM", names=("bash",)),
    Program("unprepared", [], "exit 0", "echo how; exit 5", names=("bash",)),
    Program("not there", ["path:no-such-program"], "exit 0"),
    Program("leaves", [], "setsid sleep 1000 & echo left", names=("bash",), killed=("sleep", "setsid")),
    Program("killed", [], "kill -KILL $BASHPID", names=("bash",), exit=137),
]
"""
FITTING = r"""
PROGRAMS = [
    *(Program(f"same {{number}}", [], "echo right", names=("bash",)) for number in range({fitting})),
    Program("not there", ["path:no-such-program"], "exit 0"),
    Program("another", ["path:no-such-program"], "exit 0"),
]
"""
EXPECTED = {"same": "same", "by rule": "same", "leaves": "same",
            "not there": "skipped cannot be had here: path:no-such-program", "other output": "WRONG stdout differs",
            "other errors": "WRONG stderr differs", "other status": "WRONG status differs",
            "killed": "WRONG it is killed", "endless": "WRONG no end after 2 s", "unseen": "WRONG no ledger of another",
            "seen": "unfit although it is said to be", "fails": "unfit exit status 4",
            "by chance": "unfit two runs without memstow differ", "unprepared": "unfit how",}


def said(output):
    """{program: (outcome, words)}"""
    found, words = {}, []
    for line in output.split("\n"):
        name = next((n for n in EXPECTED if line[8:].startswith(n + "  ")), None)
        if name:
            words = [line]
            found[name] = (line.split()[0], words)
        else:
            words.append(line)
    return {name: (outcome, "\n".join(words)) for name, (outcome, words) in found.items()}


def of_this_test(pid):
    try:
        return f"HOME={support.HERE}".encode() in (pid / "environ").read_bytes()
    except OSError:
        return False


for file in ("support.py", "real/broad.py", "real/_report.py", "real/_programs.py"):
    (support.HERE / "tests" / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(support.ROOT / "tests" / file, support.HERE / "tests" / file)
with open("tests/real/_programs.py", "a") as table:
    table.write(TABLE)
work = support.HERE / "work"
work.mkdir()
env = {**os.environ, "MEMSTOW": support.MEMSTOW, "PYTHONPATH": ""}
done = support.run(sys.executable, support.HERE / "tests/real/broad.py", status=1, cwd=work, env=env)
found = said(done.stdout)
for name, expected in EXPECTED.items():
    outcome, words = expected.split(maxsplit=1) if " " in expected else (expected, "")
    assert found[name][0] == outcome and words in found[name][1], f"{name}: {done.stdout}{done.stderr}"
assert "WRONG: other output, other errors, other status, " in done.stdout, done.stdout
assert done.stdout.endswith("6 WRONG, 3 same, 1 skipped, 4 unfit\n"), done.stdout
left = [pid for pid in pathlib.Path("/proc").glob("[0-9]*") if of_this_test(pid)]
assert not left, left
assert not list(work.iterdir()), "folders are left"
one = support.run(sys.executable, support.HERE / "tests/real/broad.py", "same", cwd=work, env=env)
assert one.stdout.endswith("1 same\n"), one.stdout
nothing = support.run(sys.executable, support.HERE / "tests/real/broad.py", "not there", status=77, cwd=work, env=env)
assert nothing.stdout.endswith("1 skipped\ntoo few ran (0): cannot be had here: not there\n"), nothing.stdout

broad = support.HERE / "tests/real/broad.py" # with a limit of four, it does not run forty programs for one comparison
assert broad.read_text().count("\nFEWEST = 40 ") == 1
broad.write_text(broad.read_text().replace("\nFEWEST = 40 ", "\nFEWEST = 4 "))
for fitting, status, last in ((3, 77, "too few ran (3): cannot be had here: another, not there\n"),
                              (4, 0, "4 same, 2 skipped\n")):
    with open("tests/real/_programs.py", "a") as table:
        table.write(FITTING.format(fitting=fitting))
    all_of_them = support.run(sys.executable, support.HERE / "tests/real/broad.py", status=status, cwd=work, env=env)
    assert all_of_them.stdout.endswith(last), all_of_them.stdout
