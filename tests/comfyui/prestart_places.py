#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
# long
"""The pack starts ComfyUI again, under memstow, also in a folder that brings its own Python. The test has two such
folders. One is a portable folder whose path has blanks and letters beyond ASCII; ComfyUI is started from another
folder, by relative paths and with `-s`. The other one is an environment like conda's, with CONDA_PREFIX and with
libraries of its own in LD_LIBRARY_PATH. (Both are made of the tests' own Python. conda's packages are in no registry
that the tests use.) If memstow lies in a path with blanks, if a library of the environment breaks it, or if the ledger
cannot be where the user wants it, ComfyUI runs as always, and the log says why."""
import os, pathlib, shutil

import support
from _places import Direct, copy_comfyui, make_python

PLAIN = "ComfyUI runs as always"
portable = support.HERE / "Meine Bilder (été 2026)"
python = make_python(portable / "python_embeded")
copy_comfyui(portable / "ComfyUI")
elsewhere = support.HERE / "elsewhere"
elsewhere.mkdir()
relative = os.path.relpath(portable, elsewhere)

# --- a portable folder; the memstow command is beside its Python, where pip would install it
os.symlink(support.MEMSTOW, python.with_name("memstow"))
words = [f"{relative}/python_embeded/bin/python3", "-s", f"{relative}/ComfyUI/main.py"]
comfy = Direct("portable", words, elsewhere, {"MEMSTOW": "1", "MEMSTOW_COMMAND": None})
assert comfy.is_tracked(), comfy.log()
found = comfy.words()
assert os.path.samefile(elsewhere / found[0], python) and found[1:] == [*words[1:], *comfy.arguments], found
assert os.readlink(f"/proc/{comfy.pid}/cwd") == str(elsewhere) and comfy.pid == comfy.started.pid
assert list(elsewhere.glob(f"memstow.python3.{comfy.pid}.mst")), list(elsewhere.iterdir())
comfy.stop()

# --- an environment like conda's
conda = support.HERE / "envs/comfy"
conda.parent.mkdir()
os.rename(portable / "python_embeded", conda)
(conda / "conda-meta").mkdir()
shutil.copy("/lib/x86_64-linux-gnu/libz.so.1", conda / "lib")
env = {"CONDA_PREFIX": str(conda), "CONDA_DEFAULT_ENV": "comfy", "CONDA_SHLVL": "1",
       "LD_LIBRARY_PATH": f"{conda}/lib", "PATH": f"{conda}/bin:{os.environ['PATH']}", "MEMSTOW_COMMAND": None}
comfy = Direct("conda", ["python3", "main.py"], portable / "ComfyUI", {**env, "MEMSTOW": "1"})
assert comfy.is_tracked(), comfy.log()
kept = support.environment_of(comfy.pid)
assert all(kept.get(name) == value for name, value in env.items() if value is not None), kept
assert f"{conda}/lib/libz.so.1" in pathlib.Path(f"/proc/{comfy.pid}/maps").read_text()
comfy.stop()

# --- memstow cannot start: the pack's script says why in one line, and lets ComfyUI run without memstow. The test runs
# the script without ComfyUI.
def said(why, **env):
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = support.run(conda / "bin/python3", support.ROOT / "tools/comfyui/prestartup_script.py", cwd=elsewhere,
                       env={**plain, "MEMSTOW": "1", "MEMSTOW_COMMAND": support.MEMSTOW, **env})
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and why in lines[0] and lines[0].endswith(PLAIN), done.stderr


blank = portable / "bin"
blank.mkdir()
for file in (support.MEMSTOW, support.LIBRARY):
    shutil.copy(file, blank)
said("a path with a colon or a blank cannot be preloaded", MEMSTOW_COMMAND=f"{blank}/memstow")
(conda / "lib/libdw.so.1").write_text("not a library")
said("libdw.so.1", LD_LIBRARY_PATH=f"{conda}/lib")
said("no such directory", MEMSTOW_OPTIONS="-o nowhere/out.mst")

# --- if a file of another program has the ledger's path, the ledger goes to the folder of temporary files
temporary = support.HERE / "tmp"
temporary.mkdir()
support.run("sh", "-c", 'echo mine > memstow.python3.$$.mst && exec "$@"', "sh", conda / "bin/python3",
            support.ROOT / "tools/comfyui/prestartup_script.py", cwd=elsewhere,
            env={**os.environ, "MEMSTOW": "1", "MEMSTOW_COMMAND": support.MEMSTOW, "TMPDIR": str(temporary)})
assert list(temporary.glob("memstow.python3.*.mst")), list(temporary.iterdir())
