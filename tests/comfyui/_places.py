"""Starts ComfyUI directly by its main.py. As on users' machines, a folder may have its own Python and its own
ComfyUI."""
import os, pathlib, shutil, sys, sysconfig

import support
from _comfy import AGAIN, HERE


def make_python(folder):
    """Makes a Python that brings its own folder, as embedded Pythons and conda's do. The folder has a copy of the
    interpreter, which finds its library beside itself. It also has the packages of the tests' Python."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), folder / "bin" / name)
    os.symlink(name, folder / "bin/python3")
    library = folder / "lib" / name
    library.mkdir(parents=True)
    packages = sysconfig.get_path("purelib")
    for entry in pathlib.Path(sysconfig.get_path("stdlib")).iterdir():
        if entry.name not in ("site-packages", "dist-packages"):
            os.symlink(entry, library / entry.name)
    for link in ("site-packages", "dist-packages"): # Debian's Python looks into the second
        os.symlink(packages, library / link)
    shared = sysconfig.get_config_var("INSTSONAME")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared:
        os.symlink(pathlib.Path(sysconfig.get_config_var("LIBDIR"), shared), folder / "lib" / shared)
    return folder / "bin/python3"


def copy_comfyui(folder):
    """A ComfyUI of its own, with a copy of the pack."""
    leave = shutil.ignore_patterns("models", "input", "output", "tests*", "*.mst", "user", "temp")
    shutil.copytree(support.COMFYUI, folder,
                    ignore=lambda at, names: leave(at, names) if at == str(support.COMFYUI) else ())
    (folder / "models").mkdir()
    shutil.copytree(support.ROOT / "tools/comfyui", folder / "custom_nodes/memstow")


class Direct:
    """A ComfyUI that was started by these words, with environment `env` in folder `cwd`. The constructor waits until
    this ComfyUI answers."""

    def __init__(self, name, words, cwd, env, pid_of=lambda pid: pid):
        self.port, self.log_file = support.free_port(), support.HERE / f"{name}.log"
        web = support.HERE / "web"
        web.mkdir(exist_ok=True)
        (web / "index.html").write_text("<html></html>")
        self.arguments = ["--cpu", "--listen", "127.0.0.1", "--port", str(self.port), "--front-end-root", str(web),
                          "--disable-api-nodes", "--database-url", "sqlite:///:memory:"]
        plain = {name: value for name, value in os.environ.items()
                 if name not in ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "MEMSTOW")}
        plain["PYTHONPATH"] = f"{support.ROOT}/tests:{HERE}/_direct"
        given = {**plain, **env}
        with open(self.log_file, "w") as log:
            self.started = support.start(*words, *self.arguments, cwd=cwd, stdout=log, stderr=log,
                                         env={name: value for name, value in given.items() if value is not None})
        support.wait_for(lambda: self.started.poll() is not None or self.get("/system_stats"), 200, "ComfyUI answering")
        assert self.started.poll() is None, self.log()[-3000:]
        self.pid = pid_of(self.started.pid)

    def get(self, path):
        return support.http(self.port, path)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def words(self):
        return pathlib.Path(f"/proc/{self.pid}/cmdline").read_bytes().decode().split("\0")[:-1]

    def is_tracked(self):
        """Whether the library is in the process. Fails if the log or the pack's routes say otherwise."""
        found = str(support.LIBRARY) in pathlib.Path(f"/proc/{self.pid}/maps").read_text()
        assert self.log().count(AGAIN) == int(found) and (self.get("/memstow/owners") is not None) == found, self.log()
        return found

    def stop(self):
        self.started.kill()
        self.started.wait(30)
