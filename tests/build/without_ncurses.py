#!/usr/bin/env python3
# needs: cc
# timeout: 1200
# long
"""Without ncurses, the command is built with all subcommands but `memstow top`. `memstow top` then says that it needs
ncurses."""
import os

import support

folder = support.HERE / "build"
configured = support.run("cmake", "-S", support.ROOT, "-B", folder, "-G", "Ninja", "-DMEMSTOW_TOP=OFF",
                         "-DMEMSTOW_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug", timeout=300)
assert "building without memstow top" in configured.stdout, configured.stdout
support.run("cmake", "--build", folder, "--target", "memstow", timeout=800)
command = folder / "memstow"
assert "curses" not in support.run("ldd", command).stdout
assert support.run(command, "--version").stdout.rstrip().endswith("no ncurses (no top)")
done = support.run(command, "top", str(os.getpid()), status=2)
assert done.stderr == "memstow: top: this memstow was built without ncurses, which top needs\n", done.stderr
assert "usage: memstow top [PID]" in support.run(command, "top", "--help").stdout
