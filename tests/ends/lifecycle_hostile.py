"""A damaged or hostile scenario gives one message with line and column, and starts nothing."""
import os, pathlib

from support import memstow

for text, place, message in (
        ("", "1:1", "'program' is missing"),
        ("# nothing\n\n", "3:1", "'program' is missing"),
        ("program x", "1:1", "not 'key: value'"),
        ("program: touch ran\nprogram: b", "2:1", "said twice"),
        ("program:  ", "1:11", "nothing follows the colon"),
        ("program: touch ran\n  frobnicate: 1", "2:3", "not one of program, folder"),
        ("program: touch ran\nready: jump", "2:8", "not one of wait, says, file, http, run, input, signal, prompt, "
         "running, waiting, finished, interrupt\n"),
        ("program: touch ran\nready: wait long", "2:13", "not a time like 2s"),
        ("program: touch ran\nready: wait", "2:12", "something must follow 'wait'"),
        ("program: touch ran\nfinish: finished now", "2:18", "nothing may follow 'finished'"),
        ("program: touch ran\nready: says x within 0s", "2:15", "the time to wait is 0"),
        ("program: touch ran\nclose: signal WINTER", "2:15", "no such signal"),
        ("program: touch ran\nready: http system_stats", "2:13", "not METHOD /PATH"),
        ("program: touch ran\nset: A", "2:6", "not NAME=VALUE"),
        ("program: touch ran\nset: =A", "2:6", "not NAME=VALUE"),
        ("program: touch ran\nport: 65536", "2:7", "not a port"),
        ("program: touch ran\nrepeat: 0", "2:9", "not a number from 1 to 10000"),
        ("program: touch ran\nobserve: 2 weeks", "2:10", "not a time like 60s"),
        ("program: touch ran\nexit: 1 256", "2:9", "not an exit status"),
        ("program: a\x00b", "1:11", "a byte that is not text"),
        ("program: a\x1bb", "1:11", "a byte that is not text"),
        ("program: touch ran\n" + "ready: wait 1s\n" * 201, "202:1", "too many steps"),
        ("x" * 100000, "1:1", "not 'key: value'")):
    pathlib.Path("bad").write_text(text)
    done = memstow("lifecycle", "bad", status=3)
    assert done.stderr.startswith(f"memstow: bad:{place}: {message}"), (text[:100], done.stderr)
    assert done.stderr.count("\n") == 1 and not done.stdout and not pathlib.Path("ran").exists()
pathlib.Path("bad").write_bytes(b"program: touch ran\nset: A=\xc3\x28\n")
assert memstow("lifecycle", "bad", status=3).stderr.startswith("memstow: bad:2:8: a byte that is not text")
os.mkfifo("fifo")
assert "not a regular file" in memstow("lifecycle", "fifo", status=3).stderr
assert "No such file" in memstow("lifecycle", "none", status=3).stderr
pathlib.Path("long").write_text("# " + "x" * (1 << 20))
assert "long: longer than 1 MiB" in memstow("lifecycle", "long", status=3).stderr
# The same function reads suppressions, with another limit.
pathlib.Path("long").write_text("# " + "x" * (16 << 20))
assert "long: longer than 16 MiB" in memstow("check", "--baseline=base", "--suppressions=long", "--", "true",
                                             status=3).stderr
pathlib.Path("fails").write_text("program: no-such-program-at-all\nready: http GET / within 30s\n")
done = memstow("lifecycle", "--test=T1", "--repeat=1", "--untracked", "fails", status=4)
assert "the program had ended with exit status 127" in done.stdout, done.stdout
