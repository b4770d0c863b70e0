#!/usr/bin/env python3
"""Finds and runs the tests. tests/check calls it after the build; the standard library is all it needs.

A test is tests/<room>/<behaviour>, which is also its name on the command line:

  tests/unit/NAME.c       a Criterion executable
  tests/prog/NAME.c|.cc   a program, run with and without memstow; it prints what the report of it must say
                          (tests/expectations.py)
  tests/<room>/NAME.py    a script: exit status 0 passes, 77 skips (the last line says why), all else fails
  tests/fuzz/NAME.c       a fuzz target: runs once over tests/fuzz/NAME.corpus/* and what _NAME_seeds.py writes into its
                          folder; tests/long fuzzes it from there

The first comment lines of a test may hold, after // or #:

  needs: WORD…      torch comfyui comfyui-manager comfyui-multigpu comfyui-front-ends comfy-cli mimalloc mimalloc-bench
                    stacks root cc cuda-headers cupti launchers deb:PACKAGE pip:SPEC; tests/check installs what can be
                    installed
  timeout: SECONDS  (120; five times as long in a build with sanitizers)
  alone             runs while no other test does
  long              only tests/long runs it, which prints what it says, also when it passes

and in a program:

  run: OPTIONS      options of `memstow run`; several such lines are several runs
  env: NAME=VALUE   for both, with and without memstow
  exit: STATUS      the exit status that is expected (0; 128 + signal)
  build: FLAGS      of the compiler
"""
import argparse, concurrent.futures, contextlib, fnmatch, json, os, pathlib, re, shlex, shutil, signal
import subprocess, sys, tempfile, threading, time

import expectations

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
NOT_ROOMS = {"bench", "gpu", "__pycache__"}
SKIP = 77


class Skip(Exception):
    pass


class Failure(Exception):
    pass


class Test:
    def __init__(self, source):
        self.source = source
        self.room = source.parent.name
        self.name = f"{self.room}/{source.stem}"
        marks = read_marks(source)
        self.needs = " ".join(marks.get("needs", [])).split()
        self.timeout = int(marks.get("timeout", ["120"])[0])
        self.alone = "alone" in marks
        self.long = "long" in marks
        self.runs = marks.get("run", [""])
        self.env = dict(pair.split("=", 1) for line in marks.get("env", []) for pair in shlex.split(line))
        self.exit = int(marks.get("exit", ["0"])[0])


def read_marks(source):
    """The marks in the first comment lines of a test."""
    marks = {}
    for number, line in enumerate(source.read_text(errors="replace").split("\n")):
        comment = re.match(r"\s*(?://|#)(?!include|define)!?\s*(.*)", line)
        if not comment and not (number == 0 or not line.strip()):
            break
        mark = comment and re.fullmatch(r"(needs|timeout|run|env|exit|build):\s*(.*)|(alone|long)", comment[1].strip())
        if mark:
            marks.setdefault(mark[1] or mark[3], []).append(mark[2] or "")
    return marks


def discover():
    for room in sorted(p for p in TESTS.iterdir() if p.is_dir() and p.name not in NOT_ROOMS):
        suffixes = {".c", ".cc", ".py"} if room.name in ("unit", "prog", "fuzz") else {".py"}
        for source in sorted(room.iterdir()):
            if source.suffix in suffixes and not source.name.startswith("_"):
                yield Test(source)


def matches(name, pattern):
    pattern = re.sub(r"^tests/|\.(py|c|cc)$", "", pattern).rstrip("/")
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern + "/*")


def select(patterns, long):
    """The tests that the words on the command line name. A word that names nothing is an error."""
    tests = [t for t in discover() if (t.long or t.room == "fuzz" if long else not t.long)]
    for pattern in patterns:
        if not any(matches(t.name, pattern) for t in tests):
            sys.exit(f"no {'long ' if long else ''}test is named {pattern}")
    return [t for t in tests if not patterns or any(matches(t.name, p) for p in patterns)]


# ---- running one test

class Context:
    """The surroundings of a test: the build, a fresh folder, the environment."""

    def __init__(self, build, seconds, long):
        self.build = build
        self.seconds = seconds # for each fuzz target
        self.long = long
        self.memstow = build / "memstow"
        self.python = ROOT / "build/venv/bin/python"
        try:
            self.features = json.loads((build / "features.json").read_text())
        except OSError:
            sys.exit(f"{build} holds no build: run tests/check")

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MEMSTOW") and k != "LD_PRELOAD"}
        # With OMP_WAIT_POLICY=passive, idle threads of OpenMP (PyTorch has some) sleep. Otherwise they spin, which took
        # most of the processor time of ComfyUI.
        env.update(LC_ALL="C.UTF-8", OMP_WAIT_POLICY="passive", MEMSTOW=str(self.memstow),
                   MEMSTOW_BUILD=str(self.build), PYTHON=str(self.python if self.python.exists() else sys.executable),
                   PYTHONPATH=str(TESTS), PYTHONDONTWRITEBYTECODE="1")
        return env


running = set() # the processes of the tests
spent = threading.local() # .seconds: the processor time of the test that this thread runs


def wait(process, timeout):
    """Waits for the end of a process. Adds to spent.seconds the processor time of the process and of those descendants
    that were waited for. Returns the status of the process, or None after the timeout."""
    until = time.monotonic() + timeout
    with contextlib.suppress(OSError): # end_tests has waited for the process already
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > until:
                return None
            time.sleep(0.02)
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        spent.seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return process.wait()


def execute(argv, cwd, env, timeout, merge=True):
    """Runs a command in a process group of its own. Returns (status as a shell gives it, output, standard error)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(a) for a in argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=out if merge else err, start_new_session=True)
        running.add(process)
        try:
            status = wait(process, timeout)
        finally:
            end_group(process)
            running.remove(process)
        out.seek(0), err.seek(0)
        text, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if status is None:
        raise Failure(f"{shlex.join(str(a) for a in argv)}\nno end after {timeout} s\n{text}{errors}")
    return (status if status >= 0 else 128 - status), text, errors


def end_group(process):
    """Ends the processes that the test left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def check_needs(test, context):
    for need in test.needs:
        if need == "root" and os.geteuid() != 0:
            raise Skip("needs root")
        if need == "mimalloc" and not context.features["mimalloc"]:
            raise Skip("built without mimalloc")
        if need == "stacks" and not context.features["stacks"]:
            raise Skip("call stacks are not recorded yet")
        if need == "cc" and not shutil.which("cc"):
            raise Skip("needs a C compiler")


def run_test(test, context, folder):
    """Runs a test. Returns the output if the test is a script, and None for all other tests."""
    check_needs(test, context)
    return {"unit": run_unit, "prog": run_program, "fuzz": run_fuzz}.get(
        test.room if test.source.suffix != ".py" else "", run_script)(test, context, folder)


def expect_success(argv, test, context, folder):
    status, output, _ = execute(argv, folder, context.environment(), test.timeout)
    if status == SKIP and test.source.suffix == ".py":
        raise Skip((output.strip().split("\n") or [""])[-1])
    if status != 0:
        raise Failure(f"{output.rstrip()}\nexit status {status}")
    return output


def executable(test, context):
    path = context.build / "tests" / test.room / test.source.stem
    if not path.exists():
        raise Failure(f"not built: {path.relative_to(context.build)}")
    return path


def run_script(test, context, folder):
    python = context.environment()["PYTHON"] if {"torch", "comfyui"} & set(test.needs) or any(
        n.startswith("pip:") for n in test.needs) else sys.executable
    return expect_success([python, test.source], test, context, folder)


def run_unit(test, context, folder):
    expect_success([executable(test, context), "--short-filename", "-j1"], test, context, folder)


def run_fuzz(test, context, folder):
    seeds = make_seeds(test, context, folder)
    if not context.long:
        if not any(seeds.iterdir()):
            raise Skip("no corpus")
        expect_success([executable(test, context), *sorted(seeds.iterdir())], test, context, folder)
        return
    target = ROOT / "build/fuzz/tests/fuzz" / test.source.stem
    test.timeout = context.seconds + 120
    try:
        expect_success([target, f"-max_total_time={context.seconds}", "-timeout=10", "-rss_limit_mb=2048",
                        "-print_final_stats=1", seeds], test, context, folder)
    except Failure:
        kept = ROOT / "build/fuzz/found"
        kept.mkdir(exist_ok=True)
        for found in folder.glob("*-*"):
            shutil.copy(found, kept)
        raise


def make_seeds(test, context, folder):
    """Makes a folder with the inputs of the test's corpus, and with those that its _NAME_seeds.py makes. Returns the
    folder."""
    seeds = folder / "seeds"
    seeds.mkdir()
    kept = TESTS / "fuzz" / f"{test.source.stem}.corpus"
    for file in kept.iterdir() if kept.is_dir() else []:
        shutil.copy(file, seeds)
    maker = test.source.with_name(f"_{test.source.stem}_seeds.py")
    if maker.exists():
        expect_success([sys.executable, maker], test, context, seeds)
    return seeds


def run_program(test, context, folder):
    program = executable(test, context)
    env = {**context.environment(), **test.env}
    alone_status, alone_output, _ = execute([program], folder, env, test.timeout, merge=False)
    if alone_status != test.exit:
        raise Failure(f"{alone_output}without memstow: exit status {alone_status}, expected {test.exit}")
    for number, options in enumerate(test.runs):
        run_tracked(test, context, folder, program, env, options, plain_lines(alone_output), number)


def plain_lines(output):
    return [line for line in output.split("\n") if not re.match(r"expect[ @]", line)]


def run_tracked(test, context, folder, program, env, options, plain, number):
    file = folder / f"out{number or ''}.mst"
    if "--allocator=mimalloc" in options and not context.features["mimalloc"]:
        raise Skip("built without mimalloc")
    argv = [context.memstow, "run", "--quiet", "-o", file, *shlex.split(options), "--", program]
    status, output, errors = execute(argv, folder, env, test.timeout, merge=False)
    shown = f"memstow run {options}\n{output}{errors}"
    if status != test.exit:
        raise Failure(f"{shown}exit status {status}, expected {test.exit}")
    if plain_lines(output) != plain:
        raise Failure(f"{shown}other output than without memstow:\n" + "\n".join(plain))
    if errors and "memstow" in errors:
        raise Failure(f"{shown}memstow wrote to the program's standard error")
    asked = [line for line in output.split("\n") if re.match(r"expect[ @]", line)]
    if not asked and "ok" not in plain:
        raise Failure(f"{shown}neither an expectation nor ok")
    if wrong := expectations.unmet(asked, context.memstow, file, env):
        raise Failure(f"memstow run {options}\n" + "\n".join(wrong))


# ---- running all tests

class Results:
    def __init__(self):
        self.lock = threading.Lock()
        self.passed, self.failed, self.skipped = [], [], []

    def add(self, test, outcome, detail, seconds, processor_seconds):
        with self.lock:
            getattr(self, outcome).append((test.name, detail))
            print(f"{outcome:7} {test.name}  {seconds:.1f} s, processors {processor_seconds:.1f} s", flush=True)
            if outcome != "skipped" and detail:
                print(indent(shorten(detail) if outcome == "failed" else detail.rstrip()), flush=True)


def indent(text):
    return "\n".join("    " + line for line in text.split("\n"))


def shorten(text, limit=80):
    lines = text.rstrip().split("\n")
    if len(lines) <= limit:
        return "\n".join(lines)
    return "\n".join(lines[:limit // 2] + [f"… {len(lines) - limit} lines …"] + lines[-limit // 2:])


def run_and_record(test, context, results):
    start, spent.seconds = time.monotonic(), 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"memstow-{test.source.stem}-"))
    try:
        output = run_test(test, context, folder)
        outcome, detail = "passed", output if test.long and output else ""
    except Skip as reason:
        outcome, detail = "skipped", str(reason)
    except Failure as failure:
        outcome, detail = "failed", str(failure)
    except Exception as error: # a fault of the runner itself is a failure of that test, and the others still run
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
    shutil.rmtree(folder, ignore_errors=True)
    results.add(test, outcome, detail, time.monotonic() - start, spent.seconds)


def run_all(tests, context, jobs):
    results = Results()
    together = sorted((t for t in tests if not t.alone), key=lambda t: -t.timeout) # the longest first
    futures = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for group in (together, *([t] for t in tests if t.alone)):
                futures += [pool.submit(run_and_record, t, context, results) for t in group]
                # Python runs signal handlers on this thread only, so this thread must not sleep for long.
                while concurrent.futures.wait(futures, timeout=0.5).not_done:
                    pass
        except SystemExit: # by answer_signals
            pool.shutdown(wait=False, cancel_futures=True)
            end_tests(futures)
            raise
    return results


def end_tests(futures):
    """Kills processes until all tests have ended, because a test may start several processes, one after the other."""
    while not all(f.done() for f in futures):
        for process in running.copy():
            end_group(process)
        time.sleep(0.05)


def summarize(results):
    if results.failed: # prints their texts again, because readers look at the end of a long output
        texts = [f"{name}\n{indent(shorten(text, 40))}" for name, text in sorted(results.failed)]
        print("\nfailed:", *texts, sep="\n  ")
    if results.skipped:
        print("\nskipped:", *(f"{name}: {why}" for name, why in sorted(results.skipped)), sep="\n  ")
    print(f"{len(results.passed)} passed, {len(results.failed)} failed, {len(results.skipped)} skipped")
    return 1 if results.failed or not (results.passed or results.skipped) else 0


def answer_signals():
    """Makes these signals end the runner and the running tests. Sets a handler even for a signal that was ignored when
    the runner started (by nohup, or in the background of a script). So the programs under test do not ignore it either:
    a program inherits that a signal is ignored, but it does not inherit a handler."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def main():
    answer_signals()
    parser = argparse.ArgumentParser(prog="tests/check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="tests, or rooms, with wildcards")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help=argparse.SUPPRESS)
    parser.add_argument("--long", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=10, help="for each fuzz target (tests/long)")
    parser.add_argument("--jobs", type=int, default=3, help="tests at a time (3: half of the time they wait)")
    parser.add_argument("--list", action="store_true", help="print the names of the tests")
    parser.add_argument("--needs", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    tests = select(options.names, options.long)
    if options.list:
        print(*(t.name for t in tests), sep="\n")
        return 0
    if options.needs:
        rooms = {t.room for t in tests} if options.long else set()
        print(*sorted({need for t in tests for need in t.needs} | rooms & {"fuzz"}), sep="\n")
        return 0
    context = Context(options.build.resolve(), max(1, int(options.minutes * 60)), options.long)
    if context.features.get("sanitize"): # ThreadSanitizer also waits a second for threads at the end of each process
        for test in tests:
            test.timeout *= 5
    return summarize(run_all(tests, context, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
