#!/usr/bin/env python3
# needs: deb:libglib2.0-tests
# timeout: 3600
# long
"""GLib's own tests, as Debian installs them: nearly 280 programs about threads, spawn, sockets, plugins and every
container that allocates. Each test ends as it does without memstow: the same test cases pass and are skipped. Each
leaves a ledger that can be read."""
import concurrent.futures, os, pathlib, re, shlex, signal, subprocess, tempfile

import support
from _suite import check_ledgers, command, compare

TESTS = pathlib.Path("/usr/share/installed-tests/glib")
UNFIT = {"memory-monitor-dbus", "memory-monitor-portal", "power-profile-monitor-dbus", # need mocked services
         "power-profile-monitor-portal", "static-link", # needs the development package
         "slice-known-pages", "performance", "performance-threaded", # measure time
         "gsocketclient-slow"} # replaces LD_PRELOAD
ENVIRONMENT = {**os.environ, "G_TEST_SRCDIR": "/usr/libexec/installed-tests/glib", "GIO_USE_VFS": "local",
               "G_TEST_BUILDDIR": "/usr/libexec/installed-tests/glib", "GSETTINGS_BACKEND": "memory"}


def programs():
    for file in sorted(TESTS.glob("*.test")):
        if file.stem not in UNFIT:
            yield file.stem, shlex.split(re.search(r"^Exec=(.*)", file.read_text(), re.M)[1])


def case_of(line):
    """Returns the result and the name from a line of output. Leaves out what changes from run to run: the number, the
    random seed and the reason of a skip."""
    return re.sub(r"seed:\d+", "seed", re.sub(r" # SKIP.*", " # SKIP", re.sub(r"ok \d+ ", "ok ", line))).strip()


def outcome(argv, tracked):
    """Runs a test program. Returns its status (None if it did not end in time), and the result of each test case."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command([*argv, "--tap"], tracked, support.HERE / "ledgers"), cwd=folder,
                                   stdout=output,
                                   env={**ENVIRONMENT, "HOME": folder, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder},
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(120)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        cases = [case_of(line) for line in output if re.match(r"(not )?ok \d", line)]
    if status and status > 128: # memstow passes a signal on as a shell does
        status = 128 - status
    return status, cases


def execute(tests, tracked):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(outcome, argv, tracked) for name, argv in programs() if not tests or name in tests}
    return {name: future.result() for name, future in running.items()}


compare(execute)
check_ledgers("ledgers")
