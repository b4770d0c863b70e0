"""How a Python program ends: clean-up in stages, each handler within its time, a log, and a limit for all of it.

    import memstow_shutdown as shutdown

    shutdown.drain_queue(jobs, cancel=stop_workers)       # wait at most 10 s, then cancel
    shutdown.stop_thread(worker, worker.request_stop)     # and join it
    shutdown.close(database, after=["worker"])            # flush and close, once the worker has ended
    shutdown.start(["./server"], "server")                # ends with this one, and its group: SIGTERM, 5 s, SIGKILL
    shutdown.at_exit()                                    # or: shutdown.run("the window was closed")

Stages: stop (accept nothing new) → drain → cancel (only when a drain failed, or took too long) → clean; then registered
processes, then threads that keep Python from ending, 3 s each, side by side; then what is left is written down. Under memstow
each step is a line of shutdown.log, the processes stand in process_registry.json for `memstow reap`, and the process is ended
when the limit (30 s) is over, whatever its threads hold. In any other process handlers, processes and threads are dealt with in
the same way; there is no log and no list, and Python's own faulthandler ends the process, once Python has got to run().
docs/endings.md is the prose."""
from __future__ import annotations

import atexit
import contextlib
import dataclasses
import errno
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional, Union

import memstow

__all__ = ["Result", "at_exit", "close", "drain_queue", "files", "forget", "handler", "on_signals", "process", "quit_qt", "run",
           "start", "stop_thread"]

STAGES = {"stop": 1, "drain": 2, "cancel": 3, "clean": 4}
SECONDS, LIMIT, PROCESS_SECONDS, THREAD_SECONDS = 10.0, 30.0, 5.0, 3.0
_library = memstow._library


@dataclasses.dataclass
class Handler:
    function: Callable[[], Any]
    name: str
    stage: str
    after: tuple
    seconds: float
    parallel: bool
    begun: float = 0.0
    result: Optional[int] = None # 0 or -errno, once it is over
    error: str = ""


@dataclasses.dataclass
class Process:
    process: Any # as it was registered
    name: str # "": it was given none
    keep: bool
    start: str # since boot: who has the pid later has another


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a shutdown: how many handlers failed or took too long, which, and what is left."""
    failed: tuple
    killed: int
    threads: tuple
    seconds: float

    @property
    def clean(self) -> bool:
        return not (self.failed or self.killed or self.threads)


_handlers: dict[str, Handler] = {}
_processes: dict[int, Process] = {}
_lock = threading.Lock()
_running = False
_over = threading.Event() # that which was begun has come to its end
_over.set()


def _text(value: Any) -> bytes:
    return memstow._encoded(value)[:63]


def _step(step: str, name: str, result: int) -> None:
    _library.shutdown_step(_text(step), _text(name), result)


def files(log: str = "", registry: str = "") -> None:
    """Where shutdown.log and process_registry.json go; by default into the present folder."""
    _library.shutdown_files(os.fsencode(log), os.fsencode(registry))


# ---- handlers

def handler(function: Callable[[], Any], name: Optional[str] = None, *, stage: str = "clean", after: Iterable[str] = (),
            seconds: float = SECONDS, parallel: bool = False) -> Callable[[], Any]:
    """The function is called in that stage of a shutdown, after those of the same stage that `after` names, on a thread of its
    own; `parallel`: others may run beside it. Those that drain always do, and have ten seconds together, or as long as one
    of them asks for. It fails when it raises. Returns the function, so that it serves as a decorator."""
    if stage not in STAGES:
        raise ValueError(f"stage is one of {', '.join(STAGES)}")
    name = name or getattr(function, "__qualname__", repr(function))
    with _lock:
        if name in _handlers:
            raise ValueError(f"there is a handler {name!r}")
        _handlers[name] = Handler(function, name, stage, tuple(after), seconds, parallel or stage == "drain")
    return function


def drain_queue(queue: Any, cancel: Optional[Callable[[], Any]] = None, name: str = "queue", *,
                seconds: float = SECONDS) -> None:
    """Waits until all that was put into a queue.Queue is done (task_done); if that takes too long `cancel` is called."""
    def drain() -> None:
        with queue.all_tasks_done:
            if not queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, seconds):
                raise TimeoutError(f"{queue.unfinished_tasks} not done")
    handler(drain, name, stage="drain", seconds=seconds + 1)
    if cancel is not None:
        handler(cancel, f"{name}: cancel", stage="cancel")


def stop_thread(thread: threading.Thread, stop: Optional[Callable[[], Any]] = None, name: str = "", *,
                seconds: float = THREAD_SECONDS, after: Iterable[str] = ()) -> None:
    """Calls `stop`, and waits for the end of the thread."""
    def end() -> None:
        if stop is not None:
            stop()
        thread.join(seconds)
        if thread.is_alive():
            raise TimeoutError(f"{thread.name} goes on")
    handler(end, name or thread.name, after=after, seconds=seconds + 1, parallel=True)


def close(thing: Any, name: str = "", *, after: Iterable[str] = (), seconds: float = SECONDS) -> None:
    """Flushes (or commits) a file or a database's connection as far as it can, and closes it."""
    def flush_and_close() -> None:
        if not getattr(thing, "closed", False):
            for method in ("commit", "flush"):
                if callable(getattr(thing, method, None)):
                    getattr(thing, method)()
            if callable(getattr(thing, "fileno", None)):
                with contextlib.suppress(OSError, ValueError):
                    os.fsync(thing.fileno())
        thing.close()
    handler(flush_and_close, name or f"close {getattr(thing, 'name', type(thing).__name__)}", after=after, seconds=seconds)


def quit_qt(name: str = "qt") -> None:
    """Has the Qt application of this process, if it has one by then, end its event loop."""
    def quit_application() -> None:
        for package in ("PySide6", "PyQt6", "PySide2", "PyQt5"):
            core = sys.modules.get(f"{package}.QtCore")
            application = core and core.QCoreApplication.instance()
            if application:
                core.QMetaObject.invokeMethod(application, "quit", core.Qt.ConnectionType.QueuedConnection)
    handler(quit_application, name, stage="stop")


# ---- processes

def start(argv: Any, name: str = "", keep: bool = False, **options: Any) -> subprocess.Popen:
    """subprocess.Popen(argv, **options) in a process group of its own, registered as by process(): all that it starts ends
    with it, unless it leaves the group; when it has ended before, as launcher scripts do, as long as nobody has waited for it.
    Ctrl-C at a terminal does not reach it. By MEMSTOW_STARTED in its environment reap finds what it has started after a crash."""
    if not {"process_group", "start_new_session", "preexec_fn"} & options.keys():
        options.update({"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True})
    number = time.monotonic_ns() # no other start of this program's has it
    options["env"] = _environment(options.get("env"), number)
    child = subprocess.Popen(argv, **options)
    try:
        return _register(child, name, keep, number)
    except memstow.Error: # with what it has started by now
        _end([_Ending(child.pid, _start(child.pid, ended="X"))], signal.SIGKILL, 1.0)
        child.wait()
        raise


def _environment(asked: Optional[Mapping], number: int) -> dict:
    """With the mark by which reap knows what it starts. MEMSTOW_SERVER_MODE was said to this program: a server that lives on
    would, when it is ended itself some day, leave its own children, which nobody asked for then."""
    environment = dict(os.environ if asked is None else asked)
    if asked is None:
        environment.pop("MEMSTOW_SERVER_MODE", None)
    environment["MEMSTOW_STARTED"] = f"{os.getpid()}.{_start(os.getpid())}.{number}"
    return environment


def process(process: Any, name: str = "", keep: bool = False) -> Any:
    """A subprocess.Popen, or a pid: it ends with this process, or lives on with keep=True. What it has started ends with it
    when it leads a process group, as by start(). Returns it. Where the list cannot be written it ends all the same; only after
    a crash it would not be found."""
    return _register(process, name, keep)


def _register(process: Any, name: str, keep: bool, number: int = 0) -> Any:
    pid = int(getattr(process, "pid", process))
    text = _text(name or f"process {pid}")
    result = _library.shutdown_launched(pid, text, int(keep), number) if number else -errno.ENOSYS
    if result == -errno.ENOSYS: # no number, or a library before 1.5
        result = _library.shutdown_process(pid, text, int(keep))
    if result == -errno.EIO: # it is registered
        memstow.log.warning("process %s would not be found after a crash: the list cannot be written", name or pid)
    elif result not in (0, -errno.ENOSYS):
        memstow._check(result, "process")
    with _lock:
        _processes[pid] = Process(process, name, keep, _start(pid, ended="X"))
    return process


def forget(process: Any) -> None:
    """It has ended, or is another's to end."""
    pid = int(getattr(process, "pid", process))
    _library.shutdown_forget(pid)
    with _lock:
        _processes.pop(pid, None)


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat from the state on; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []


def _start(pid: int, ended: str = "ZX") -> str:
    """When it began, by the kernel's clock; "" when it has ended, but for the states that do not count as that."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] not in ended else ""


def _group(number: int) -> dict[int, str]:
    """Who is in that process group: pid → start."""
    found = ((int(pid), _stat(int(pid))) for pid in os.listdir("/proc") if pid.isdigit())
    return {pid: fields[19] for pid, fields in found if fields and fields[0] not in "ZX" and fields[2] == str(number)}


def _kept() -> set[int]:
    """Who lives on: those that are to be kept, what they have started, and who is in a group or session that one of them
    began. preload/kept.h has the same rule."""
    kept = {pid for pid, one in list(_processes.items()) if one.keep and _start(pid) == one.start}
    if not kept:
        return kept
    ours = {str(os.getpgrp()), str(os.getsid(0))} # whoever began them
    kin = {}
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            parent, *others = _stat(int(pid))[1:4] or [0]
            kin[int(pid)] = {int(parent), *map(int, set(others) - ours)}
    while more := {pid for pid, numbers in kin.items() if pid not in kept and numbers & kept}:
        kept |= more
    return kept


def _signal(pid: int, start: str, number: int) -> None:
    """First the hold, then the look: a pid that another has by now is left alone."""
    try:
        held = os.pidfd_open(pid)
    except (AttributeError, OSError): # an old Python or kernel, or no descriptor is left
        held = -1
    with contextlib.suppress(OSError):
        if _start(pid) == start:
            os.kill(pid, number) if held < 0 else signal.pidfd_send_signal(held, number)
    if held >= 0:
        os.close(held)


class _Ending:
    """A process that is to end, with those of the group that it leads. Nobody else gets the number of a group that somebody is
    in: who was in it at the last look vouches for those who are there now, a leader also while nobody has waited for it."""

    def __init__(self, pid: int, start: str) -> None:
        self.pid, self.start, self.there = pid, start, {pid: start}
        self.leads = False
        with contextlib.suppress(OSError):
            self.leads = os.getpgid(pid) == pid != os.getpgrp()

    def look(self) -> dict[int, str]:
        """Who of it is still there: pid → start."""
        there = {pid: start for pid, start in self.there.items() if start and _start(pid) == start}
        if self.leads and (there or self.start and _start(self.pid, ended="X") == self.start):
            kept = _kept()
            there.update((pid, start) for pid, start in _group(self.pid).items() if pid not in kept)
        self.there = there
        return there

    def signal(self, number: int) -> None:
        for pid, start in self.there.items():
            _signal(pid, start, number)


def _end(endings: list[_Ending], number: int, seconds: float) -> list[_Ending]:
    """Signals them, and waits: who is still there."""
    until = time.monotonic() + seconds
    endings = [one for one in endings if one.look()]
    for one in endings:
        one.signal(number)
    while (endings := [one for one in endings if one.look()]) and time.monotonic() < until:
        time.sleep(0.1 if any(one.leads for one in endings) else 0.02)
        for one in endings if number == signal.SIGKILL else (): # who has come since
            one.signal(number)
    return endings


def _end_processes_without_memstow() -> int:
    kept = _kept()
    left = _end([_Ending(pid, one.start) for pid, one in list(_processes.items()) if not (one.keep or pid in kept)],
                signal.SIGTERM, PROCESS_SECONDS)
    _end(left, signal.SIGKILL, 1.0)
    return len(left)


def _reap() -> None:
    for pid, one in list(_processes.items()):
        if callable(getattr(one.process, "poll", None)):
            one.process.poll() # so that it knows its own status
        elif _start(pid) in ("", one.start):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _end_processes() -> int:
    killed = _library.shutdown_processes(int(PROCESS_SECONDS * 1000))
    killed = _end_processes_without_memstow() if killed == -errno.ENOSYS else max(killed, 0)
    _reap()
    return killed


# ---- the sequence

def _call(one: Handler) -> None:
    try:
        one.function()
        result = 0
    except BaseException as error: # noqa: BLE001 — SystemExit of a handler is no reason to stop the others
        with contextlib.suppress(Exception):
            one.error = f"{type(error).__name__}: {error}"
        number = getattr(error, "errno", None)
        result = -errno.ETIMEDOUT if isinstance(error, TimeoutError) else \
            -number if isinstance(number, int) and number > 0 else -errno.EIO
    with _lock:
        if one.result is None:
            one.result = result


def _may_begin(one: Handler, stage: list[Handler]) -> bool:
    running = [other for other in stage if other.begun and other.result is None]
    if running and not (one.parallel and all(other.parallel for other in running)):
        return False
    return all(other.result is not None for other in stage if other.name in one.after)


def _begin(one: Handler) -> None:
    one.begun = time.monotonic()
    try:
        threading.Thread(target=_call, args=(one,), name=f"shutdown: {one.name}", daemon=True).start()
    except RuntimeError as error: # there can be no more threads: the others go on
        one.result, one.error = -errno.EAGAIN, str(error)


def _late(one: Handler, stage_begun: float, together: float) -> str:
    """Why it is given up; "" when it is not. Drains have their time together, also those that wait for their turn."""
    now = time.monotonic()
    if one.begun and now - one.begun > one.seconds:
        return f"not within {one.seconds} s"
    return f"drained for {together} s" if one.stage == "drain" and now - stage_begun > together else ""


def _run_stage(name: str) -> list[Handler]:
    """Those of the stage that failed or took too long."""
    stage_begun = time.monotonic()
    stage = [one for one in list(_handlers.values()) if one.stage == name and not one.begun]
    together = max([SECONDS, *(one.seconds for one in stage)])
    noted: set[str] = set()
    while len(noted) < len(stage):
        waiting = [one for one in stage if not one.begun]
        ready = [one for one in waiting if _may_begin(one, stage)]
        if waiting and not ready and all(one.result is not None for one in stage if one.begun):
            _step("circle", waiting[0].name, -errno.EDEADLK)
            ready = waiting
        if ready:
            _begin(ready[0])
        for one in stage:
            with _lock:
                if one.result is None and (why := _late(one, stage_begun, together)):
                    one.begun = one.begun or time.monotonic() # it never will be
                    one.result, one.error = -errno.ETIMEDOUT, why
            if one.result is not None and one.name not in noted:
                noted.add(one.name)
                _step(name, one.name, one.result)
        if not ready:
            time.sleep(0.01)
    return [one for one in stage if one.result]


def _run_both(name: str) -> tuple[list[Handler], int]:
    """A stage in Python, then in C: those that went wrong, and in C how many. Drains have their time together."""
    counts: list[int] = []

    def in_c() -> None:
        counts.append(_library.shutdown_run(STAGES[name]))
    beside = threading.Thread(target=in_c, name="shutdown: in C", daemon=True)
    try:
        if name == "drain":
            beside.start()
    except RuntimeError: # there can be no more threads
        pass
    wrong = _run_stage(name)
    if beside.ident is None:
        in_c()
    else:
        beside.join()
    return wrong, counts[0]


def _join_threads() -> tuple:
    """The names of those that go on of the threads that Python would wait for at its end, and of those that C registered."""
    left, until = [], time.monotonic() + THREAD_SECONDS
    for thread in threading.enumerate():
        if thread.daemon or thread in (threading.main_thread(), threading.current_thread()):
            continue
        thread.join(max(until - time.monotonic(), 0))
        _step("thread", thread.name, -errno.ETIMEDOUT if thread.is_alive() else 0)
        if thread.is_alive():
            left.append(thread.name)
    others = _library.shutdown_threads(max(int((until - time.monotonic()) * 1000), 1)) # 0 would be three seconds more
    return (*left, f"{others} threads in C") if others > 0 else tuple(left)


def _begin_limit(reason: str, limit: float, status: int) -> None:
    result = _library.shutdown_begin(_text(reason), int(limit * 1000), status)
    if result not in (0, -errno.EALREADY): # a signal has begun it, perhaps; no memstow, or it is shut out of its process
        with contextlib.suppress(Exception): # without sys.stderr
            faulthandler.dump_traceback_later(limit, exit=True)


def run(reason: str = "", *, limit: float = LIMIT, status: int = 1, keep: Iterable[str] = (),
        server_mode: Optional[bool] = None, goes_on: bool = False) -> Result:
    """The whole sequence; the second time, and while it runs, nothing. When the limit is over the process is ended with
    `status`. `server_mode` lets the processes live on whose names are in `keep`, or all that have a name when it is empty;
    None: as MEMSTOW_SERVER_MODE says, which is names with commas between them, or "all"; "" and "0" are no. `goes_on`: the process
    does not end now, and there is no limit any more once this has returned."""
    global _running
    with _lock:
        if _running:
            return Result((), 0, (), 0.0)
        _running = True
        _over.clear()
    try:
        return _run(reason, limit, status, _spared(keep, server_mode), goes_on)
    finally:
        if goes_on:
            _running = False
        _over.set()


def _spared(keep: Iterable[str], server_mode: Optional[bool]) -> list[Process]:
    """The processes that live on."""
    names = set(keep)
    if server_mode is None:
        asked = os.environ.get("MEMSTOW_SERVER_MODE", "")
        server_mode = asked not in ("", "0")
        if asked not in ("all", "1"):
            names |= {name.strip() for name in asked.split(",")}
    if not server_mode:
        return []
    return [one for one in list(_processes.values()) if one.name and (one.name in names or not names)]


def _run(reason: str, limit: float, status: int, spared: list[Process], goes_on: bool) -> Result:
    begun, failed = time.monotonic(), []
    _begin_limit(reason, limit, status)
    for one in spared:
        with contextlib.suppress(memstow.Error): # it has ended
            process(one.process, one.name, keep=True)
    drained = True
    for stage in STAGES:
        if stage == "cancel" and drained:
            continue
        wrong, others = _run_both(stage)
        failed += [(one.name, one.error) for one in wrong]
        drained = drained and not (stage == "drain" and (wrong or others > 0))
        if others > 0:
            failed.append((f"{others} handlers in C", stage))
    killed, left = _end_processes(), _join_threads()
    if _library.shutdown_end(int(goes_on)) == -errno.ENOSYS and goes_on:
        faulthandler.cancel_dump_traceback_later()
    return Result(tuple(failed), killed, left, time.monotonic() - begun)


def at_exit(**options: Any) -> None:
    """run() when Python ends, before it waits for its threads; options are those of run(). Where another thread runs it by
    then, after a signal say, its end is waited for: Python would end in the middle of it."""
    options.setdefault("reason", "the program ends")

    def last() -> None:
        run(**options)
        _over.wait(options.get("limit", LIMIT))

    if hasattr(threading, "_register_atexit"): # atexit itself comes after threads were waited for
        threading._register_atexit(last)
    else:
        atexit.register(last)


def on_signals(*numbers: int, **options: Any) -> None:
    """run() on SIGTERM and SIGINT (or those given), and then the program's end, with 128 + the number. It runs on a thread of
    its own. Under memstow the limit holds from the signal on, also when Python never gets to run again."""
    def answer(number: int, _frame: Any) -> None:
        threading.Thread(target=end, args=(number,), name="shutdown", daemon=True).start()

    def end(number: int) -> None:
        try:
            run(signal.strsignal(number) or f"signal {number}", **{"status": 128 + number, **options})
            sys.stdout.flush()
        finally:
            os._exit(128 + number)

    for number in numbers or (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, answer)
        _library.shutdown_on_signal(number, int(options.get("limit", LIMIT) * 1000), options.get("status", 128 + number))
