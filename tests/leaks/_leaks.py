"""Shared by the tests of this room: a program of _plants.py under memstow, and the findings of memstow leaks."""
import functools, json, pathlib, subprocess

import support

HERE = pathlib.Path(__file__).parent
STATUS = {"no_leak": 0, "leak": 1, "cannot_tell": 5}


class Program:
    def __init__(self, *argv, options=(), file="out.mst", env=None):
        self.file = file
        self.process = support.start(support.MEMSTOW, "run", "--quiet", "-o", file, *options, "--", *argv,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def wait_for(self, word):
        line = self.process.stdout.readline().strip()
        assert line == word, (line, word, self.process.poll())

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @functools.cache
    def pid(self):
        return support.report(self.file)["process"]["pid"]

    def end(self):
        self.go_on()
        support.expect_exit(self.process, seconds=30)


def waiting(source, *arguments, **more):
    """Starts program.py in the test's folder, a Python program that runs `source` and waits until end() is called. The
    program can import memstow's modules and those in this folder. It has imported os and sys. This function returns
    when the program waits."""
    pathlib.Path("program.py").write_text(
        f"import os, sys\nsys.path[:0] = [os.getcwd(), {str(support.ROOT / 'tools/python')!r}]\n{source}"
        'print("ready", flush=True)\nsys.stdin.readline()\nos._exit(0)\n')
    program = Program(support.PYTHON, "program.py", *arguments, **more)
    program.wait_for("ready")
    return program


def plant(name, runs, step=0, readings=0, **more):
    return Program(support.PYTHON, HERE / "_plants.py", name, runs, step, readings, **more)


def record(program, file):
    """Starts to follow a waiting program. Returns once its ledger is open."""
    recorder = support.start(support.MEMSTOW, "leaks", program.pid(), f"--series={file}", "--json",
                             stdout=subprocess.DEVNULL)
    ledger = str(support.HERE / program.file)
    support.wait_for(lambda: ledger in pathlib.Path(f"/proc/{recorder.pid}/maps").read_text(), what="the recorder")
    return recorder


def leaks(*arguments, status=None):
    """The JSON document of memstow leaks. The exit code is checked against it."""
    done = support.memstow("leaks", *arguments, "--json", status=None)
    assert done.returncode in STATUS.values(), (done.returncode, done.stderr)
    document = json.loads(done.stdout)
    assert done.returncode == STATUS[document["verdict"]], (done.returncode, document["verdict"])
    assert (document["verdict"] == "leak") == bool(document["found"]), document["verdict"]
    assert status is None or done.returncode == status, (status, brief(document))
    return document


def functions(stack):
    return [frame["function"] for frame in stack if frame["kind"] == "python"] or [frame["function"] for frame in stack]


def brief(document):
    """The findings in few words."""
    return ([
        f"{r['name']}: {r['live_bytes']} of {r['allocated_bytes']}, {r['holders']}"
        for r in document["retired"] if r["leak"]
    ] + [
        f"{l['model']}/{l['node']}: {l['bytes_per_run']} a run in {l['grew']} of {l['judged']} by {l['judged_by']} "
        f"{functions(l['stack'])[:4]}" for l in document["leaks"]
    ])
