# needs: cc pip:pytest==8.3.4
# timeout: 300
"""The commands and recipes of docs/gate.md are run as they are written there, on examples/gate and an installed
memstow. They pass while the example does not leak, and fail when it leaks. Their output is the output that the page
shows."""
import os, pathlib, re, shutil
import xml.etree.ElementTree
import support

page = (support.ROOT / "docs/gate.md").read_text()
blocks = [(language, body) for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)]
shown = [body for language, body in blocks if not language]
plain = [line for language, body in blocks if language == "sh" for line in body.replace("\\\n", "").splitlines()]
github, gitlab = [re.sub(r">-\n( +)(.*(?:\n\1.*)*)", lambda folded: re.sub(r"\n +", " ", folded[2]), body)
                  for language, body in blocks if language == "yaml"]
recipes = {"github": re.findall(r"^      - run: (.*)$", github, re.M),
           "gitlab": re.findall(r"^    - (?!\[)(.*)$", gitlab, re.M)}
assert len(plain) == 4 and all(len(commands) == 3 for commands in recipes.values()), (plain, recipes)
assert recipes["github"][2] == recipes["gitlab"][2]
assert "junit: [memory.xml, tests.xml]" in gitlab

prefix = support.HERE / "opt/memstow"
support.run("cmake", "--install", support.BUILD, "--prefix", prefix)
venv = pathlib.Path(support.PYTHON).parent
env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
env.update(PATH=f"{prefix}/bin:{venv}:{os.environ['PATH']}", PYTHONPATH=str(prefix / "share/memstow/python"),
           GITHUB_STEP_SUMMARY="summary.md")


def checkout(name, leak=False):
    folder = support.HERE / name
    shutil.copytree(support.ROOT / "examples/gate", folder / "examples/gate",
                    ignore=shutil.ignore_patterns("__pycache__"))
    if leak:
        source = folder / "examples/gate/inventory.c"
        source.write_text("#define LEAK\n" + source.read_text())
    return folder


def shell(command, folder, status=0, **more):
    return support.run("sh", "-ec", command.replace("/opt/memstow", str(prefix)), cwd=folder, env={**env, **more},
                       status=status)


# Runs the commands of the text in order. They write the baseline that is in the repository and on the page.
folder = checkout("text")
for command in plain:
    shell(command, folder)
committed = (support.ROOT / "examples/gate/baseline.txt").read_text()
assert (folder / "examples/gate/baseline.txt").read_text() == committed
assert committed in shown, "docs/gate.md shows another baseline"
folder = checkout("text_leaking", leak=True)
shell(plain[0], folder)
done = shell(plain[2], folder, status=1)
assert done.stdout in shown, done.stdout

for name, (build, check, tests) in recipes.items():
    folder = checkout(name)
    shell(build, folder)
    shell(check, folder)
    suite = xml.etree.ElementTree.parse(folder / "memory.xml").getroot().find("testsuite")
    assert suite.get("failures") == "0" and suite.get("skipped") == "1"
    if name == "github": # the other recipe has the same command
        assert "1 passed" in shell(tests, folder).stdout
    folder = checkout(f"{name}_leaking", leak=True)
    shell(build, folder)
    done = shell(check, folder, status=1)
    assert ": FAILED\n" in done.stdout
    assert xml.etree.ElementTree.parse(folder / "memory.xml").getroot().find("testsuite").get("failures") == "2"
    if name == "github":
        assert re.search(r"^::error file=examples/gate/inventory\.c,line=\d+,title=memstow check::all memory grew by ",
                         done.stdout, re.M), done.stdout
        assert "### memstow check: fail" in (folder / "summary.md").read_text()
        assert re.search(r"call stack, and left more at:\n  8\.0 MiB\n(.*\n)* +shrink  .*test_gallery\.py:\d+\n",
                         shell(tests, folder, status=1, GALLERY_KEEPS="1").stdout)
        assert xml.etree.ElementTree.parse(folder / "tests.xml").getroot().find("testsuite").get("failures") == "1"
