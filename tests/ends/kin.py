"""The coordinator in Python finds the same kin as the coordinator in C. This test uses the table of cases of unit/kin,
which tests the coordinator in C."""
import os, pathlib, re, sys

from support import ROOT

sys.path.insert(0, str(ROOT / "tools/python"))
import memstow_shutdown as shutdown

SELF, START = 40000, 1000
KEYS = {"KIN": "parent group session", "SURVIVORS": "parent group session",
        "PROCESS": "pid parent group session start looks result"}


def read_cases():
    """Returns the cases. A case is a list of dictionaries. The first dictionary is the program, with the rule and the
    name of the case. The others are the other processes."""
    cases = []
    for line in pathlib.Path(ROOT / "tests/unit/kin_cases.h").read_text().splitlines():
        if not (match := re.fullmatch(r'(KIN|SURVIVORS|PROCESS)\((?:"(.*)", )?(.*)\)', line)):
            continue
        words = [int(word) if word.isdigit() else word for word in match[3].split(", ")]
        values = dict(zip(KEYS[match[1]].split(), words, strict=True))
        if match[1] != "PROCESS":
            cases.append([])
            values |= {"rule": match[1], "name": match[2], "pid": SELF, "start": START}
        cases[-1].append(values)
    return cases


def fields(process):
    """The fields of /proc/PID/stat, from the state on."""
    return ["S", *(str(process[key]) for key in ("parent", "group", "session")), *["0"] * 15, str(process["start"])]


def system(program, processes):
    """Replaces what the coordinator reads of the system."""
    table = {one["pid"]: fields(one) for one in processes}
    shutdown._all = lambda: table
    shutdown._start = lambda pid, ended="ZX": (table | {SELF: fields(program)}).get(pid, [""])[-1]
    shutdown._has_mark = lambda pid: False
    os.getpid, os.getppid = (lambda: SELF), (lambda: program["parent"])
    os.getpgrp, os.getsid = (lambda: program["group"]), (lambda pid: program["session"])


def found(rule):
    return shutdown._look() if rule == "KIN" else shutdown._kept()


wrong, judged = [], 0
for program, *processes in read_cases():
    shutdown._known.clear()
    shutdown._processes = {one["pid"]: shutdown.Process(None, "", True, str(one["start"]))
                           for one in processes if one["result"] == "SURVIVOR"}
    for look in ("FIRST", "SECOND") if program["rule"] == "KIN" else ("SECOND",):
        there = [one for one in processes if one["looks"] in (look, "BOTH")]
        system(program, there)
        kin = found(program["rule"])
        wrong += [(program["name"], look, one) for one in there if (one["pid"] in kin) != (one["result"] != "NO")]
        judged += len(there)
assert not wrong, wrong
assert judged > 40, judged
print(f"{judged} answers are as the table has them")
