"""A damaged or hostile registry gives a message with line and column, and no process is ended."""
import os, pathlib, resource, subprocess

from support import memstow

good = ('{"format": "memstow-processes", "version": 1,\n "boot_id": "01234567-89ab-cdef-0123-456789abcdef",\n'
        ' "parent": {"pid": 9, "start_ticks": 1},\n "processes": [\n  {"pid": 12, "start_ticks": 3}\n ]}')
assert "before this machine was started" in (
    pathlib.Path("good.json").write_text(good), memstow("reap", "good.json").stdout)[1]
for text, place, message in (
        ("", "1:1", "this is not JSON, or not one object"),
        ("[]", "1:1", "this is not JSON, or not one object"),
        (good[:-1], "6:3", "this is not JSON"),
        (good.replace('"pid": 12', '"pid": twelve'), "5:11", "this is not JSON"),
        (good.replace('"pid": 12', '"pid": "12"'), "5:11", '"pid" is not a whole number'),
        (good.replace('"pid": 12', '"pid": -1'), "5:11", '"pid" is not a whole number'),
        (good.replace('"pid": 12', '"pid": 4294967297'), "5:11", '"pid" is not a whole number'),
        (good.replace('"pid": 12', '"pid": 1'), "5:3", "no such process can be ended"),
        (good.replace('"pid": 12, ', ""), "5:3", '"pid" is missing'),
        (good.replace('"start_ticks": 3', '"x": 3'), "5:3", '"start_ticks" is missing'),
        (good.replace('"start_ticks": 3', '"start_ticks": 3, "keep": 1'), "5:41", '"keep" is neither'),
        (good.replace('"start_ticks": 3', '"start_ticks": 3, "number": "1"'), "5:43", '"number" is not a whole number'),
        (good.replace('{"pid": 12, "start_ticks": 3}', "7"), "5:3", "a process is an object"),
        (good.replace('"version": 1', '"version": 2'), "1:44", "the version is not 1"),
        (good.replace("memstow-processes", "other"), "1:12", "the format is not"),
        (good.replace("cdef-0123", "cdef-xyz3"), "2:13", '"boot_id" is not 32 hexadecimal digits'),
        (good.replace('"parent"', '"child"'), "1:1", '"parent" is missing'),
        ("{" * 10000, "1:2", "this is not JSON")):
    pathlib.Path("bad.json").write_text(text)
    done = memstow("reap", "--end", "bad.json", status=3)
    assert done.stderr.startswith(f"memstow: bad.json:{place}: {message}"), (text, done.stderr)
    assert done.stderr.endswith(
        "\nmemstow: no process was ended: this list may name processes that must not be ended\n"), done.stderr
    assert done.stderr.count("\n") == 2 and not done.stdout
# If reap has no descriptor left to look at a process, the process does not count as gone.
sleeper = subprocess.Popen(["sleep", "100"])
ticks = pathlib.Path(f"/proc/{sleeper.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
pathlib.Path("process_registry.9.json").write_text(
    good.replace("01234567-89ab-cdef-0123-456789abcdef", boot).replace('"pid": 9', '"pid": 2147483647')
    .replace('"pid": 12, "start_ticks": 3', f'"pid": {sleeper.pid}, "start_ticks": {ticks}'))
few = memstow("reap", "--end", status=3, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
assert "/proc cannot be read" in few.stderr and not few.stdout, few
assert sleeper.poll() is None and os.path.exists("process_registry.9.json")
assert "ended on SIGTERM" in memstow("reap", "--end").stdout and sleeper.wait(10) == -15
os.chmod("good.json", 0o666)
assert "others may write to it" in memstow("reap", "good.json", status=3).stderr
assert "No such file" in memstow("reap", status=3).stderr
os.mkfifo("fifo")
assert "not a regular file" in memstow("reap", "fifo", status=3).stderr
pathlib.Path("long.json").write_text(" " * (1 << 20) + good)
assert "longer than 1 MiB" in memstow("reap", "long.json", status=3).stderr
if os.getuid() == 0:
    os.chown("bad.json", 65534, 65534)
    assert "belongs to another user" in memstow("reap", "bad.json", status=3).stderr
