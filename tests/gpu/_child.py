"""Runs a program with a limit of time. In: a command. Out: how it ended and what it printed; if it did not end within
the limit, also where in the kernel it waited then. A process that waits in a driver may not end at SIGKILL, so the
caller waits for the end no longer than ENDS after the limit. Often a process that the command has started waits, and
not the command itself. So all processes of the command's session are looked at and killed."""
import os, pathlib, signal, subprocess, sys, time

ENDS = 10 # seconds that a killed process has for its end


class Ended:
    """How a program ended. status None: the program did not end in time. is_left: SIGKILL did not end the program, or a
    process that it had started."""

    def __init__(self, status, said, waited_for="", is_left=False):
        self.status, self.said, self.waited_for, self.is_left = status, said, waited_for, is_left


def read(path):
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def processes(session):
    """The ids of all processes of a session."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdecimal():
            after_name = read(entry / "stat").rpartition(")")[2].split()
            if len(after_name) > 3 and after_name[3] == str(session):
                found.append(int(entry.name))
    return sorted(found)


def states(pid):
    """The state of each thread that a process has. Its first thread may be a zombie while another waits in a driver."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
    return [state for task in tasks for state in read(task).rpartition(")")[2].split()[:1]]


def is_alive(session):
    """Whether a thread of a session is more than a zombie."""
    return any(state not in "ZX" for pid in processes(session) for state in states(pid))


def waits(session):
    """Returns where each thread of a session is in the kernel. Only root can read the threads' stacks."""
    lines = []
    for pid in processes(session):
        lines.append(f"process {pid}: {read(pathlib.Path(f'/proc/{pid}/cmdline')).replace(chr(0), ' ')}")
        for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
            state = read(task / "stat").rpartition(")")[2].split()[:1]
            lines.append(f"  thread {task.name} {read(task / 'comm')}: state {' '.join(state)}, waits in "
                         f"{read(task / 'wchan')}, system call {read(task / 'syscall')}")
            lines += [f"    {line}" for line in read(task / "stack").split("\n")]
    return "\n".join(lines)


def kill(session):
    """Kills all processes of a session, because any of them may hold the GPU's memory."""
    for pid in processes(session):
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def end(process):
    """Kills a process and all of its session. Returns whether one of these processes is left after ENDS seconds."""
    until = time.monotonic() + ENDS
    kill(process.pid)
    while (is_left := process.poll() is None or is_alive(process.pid)) and time.monotonic() < until:
        time.sleep(0.02)
        kill(process.pid) # a process may have been started meanwhile
    return is_left


def wait(process, seconds):
    try:
        return process.wait(max(seconds, 0))
    except subprocess.TimeoutExpired:
        return None


def execute(argv, seconds, said, look=waits, **options):
    """Runs a command, whose output goes to the file `said`. At the limit, look(session) is called before the command is
    ended."""
    with open(said, "wb") as out:
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True, **options)
    status, waited_for = None, ""
    try:
        status = wait(process, seconds)
        if status is None:
            waited_for = look(process.pid)
    finally:
        is_left = end(process)
    if is_left and not waited_for:
        waited_for = waits(process.pid)
    text = pathlib.Path(said).read_text(errors="replace").rstrip()
    return Ended(status, text, waited_for, is_left)


def ask(argv, seconds, folder):
    """Returns what a short program prints, or None if the program failed or did not end in time."""
    said = pathlib.Path(folder) / f"asked.{os.getpid()}.{time.monotonic_ns()}"
    try:
        ended = execute(argv, seconds, said, look=lambda _session: "")
    except OSError:
        return None
    finally:
        said.unlink(missing_ok=True)
    return ended.said if ended.status == 0 else None


def python(code, *words, program=sys.executable):
    return [program, "-c", code, *words]
