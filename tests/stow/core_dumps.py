# needs: deb:gdb
# timeout: 240
"""The kernel and gcore dump the core of a program with stowed memory. The dump ends, and its content is right, even if
the disk cannot be read or a move is on its way."""
import os, pathlib, random, resource, signal, struct, subprocess

import _moving, support

ANONYMOUS, PRIVATE_FILES = 0x33, 0x37 # coredump_filter: the usual one, and with private mappings of files
program, folder = _moving.program("dumped"), _moving.real_disk()


class Core:
    """A core file. content() returns the bytes of a range, or None if the core does not have the range."""

    def __init__(self, path):
        self.file = open(path, "rb")
        head = self.file.read(64)
        assert head[:5] == b"\x7fELF\x02" and head[16] == 4, f"{path} is no core of 64 bits"
        offset, size, count = (struct.unpack_from(f, head, at)[0] for f, at in (("<Q", 32), ("<H", 54), ("<H", 56)))
        self.file.seek(offset)
        table = self.file.read(size * count)
        parts = [struct.unpack_from("<IIQQQQQQ", table, i * size) for i in range(count)]
        self.parts = [(p[3], p[5], p[2]) for p in parts if p[0] == 1 and p[5]] # address, bytes in the file, offset

    def content(self, start, length):
        found = b""
        for address, size, offset in sorted(self.parts):
            low, high = max(start, address), min(start + length, address + size)
            if low < high:
                assert low == start + len(found), "a hole in it"
                self.file.seek(offset + low - address)
                found += self.file.read(high - low)
        assert len(found) in (0, length), f"{len(found)} bytes of {length}"
        return found or None


class Dumped:
    def __init__(self, *arguments, most=resource.RLIM_INFINITY):
        limits = (most, resource.getrlimit(resource.RLIMIT_CORE)[1])
        self.process = support.start(program, *arguments, env=_moving.environment(folder), stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limits))
        self.areas = {}
        while (line := self.process.stdout.readline().split()) != ["ready"]:
            assert len(line) == 3, f"exit status {self.process.wait()}: {line}"
            self.areas[line[0]] = int(line[1]), int(line[2])

    def keep(self, which):
        pathlib.Path(f"/proc/{self.process.pid}/coredump_filter").write_text(hex(which))

    def tell(self, word):
        self.process.stdin.write(f"{word}\n"), self.process.stdin.flush()
        return word == "abort" or self.process.stdout.readline().strip()

    def end(self):
        """The core file; None: there is none."""
        self.tell("abort")
        support.expect_exit(self.process, -signal.SIGABRT, seconds=60)
        assert not os.listdir(folder), os.listdir(folder)
        cores = list(support.HERE.glob("core*"))
        assert len(cores) < 2, cores
        core = Core(cores[0]) if cores else None
        for path in cores:
            path.unlink()
        return core

    def by_gcore(self):
        support.run("gcore", "-o", "gcore", self.process.pid, stdin=subprocess.DEVNULL, timeout=100)
        return Core(f"gcore.{self.process.pid}")

    def in_it(self, core):
        """Returns {name of an area: whether the core has the area}. Asserts that the areas in the core have the right
        content."""
        there = {name: core.content(*area) for name, area in self.areas.items()}
        for name, content in there.items():
            assert content in (None, pathlib.Path(f"{name}.expected").read_bytes()), f"{name} is another"
        return {name: content is not None for name, content in there.items()}


def by_kernel():
    """Tests the core dumps of the kernel. Returns None, or why they cannot be tested."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
    if not pattern.startswith("core") or "/" in pattern:
        return f"cores of the kernel's own: they go to {pattern.strip()}"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        return "cores of the kernel's own: RLIMIT_CORE"
    dumped = Dumped()
    dumped.keep(ANONYMOUS)
    # An area that was written to after it was stowed is in the core as a whole.
    assert dumped.in_it(dumped.end()) == {"plain": True, "stowed": False, "written": True, "back": True}
    dumped = Dumped()
    dumped.keep(PRIVATE_FILES)
    assert all(dumped.in_it(dumped.end()).values())
    assert Dumped(most=0).end() is None
    dumped = Dumped()
    dumped.keep(PRIVATE_FILES)
    if dumped.tell("cut") == "cut": # only root can
        core = dumped.end()
        for name in ("plain", "back", "written"):
            assert core.content(*dumped.areas[name]) == pathlib.Path(f"{name}.expected").read_bytes(), name
    for _ in range(6):
        dumped = Dumped("moving")
        dumped.keep(PRIVATE_FILES)
        support.time.sleep(random.random() / 3)
        assert all(dumped.in_it(dumped.end()).values())
    return None


untested = by_kernel()
dumped = Dumped()
# The files of the stowed memory are removed already. So only the process has their content, and gcore reads it there.
assert all(dumped.in_it(dumped.by_gcore()).values())
assert dumped.tell("check") == "whole"
dumped.end()
dumped = Dumped("moving", most=0)
for _ in range(2):
    support.time.sleep(random.random() / 3)
    assert all(dumped.in_it(dumped.by_gcore()).values())
    assert dumped.tell("check") == "whole"
assert dumped.end() is None
folder.rmdir()
if untested:
    support.skip(f"all but {untested}")
