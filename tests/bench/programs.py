"""The programs that the benchmark runs. Each comes from Debian or PyPI, or is a source file in tests/bench/work.

A Batch is a program that runs to its end; its wall time is measured. Redis and ComfyUI are servers: their method
`serve` waits for the server, may send it requests, ends it, and returns the seconds that count. The method `missing` of
each class returns the name of what is not installed, or None."""
import json, os, pathlib, shutil, signal, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = HERE / "work"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/real")]
import _workflow, support

VENV_PYTHON = ROOT / "build/venv/bin/python"


class Batch:
    python = None # the script of a Python program: memray wants it without the interpreter

    def __init__(self, name, argv, package=None, env=None, rate=None):
        self.name, self.argv, self.package, self.env, self.rate = name, [str(a) for a in argv], package, env or {}, rate

    def missing(self):
        return None if shutil.which(self.argv[0]) else self.package or self.argv[0]

    def prepare(self, inputs):
        """Makes the input files that the command line names."""


class Generated(Batch):
    """A Batch whose input file is generated once. The file's path replaces {input} in the command line."""

    def __init__(self, name, argv, generate, **more):
        super().__init__(name, argv, **more)
        self.generate = generate

    def prepare(self, inputs):
        path = inputs / self.name
        if not path.exists():
            path.write_text(self.generate())
        self.argv = [a.replace("{input}", str(path)) for a in self.argv]


class Compiled(Batch):
    """A source file of ours."""

    def missing(self):
        return None if shutil.which("c++") else "g++"

    def prepare(self, inputs):
        source = WORK / "threads.cc"
        subprocess.run(["c++", "-O2", "-pthread", source, "-o", inputs / "threads"], check=True)
        self.argv[0] = str(inputs / "threads")


class Python(Batch):
    def __init__(self, name, script, module=None, **more):
        super().__init__(name, [VENV_PYTHON if module else sys.executable, script], **more)
        self.python, self.module = script, module

    def missing(self):
        if self.module and not has_module(self.module):
            return self.module
        return None


class Redis:
    """Runs redis-server and measures how many seconds it takes to serve the load of redis-benchmark."""
    name, python, rate = "redis-server", None, None
    env = {}

    def __init__(self):
        self.port = support.free_port()
        self.argv = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
                     "no"]

    def missing(self):
        return None if shutil.which("redis-server") and shutil.which("redis-benchmark") else "redis-server redis-tools"

    def prepare(self, inputs):
        pass

    def client(self, *argv):
        return subprocess.run(["redis-cli", "-p", str(self.port), *argv], capture_output=True, text=True).stdout.strip()

    def serve(self, process):
        support.wait_for(lambda: self.client("ping") == "PONG", 60, "redis-server answering")
        start = time.monotonic()
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-n", "150000", "-r", "100000", "-d", "100", "-P", "8",
                        "-q", "-t", "set,get,lpush,hset,zadd"], stdout=subprocess.DEVNULL, check=True)
        seconds = time.monotonic() - start
        self.client("shutdown", "nosave")
        return seconds


class ComfyUI:
    """Measures how many seconds a real ComfyUI takes from its start until its server answers."""
    name, rate = "ComfyUI start", None
    env = {}

    def __init__(self):
        self.port = support.free_port()
        self.python = ROOT / "tests/comfyui_main.py"

    def missing(self):
        return None if (ROOT / "build/comfyui/main.py").exists() and has_module("torchsde") else "comfyui"

    def prepare(self, inputs):
        support.PYTHON = str(VENV_PYTHON)
        self.argv = support.comfyui_command(self.port, inputs / "comfyui")

    def wait(self, process):
        support.wait_for(lambda: process.poll() is not None or support.http(self.port, "/system_stats"), 300,
                         "ComfyUI answering")
        assert process.poll() is None, "ComfyUI ended instead of answering"

    def serve(self, process):
        start = time.monotonic()
        self.wait(process)
        seconds = time.monotonic() - start
        self.end(process)
        return seconds

    def end(self, process):
        support.interrupt(process, lambda: os.killpg(process.pid, signal.SIGINT))


class ComfyUIRun(ComfyUI):
    """How long a workflow takes in a real ComfyUI that has run the workflow once before. The workflow samples a small
    model."""
    name = "ComfyUI run"

    def prepare(self, inputs):
        super().prepare(inputs)
        subprocess.run([VENV_PYTHON, _workflow.__file__, inputs / "comfyui"], check=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "tests")})

    def serve(self, process):
        self.wait(process)
        for seed in (1, 2):
            start = time.monotonic()
            _workflow.run(self.port, _workflow.sampling(seed, size=256, steps=5), 300)
        seconds = time.monotonic() - start
        self.end(process)
        return seconds


def has_module(name):
    return VENV_PYTHON.exists() and subprocess.run(
        [VENV_PYTHON, "-c", f"import {name}"], capture_output=True).returncode == 0


def pigeonhole(pigeons=10):
    """A puzzle for z3, with more pigeons than holes. It has no solution, so z3 has to search."""
    holes = range(pigeons - 1)
    lines = [f"(declare-const p{p}_{h} Bool)" for p in range(pigeons) for h in holes]
    lines += ["(assert (or " + " ".join(f"p{p}_{h}" for h in holes) + "))" for p in range(pigeons)]
    lines += [f"(assert (not (and p{a}_{h} p{b}_{h})))" for h in holes for a in range(pigeons) for b in range(a)]
    return "\n".join(lines + ["(check-sat)"]) + "\n"


def records(count=150_000):
    return json.dumps(
        [{"id": i, "group": f"g{i * 7919 % 500}", "value": i * 31 % 1009, "tags": [f"t{i % 7}", f"t{i % 11}"]}
         for i in range(count)])


def all_programs():
    threads = [Compiled(f"threads {n}", ["threads", n]) for n in (1, 2)]
    return [
        Batch("lua", ["lua5.4", WORK / "words.lua"], package="lua5.4"),
        Generated("z3", ["z3", "{input}"], pigeonhole, package="z3"),
        Batch("sqlite3", ["sqlite3", ":memory:", f".read {WORK / 'orders.sql'}"], package="sqlite3"),
        Generated("jq", ["jq", "-c", "[group_by(.group)[] | {group: .[0].group, sum: (map(.value) | add), "
                         "tags: (map(.tags[]) | unique)}] | length", "{input}"], records, package="jq"),
        Redis(),
        Batch("db_bench", [
            "db_bench", "--benchmarks=fillrandom,readrandom", "--num=300000", "--db=rocks", "--threads=2",
            "--disable_wal=1", "--seed=1", "--compression_type=none"
        ], package="rocksdb-tools"),
        *threads,
        Python("CPython", WORK / "churn.py"),
        Python("CPython PYTHONMALLOC=malloc", WORK / "churn.py", env={"PYTHONMALLOC": "malloc"}),
        Python("PyTorch training", WORK / "train.py", module="torch"),
        ComfyUI(),
        ComfyUIRun(),
    ]
