# needs: pip:PyQt5==5.15.11 deb:libglib2.0-0
# timeout: 200
"""quit_qt ends the event loop of a real Qt application after all other parts of the program. Threads end before the
loop, even a QThread, and a thread that needs an answer from the loop. Waiting events are delivered, and objects that
are to be deleted are deleted. All of this happens on the application's own thread, whether the shutdown runs on another
thread, in the loop itself, after a signal or at the program's exit. Code behind the loop, and slots of aboutToQuit,
still run. If a loop does not answer, quit_qt gives up waiting for it. Without an application or without Qt, quit_qt
does nothing. (The test uses PyQt5. It needs no window and no screen.)"""
import concurrent.futures, json, os, pathlib, signal, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, run, skip, start

QT = os.environ.get("QT_PACKAGE", "PyQt5") # set QT_PACKAGE by hand to test another binding
found = run(PYTHON, "-c", f"import {QT}.QtCore", status=None)
if found.returncode:
    skip(f"{QT} cannot be loaded: {(found.stderr.strip().splitlines() or ['?'])[-1]}")

pathlib.Path("app.py").write_text(r"""
import os, sys, threading, time
import memstow_shutdown as shutdown
how, package = sys.argv[1:]

def say(*words): # one write: threads say something at once
    os.write(1, (" ".join(map(str, words)) + "\n").encode())

if how in ("without", "no application"):
    if how == "no application":
        __import__(package + ".QtCore")
    shutdown.quit_qt()
    say(shutdown.run("the test").failed)
    sys.exit(0)

core = __import__(package + ".QtCore").QtCore
application = core.QCoreApplication([])
gui = threading.current_thread()
Signal = getattr(core, "pyqtSignal", None) or core.Signal

class Window(core.QObject): # what happens to it happens on the application's thread
    asked, told = Signal(), Signal()
    def answer(self):
        say("answered", threading.current_thread() is gui, worker.is_alive())
    def hear(self):
        say("heard", threading.current_thread() is gui)

window, other = Window(), Window()
window.asked.connect(window.answer, core.Qt.ConnectionType.BlockingQueuedConnection)
other.told.connect(other.hear, core.Qt.ConnectionType.QueuedConnection)
alive = [] # the object that is deleted lives on in Python

def is_deleted():
    say("deleted", threading.current_thread() is gui, worker.is_alive(), inner.isRunning())
window.destroyed.connect(is_deleted)

stop = threading.Event()
def work():
    stop.wait()
    time.sleep(0.2)
    window.asked.emit() # waits for the loop
    other.told.emit() # does not
worker = threading.Thread(target=work)
worker.start()
inner = core.QThread()
inner.start()
shutdown.quit_qt(delete=[window], seconds=1 if how == "busy" else 10)
shutdown.stop_thread(worker, stop.set, "worker", seconds=1 if how == "busy" else 10)
shutdown.stop_thread(inner, name="inner")
application.aboutToQuit.connect(lambda: say("about to quit", threading.current_thread() is gui, worker.is_alive()))
timer = core.QTimer()
timer.timeout.connect(lambda: None) # Python gets to run: a signal is answered
timer.start(50)

def end():
    result = shutdown.run("the test", limit=30)
    say("result", [name for name, _ in result.failed], result.threads)

def busy():
    threading.Thread(target=end).start()
    time.sleep(12)

starts = {"thread": lambda: threading.Thread(target=end).start(), "loop": end, "busy": busy,
          "exit": lambda: application.exit(0)}
if how in starts:
    core.QTimer.singleShot(100, starts[how])
if how == "exit":
    shutdown.at_exit(limit=30)
if how == "signal":
    shutdown.on_signals(limit=30)
core.QTimer.singleShot(40000, lambda: application.exit(99))
core.QTimer.singleShot(0, lambda: say("runs"))
status = (getattr(application, "exec", None) or application.exec_)()
say("loop ended", status)
timer.stop()
if how == "signal":
    time.sleep(0.3)
    say("after the loop")
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


before_it = ["answered True True", "deleted True False False"]
quits = ["about to quit True False", "loop ended 0"]
heard = {"heard True"} # this line may be at any place
anywhere = {"thread": heard | {"result [] ()"}, "loop": heard | {"result [] ()"}, "signal": heard, "exit": heard}
expected = {"thread": ["runs", *before_it, *quits], "loop": ["runs", *before_it, *quits],
            "signal": [*before_it, *quits, "after the loop"],
            "exit": ["runs", "about to quit True True", "loop ended 0", *before_it], "no application": ["()"],
            "without": ["()"]}
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    lives = {(how, tracked): pool.submit(life, how, tracked) for tracked in (True, False)
             for how in (*expected, "busy")}
for (how, tracked), one in lives.items():
    status, lines, folder = one.result()
    if how == "busy": # the loop's answer and its end come too late
        assert "result ['worker', 'qt'] ('Thread-1 (work)',)" in lines and status == 0, (tracked, status, lines)
        continue
    any_order = anywhere.get(how, set())
    assert [line for line in lines if line not in any_order] == expected[how], (how, tracked, lines)
    assert any_order <= set(lines), (how, tracked, lines)
    assert status == (128 + signal.SIGTERM if how == "signal" else 0), (how, tracked, status)
    if tracked:
        steps = [json.loads(line) for line in (folder / "shutdown.log").read_text().splitlines()]
        order = [(line["step"], line.get("name")) for line in steps if line["step"] in ("clean", "quit", "end")]
        some = how not in ("no application", "without")
        assert order[-2 if some else 0:] == [("quit", "qt"), ("end", None)][0 if some else 1:], (how, order)
        assert set(order[:-2]) == ({("clean", "inner"), ("clean", "worker")} if some else set()), (how, order)
        assert all(line["result"] == 0 for line in steps if line["step"] in ("clean", "quit")), steps
