#!/usr/bin/env python3
# timeout: 14400
# long
"""Real programs of Debian, PyPI and cargo (_programs.py is the table) do under memstow what they do without it: same
exit status, same output, a plausible ledger of each process, and a report of it in less than a second of processor
time.

  tests/long real/broad                 all of them
  tests/real/broad.py [NAME…]           those named, wildcards too, over build/dev; prints what is known of each
  tests/real/broad.py --list
  RUN_OPTIONS=--allocator=mimalloc tests/real/broad.py      with options of memstow run

What is not installed is installed where that is allowed; a program that cannot be had is skipped, with its reason. If
fewer than forty of all programs ran, the test is skipped. If a program fails without memstow, or two runs without
memstow differ, this is reported as an error in the table, and the test fails, too."""
import argparse, atexit, concurrent.futures, ctypes, difflib, fnmatch, json, os, pathlib, re, shlex, shutil, signal
import subprocess
import sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent)) # for those who call it by hand
import support
from _programs import PROGRAMS, SHARED
from _report import check_report

SECOND = 1.0      # limit for making a report: seconds of processor time (user and system), which do not depend on load
SKIPPED = 77
FEWEST = 40       # programs that must have run, when all were to run
ENDS_IN = 5       # seconds in which processes that a program left running may end by themselves
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ENDED = {"exited", "abrupt_exit", "raw_exit", "execed"}
ENDED_OTHERWISE = {"killed", "ended_unseen"} # of the processes in Program.killed
OPTIONS = shlex.split(os.environ.get("RUN_OPTIONS", "")) # options of memstow run, by hand, such as --allocator=mimalloc
VENV = support.ROOT / "build/venv/bin/python" # cmake/setup.sh puts packages of PyPI there
CARGO = support.ROOT / "build/cargo"
DEBIAN = "/usr/sbin:/usr/bin:/sbin:/bin"


class Wrong(Exception):
    """A fault of memstow."""


class Unfit(Exception):
    """A fault of the table: the program does not work here without memstow."""


# ---- installing a program

def missing(needs):
    """The needs that are not there."""
    return [need for need in needs if not is_there(*need.split(":", 1))]


def is_there(kind, name):
    if kind == "deb":
        return "installed" == subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", name], capture_output=True, text=True).stdout
    if kind == "pip":
        return (support.ROOT / f"build/.done-pip-{name}").exists()
    if kind == "cargo":
        listed = CARGO / ".crates.toml"
        return listed.exists() and f'"{name} ' in listed.read_text()
    return shutil.which(name) is not None


def install(needs):
    """Installs all needs of a kind at once. If that fails, installs them one by one, so that a need that cannot be
    met does not stop the others."""
    for kind, step in (("deb", "need_packages"), ("pip", "need_pip"), ("cargo", "need_cargo")):
        names = sorted({n.split(":", 1)[1] for n in needs if n.startswith(kind + ":")})
        if names and not call_setup(step, names):
            for name in names:
                call_setup(step, [name])


def call_setup(step, names):
    """Runs one of cmake/setup.sh's steps. Returns whether it succeeded."""
    done = subprocess.run(["bash", "-euc", ". cmake/setup.sh; " + step + ' "$@"', "bash", *names], cwd=support.ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode == 0


# ---- running it

def environment(program, folder):
    """Returns the environment of a program. It is the same with and without memstow. Only CALLERS_HOME and CALLERS_PATH
    lead to the caller's home."""
    names = {"HOME": folder / "home", "TMPDIR": folder / "tmp", "XDG_RUNTIME_DIR": folder / "tmp",
             "MADE": folder / "made", "ROOT": support.ROOT, "PORT": support.free_port(),
             "PYTHON": VENV if VENV.exists() else support.PYTHON, "PATH": f"{CARGO}/bin:{DEBIAN}",
             "CALLERS_HOME": pathlib.Path.home(), "CALLERS_PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC",
             "PYTHONDONTWRITEBYTECODE": "1", "USER": "nobody" if program.as_nobody else "root"}
    return {name: str(value) for name, value in names.items()}


def execute(argv, folder, env, seconds, user):
    """Runs a command in a fresh folder run/. Returns (exit status, output, errors); the status is None if the command
    did not end in time. Ends processes that the command leaves running."""
    for name in ("run", "home", "tmp"):
        fresh(folder / name, user)
    options = {"user": 65534, "group": 65534, "extra_groups": []} if user else {}
    with open(folder / "stdout", "w+b") as out, open(folder / "stderr", "w+b") as err:
        process = subprocess.Popen([str(a) for a in argv], cwd=folder / "run", env=env, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, **options)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        end_all(0 if status is None else ENDS_IN)
        if status is not None and status < 0:
            status = 128 - status # as memstow run passes it on
        out.seek(0), err.seek(0)
        return status, out.read().decode(errors="replace"), err.read().decode(errors="replace")


def fresh(folder, user):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if user:
        os.chown(folder, 65534, 65534)


def children():
    """Returns the children of this process. Orphans below this process become its children."""
    return [int(pid) for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def end_all(seconds):
    """Waits for the remaining processes of a program. Kills processes that do not end in time."""
    end = time.monotonic() + seconds
    while pids := children():
        for pid in pids:
            if time.monotonic() >= end:
                os.kill(pid, signal.SIGKILL) # its children become ours
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)


def result_of(program, folder, env, tracked):
    """Runs the program once. Returns {part of the result: its text}. Where the table says that text differs from run to
    run, this text is replaced."""
    argv = ["bash", "-uc", SHARED + program.script]
    if tracked:
        command = support.command_for_others() if program.as_nobody else support.MEMSTOW
        fresh(folder / "ledgers", program.as_nobody)
        argv = [command, "run", "--quiet", *OPTIONS, "-o", folder / "ledgers/%n.%p.%x.mst", "--", *argv]
    status, out, err = execute(argv, folder, env, program.timeout, program.as_nobody)
    if status is None:
        raise (Wrong if tracked else Unfit)(f"no end after {program.timeout} s\n{out[-3000:]}{err[-3000:]}")
    return {"status": f"{status}\n", "stdout": settled(program, out), "stderr": settled(program, err)}


def settled(program, text):
    for pattern, replacement, reason in program.differs:
        assert reason
        text = re.sub(pattern, replacement, text, flags=re.M)
    return text


def differences(plain, other):
    """Returns the differences, shortened so that people can read them."""
    text = []
    for what in plain:
        if plain[what] != other[what]:
            lines = difflib.unified_diff(plain[what].splitlines(), other[what].splitlines(), lineterm="", n=1)
            text += [f"{what} differs:", *(line[:400] for line in list(lines)[2:62])]
    return "\n".join(text)


# ---- its ledgers

def check_ledgers(program, folder):
    """Checks that the ledger of each process opens and is plausible, and that the program itself has allocated. Returns
    a text about the ledgers."""
    checked = [check_ledger(program, file) for file in sorted((folder / "ledgers").iterdir())]
    sizes, noted = {}, set()
    for report, _ in checked:
        process, size = report["process"], report["totals"]["allocated_bytes"]
        sizes[process["name"]] = max(sizes.get(process["name"], 0), size)
        noted |= {process["name"]} if process["notes"] else set()
    for name in program.names:
        if not program.unseen and not sizes.get(name):
            raise Wrong(f"no ledger of {name} says that it allocated; there are {sizes}")
        if program.unseen and sizes.get(name):
            raise Unfit(f"{name} has allocated {sizes[name]} bytes, although {program.unseen}")
        if program.unseen and name in sizes and name not in noted:
            raise Wrong(f"the report of {name} does not say that its heap cannot be seen")
    size = max(sizes.get(name, 0) for name in program.names)
    slowest = max((seconds for _, seconds in checked), default=0)
    return f"{len(checked)} ledgers, {size / 2**20:.1f} MiB allocated, slowest report {slowest:.2f} s"


def check_ledger(program, file):
    (text, spent), (document, more) = timed(file), timed(file, "--json")
    report = json.loads(document)
    name = f"{file.name}: "
    if not text.strip():
        raise Wrong(name + "its report is empty")
    try:
        check_report(report, frames=10**9 if program.frames else 1000)
    except AssertionError as error:
        raise Wrong(f"{name}{error}")
    process = report["process"]
    if report["misuses"]:
        raise Wrong(f"{name}blocks misused: {report['misuses']}")
    if process["state"] not in (ENDED | ENDED_OTHERWISE if process["name"] in program.killed else ENDED):
        raise Wrong(f"{name}it is {process['state']}")
    if max(spent, more) >= SECOND:
        raise Wrong(f"{name}its report takes {spent:.2f} s, with --json {more:.2f} s, of processor time")
    return report, max(spent, more)


def timed(*arguments):
    """The output of memstow report, and the seconds of processor time that it takes."""
    command = [support.MEMSTOW, "report", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        text, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or errors:
        raise Wrong(f"{' '.join(command)}: exit status {process.returncode}\n{errors}")
    return text, usage.ru_utime + usage.ru_stime


# ---- one program, compared in a process of its own; this process becomes the parent of the program's orphans

def compare(program, show):
    folder = support.HERE / "it"
    made = folder / "made"
    folder.mkdir()
    made.mkdir()
    env = environment(program, folder)
    if program.prepare:
        prepare(program, made, env)
    begin = time.monotonic()
    plain = result_of(program, folder, env, False)
    between = time.monotonic()
    if show:
        print(*(f"{what}: {text}" for what, text in plain.items()), sep="")
    if plain["status"] != f"{program.exit}\n":
        raise Unfit(f"exit status {plain['status']}{plain['stdout'][-3000:]}{plain['stderr'][-3000:]}")
    tracked = result_of(program, folder, env, True)
    end = time.monotonic()
    if text := differences(plain, tracked):
        again = result_of(program, folder, env, False)
        if other := differences(plain, again):
            raise Unfit(f"two runs without memstow differ\n{other}\n\nand with it\n{text}")
        raise Wrong(text)
    return f"{check_ledgers(program, folder)}; {between - begin:.1f} s, {end - between:.1f} s under memstow"


def prepare(program, made, env):
    for name in ("HOME", "TMPDIR"):
        pathlib.Path(env[name]).mkdir()
    done = subprocess.run(["bash", "-euc", SHARED + program.prepare], cwd=made, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode:
        raise Unfit(f"prepare: exit status {done.returncode}\n{done.stdout[-3000:]}")


def one(name, show):
    """Runs one program, and prints the outcome. The exit status is that of a test, or 2 for an error in the table."""
    program = next(p for p in PROGRAMS if p.name == name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    atexit.register(end_all, 0)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if program.as_nobody and os.geteuid() != 0:
        program.as_nobody = False
    try:
        print(compare(program, show))
    except Wrong as error:
        print(error)
        sys.exit(1)
    except Unfit as error:
        print(error)
        sys.exit(2)


# ---- all programs

def run_one(program, show):
    """(outcome, words, seconds)"""
    begin = time.monotonic()
    folder = support.HERE / re.sub(r"\W", "_", program.name)
    folder.mkdir()
    with open(folder / "words", "w+") as words:
        process = subprocess.Popen([sys.executable, __file__, "--one", program.name, *["--output"] * show], cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        status = process.wait()
        words.seek(0)
        text = words.read().strip()
    shutil.rmtree(folder, ignore_errors=True)
    outcome = {0: "same", SKIPPED: "skipped", 2: "unfit"}.get(status, "WRONG")
    return outcome, text, time.monotonic() - begin


def selected(names):
    for name in names:
        if not any(fnmatch.fnmatchcase(p.name, name) for p in PROGRAMS):
            sys.exit(f"no program is named {name}")
    return [p for p in PROGRAMS if not names or any(fnmatch.fnmatchcase(p.name, n) for n in names)]


def run_all(programs, jobs, show):
    """Runs the programs, and prints each outcome when it is known. Returns {outcome: [names of programs]}."""
    install(missing({need for p in programs for need in p.needs}))
    os.chmod(support.HERE, 0o755) # for programs that do not run as root
    outcomes, runnable = {}, []
    for program in programs:
        if lacks := missing(program.needs):
            tell(outcomes, program, "skipped", "cannot be had here: " + " ".join(lacks), 0)
        else:
            runnable.append(program)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run_one, p, show): p for p in runnable}
        for future in concurrent.futures.as_completed(futures):
            tell(outcomes, futures[future], *future.result())
    return outcomes


def tell(outcomes, program, outcome, words, seconds):
    outcomes.setdefault(outcome, []).append(program.name)
    what = {"unfit": "an error in the table: ", "same": "", "skipped": "", "WRONG": ""}[outcome]
    print(f"{outcome:8}{program.name}  {seconds:.1f} s: {what}{words}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs of the table, with wildcards")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="programs at a time (one a core)")
    parser.add_argument("--list", action="store_true", help="print the names of the programs")
    parser.add_argument("--output", action="store_true", help="print what each writes without memstow, too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.one:
        return one(options.one, options.output)
    if options.list:
        print(*(p.name for p in PROGRAMS), sep="\n")
        return 0
    outcomes = run_all(selected(options.names), options.jobs, options.output)
    for outcome in sorted(outcomes.keys() - {"same"}):
        print(f"{outcome}: {', '.join(p.name for p in PROGRAMS if p.name in outcomes[outcome])}")
    print(*(f"{len(names)} {outcome}" for outcome, names in sorted(outcomes.items())), sep=", ")
    if {"WRONG", "unfit"} & outcomes.keys():
        return 1
    ran = len(outcomes.get("same", []))
    if ran < (1 if options.names else FEWEST):
        print(f"too few ran ({ran}): cannot be had here: {', '.join(sorted(outcomes.get('skipped', [])))}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
