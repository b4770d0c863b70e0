#!/usr/bin/env python3
"""A tree of shells, interpreters and forks under `memstow run`. Each image that ran leaves a file. The summary adds up
the tree. When a process replaces its image by another one (exec), the file of the earlier image is kept as FILE.x0.
--follow chooses which processes are tracked."""
import re, sys

import support

MIB = 1 << 20
LEAF = f"leaf = bytearray({5 * MIB})"
BRANCH = f"""
import os, subprocess, sys
kept = bytearray({20 * MIB})
subprocess.run([sys.executable, "-Sc", {LEAF!r}], check=True)
child = os.fork()
if child == 0:
    more = bytearray({7 * MIB})
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("branch done")
"""
SCRIPT = 'echo from the shell; "$0" -Sc "$1"; (echo from a subshell); ls / | wc -l >/dev/null; exit 5'


def tree(folder, *options):
    """Runs the tree; returns (its summary, {file name: report})."""
    (support.HERE / folder).mkdir()
    done = support.memstow("run", *options, "-o", f"{folder}/out.mst", "--", "sh", "-c", SCRIPT, sys.executable, BRANCH,
                           status=5)
    assert done.stdout == "from the shell\nbranch done\nfrom a subshell\n", done.stdout
    return done.stderr, {file.name: support.report(file) for file in (support.HERE / folder).iterdir()}


def named(reports, name):
    return [r for r in reports.values() if r["process"]["name"].startswith(name)]


def peaks(reports, depth):
    return sorted(r["totals"]["host"]["peak_bytes"] // MIB for r in named(reports, "python")
                  if r["process"]["fork_depth"] == depth)


def everybody():
    summary, reports = tree("all")
    assert reports["out.mst"]["process"]["name"] == "sh", reports["out.mst"]["process"]
    assert {r["process"]["run_id"] for r in reports.values()} == {reports["out.mst"]["process"]["run_id"]}
    started, forked = peaks(reports, 0), peaks(reports, 1)
    assert len(started) == 2 and started[0] >= 5 and started[1] >= 20, started
    assert len(forked) == 1 and forked[0] >= 7, forked
    child = next(r for r in named(reports, "python") if r["process"]["fork_depth"])
    assert child["process"]["inherited"]["bytes_at_fork"] >= 20 * MIB, child["process"]
    assert child["process"]["state"] != "running", child["process"]
    assert len(named(reports, "ls")) == len(named(reports, "wc")) == 1, reports.keys()
    check_summary(summary, reports)


def check_summary(summary, reports):
    """Asserts that one line of the summary counts the programs of the tree and adds up what they allocated."""
    line = re.search(r"all (\d+) programs: .* live at end, ([\d.]+) MiB allocated", summary)
    allocated = sum(r["totals"]["allocated_bytes"] for r in reports.values()) / MIB
    assert line and int(line[1]) == len(reports), f"{len(reports)} files\n{summary}"
    assert abs(float(line[2]) - allocated) <= 0.06, f"{allocated} MiB allocated\n{summary}"


def exec_chain():
    (support.HERE / "chain").mkdir()
    inner = f"last = bytearray({9 * MIB}); print('third')"
    middle = (f"import os, sys; big = bytearray({30 * MIB}); os.execv(sys.executable, [sys.executable, '-Sc', "
              f"{inner!r}])")
    done = support.track("sh", "-c", 'exec "$0" -Sc "$1"', sys.executable, middle, file="chain/out.mst")
    assert done.stdout == "third\n", done
    reports = {file.name: support.report(file) for file in (support.HERE / "chain").iterdir()}
    assert set(reports) == {"out.mst", "out.mst.x0", "out.mst.x1"}, sorted(reports)
    assert len({r["process"]["pid"] for r in reports.values()}) == 1
    assert [reports[n]["process"]["exec_generation"] for n in ("out.mst.x0", "out.mst.x1", "out.mst")] == [0, 1, 2]
    assert reports["out.mst.x0"]["process"]["name"] == "sh"
    held = reports["out.mst.x1"]["totals"]["host"]["live_bytes"]
    assert held >= 30 * MIB and reports["out.mst.x1"]["process"]["state"] == "execed", reports["out.mst.x1"]["process"]
    last = reports["out.mst"]
    assert 9 * MIB <= last["totals"]["host"]["peak_bytes"] < 30 * MIB, last["totals"]
    assert last["process"]["state"] == "exited", last["totals"]


def chosen():
    _, reports = tree("none", "--follow=none")
    assert list(reports) == ["out.mst"] and reports["out.mst"]["process"]["name"] == "sh", reports.keys()
    _, reports = tree("wc", "--follow=wc,true")
    assert {r["process"]["name"] for r in reports.values()} == {"sh", "wc"}, [r["process"] for r in reports.values()]


everybody()
exec_chain()
chosen()
