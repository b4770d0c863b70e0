#!/usr/bin/env python3
"""A signal ends the runner, its tests and the tests' processes, and the tests' folders are removed. A signal that was
ignored when the runner started is not ignored in the tests."""
import os, signal, subprocess

import _runner, support

HANG = """
import pathlib, signal, subprocess, time
assert signal.SIG_IGN not in (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP))
child = subprocess.Popen(["sleep", "1000"])
pathlib.Path(__file__).with_suffix(".child").write_text(str(child.pid))
time.sleep(1000)
"""
command = _runner.make(together=HANG, alone="# alone" + HANG, waiting="# timeout: 1\nraise SystemExit(1)\n")
temporary = support.HERE / "temporary"
temporary.mkdir()


def end_by(name, number, inherited=signal.SIG_DFL):
    noted = support.HERE / f"tests/cli/{name}.child"
    noted.unlink(missing_ok=True)
    runner = support.start(*command, "--jobs", "1", f"cli/{name}", "cli/waiting", stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True,
                           preexec_fn=lambda: signal.signal(number, inherited))
    support.wait_for(lambda: noted.exists() and noted.read_text(), what=f"the start of cli/{name}")
    runner.send_signal(number)
    shown = runner.communicate(timeout=60)[0]
    assert runner.returncode == 128 + number, (name, number, runner.returncode, shown)
    child = noted.read_text()
    support.wait_for(lambda: support.is_gone(child), what=f"the end of what cli/{name} has started")
    assert not list(temporary.iterdir()), (name, number)
    assert name == "alone" or "cli/waiting" not in shown, shown


for name in ("together", "alone"):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        end_by(name, number)
    end_by(name, signal.SIGINT, inherited=signal.SIG_IGN)
    end_by(name, signal.SIGHUP, inherited=signal.SIG_IGN)
