"""Tests every form of a verdict with hostile names of owners. A parser of each form reads the verdict."""
import json, os, pathlib, re, shutil, sys
import xml.etree.ElementTree
import support
from support import memstow

MIB = 1 << 20
EVIL = ["<b>&\"'`|\n]]>", "a,b:c%0A::error::x\r\n::warning::y", "```sh\n| x | y |\x1b[31m\x07",
        "caf\xe9 \udcff \uffff \U0001f600"]
NAMES = [name.encode("utf-8", "surrogateescape") for name in EVIL]
program = pathlib.Path("evil program.py")
program.write_text(f'''
import ctypes, os, sys
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
import memstow
names = {NAMES!r}
library, kept = ctypes.CDLL(None), []
library.memstow_owner_open.restype = ctypes.c_int64
for number, name in enumerate(names):
    owner = library.memstow_owner_open(1, name, name, 0, 0)
    assert owner > 0 and library.memstow_scope_enter(owner) == 0
    kept.append(bytearray({MIB} * (1 + number * int(sys.argv[1]))))
    library.memstow_scope_leave(owner)
os._exit(0)
''')
os.environ["PYTHONMALLOC"] = "malloc" # Python must not take a mebibyte for its objects in the scope of some owner
COMMAND = [sys.executable, program]


def check(leak, *options, status=0):
    return memstow("check", "--baseline=base.txt", "--runs=1", "--warm-up=0", *options, "--", *COMMAND, leak,
                   status=status)


check(0, "--update-baseline")
text = pathlib.Path("base.txt").read_text()
assert r'model "```sh\n| x | y |\x1b[31m\x07" ' in text, text
assert 'model "caf\xe9 \\xff \uffff \U0001f600"' in text, text
# With limits for owners only, three of the four owners are over their limit. The first owner did not grow.
limits = ("--fail-over=owner:512K,site:100M", "--text=o.txt", "--json=o.json", "--junit=o.xml", "--github=o.github",
          "--markdown=o.md")
check(2, *limits, status=1)

document = json.loads(pathlib.Path("o.json").read_text())
over = [f for f in document["findings"] if f["verdict"] == "over"]
assert document["result"] == "fail" and len(over) == 3 and {f["kind"] for f in over} == {"owner"}
assert [f["name_parts"][0] for f in over] == ["caf\xe9 \ufffd \uffff \U0001f600", EVIL[2], EVIL[1]], over
assert all(f["growth_bytes"] >= 2 * MIB and f["over"] == "owner:512K" for f in over)

suites = xml.etree.ElementTree.parse("o.xml").getroot()
suite = suites.find("testsuite")
cases = suite.findall("testcase")
failures = [case for case in cases if case.find("failure") is not None]
assert [int(suite.get(count)) for count in ("tests", "failures", "errors")] == [len(cases), 3, 0]
assert len(failures) == 3
names = [case.get("name") for case in cases]
assert any(EVIL[0] in name for name in names) and any(EVIL[1] in name for name in names), names
assert any("| x | y |\ufffd[31m\ufffd" in name for name in names), names
assert any("caf\xe9 \ufffd \ufffd \U0001f600" in name for name in names), names
if shutil.which("xmllint"):
    support.run("xmllint", "--noout", "o.xml")

# Reads the file as GitHub's runner does: each line is a command, and its properties and its message are unescaped
# separately.
commands = []
for line in pathlib.Path("o.github").read_bytes().decode("utf-8", "replace").split("\n")[:-1]:
    command, properties, message = re.fullmatch(r"::(\w+) ([^\r\n]*?)::([^\r\n]*)", line).groups()
    values = dict(p.split("=", 1) for p in properties.split(","))
    commands.append((command, values, re.sub("%(25|0A|0D)", lambda m: chr(int(m[1], 16)), message)))
assert [c[0] for c in commands] == ["error"] * 3, commands
assert all(values["title"] == "memstow check" for _, values, _ in commands)
assert any(EVIL[1] in message for _, _, message in commands), commands
assert all(values["file"] == "evil program.py" and values["line"] == "11" for _, values, _ in commands), commands

# A warning names the line of the program that allocated the memory. A notice about a useless suppression names the line
# of the file that has this suppression.
pathlib.Path("useless.txt").write_text("# why\nfunction=nothing\nowner=* until=2020-01-01\n")
lines = check(2, "--fail-over=owner:1G", "--pass-under=1MiB", "--suppressions=useless.txt",
              "--github").stdout.splitlines()
warnings = [line for line in lines if line.startswith("::warning file=evil program.py,line=11,title=memstow check::")]
assert len(warnings) == 3 and all(" grew by " in line and "over the limit" not in line for line in warnings), lines
assert lines[3:] == [
    "::notice file=useless.txt,line=2,title=memstow check::function=nothing suppressed nothing",
    "::notice file=useless.txt,line=3,title=memstow check::owner=* until=2020-01-01 has expired"], lines

# Markdown: each row has as many cells as the head, whatever its name contains.
lines = pathlib.Path("o.md").read_bytes().decode("utf-8", "replace").split("\n")
table = [line for line in lines if line.startswith("|")]
cells = {len(re.split(r"(?<!\\)\|", line)) for line in table}
assert len(cells) == 1 and len(table) >= 7, lines
assert sum("**over**" in line for line in table) == 3 and "\x1b" not in "".join(lines), lines
fence = next(line for line in table if "sh" in line and "31m" in line)
assert "```` " in fence, fence
# Outside of the table a bar needs no escape.
pathlib.Path("bar.txt").write_text('function="a|b"\n')
lines = memstow("check", "--baseline=base.txt", "--runs=1", "--warm-up=0", "--suppressions=bar.txt", "--markdown", "--",
                *COMMAND, 0, "x|y").stdout.split("\n")
assert any(line.endswith(" 0 x|y `, 1 of 1 run") for line in lines), lines
assert any("` function=a|b `" in line for line in lines), lines

text = pathlib.Path("o.txt").read_text(errors="replace")
assert "\x1b" not in text and "\x07" not in text and text.count("over the limit of owner:512K") == 3, text

# Each form of the verdict can go to standard output. If a verdict cannot be written there, this is an error.
assert xml.etree.ElementTree.fromstring(check(0, "--junit").stdout).find("testsuite").get("failures") == "0"
assert check(0, "--github").stdout == ""
assert "### memstow check: pass" in check(0, "--markdown").stdout
both = check(2, "--text", "--github", "--fail-over=owner:512K", status=1).stdout
assert ": FAILED\n" in both and both.count("::error ") == 3
with open("/dev/full", "w") as full:
    done = support.subprocess.run([support.MEMSTOW, "check", "--baseline=base.txt", "--runs=1", "--warm-up=0", "--",
                                   *COMMAND, "0"], stdout=full, stderr=support.subprocess.PIPE, text=True)
assert done.returncode == 3 and "the output could not be written" in done.stderr, done.stderr

# A form may not go to a file that the check uses for something else: the check refuses, and runs and writes nothing.
os.symlink("base.txt", "link.txt")
os.link("base.txt", "hard.txt")
os.mkdir("folder")
pathlib.Path("known.txt").write_text("function=nothing\n")
before = pathlib.Path("base.txt").read_bytes()


def refused(*options, message):
    done = memstow("check", *options, "--", "touch", "started", status=2)
    assert f"memstow: {message}" in done.stderr, (options, done.stderr)
    assert done.stderr.count("\n") == 1 and not done.stdout, (options, done.stderr)
    assert not os.path.exists("started") and not os.path.exists("new.txt"), options
    assert pathlib.Path("base.txt").read_bytes() == before, options
    assert pathlib.Path("known.txt").read_text() == "function=nothing\n", options


for option in ("html", "json", "junit", "markdown", "text", "github"):
    for name in ("base.txt", "./base.txt", "link.txt", "hard.txt"):
        refused("--baseline=base.txt", f"--{option}={name}", message=f"--{option}={name}: is the baseline")
    refused("--baseline=base.txt", "--suppressions=known.txt", f"--{option}=known.txt",
            message=f"--{option}=known.txt: is the list of suppressions")
    refused("--comfy=known.txt", f"--{option}=known.txt", message=f"--{option}=known.txt: is the workflow")
memstow("run", "--quiet", "-o", "a.mst", "--", "true")
ledger = pathlib.Path("a.mst").read_bytes()
for option in ("html", "json", "junit", "markdown", "text", "github"):
    refused("--baseline=base.txt", f"--{option}=a.mst", message=f"--{option}=a.mst: is a memstow file: not replaced")
assert pathlib.Path("a.mst").read_bytes() == ledger
os.rename("a.mst", "-") # this name means standard output
assert json.loads(check(0, "--json").stdout)["result"] == "pass" and pathlib.Path("-").read_bytes() == ledger
os.remove("-")
refused("--baseline=known.txt", "--update-baseline", "--suppressions=known.txt",
        message="--baseline=known.txt: is the list of suppressions")
for name in ("new.txt", "./new.txt", "folder/../new.txt"):
    refused("--baseline=base.txt", "--json=new.txt", f"--junit={name}", message=f"--junit={name}: is also --json's")
    refused("--baseline=base.txt", "--markdown=new.txt", f"--html={name}",
            message=f"--html={name}: is also --markdown's")
check(0, "--json=new.txt", "--junit=folder/new.txt", "--markdown=/dev/null", "--github=/dev/null")
assert json.loads(pathlib.Path("new.txt").read_text())["result"] == "pass"
assert pathlib.Path("folder/new.txt").read_text().startswith("<?xml")

# A signal ends a check that waits until somebody reads its output. The check leaves nothing behind. It does not begin
# the next output, which nobody reads either.
os.mkfifo("nobody reads")
os.mkfifo("nor this")
os.mkdir("tmp")
waits = support.start(support.MEMSTOW, "check", "--baseline=base.txt", "--runs=1", "--warm-up=0", "--json=nobody reads",
                      "--junit=nor this", "--", *COMMAND, "0", env={**os.environ, "TMPDIR": str(support.HERE / "tmp")},
                      stderr=support.subprocess.PIPE, text=True)
support.wait_for(lambda: os.listdir("tmp") and any(pathlib.Path("tmp").glob("*/run-1/*")), 60, "the run's ledger")
task = pathlib.Path(f"/proc/{waits.pid}/task/{waits.pid}")
support.wait_for(lambda: not (task / "children").read_text() and "\nState:\tS" in (task / "status").read_text(), 60,
                 "the end of the run")
waits.terminate()
assert "ended by signal 15: there is no verdict" in waits.communicate(timeout=60)[1] and waits.returncode == 143
assert not os.listdir("tmp"), os.listdir("tmp")
