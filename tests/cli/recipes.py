# needs: cc stacks
"""Tests what README.md and docs/*.md show, as far as no other test does. Each option that a page gives a command is in
the command's --help. The commands of docs/formats.md write what the page says. The Python programs of docs/python.md,
docs/state.md and docs/endings.md run as they stand there. The line of docs/misuse.md and the output of docs/endings.md
for reap are still the same, except for figures and names."""
import os, pathlib, re, signal

import support
from support import HERE, MEMSTOW, PYTHON, ROOT, memstow, run

PAGES = {page.name: page.read_text() for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
HELP = memstow("--help").stdout
COMMANDS = re.findall(r"^  ([a-z]+)  +\S", HELP, re.M)
env = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "PATH": f"{pathlib.Path(MEMSTOW).parent}:/usr/bin:/bin",
       "XDG_STATE_HOME": str(HERE)}

# Commands and options exist.
helps = {command: memstow(command, "--help").stdout for command in COMMANDS}
checked, faults = 0, []
for name, text in PAGES.items():
    for line in re.sub(r"\\\n", "", text).split("\n"):
        for command, rest in re.findall(r"(?<![\w/-])memstow ([a-z]+)((?: [^`;#]*)?)", line):
            if command not in COMMANDS:
                continue
            own = re.split(r" -- |\\\|| \| |: ", rest)[0]
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", own):
                checked += 1
                if option not in helps[command]:
                    faults.append(f"{name}: memstow {command} has no {option}")
assert not faults and checked > 60, (checked, faults)
listed = set(re.findall(r"^memstow ([a-z|]+) ", PAGES["README.md"], re.M))
assert {word for words in listed for word in words.split("|")} >= set(COMMANDS), listed

# docs/formats.md: each command prints something, or writes the files that it names.
for file in ("A", "B"):
    memstow("run", "--quiet", "-o", file, "--", "sh", "-c", "exit 0")
support.start(MEMSTOW, "run", "--quiet", "-o", "C", "--", "sleep", "100") # `metrics --all` has at least this one
support.wait_for(lambda: f"{HERE}/C" in memstow("ps", "--json").stdout, what="a tracked process")
table = re.findall(r"^\|[^|]+\| `((?:[^`\\]|\\.)+)` \|", PAGES["formats.md"], re.M)
written = [command.split(r" \|")[0].split(";")[0] for command in table if command.startswith("memstow ")]
for command in written:
    command = command.replace("FILE…", "A").replace("FILE", "A").replace("DIR", ".")
    done = run("sh", "-ec", command, env=env)
    files = [HERE / file for file in re.findall(r"(?:> |-o )(\S+)", command)]
    files += [HERE / "memstow.prom"] * ("--textfile" in command)
    assert done.stdout or all(file.stat().st_size for file in files) and files, command
assert len(written) >= 10, written


def program(page, first, before="", after=""):
    """Writes a Python program of `page` to a file: the program that begins with `first`. Returns the file's path."""
    [body] = [body for body in re.findall(r"```python\n(.*?)```", PAGES[page], re.S) if body.startswith(first)]
    path = HERE / f"{page.removesuffix('.md')}.py"
    path.write_text(before + body + after)
    return path


def tracked(path):
    return memstow("run", "--quiet", "-o", f"{path.stem}.mst", "--", PYTHON, path, env=env).stdout


# docs/python.md: the model's memory is counted for the model, and the trigger ends. What the trigger does is not
# checked, because not every system can stow memory in use.
path = program("python.md", "import memstow\n", before="model = bytearray()\n"
               "def load(model):\n    model += bytes(8 << 20)\ndef sample(model):\n    pass\n",
               after="print(memstow.decisions()[0][-1]['kind'])\n")
live, kind = tracked(path).split()
assert int(live) >= 8 << 20 and kind == "ACT", (live, kind)

# docs/state.md: the loop goes on where it was.
(HERE / "loops").mkdir()
path = program("state.md", "import memstow_state\n", before="def refine(latent):\n    return (latent or 0) + 1\n",
               after="    print(step, store.get('latent'))\n")
text = path.read_text().replace("/srv/loops", str(HERE / "loops"))
path.write_text(text.replace("10)", "store.generation + 4)")) # four iterations each time
assert [tracked(path) for _ in range(2)] == ["3 4\n", "7 8\n"]

# docs/endings.md: the coordinator runs all of it.
path = program("endings.md", "import memstow_shutdown", before="""
import io, queue, threading
class Worker(threading.Thread):
    def __init__(self):
        super().__init__(name="worker")
        self.asked = threading.Event()
    def run(self):
        self.asked.wait()
    def request_stop(self):
        self.asked.set()
jobs, worker, database = queue.Queue(), Worker(), io.StringIO()
worker.start()
stop_workers = worker.request_stop
""")
path.write_text(path.read_text().replace('"./server"', '"sleep", "600"'))
tracked(path)
log = (HERE / "shutdown.log").read_text()
assert '"name":"server"' in log and '"threads_left":0,"processes_left":0' in log, log


def shape(text):
    """The text without figures, addresses, and names of programs."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"[\w.]+\+0x[0-9a-f]+", "PLACE", re.sub(r"\bat 0x[0-9a-f]+", "at ADDRESS", text))
    return re.sub(r"\d[\d.]*( [KMG]iB| B)?", "N", re.sub(r"/\S+\.mst", "FILE", text))


# docs/misuse.md: the line about a block that is freed twice.
source = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(5000); free(p); free(p); return 0; }\n"
twice = support.compile(source, "twice", flags=("-g", "-w"))
done = memstow("run", "--quiet", "--", twice, status=128 + signal.SIGABRT)
shown, = re.findall(r"```\n(memstow: block freed twice.*?)```", PAGES["misuse.md"], re.S)
assert shape(done.stderr).strip() == shape(shown).strip(), (done.stderr, shown)
place, = re.findall(r"allocated by twice\+(0x[0-9a-f]+)", done.stderr)
assert run("addr2line", "-e", twice, place).stdout.strip().endswith("twice.c:2"), place

# docs/endings.md: reap lists the processes of a killed program, and ends them when it is asked to.
(HERE / "killed.py").write_text("""import memstow_shutdown as shutdown, os
shutdown.start(["sleep", "60"], "server", stdout=-3, stderr=-3)
os.kill(os.getpid(), 9)
""")
memstow("run", "--quiet", "--", PYTHON, "killed.py", env=env, status=128 + signal.SIGKILL)
said = f"$ memstow reap\n{memstow('reap', status=1).stdout}$ memstow reap --end\n{memstow('reap', '--end').stdout}"
shown, = re.findall(r"```\n(\$ memstow reap\n.*?)```", PAGES["endings.md"], re.S)
for text in (shown, said):
    assert len(text.strip().split("\n")) == 5, text
words = [re.sub(r"(pythonN|sleep)|(N min )?N s old", "", shape(text)) for text in (shown, said)]
assert words[0] == words[1], words
