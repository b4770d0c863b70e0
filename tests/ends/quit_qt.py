# needs: pip:PyQt5==5.15.11 deb:libglib2.0-0
# timeout: 200
"""quit_qt ends the event loop of a real Qt application, from any thread: when the program runs the shutdown itself, on a signal, and at
its exit; what comes after the loop, and slots of aboutToQuit, still run. Without an application, and without Qt, it does nothing.
(PyQt5; no window and no screen are needed.)"""
import concurrent.futures, json, os, pathlib, signal, subprocess, sys

from support import HERE, MEMSTOW, PYTHON, ROOT, run, skip, start

QT = os.environ.get("QT_PACKAGE", "PyQt5") # another binding, by hand
found = run(PYTHON, "-c", f"import {QT}.QtCore", status=None)
if found.returncode:
    skip(f"{QT} cannot be loaded: {(found.stderr.strip().splitlines() or ['?'])[-1]}")

pathlib.Path("app.py").write_text(r"""
import sys, threading, time
import memstow_shutdown as shutdown
how, package = sys.argv[1:]
shutdown.quit_qt()
if how == "without":
    assert "QtCore" not in " ".join(sys.modules)
    print(shutdown.run("the test").failed, flush=True)
    sys.exit(0)
core = __import__(package + ".QtCore").QtCore
if how == "no application":
    print(shutdown.run("the test").failed, flush=True)
    sys.exit(0)
application = core.QCoreApplication([])
application.aboutToQuit.connect(lambda: print("about to quit", flush=True))
timer = core.QTimer()
timer.timeout.connect(lambda: None) # Python gets to run: a signal is answered
timer.start(50)
def end():
    print("result", shutdown.run("the test", limit=30).failed, flush=True)
if how == "thread":
    core.QTimer.singleShot(100, lambda: threading.Thread(target=end).start())
if how == "loop":
    core.QTimer.singleShot(100, end) # within the loop itself, which ends when this has returned
if how == "signal":
    ended = threading.Event()
    shutdown.handler(ended.set, "note")
    shutdown.on_signals(limit=30)
core.QTimer.singleShot(20000, lambda: application.exit(99))
core.QTimer.singleShot(0, lambda: print("runs", flush=True))
run = getattr(application, "exec", None) or application.exec_
status = run()
print("loop ended", status, flush=True)
if how == "signal":
    ended.wait(30)
    time.sleep(30) # on_signals ends the process
""")


def life(how, tracked):
    before = [MEMSTOW, "run", "--quiet", "-o", f"{how}.mst", "--"] if tracked else []
    folder = HERE / f"{how} {tracked}"
    folder.mkdir()
    process = start(*before, PYTHON, HERE / "app.py", how, QT, cwd=folder, stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "QT_QPA_PLATFORM": "offscreen"})
    if how == "signal":
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGTERM)
    out = process.communicate(timeout=90)[0]
    return process.returncode, out.splitlines(), folder


expected = {"thread": {"runs", "about to quit", "loop ended 0", "result ()"}, "loop": {"runs", "about to quit", "loop ended 0", "result ()"},
            "signal": {"about to quit", "loop ended 0"}, "no application": {"()"}, "without": {"()"}}
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    lives = {(how, tracked): pool.submit(life, how, tracked) for tracked in (True, False) for how in expected}
for (how, tracked), one in lives.items():
    status, lines, folder = one.result()
    assert set(lines) == expected[how], (how, tracked, status, lines)
    assert status == (128 + signal.SIGTERM if how == "signal" else 0), (how, tracked, status)
    if tracked:
        steps = [json.loads(line) for line in (folder / "shutdown.log").read_text().splitlines()]
        assert [one["result"] for one in steps if one["step"] == "stop" and one.get("name") == "qt"] == [0], steps
