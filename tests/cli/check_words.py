# needs: cc
"""The words of a verdict of memstow check. If growth over a limit is below the floor, the verdict says so. Call sites
do not contain the program's name. Memory of memstow's own Python code is not listed. Other forms of the verdict,
such as JSON, replace the table only if they go to standard output, not if they go to files. No line has more than 100
columns."""
import json, os, pathlib, re, shutil, sys
import xml.etree.ElementTree
import support
from support import memstow

SOURCE = """
#include <stdlib.h>
#include <string.h>
static void *kept[10000];
#define LONG(name) __attribute__((noinline)) void *name##_and_a_name_that_is_longer_than_any_column(size_t n)
LONG(one) { return memset(malloc(n), 1, n); }
LONG(two) { void *block = one_and_a_name_that_is_longer_than_any_column(n); return block ? memset(block, 2, n) : 0; }
LONG(three) { void *block = two_and_a_name_that_is_longer_than_any_column(n); return block ? memset(block, 3, n) : 0; }
int main(int argc, char **argv) {
    for (int i = 0; argc > 1 && i < 110 + atoi(argv[1]); i++)
        kept[i] = three_and_a_name_that_is_longer_than_any_column(1024);
    return 0;
}
"""
program = support.compile(SOURCE, "prog-5f3c")
shutil.copy(program, "prog-77ab")


def check(leak, *options, name="prog-5f3c", status=0):
    return memstow("check", "--baseline=base.txt", "--runs=1", "--warm-up=0", *options, "--", f"./{name}", leak,
                   status=status)


def fits(text):
    assert text and max(map(len, text.split("\n"))) <= 100, max(text.split("\n"), key=len)


done = check(0, "--update-baseline")
assert done.stderr == "memstow: base.txt written: 110.0 KiB, 1 call site, of 1 run\n", done.stderr
text = pathlib.Path("base.txt").read_text()
assert "prog" not in text.replace("@(program)", "") and text.count("@(program)") == 4, text

# The same program with another name has the same call sites. A suppression may name the program as (program).
check(0, "--fail-over=site:0", name="prog-77ab")
pathlib.Path("known.txt").write_text("function=three_* module=(program)\n")
assert "suppressed by line 1" in check(300, "--fail-over=site:0", "--suppressions=known.txt").stdout

# The floor: growth from 110 KiB to 567 KiB is over 10 %, but fine, because it is below 1 MiB.
done = check(457)
assert done.stdout.startswith("./prog-5f3c 457: fine\n  1 of 1 run; compared with base.txt, of 1 run\n"), done.stdout
assert re.search(r"110\.0 KiB +567\.0 KiB +\+457\.0 KiB +\+457  all memory\n +over 10%, but below the floor of 1 MiB\n",
                 done.stdout), done.stdout
assert "floor" not in check(5).stdout, "over no limit"
check(457, "--json=o.json", "--junit=o.xml", "--markdown=o.md")
document = json.loads(pathlib.Path("o.json").read_text())
assert document["pass_under_bytes"] == 1 << 20
assert [(f["verdict"], f["over"], f["below_floor"]) for f in document["findings"]] == [("fine", None, "10%")], document
[case] = xml.etree.ElementTree.parse("o.xml").getroot().iter("testcase")
assert case.find("failure") is None
assert case.find("system-out").text.endswith(": over 10%, but below the floor of 1 MiB")
assert "| over 10%, but below the floor of 1 MiB |" in pathlib.Path("o.md").read_text()
assert "over 10%, but below the floor of 2.5 MiB\n" in check(457, "--pass-under=2560K", "--fail-over=10%").stdout
assert "above the floor of 1 MiB, within limits\n" in check(1100, "--pass-under=1M", "--fail-over=5M").stdout
done = check(457, "--fail-over=10%", status=1)
assert "floor" not in done.stdout and "over the limit of 10%\n" in done.stdout, done.stdout

# The table is printed if all other forms (such as --json=FILE) go to files. If one of them goes to standard output, the
# table is not printed.
table = re.compile(r"^ +before +now +grew by +blocks\n", re.M)
for form in ("junit", "json", "github", "markdown"):
    assert table.search(check(457, f"--{form}=o.{form}").stdout), form
    assert not table.search(check(457, f"--{form}").stdout), form
assert not check(457, "--text=o.txt", "--junit=o.xml").stdout and table.search(pathlib.Path("o.txt").read_text())
xml.etree.ElementTree.fromstring(check(457, "--junit").stdout)

# A file is part of its option (--junit=FILE). The next word is the command, never a file.
done = memstow("check", "--baseline=base.txt", "--junit", "out.xml", "./prog-5f3c", 0, status=2)
assert done.stderr == (
    "memstow: out.xml is not a command: to write to that file, give --junit=out.xml (see 'memstow check --help')\n"
), done.stderr
assert memstow("check", "--baseline=base.txt", "--runs=1", "--warm-up=0", "--junit", "./prog-5f3c",
               0).stdout.startswith("<?xml ")
done = memstow("check", "--comfy=nofile.json", "--", "true", status=2)
assert done.stderr == "memstow: nofile.json: No such file or directory\n", done.stderr

# No line of the table or of the message is too long, and no frame is missing.
done = check(457, "--fail-over=site:10K", "--suppressions=known.txt")
fits(done.stdout)
done = check(457, "--fail-over=10K,site:10K", status=1)
fits(done.stdout)
fits(done.stderr)
assert [line[56:] for line in done.stdout.split("\n")[-6:-1]] == [
    "one_and_a_name…er_than_any_column@(program)", "< two_and_a_na…er_than_any_column@(program)",
    "< three_and_a_…er_than_any_column@(program)", "< main@(program)", "over the limit of site:10K"], done.stdout
assert done.stderr.startswith(
    "memstow: all memory grew by 457.0 KiB and 457 blocks: over the limit of 10K;\n         most of it"), done.stderr
known = pathlib.Path("a-folder-with-quite-a-long-name-for-a-folder/known.txt")
known.parent.mkdir()
known.write_text(f"function={'x' * 200} module={'y' * 200} until=2999-01-01\n")
done = check(0, f"--suppressions={known}")
fits(done.stdout)
assert done.stdout.endswith(" suppressed nothing\n"), done.stdout

# Memory of memstow's own Python code is not listed, but it counts in the total.
PYTHON = support.ROOT / "tools/python"
own = [f"lib/{file.relative_to(PYTHON)}" for file in (*PYTHON.glob("*.py"), *PYTHON.glob("memstow_loops/*.py"))] + [
    "custom_nodes/memstow/runs.py", "custom_nodes/ComfyUI-Memstow/hooks.py", "custom_nodes/memstow/__init__.py"]
others = ["custom_nodes/other/runs.py", "lib/loops/driver.py", "lib/memstow_demo.py", "memstow/train.py"]
assert len(own) > 8
SIZES = 100_000, 200_000
main = "import os, runpy, sys\nheld = []\n"
for number, file in enumerate([*own, *others]):
    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Each file allocates two blocks: one by itself, and one in Python's own library (copy). memstow's node pack also
    # allocates in Python's library (ctypes and json).
    path.write_text(f"import copy\nheld = copy.copy(bytearray({SIZES[0] + 1000 * number}))\nalone = "
                    f"bytearray({SIZES[1] + 1000 * number})\n")
    main += f"held.append(runpy.run_path({file!r}))\n"
pathlib.Path("main.py").write_text(main + "os._exit(0)\n")
os.environ["PYTHONMALLOC"] = "malloc"
memstow("check", "--baseline=own.txt", "--update-baseline", "--runs=1", "--warm-up=0", "--", sys.executable, "main.py")
text = pathlib.Path("own.txt").read_text()
total = int(re.search(r"^total (\d+)", text, re.M)[1])
listed = {int(size) for size in re.findall(r"^site (\d+) ", text, re.M)}
for number, file in enumerate([*own, *others]):
    for size in (first + 1000 * number for first in SIZES):
        assert any(size <= bytes < size + 100 for bytes in listed) == (file in others), (file, size)
assert total > 300_000 * (len(own) + len(others)), total
