#!/usr/bin/env python3
# needs: deb:gron deb:hjson-go
"""Programs in Go do the same with and without memstow. A dynamic program ends by a raw system call of its own. The
report says so, and does not say that the program was killed. If the program is a child of another program, memstow
cannot know how it ended, and the report says that. A static program cannot be preloaded: memstow says that it runs
untracked, and keeps no file."""
import support

support.HERE.joinpath("data.json").write_text('{"names": ["a", "b"], "deep": {"er": [1, 2.5, null]}}\n')


def outcome(done):
    return done.returncode, done.stdout


for arguments in (["data.json"], ["absent.json"]):
    alone = support.run("gron", *arguments, status=None)
    tracked = support.track("gron", *arguments, file="gron.mst", status=None)
    assert outcome(tracked) == outcome(alone) and tracked.stderr == alone.stderr, (alone, tracked)
    process = support.report("gron.mst")["process"]
    assert process["state"] == "raw_exit", process
    said = support.memstow("report", "gron.mst").stdout
    assert f"exited with {alone.returncode}" in said and "killed" not in said, said

support.track("sh", "-c", "gron data.json; true", file="shell.mst")
[child] = support.HERE.glob("shell.mst.*")
process = support.report(child)["process"]
assert (process["name"], process["state"], process["exit_status"], process["signal"]) == (
    "gron", "ended_unseen", None, None), process
assert ", ended unseen, by a raw exit or a signal" in support.memstow("report", child).stdout

alone = support.run("hjson-cli", "-j", "data.json")
tracked = support.memstow("run", "-o", "static.mst", "--", "hjson-cli", "-j", "data.json")
assert tracked.stdout == alone.stdout and alone.stdout, (alone, tracked)
assert "hjson-cli is a static program: it cannot be preloaded and runs untracked" in tracked.stderr, tracked
assert not support.HERE.joinpath("static.mst").exists()
