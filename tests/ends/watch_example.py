"""docs/endings.md shows the output of watch for examples/lingers.py. watch still prints the lines that the document
shows, apart from figures, functions of C, and mapped files of the system."""
import pathlib, re

from support import MEMSTOW, PYTHON, ROOT, run, skip

if run(PYTHON, "-c", "import sys; print(sys.version_info[:2])").stdout.strip() not in ("(3, 11)", "(3, 12)"):
    skip("threads are read of Python 3.11 and 3.12")
shown = re.search(r"```\n\$ (memstow watch .*)\n((?:.*\n)*?)```", (ROOT / "docs/endings.md").read_text())
words = shown[1].split()
words[words.index("python3")] = PYTHON
pathlib.Path("examples").symlink_to(ROOT / "examples")
done = run(MEMSTOW, *words[1:])


def shapes(text):
    """Returns the text's lines, with N in place of figures. Leaves out frames in C, mapped files, and lines that begin
    with "…"."""
    lines = [re.sub(r"python3(\.\d+)?", "python", line) for line in text.splitlines()]
    lines = [line for line in lines if not re.match(r" {9}| {6}/|\s*…", line)]
    lines = [re.sub(r"\d[\d.]*( [KMG]iB| B)?", "N", line) for line in lines]
    # if setsid ends before watch has seen it, watch does not know its pid
    return [line.replace("process N that started it", "the process that started it") for line in lines]


said = iter(shapes(done.stderr))
for line in shapes(shown[2]):
    # `said` is an iterator: `in` reads on from it until the line is found. So lines that the document does not show are
    # passed over, but the order must be that of the document.
    assert line in said, f"{line!r} is not said, or not there:\n{done.stderr}"
