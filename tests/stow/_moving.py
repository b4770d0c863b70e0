"""Shared by the tests of moving memory: programs under the library with the stow engine's functions exported, and
directories to move to."""
import contextlib, os, pathlib, signal, subprocess

import support

SOURCES = support.ROOT / "tests/stow"
LIBRARY = support.BUILD / "libmemstow_moves.so"
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-fno-builtin-malloc", "-fno-builtin-calloc",
         "-fno-builtin-realloc", "-fno-builtin-free", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}")


def program(name):
    return support.compile(SOURCES / f"{name}.c", flags=FLAGS)


def environment(directory, **more):
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), "MEMSTOW_OUT": str(support.HERE / "%p.mst"),
            "MEMSTOW_STOW_DIR": str(directory), **more}


def real_disk():
    """A folder that is not in memory: the test's own, or one in /var/tmp."""
    for folder in (support.HERE / "stowed", pathlib.Path(f"/var/tmp/memstow-test-{os.getpid()}")):
        kind = support.run("stat", "-f", "-c", "%T", folder.parent).stdout.strip()
        if kind not in ("tmpfs", "ramfs"):
            folder.mkdir(exist_ok=True)
            return folder
    support.skip("the folder of temporary files and /var/tmp are both in memory")


def execute(argv, directory, timeout=110, **options):
    """Runs a program under the library. After the timeout SIGKILL ends it, because a mover holds other signals back."""
    process = subprocess.Popen([str(a) for a in argv], env=environment(directory, **options.pop("env", {})),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    try:
        output = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        raise AssertionError(f"{argv}: no end after {timeout} s\n{process.communicate()[0]}")
    return process.returncode, output


def run_cases(*names, only=None, **options):
    """Runs every case of programs that list their cases, each in a process of its own. Prints the cases that are
    skipped."""
    folder, skipped = real_disk(), []
    folder.chmod(0o777)
    for name in names:
        tested = program(name)
        cases = support.run(tested, env=environment(folder)).stdout.split()
        for case in cases if only is None else [c for c in cases if only(c)]:
            status, output = execute([tested, case], folder, **options)
            if status == 77:
                skipped.append(f"{case}: {output.strip().splitlines()[-1]}")
            else:
                assert status == 0, f"{name} {case}: exit status {status}\n{output}"
            assert not list(folder.iterdir()), f"{name} {case} left {list(folder.iterdir())}"
    folder.rmdir()
    if skipped:
        support.skip("; ".join(skipped))


@contextlib.contextmanager
def mounted(kind, size_mib, name="disk"):
    """A small file system. Skips the test if this user cannot mount one."""
    if os.geteuid() != 0:
        support.skip("needs root, to mount a small file system")
    place, image = support.HERE / name, support.HERE / f"{name}.image"
    place.mkdir()
    options = ["-t", kind, "-o", f"size={size_mib}m", "none"]
    if kind not in ("tmpfs", "ramfs"):
        with open(image, "wb") as file:
            file.truncate(size_mib << 20)
        if support.run(f"mkfs.{kind}", "-q", image, status=None).returncode:
            support.skip(f"mkfs.{kind} is missing")
        options = ["-o", "loop", image]
    if support.run("mount", *options, place, status=None).returncode:
        support.skip("cannot mount a file system here")
    try:
        yield place
    finally:
        support.run("umount", "-l", place)
