"""Shared by the Python tests. A test imports it, does its work with plain assertions, and ends. The current folder of
each test is new and empty."""
import atexit, contextlib, json, os, pathlib, re, shlex, shutil, socket, subprocess, sys, time
import urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMSTOW = os.environ.get("MEMSTOW", str(ROOT / "build/dev/memstow"))
BUILD = pathlib.Path(os.environ.get("MEMSTOW_BUILD", ROOT / "build/dev"))
LIBRARY = BUILD / "libmemstow.so"
PYTHON = os.environ.get("PYTHON", sys.executable)
COMFYUI = pathlib.Path(os.environ.get("COMFYUI", ROOT / "build/comfyui")) # COMFYUI: to try another version by hand
HERE = pathlib.Path.cwd()
LIMIT = 100 # seconds for run(), unless the call gives a timeout. None: no limit, neither for run() nor for wait_for()


def skip(reason):
    """Ends the test as skipped."""
    print(reason)
    sys.exit(77)


def features():
    """The features of this build: {"mimalloc": bool, "sanitize": str, …}."""
    return json.loads((BUILD / "features.json").read_text())


def run(*argv, status=0, **options):
    """Runs a command, and returns the completed process with its output as text. Fails if the exit status is not
    `status`. With status=None, every exit status is allowed.

    If a signal ended the process, the status is minus the signal's number."""
    argv = [str(a) for a in argv]
    options = {"timeout": LIMIT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run(argv, text=True, errors="replace", **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{shlex.join(argv)}: exit status {done.returncode}, expected {status}\n"
                             f"{done.stdout}{done.stderr}")
    return done


def memstow(*arguments, **options):
    """Runs the memstow command, by default without LD_PRELOAD. A test that itself runs under memstow has LD_PRELOAD
    set, and a command that is built with sanitizers would not start with it."""
    options.setdefault("env", {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"})
    return run(MEMSTOW, *arguments, **options)


def track(*argv, options=(), file="out.mst", **more):
    """Runs a command under `memstow run` and returns the completed process. Call report(file) for the report of its
    memory."""
    return memstow("run", "--quiet", "-o", file, *options, "--", *argv, **more)


def in_mode(environment):
    """Adds to this environment the settings for memstow that a mode of the simulated driver (simcuda/_modes.py) asks
    for, and returns the environment. The mode sets variables with other names, because the runner removes all variables
    MEMSTOW… from a test's environment."""
    if "SIMCUDA_KEEP" in environment:
        environment.setdefault("MEMSTOW_CUDA_KEEP", environment["SIMCUDA_KEEP"])
    return environment


def report(file="out.mst", *arguments):
    """The JSON report of a file or a process id."""
    return json.loads(memstow("report", file, "--json", *arguments).stdout)


def shapes(text):
    """The lines of an output, without what differs from run to run. Figures, ids and addresses become "#", and
    several spaces become one."""
    number = r"(0x)?\b\d[\da-f.,]*( ?[KMGT]?i?B\b)?"
    return [" ".join(re.sub(number, "#", line).split()) for line in text.split("\n") if line.strip()]


def compile(source, name=None, flags=("-O1", "-g", "-pthread")):
    """Compiles C (or, for a .cc file, C++) into the current folder: a source file, or its text. Returns the program."""
    path = pathlib.Path(source) if "\n" not in str(source) else HERE / f"{name or 'program'}.c"
    if "\n" in str(source):
        path.write_text(source)
    program = HERE / (name or path.stem)
    run("c++" if path.suffix == ".cc" else "cc", *flags, path, "-o", program)
    return program


def as_nobody():
    """For preexec_fn: changes to a user who owns nothing."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def command_for_others():
    """A copy of the command and the library that another user can reach, wherever the checkout is. Skips the test if
    that is not possible."""
    folder = HERE / "bin"
    folder.mkdir()
    os.chmod(HERE, 0o755)
    os.chmod(folder, 0o755)
    for file in (MEMSTOW, LIBRARY):
        shutil.copy(file, folder)
        os.chmod(folder / pathlib.Path(file).name, 0o755)
    try:
        run(folder / "memstow", "--version", preexec_fn=as_nobody)
    except PermissionError:
        skip("another user cannot reach the folder of temporary files")
    return folder / "memstow"


def start(*argv, **options):
    """Starts a process. If it still runs when the test ends, it is killed."""
    process = subprocess.Popen([str(a) for a in argv], **options)
    atexit.register(lambda: (process.poll() is None and process.kill(), process.wait()))
    return process


def expect_exit(process, status=0, seconds=60):
    """Waits for the end of a process. Fails if its exit status is not `status`. If a signal ended the process, the exit
    status is minus the signal's number."""
    found = process.wait(seconds)
    assert found == status, f"{shlex.join(map(str, process.args))}: exit status {found}, expected {status}"


class MemoryGroup:
    """A memory control group (version 1 or 2) that the test makes for itself. It is removed when the test ends."""
    PLACES = (("/sys/fs/cgroup/memory", "memory.usage_in_bytes"), ("/sys/fs/cgroup", "memory.current"))

    def __init__(self, folder, file):
        self.folder, self.file = folder, file

    @classmethod
    def make(cls):
        """A new group; None if none can be made, for example by a user who is not root."""
        for parent, file in cls.PLACES:
            folder = pathlib.Path(parent) / f"memstow-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            if (folder / file).exists():
                group = cls(folder, folder / file)
                atexit.register(group.remove) # runs last: by then, what start() starts later has ended
                return group
            folder.rmdir()
        return None

    def join(self):
        """For preexec_fn."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def used(self):
        return int(self.file.read_text())

    def limit(self, size):
        limit = "memory.limit_in_bytes" if self.file.name == "memory.usage_in_bytes" else "memory.max"
        (self.folder / limit).write_text(str(size))

    def remove(self):
        wait_for(lambda: not (self.folder / "cgroup.procs").read_text(), what="the end of the group")
        self.folder.rmdir()


def mount_fuse(behind, place):
    """Makes two folders, and mounts a FUSE file system on `place`: a process that passes all requests on to `behind`.
    Needs root, deb:bindfs and deb:fuse3; otherwise the test is skipped. The caller unmounts the file system."""
    behind.mkdir(), place.mkdir()
    if not os.path.exists("/dev/fuse") or not shutil.which("bindfs"):
        skip("needs /dev/fuse and bindfs")
    mounted = run("bindfs", behind, place, status=None)
    if mounted.returncode:
        skip(f"bindfs cannot mount here: {mounted.stderr.strip().splitlines()[-1:]}")


def wait_for(condition, seconds=60, what="it"):
    """Waits until condition() is true. Returns its value. The longer it waits, the less often it asks: each question
    costs processor time, also in the server that answers it."""
    begin = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - begin
        if waited > seconds and LIMIT is not None:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(min(0.05 + waited / 20, 0.25))
    return value


def interrupt(process, send):
    """Calls send(), which interrupts a Python program, and waits until the program ends. If it does not end within 20
    seconds, calls send() again, because Python drops an interrupt that comes while it runs the callback of a weak
    reference."""
    def has_ended():
        with contextlib.suppress(ProcessLookupError):
            send()
        try:
            return process.wait(20) is not None
        except subprocess.TimeoutExpired:
            return False
    wait_for(has_ended, 120, "the end after an interrupt")


def environment_of(pid):
    """The environment that a process began with."""
    pairs = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair)


def is_gone(pid):
    """Whether the process has ended; it may still be a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


reserved = [] # sockets


def free_port():
    """A port of 127.0.0.1 for a server that sets SO_REUSEADDR, as servers do. It stays bound here, without listening:
    the kernel gives it to no other socket meanwhile."""
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    reserved.append(probe)
    return probe.getsockname()[1]


def comfyui_command(port, folder, *arguments, quick=False):
    """The command that starts ComfyUI on the CPU; its files are in `folder`. quick: starts comfyui/_quick_main.py."""
    folder = pathlib.Path(folder).resolve()
    web = folder / "web"
    for name in ("web", "custom_nodes", "models/diffusion_models", "input", "output", "user"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (web / "index.html").write_text("<html></html>")
    main = ROOT / ("tests/comfyui/_quick_main.py" if quick else "tests/comfyui_main.py")
    return [PYTHON, str(main), str(COMFYUI), "--cpu", "--listen", "127.0.0.1",
            "--port", str(port), "--base-directory", str(folder), "--front-end-root", str(web), "--disable-api-nodes",
            "--database-url", "sqlite:///:memory:", *arguments]


def http(port, path, document=None, timeout=10):
    """GET, or POST of a JSON document, to a local server. Returns the JSON answer, or None if nobody answers."""
    data = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read() or b"null")
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None
