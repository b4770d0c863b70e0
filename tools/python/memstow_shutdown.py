"""Ends a Python program in order: clean-up in stages, a time limit for each handler, a log, and a time limit for all of
it.

    import memstow_shutdown as shutdown

    shutdown.drain_queue(jobs, cancel=stop_workers)       # waits at most 10 s, then cancels
    shutdown.stop_thread(worker, worker.request_stop)     # asks it to stop, and joins it
    shutdown.close(database, after=["worker"])            # flushes and closes it, when the worker has ended
    shutdown.start(["./server"], "server")                # its group ends with this process: SIGTERM, 5 s, SIGKILL
    shutdown.at_exit()                                    # or: shutdown.run("the window was closed")

The order is:

    stop      accept nothing new
    drain     finish what waits
    cancel    only if a drain failed or took too long
    clean     flush and close

Then registered processes are ended. Threads that keep Python from ending are joined, for 3 s all together. Then Qt's
event loop is ended, if quit_qt was called. At last run() looks for leftovers: processes, threads, open files and
sockets.

Under memstow each step is a line of shutdown.log, and the registered processes are in process_registry.json for
`memstow reap`. When the limit (30 s) is over, the process is ended, whatever locks its threads hold. Without memstow,
handlers, processes and threads are treated in the same way, but there is no log and no list. Python's own faulthandler
then keeps the limit, which begins only when Python has reached run(). docs/endings.md is the guide."""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import errno
import faulthandler
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

import memstow

__all__ = ["Result", "at_exit", "close", "drain_queue", "files", "forget", "handler", "on_signals", "process",
           "quit_qt", "run", "start", "stop_thread"]

# the numbers of the stages: first those for handlers, then those of the two stages that follow
STAGES = {"stop": 1, "drain": 2, "cancel": 3, "clean": 4}
PROCESSES, THREADS = 5, 6
SECONDS, LIMIT, PROCESS_SECONDS, THREAD_SECONDS = 10.0, 30.0, 5.0, 3.0
Table = dict[int, list[str]] # processes: pid → the fields of /proc/PID/stat, from the state on
_library = memstow._library


@dataclasses.dataclass
class Handler:
    function: Callable[[], Any]
    name: str
    stage: str
    after: tuple[str, ...]
    seconds: float
    parallel: bool
    begun: float = 0.0
    result: Optional[int] = None # None: the handler has not ended; else 0 or -errno
    error: str = ""


@dataclasses.dataclass
class Process:
    process: Any # the object that was registered
    name: str # "": it has no name
    keep: bool
    start: str # start time since boot: tells the process from a later process with the same pid


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a shutdown: handlers that failed or took too long, the number of killed processes, and
    leftovers."""
    failed: tuple[tuple[str, str], ...] # (name, error)
    killed: int
    threads: tuple[str, ...] # threads that go on, and that Python or C would wait for
    seconds: float
    # The processes that still descend from this program, registered or not, each as a text such as "name (pid 12)".
    # Processes that are to live on, and helpers of Python's multiprocessing, are left out.
    processes: tuple[str, ...] = ()
    other_threads: int = 0 # daemon threads and those of libraries, which end with the process
    # (descriptor, its file or socket) of each open descriptor. Standard input, output and error, and descriptors of
    # /dev/null, are left out.
    handles: tuple[tuple[int, str], ...] = ()
    memory: tuple[tuple[str, int], ...] = () # (stage, resident bytes at its beginning); at last ("end", …)

    @property
    def clean(self) -> bool:
        return not (self.failed or self.killed or self.threads or self.processes)


_handlers: dict[str, Handler] = {}
_processes: dict[int, Process] = {}
_lock = threading.Lock()
_running = False
_over = threading.Event() # set, except while run() is on
_over.set()


def _text(value: Any) -> bytes:
    return memstow._encoded(value)[:63]


def _step(step: str, name: str, result: int) -> None:
    _library.shutdown_step(_text(step), _text(name), result)


def files(log: str = "", registry: str = "") -> None:
    """Sets the folders of shutdown.log and process_registry.json; the default is the current folder."""
    _library.shutdown_files(os.fsencode(log), os.fsencode(registry))


# ---- handlers: functions that the program registers for the stages

def handler(function: Callable[[], Any], name: Optional[str] = None, *, stage: str = "clean", after: Iterable[str] = (),
            seconds: float = SECONDS, parallel: bool = False) -> Callable[[], Any]:
    """Registers a function for a stage of a shutdown. The function is called on a thread of its own. `after`: names of
    handlers that must end first; names of another stage have no effect. `parallel`: other parallel handlers may run at
    the same time. Handlers of the stage `drain` always run in parallel. All drains together have ten seconds, or the
    largest `seconds` of a drain, whichever is longer. A handler fails when it raises. Returns the function, so that
    this can be used as a decorator."""
    if stage not in STAGES:
        raise ValueError(f"stage is one of {', '.join(STAGES)}")
    _mark()
    name = name or str(getattr(function, "__qualname__", repr(function)))
    with _lock:
        if name in _handlers:
            raise ValueError(f"there is a handler {name!r}")
        _handlers[name] = Handler(function, name, stage, tuple(after), seconds, parallel or stage == "drain")
    return function


def drain_queue(queue: Any, cancel: Optional[Callable[[], Any]] = None, name: str = "queue", *,
                seconds: float = SECONDS) -> None:
    """Registers a handler that waits until all items of a queue.Queue are done (task_done). `cancel` is called in the
    stage `cancel`, which comes only if any drain failed or took too long."""
    def drain() -> None:
        with queue.all_tasks_done:
            if not queue.all_tasks_done.wait_for(lambda: not queue.unfinished_tasks, seconds):
                raise TimeoutError(f"{queue.unfinished_tasks} not done")
    handler(drain, name, stage="drain", seconds=seconds + 1)
    if cancel is not None:
        handler(cancel, f"{name}: cancel", stage="cancel")


def stop_thread(thread: Any, stop: Optional[Callable[[], Any]] = None, name: str = "", *,
                seconds: float = THREAD_SECONDS, after: Iterable[str] = ()) -> None:
    """Registers a handler for a threading.Thread or a QThread. The handler calls `stop`, and then waits until the
    thread has ended. Without `stop`, the handler ends the event loop of a QThread."""
    is_qt = not hasattr(thread, "join")
    name = name or (thread.objectName() or "QThread" if is_qt else thread.name)

    def end() -> None:
        if stop is not None or is_qt:
            (stop or thread.quit)()
        has_ended = thread.wait(int(seconds * 1000)) if is_qt else thread.join(seconds) or not thread.is_alive()
        if not has_ended:
            raise TimeoutError(f"{name} goes on")
    handler(end, name, after=after, seconds=seconds + 1, parallel=True)


def close(thing: Any, name: str = "", *, after: Iterable[str] = (), seconds: float = SECONDS) -> None:
    """Registers a handler for an open file or database connection. The handler calls commit() and flush(), if the thing
    has them, syncs the file to the disk, and closes the thing."""
    def flush_and_close() -> None:
        try:
            if not getattr(thing, "closed", False):
                for method in ("commit", "flush"):
                    if callable(getattr(thing, method, None)):
                        getattr(thing, method)()
                if callable(getattr(thing, "fileno", None)):
                    with contextlib.suppress(OSError, ValueError):
                        os.fsync(thing.fileno())
        finally:
            thing.close()

    handler(flush_and_close, name or f"close {getattr(thing, 'name', type(thing).__name__)}", after=after,
            seconds=seconds)


# ---- the end of Qt's event loop

@dataclasses.dataclass
class _Quit:
    delete: tuple[Any, ...]
    seconds: float


_quits: dict[str, _Quit] = {}
_errands: list[Any] = [] # the objects of earlier calls of _send_to_loop(): Qt may still use them
_left_loop = False # whether another thread than Qt's has ended Qt's event loop


def quit_qt(name: str = "qt", *, delete: Iterable[Any] = (), seconds: float = SECONDS) -> None:
    """Ends the event loop of the process's Qt application, if there is one. The loop ends last, when the threads have
    ended. It ends on the application's own thread, even if another thread runs the shutdown. First, waiting events are
    delivered. Then the objects of `delete` are deleted, and all other objects with a pending deleteLater. Then the
    application quits. If run() is called on the application's thread, run() delivers events while it waits, except
    those of keyboard and mouse. So a thread that waits for an answer from the window can end."""
    if name in _quits:
        raise ValueError(f"there is a quit_qt {name!r}")
    _mark()
    _quits[name] = _Quit(tuple(delete), seconds)


def _qt() -> Optional[tuple[Any, Any]]:
    """QtCore of the Qt binding that has an application, and this application. None: there is no application."""
    for package in ("PySide6", "PyQt6", "PySide2", "PyQt5"):
        core = sys.modules.get(f"{package}.QtCore")
        application = core and core.QCoreApplication.instance()
        if application:
            return core, application
    return None


def _qt_is_here() -> Optional[Any]:
    """QtCore, if quit_qt was called and this is the application's own thread; else None."""
    core, application = (_quits and _qt()) or (None, None)
    with contextlib.suppress(RuntimeError): # the object is gone
        if core and application and core.QThread.currentThread() == application.thread():
            return core
    return None


def _sleep(seconds: float) -> None:
    """Sleeps. On Qt's thread, events are delivered meanwhile."""
    core = _qt_is_here()
    if core:
        core.QCoreApplication.processEvents(core.QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    time.sleep(seconds)


def _wait(call: Callable[[], Any]) -> Any:
    """The call's result. On Qt's thread, events are delivered meanwhile."""
    results: list[Any] = []
    beside = threading.Thread(target=lambda: results.append(call()), daemon=True, name="shutdown: waits")
    try:
        if _qt_is_here():
            beside.start()
    except RuntimeError: # no more threads can be started
        pass
    if beside.ident is None:
        return call()
    while beside.is_alive():
        _sleep(0.01)
    return results[0]


def _leave_loop(core: Any, application: Any, delete: tuple[Any, ...]) -> None:
    # QEvent.Type.DeferredDelete as a number, because in some bindings the members of QEvent.Type are not numbers
    deferred_delete = 52
    core.QCoreApplication.processEvents()
    for thing in delete:
        with contextlib.suppress(RuntimeError): # it was deleted before
            thing.deleteLater()
    core.QCoreApplication.sendPostedEvents(None, deferred_delete)
    application.quit()


def _send_to_loop(core: Any, application: Any, work: Callable[[], Any], seconds: float) -> None:
    """Has the application's thread do the work. Raises what the work raises; TimeoutError if it is not done within
    `seconds`."""
    done, errors = threading.Event(), []

    class Errand(core.QObject):  # type: ignore[misc] # the binding is found when it is used
        def event(self, event: Any) -> bool:
            if event.type() != core.QEvent.Type.User:
                return bool(super().event(event))
            try:
                work()
            # Some bindings abort when an exception leaves an event handler.
            except BaseException as error:
                errors.append(error)
            self.deleteLater()
            done.set()
            return True
    errand = Errand()
    _errands.append(errand)
    errand.moveToThread(application.thread())
    core.QCoreApplication.postEvent(errand, core.QEvent(core.QEvent.Type.User))
    if not done.wait(seconds):
        raise TimeoutError("Qt's thread does not answer")
    if errors:
        raise errors[0]


def _quit_all() -> list[tuple[str, str]]:
    """Does what the calls of quit_qt() asked for. Returns (name, error) of each call that failed."""
    global _left_loop
    failed = []
    for name, one in list(_quits.items()):
        qt = _qt()
        if qt is None:
            continue
        try:
            if _qt_is_here():
                _leave_loop(*qt, one.delete)
            else:
                _send_to_loop(*qt, lambda: _leave_loop(*qt, one.delete), one.seconds)
                _left_loop = True
            result = 0
        except BaseException as error: # whatever a call raises, the other calls must follow
            failed.append((name, f"{type(error).__name__}: {error}"))
            result = -errno.ETIMEDOUT if isinstance(error, TimeoutError) else -errno.EIO
        _step("quit", name, result)
    return failed


# ---- processes that end with this one, or are kept

def start(argv: Any, name: str = "", keep: bool = False, **options: Any) -> subprocess.Popen[Any]:
    """Starts a process by subprocess.Popen(argv, **options) in a process group of its own, and registers it as
    process() does. Ctrl-C at a terminal does not reach the group.

    A shutdown ends the whole group: the new process, and what it has started in the group. If the new process has ended
    before the shutdown, as a launcher script does, the other processes are ended only if nobody has waited for the new
    process (wait() or poll()).

    After a crash, `memstow reap` also finds the processes that the new process has started, by MEMSTOW_STARTED in their
    environment."""
    if not {"process_group", "start_new_session", "preexec_fn"} & options.keys():
        options.update({"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True})
    number = time.monotonic_ns() # unique among the starts of this program
    options["env"] = _environment(options.get("env"), number)
    child = subprocess.Popen(argv, **options)
    try:
        _register(child, name, keep, number)
    except memstow.Error: # ends the child with all that it has started by now
        _end([_Ending(child.pid, _start(child.pid, ended="X"))], signal.SIGKILL, 1.0)
        child.wait()
        raise
    return child


def _environment(asked: Optional[Mapping[str, str]], number: int) -> dict[str, str]:
    """The environment of a new process. It is `asked` if that is given. Otherwise it is a copy of this program's
    environment without MEMSTOW_SERVER_MODE. That variable was meant for this program alone: with it, a server that
    lives on would later leave its own children running. In both cases a mark is added, by which `memstow reap`
    recognises descendants of the process."""
    environment = dict(os.environ if asked is None else asked)
    if asked is None:
        environment.pop("MEMSTOW_SERVER_MODE", None)
    environment["MEMSTOW_STARTED"] = f"{os.getpid()}.{_start(os.getpid())}.{number}"
    return environment


def process(process: Any, name: str = "", keep: bool = False) -> Any:
    """Registers a process, by its subprocess.Popen or its pid: the process ends with this one, or lives on with
    keep=True. If it leads a process group, as after start(), the whole group ends with it. Returns the argument.

    If process_registry.json cannot be written, the process is registered nevertheless. But after a crash
    `memstow reap` would not find the process."""
    return _register(process, name, keep)


def _register(process: Any, name: str, keep: bool, number: int = 0) -> Any:
    _mark()
    pid = int(getattr(process, "pid", process))
    text = _text(name or f"process {pid}")
    result = _library.shutdown_launched(pid, text, int(keep), number) if number else -errno.ENOSYS
    if result == -errno.ENOSYS: # start() did not launch it, or the library is older than 1.5
        result = _library.shutdown_process(pid, text, int(keep))
    if result == -errno.EIO: # the process is registered nevertheless
        memstow.log.warning("process %s would not be found after a crash: the list cannot be written", name or pid)
    elif result not in (0, -errno.ENOSYS):
        memstow._check(result, "process")
    with _lock:
        _processes[pid] = Process(process, name, keep, _start(pid, ended="X"))
    return process


def forget(process: Any) -> None:
    """Removes a process from the list, because it has ended or something else ends it."""
    pid = int(getattr(process, "pid", process))
    _library.shutdown_forget(pid)
    with _lock:
        _processes.pop(pid, None)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []


def _start(pid: int, ended: str = "ZX") -> str:
    """The start time of a process by the kernel's clock; "" if the process has ended. `ended`: the states that count as
    ended."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] not in ended else ""


def _names(folder: str) -> list[str]:
    """The names in a folder of /proc that are numbers."""
    try:
        return [name for name in os.listdir(folder) if name.isdigit()]
    except OSError: # another system
        return []


def _all() -> Table:
    """All processes except for this one."""
    found = ((int(pid), _stat(int(pid))) for pid in _names("/proc"))
    return {pid: fields for pid, fields in found if fields and pid != os.getpid()}


def _group(number: int) -> dict[int, str]:
    """The members of a process group: pid → start."""
    return {pid: fields[19] for pid, fields in _all().items() if fields[0] not in "ZX" and fields[2] == str(number)}


def _with_kin(kin: set[int], table: Table, is_kin: Callable[[set[int], list[str]], bool]) -> set[int]:
    """The set `kin`, extended by processes of the table. A process is added if is_kin(set, fields) is true for the set
    so far. This is repeated until no process is added."""
    while more := {pid for pid, fields in table.items() if pid not in kin and is_kin(kin, fields)}:
        kin = kin | more
    return kin


def _kept() -> set[int]:
    """The processes that live on: the kept ones, and their kin. Kin of a process are the processes that it started, the
    members of groups and sessions that it began, and the kin of all these (the rule of preload/shared/kin.h)."""
    kept = {pid for pid, one in list(_processes.items()) if one.keep and _start(pid) == one.start}
    # A kept process may have begun this program's own group or session. A process in this group or session is not kin
    # of the kept process for that reason alone.
    ours = [str(os.getpgrp()), str(os.getsid(0))]

    def is_kin(kin: set[int], fields: list[str]) -> bool:
        return int(fields[1]) in kin or any(
            number != own and int(number) in kin for number, own in zip(fields[2:4], ours))
    return _with_kin(kept, _all(), is_kin) if kept else kept


def _signal(pid: int, start: str, number: int) -> None:
    """Sends a signal to a process. Opens the process before it compares the start time, so that a later process with
    the same pid never gets the signal."""
    try:
        held = os.pidfd_open(pid)
    except (AttributeError, OSError): # an old Python or kernel, or no free descriptor
        held = -1
    with contextlib.suppress(OSError):
        if _start(pid) == start:
            os.kill(pid, number) if held < 0 else signal.pidfd_send_signal(held, number)
    if held >= 0:
        os.close(held)


class _Ending:
    """A process that is to end, with the members of the group that it leads. The kernel gives the number of a group to
    another group only when the group has no members left and somebody has waited for its leader. Until that time, all
    processes with this group number are members."""

    def __init__(self, pid: int, start: str) -> None:
        self.pid, self.start, self.there = pid, start, {pid: start}
        self.leads = False
        with contextlib.suppress(OSError):
            self.leads = os.getpgid(pid) == pid != os.getpgrp()

    def look(self) -> dict[int, str]:
        """The processes of this ending that are still there: pid → start time."""
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
    """Signals the processes of the endings, and waits for them. Returns the endings that still have a process."""
    until = time.monotonic() + seconds
    endings = [one for one in endings if one.look()]
    for one in endings:
        one.signal(number)
    while (endings := [one for one in endings if one.look()]) and time.monotonic() < until:
        time.sleep(0.1 if any(one.leads for one in endings) else 0.02)
        for one in endings if number == signal.SIGKILL else (): # sent again: the group may have new members by now
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
            one.process.poll() # so that the Popen object knows its exit status
        elif _start(pid) in ("", one.start):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _end_processes() -> int:
    killed = _library.shutdown_processes(int(PROCESS_SECONDS * 1000))
    killed = _end_processes_without_memstow() if killed == -errno.ENOSYS else max(killed, 0)
    _reap()
    return killed


# ---- looking for leftovers at the end

GENERATIONS = 64 # how many parents are followed upwards from a process of this program's group, at most
_known: dict[int, str] = {} # pid → start of the processes that were found to descend from this one
_memory: list[tuple[str, int]] = []


def _mark() -> None:
    """Marks the environment, which all descendants inherit. So a descendant is found even if its parent is gone."""
    os.environ["MEMSTOW_PROGRAM"] = f"{os.getpid()}.{_start(os.getpid())}"


def _has_mark(pid: int) -> bool:
    own = f"{os.getpid()}.{_start(os.getpid())}".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            variables = environment.read().split(b"\0")
        same = os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return False
    whole, begins = b"MEMSTOW_PROGRAM=" + own, b"MEMSTOW_STARTED=" + own + b"."
    return same and any(one == whole or one.startswith(begins) for one in variables)


def _look() -> dict[int, str]:
    """The running processes that descend from this one, by the rules of preload/shutdown/shutdown_kin.c: pid → start. A
    process that was found once stays known."""
    began = int(_start(os.getpid(), ended="") or 0)
    table = _all()
    seeds = {pid: one.start for pid, one in list(_processes.items()) if not one.keep} | _known
    later = {pid: fields for pid, fields in table.items() if int(fields[19]) >= began or fields[19] == seeds.get(pid)}
    kin = {os.getpid(), *(pid for pid, fields in later.items() if fields[19] == seeds.get(pid))}
    gone = {pid for pid in _known if pid not in later}
    own, parent = os.getpid(), os.getppid()

    # This program's own group may have strangers: the other processes of a pipeline, and their descendants. A process
    # counts as a stranger if it descends from this program's parent. If the parent is init, this test would be true
    # for all processes, so only init's direct children count as strangers then.
    def is_beside(fields: list[str]) -> bool:
        for _ in range(1 if parent == 1 else GENERATIONS):
            if int(fields[1]) == parent:
                return True
            fields = table.get(int(fields[1]), [])
            if not fields:
                break
        return False

    # A parent that is younger than its child is not the real parent, but a later process with the same pid.
    def is_kin(kin: set[int], fields: list[str]) -> bool:
        above = int(fields[1])
        if above == own or above in kin and int(later[above][19]) <= int(fields[19]):
            return True
        return any(not is_beside(fields) if number == own else number in kin or number in gone
                   for number in map(int, fields[2:4]))
    kin = _with_kin(kin, later, is_kin)
    kin = _with_kin(kin | {pid for pid in later if pid not in kin and _has_mark(pid)}, later, is_kin)
    _known.update((pid, later[pid][19]) for pid in kin if pid in later)
    return {pid: fields[19] for pid, fields in later.items() if pid in kin
            and (fields[0] not in "ZX" or int(fields[17]) > 1)}


def _name(pid: int) -> str:
    one = _processes.get(pid)
    if one and one.name:
        return one.name
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.read().strip()
    except OSError: # it has ended in the meantime
        return "?"


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _stage(name: str, number: int) -> None:
    """Records the beginning of a stage."""
    _memory.append((name, _resident()))
    if _library.shutdown_stage(number) < 0: # with 0, the library itself has looked for descendants
        _look()


def _handles() -> tuple[tuple[int, str], ...]:
    found = []
    for name in sorted(map(int, _names("/proc/self/fd"))):
        with contextlib.suppress(OSError): # the descriptor that read the folder is closed by now
            if name > 2 and (what := os.readlink(f"/proc/self/fd/{name}")) != "/dev/null":
                found.append((name, what))
    return tuple(found)


# Processes of Python's multiprocessing that end by themselves when the program does: module → the attributes that lead
# to the process's pid.
HELPERS = {"multiprocessing.resource_tracker": "_resource_tracker._pid",
           "multiprocessing.forkserver": "_forkserver._forkserver_pid"}


def _helpers() -> set[int]:
    found = set()
    for module, path in HELPERS.items():
        with contextlib.suppress(AttributeError): # the module is not imported
            found.add(operator.attrgetter(path)(sys.modules.get(module)))
    return found


def _verify(goes_on: bool) -> tuple[tuple[str, ...], int]:
    """The processes that are left, and the number of other threads. `goes_on`: the process continues, so the time limit
    ends here."""
    pids = (ctypes.c_int32 * 256)()
    left = _library.shutdown_end(int(goes_on))
    if left < 0 and goes_on:
        _cancel_limit()
    count = _library.shutdown_left(pids, len(pids)) if left >= 0 else -errno.ENOSYS
    if count < 0: # there is no memstow, or a memstow before 1.6
        kept = _kept()
        found = [pid for pid in _look() if pid not in kept]
        threads = len(_names("/proc/self/task")) - 1 - _watched
    else:
        found, threads = list(pids[:count]), left - count
    helpers = _helpers()
    return tuple(f"{_name(pid)} (pid {pid})" for pid in found if pid not in helpers), threads


# ---- the sequence of a shutdown

def _call(one: Handler) -> None:
    try:
        one.function()
        result = 0
    except BaseException as error: # a handler's SystemExit must not stop the others
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
    except RuntimeError as error: # no more threads can be started: the other handlers continue
        one.result, one.error = -errno.EAGAIN, str(error)


def _late(one: Handler, stage_begun: float, together: float) -> str:
    """The reason why a handler is given up; "" if it is not. All drains share the time `together`, also drains that
    have not begun."""
    now = time.monotonic()
    if one.begun and now - one.begun > one.seconds:
        return f"not within {one.seconds} s"
    return f"drained for {together} s" if one.stage == "drain" and now - stage_begun > together else ""


def _run_stage(name: str) -> list[Handler]:
    """Runs a stage. Returns the handlers that failed or took too long."""
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
                    one.begun = one.begun or time.monotonic() # so that a handler that waits for its turn never begins
                    one.result, one.error = -errno.ETIMEDOUT, why
            if one.result is not None and one.name not in noted:
                noted.add(one.name)
                _step(name, one.name, one.result)
        if not ready:
            _sleep(0.01)
    return [one for one in stage if one.result]


def _run_both(name: str) -> tuple[list[Handler], int]:
    """Runs the handlers of a stage: first those in Python, then those in C. In the stage `drain`, the handlers in C run
    at the same time as those in Python. Returns the Python handlers that failed, and the number of failed C
    handlers."""
    counts: list[int] = []

    def in_c() -> None:
        counts.append(_library.shutdown_run(STAGES[name]))
    beside = threading.Thread(target=in_c, name="shutdown: in C", daemon=True)
    try:
        if name == "drain":
            beside.start()
    except RuntimeError: # no more threads can be started
        pass
    wrong = _run_stage(name)
    _wait(in_c if beside.ident is None else beside.join)
    return wrong, counts[0]


def _join_threads() -> tuple[str, ...]:
    """Joins the threads that Python would wait for at its end, and those that C registered. Returns the names of
    threads that go on, and one text with the number of those in C."""
    left, until = [], time.monotonic() + THREAD_SECONDS
    for thread in threading.enumerate():
        if thread.daemon or thread in (threading.main_thread(), threading.current_thread()):
            continue
        while thread.is_alive() and time.monotonic() < until:
            _sleep(0.01)
        _step("thread", thread.name, -errno.ETIMEDOUT if thread.is_alive() else 0)
        if thread.is_alive():
            left.append(thread.name)
    left_ms = max(int((until - time.monotonic()) * 1000), 1) # 0 would mean the default of three seconds
    others = _wait(lambda: _library.shutdown_threads(left_ms))
    return (*left, f"{others} threads in C") if others > 0 else tuple(left)


_watched = False # whether faulthandler keeps the limit, with a thread of its own


def _begin_limit(reason: str, limit: float, status: int) -> None:
    global _watched
    result = _library.shutdown_begin(_text(reason), int(limit * 1000), status)
    # -EALREADY says that a signal has begun the limit before. After any other error, faulthandler keeps the limit,
    # because memstow is not there, or does not track this process.
    if result not in (0, -errno.EALREADY):
        with contextlib.suppress(Exception): # for programs without sys.stderr
            faulthandler.dump_traceback_later(limit, exit=True)
            _watched = True


def _cancel_limit() -> None:
    global _watched
    faulthandler.cancel_dump_traceback_later()
    _watched = False


def run(reason: str = "", *, limit: float = LIMIT, status: int = 1, keep: Iterable[str] = (),
        server_mode: Optional[bool] = None, goes_on: bool = False) -> Result:
    """Runs the whole sequence. Further calls do nothing, except after a run() with `goes_on`. When the limit is over,
    the process is ended with `status`. With `server_mode`, processes with a name in `keep` live on; if `keep` is empty,
    all processes with a name do. If `server_mode` is None, the variable MEMSTOW_SERVER_MODE decides. The variable is a
    list of names with commas between, or "all" for all names, or "" or "0" for no server mode. With `goes_on`, the
    process continues afterwards, without a limit."""
    global _running
    with _lock:
        if _running:
            return Result((), 0, (), 0.0)
        _running = True
        _over.clear()
    try:
        return _run(reason, limit, status, _survivors(keep, server_mode), goes_on)
    finally:
        if goes_on:
            _running = False
        _over.set()


def _survivors(keep: Iterable[str], server_mode: Optional[bool]) -> list[Process]:
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


def _run(reason: str, limit: float, status: int, survivors: list[Process], goes_on: bool) -> Result:
    begun, failed = time.monotonic(), []
    _memory.clear()
    _begin_limit(reason, limit, status)
    for one in survivors:
        with contextlib.suppress(memstow.Error): # it has ended
            process(one.process, one.name, keep=True)
    drained = True
    for stage in STAGES:
        if stage == "cancel" and drained:
            continue
        _stage(stage, STAGES[stage])
        wrong, others = _run_both(stage)
        failed += [(one.name, one.error) for one in wrong]
        drained = drained and not (stage == "drain" and (wrong or others > 0))
        if others > 0:
            failed.append((f"{others} handlers in C", stage))
    _stage("processes", PROCESSES)
    killed = _wait(_end_processes)
    _stage("threads", THREADS)
    left = _join_threads()
    failed += _quit_all()
    processes, threads = _verify(goes_on)
    _memory.append(("end", _resident()))
    return Result(tuple(failed), killed, left, time.monotonic() - begun, processes, max(threads - len(left), 0),
                  _handles(), tuple(_memory))


def at_exit(**options: Any) -> None:
    """Calls run() when Python ends, before Python waits for its threads; options are those of run(). If another thread
    is in run() already, for example after a signal, at_exit() waits for the end of that run(). Otherwise Python would
    end in the middle of it."""
    options.setdefault("reason", "the program ends")
    _mark()

    def last() -> None:
        run(**options)
        until = time.monotonic() + options.get("limit", LIMIT)
        while not _over.is_set() and time.monotonic() < until:
            _sleep(0.01)

    if hasattr(threading, "_register_atexit"): # Python calls functions of atexit only after its wait for threads
        threading._register_atexit(last)
    else:
        atexit.register(last)


def on_signals(*numbers: int, **options: Any) -> None:
    """Calls run() on SIGTERM and SIGINT (or the given signals), and then ends the program with 128 + the number of the
    signal. run() is called on a thread of its own; if the program ends in the meantime, Python waits for that thread.
    If run() has ended Qt's event loop, the code that follows the loop has three seconds to end. Under memstow the time
    limit begins with the signal, even if no Python code runs any more."""
    _mark()

    def answer(number: int, _frame: Any) -> None:
        threading.Thread(target=end, args=(number,), name="shutdown", daemon=False).start()

    def end(number: int) -> None:
        try:
            run(signal.strsignal(number) or f"signal {number}", **{"status": 128 + number, **options})
            if _left_loop:
                threading.main_thread().join(THREAD_SECONDS)
            sys.stdout.flush()
        finally:
            os._exit(128 + number)

    for number in numbers or (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, answer)
        _library.shutdown_on_signal(number, int(options.get("limit", LIMIT) * 1000),
                                    options.get("status", 128 + number))
