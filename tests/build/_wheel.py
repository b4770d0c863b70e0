"""Checks what an installed wheel must do. Some checks need the wheel alone, in a clean environment. The checks of the
plugin of pytest, and of a ComfyUI that has the node pack, need other packages beside it."""
import json, os, pathlib, re, shutil, subprocess, sys

import support

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))
from _comfy import AGAIN, Comfy, mixed # noqa: E402

TESTS = """import pytest
kept = []
@pytest.mark.limit_leaks('1 MB')
def test_leak(): kept.append(bytearray(9 << 20))
def test_fine(): pass
"""


def pythons():
    """Returns (name, path) of installed Pythons from 3.9 on that can make an environment: one Python of each version,
    the oldest first."""
    found = {}
    places = [pathlib.Path(p) for p in os.environ["PATH"].split(":")]
    places += sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin"))
    for minor, path in ((minor, place / f"python3.{minor}") for place in places for minor in range(9, 15)):
        asks = "import ensurepip, sys, venv; print(sys.version_info[1])"
        if path.exists() and str(minor) == subprocess.run([path, "-c", asks], capture_output=True,
                                                          text=True).stdout.strip():
            found.setdefault(minor, path)
    return [(path.name, path) for _minor, path in sorted(found.items())]


def pip(venv, *words):
    """Runs the pip of the tests' Python for the environment. The environment itself has no pip, because to install pip
    there takes longer than the whole test."""
    support.run(support.PYTHON, "-m", "pip", "-q", "--disable-pip-version-check", "--python", venv / "bin/python",
                *words)


def installed_in(wheel, name, python):
    venv = support.HERE / f"venv-{name}"
    support.run(python, "-m", "venv", "--without-pip", venv)
    pip(venv, "install", "--no-index", wheel)
    return venv


def run(venv, *command, **options):
    """Runs a command with the environment's folder first in PATH, and without access to this tree."""
    return support.run(*command, env=environment_of(venv), **options)


def environment_of(venv):
    return {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(support.HERE), "LC_ALL": "C.UTF-8"}


def check_python(wheel, name, python):
    """Installs the wheel in a clean environment of this Python, and uses it there."""
    venv = installed_in(wheel, name, python)
    command = venv / "bin/memstow"
    assert command.read_bytes()[:4] == b"\x7fELF"
    version = run(venv, command, "--version").stdout
    assert version.startswith("memstow ") and "mimalloc's" in version, version
    assert run(venv, "python", "-m", "memstow", "--version").stdout == version
    linked = run(venv, "ldd", command).stdout
    assert "not found" not in linked and f"{venv}/bin/../lib/memstow/libdw.so.1" in linked, linked
    program = ("import memstow, memstow_state, memstow_loops, memstow_shutdown\n"
               "with memstow.scope(memstow.owner('THIS', origin='x')): kept = bytearray(3 << 20)\n"
               "memstow.snapshot('now.mst')")
    run(venv, command, "run", "--quiet", "-o", "out.mst", "--", "python", "-c", program)
    assert "THIS" in run(venv, command, "report", "--by=model", "now.mst").stdout
    for starts in ([command], ["python", "-m", "memstow"]): # exit codes and signals are those of the program
        run(venv, *starts, "run", "--quiet", "-o", "out.mst", "--", "sh", "-c", "exit 7", status=7)
        run(venv, *starts, "report", "no such file", status=3)
        killed = subprocess.Popen([*starts, "run", "--quiet", "-o", "out.mst", "--", "sh", "-c", "kill -KILL $PPID"],
                                  env=environment_of(venv))
        support.expect_exit(killed, -9, seconds=60) # no Python process lies in between
    pip(venv, "install", "pytest")
    check_plugin(lambda *command, **options: run(venv, *command, **options), support.HERE)
    shutil.rmtree(venv)


def check_plugin(run, folder):
    """Runs pytest in this folder. run(command…, status=…) runs a command where the wheel is installed."""
    (folder / "test_it.py").write_text(TESTS)
    for plugin in ([], ["-p", "pytest_memstow"]):
        said = run("memstow", "run", "--quiet", "-o", "out.mst", "--", "python", "-m", "pytest", *plugin, "--memstow",
                   "test_it.py", status=1).stdout
        assert "1 failed, 1 passed" in said and "left" in said, said


def settle_start(name):
    """Writes the setting that ComfyUI has after a user has pressed the button for starting under memstow."""
    settings = support.HERE / name / "user/default/comfy.settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"memstow.start": true}')


def check_comfyui(prefix, command, name="comfyui", itself=False):
    """Starts ComfyUI under this command, and runs a workflow. `prefix` is where the wheel is installed, as the started
    ComfyUI sees it; `name` is for ComfyUI's folder, log and ledger. itself: ComfyUI is started without memstow, and
    starts itself again under the command that it finds."""
    for variable in [variable for variable in os.environ if variable.startswith("MEMSTOW")]:
        del os.environ[variable] # the build of this tree must not be found
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    support.MEMSTOW, support.PYTHON = str(command), f"{prefix}/bin/python"
    ledger = support.HERE / f"{name}.mst"
    if itself:
        settle_start(name)
    with Comfy(under=None if itself else "memstow", pack=False, name=name, env={"MEMSTOW_OPTIONS": f"-o '{ledger}'"},
               packs={"memstow": f"{prefix}/share/memstow/comfyui"}) as comfy:
        assert comfy.log().count(AGAIN) == int(itself), comfy.log()[-3000:]
        assert "memstow: models are registered" in comfy.log(), comfy.log()[-3000:]
        comfy.run(mixed(1, unet_policy="keep"))
        owners = comfy.owners()
        assert {"MODEL", "CLIP", "VAE"} <= set(owners) and owners["MODEL"]["live_bytes"] >= comfy.weights, owners
        mapped = pathlib.Path(f"/proc/{comfy.pid()}/maps").read_text()
        assert f"{prefix}/lib/libmemstow.so\n" in mapped and str(support.BUILD) not in mapped
        assert f"{prefix}/share/memstow/comfyui/" not in comfy.log(), comfy.log()[-6000:] # as a traceback has it
    owners = json.loads(support.run(command, "report", "--json", ledger).stdout)["owners"]
    live = {owner["name"].split()[0]: owner["live_bytes"] for owner in owners if owner["kind"] == "model"}
    named = support.run(command, "report", "--by=model", ledger).stdout
    for kind in ("MODEL", "CLIP", "VAE"):
        assert re.search(rf"^  {kind} \w+ \(tiny\.safetensors\) ", named, re.M) and kind in live, (kind, live, named)
    assert live["MODEL"] >= comfy.weights, live
