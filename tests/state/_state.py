"""Shared by the tests of the store: a program and Python code under the library, and a folder on a disk."""
import os, pathlib, subprocess, sys, textwrap

import support

PYTHON_MODULES = support.ROOT / "tools/python"


def real_disk():
    """A folder that is not in memory."""
    for folder in (support.HERE / "files", pathlib.Path(f"/var/tmp/memstow-test-{os.getpid()}")):
        if support.run("stat", "-f", "-c", "%T", folder.parent).stdout.strip() not in ("tmpfs", "ramfs"):
            folder.mkdir()
            return folder
    support.skip("the folder of temporary files and /var/tmp are both in memory")


def program():
    return support.compile(support.ROOT / "tests/state/_store.c",
                           flags=("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread"))


def environment(folder):
    return {**os.environ, "MEMSTOW_STOW_DIR": str(folder), "FOLDER": str(folder), "PYTHONPATH": str(PYTHON_MODULES)}


def start(*argv, folder, **options):
    """Starts a command under the library; its output can be read."""
    command = [support.MEMSTOW, "run", "--quiet", "-o", support.HERE / "out.%p.mst", "--", *argv]
    return subprocess.Popen([str(a) for a in command], env=environment(folder), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


def python(code, folder, status=0, timeout=100):
    """Runs Python code that can use memstow, memstow_state and the variable `folder`. Returns the completed process."""
    head = f"import errno, os, pathlib, sys\nimport memstow, memstow_state\nfolder = pathlib.Path({str(folder)!r})\n"
    return support.memstow("run", "--quiet", "-o", support.HERE / "python.mst", "--", sys.executable, "-c",
                           head + textwrap.dedent(code), env=environment(folder), status=status, timeout=timeout)


def is_refused(place, folder):
    """Asserts that no loop can have files in `place`, and that nothing is left there."""
    python(f"""
        for options in (dict(use_ram=False), dict(persist_prefix="p")):
            try:
                store = memstow_state.open(str(list(options)), directory={str(place)!r}, **options)
                store.begin(); store.put("x", bytes(100_000)); store.commit()
            except memstow_state.StateError as error:
                assert error.errno == errno.ENOTSUP, error
            else:
                raise AssertionError(f"{str(place)!r} is taken with {{options}}")
            assert not os.listdir({str(place)!r}), os.listdir({str(place)!r})
        """, folder)


def listing(folder):
    """All files in a folder, with their contents."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}
