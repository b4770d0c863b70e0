# needs: cc stacks
"""memstow's line about misuse goes to standard error only. If a file of the program has the descriptor number of
standard error, the line does not go into this file. The line ends no program, and no program waits because of it,
whether anybody reads standard error or not."""
import os, pathlib, subprocess

import support

program = support.compile(pathlib.Path(__file__).with_name("notices.c"), flags=("-O1", "-g", "-w", "-fno-builtin"))
LINE = "memstow: header of a block overwritten: "
done = support.track(program, "usual", status=5)
assert LINE in done.stderr, done
for how in ("file", "log", "unread", "full"):
    support.run(program, how, status=5)
    support.track(program, how, status=5)
    assert support.report()["process"]["state"] == "exited", how
assert os.path.getsize("data") == 0 and LINE in open("log").read()

# The standard error that the program begins with has no reader any more, is full, or may not grow.
environment = {**os.environ, "LD_PRELOAD": str(support.LIBRARY), "MEMSTOW_OUT": str(support.HERE / "begin.mst")}
for how in ("unread", "full", "limit"):
    reader, writer = os.pipe()
    if how == "full":
        os.set_blocking(writer, False)
        try:
            while os.write(writer, bytes(4096)):
                pass
        except BlockingIOError:
            os.set_blocking(writer, True)
    if how == "unread":
        os.close(reader)
    stderr = open("grown", "w") if how == "limit" else writer
    # Python ignores SIGPIPE and SIGXFSZ. Without restore_signals its children would ignore them, too.
    process = subprocess.run([program, "limit" if how == "limit" else "usual"], env=environment, stderr=stderr,
                             restore_signals=True, timeout=support.LIMIT)
    assert process.returncode == 5, (how, process)
