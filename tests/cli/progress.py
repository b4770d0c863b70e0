# needs: stacks
# timeout: 300
"""A command that takes longer than a second shows on standard error what it does, but only if standard error is a
terminal. The test slows down commands that read files: it keeps them stopped most of the time. Requests to a process
wait, because the test has stopped the process."""
import os, pathlib, pty, re, signal, subprocess, threading, time

import _terminal
import support
from support import MEMSTOW, PYTHON

_terminal.need()
LINE = re.compile(r"\r\x1b\[K(.*?) \((\d+) s\)")
RUNS, STOPS = 0.002, 0.3 # seconds
STOPPED = ["sh", "-c", 'kill -STOP $$; exec "$@"', "sh"] # the command begins stopped, so that no part of it is fast


class Shown:
    """A command with its standard error on a terminal, and what it has written there."""

    def __init__(self, *words, before=()):
        self.terminal, end = pty.openpty()
        self.written = b""
        self.command = support.start(*before, MEMSTOW, *words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=end)
        os.close(end)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        try:
            while piece := os.read(self.terminal, 4096):
                self.written += piece
        except OSError: # the last writer is gone
            pass

    def lines(self):
        return LINE.findall(self.written.decode())

    def end(self):
        """Waits for the command's end. Returns its status, the lines of progress, and the output without these
        lines."""
        status = self.command.wait(100)
        self.reader.join()
        os.close(self.terminal)
        text = self.written.decode()
        assert text.count("\r\x1b[K") > len(self.lines()) or not self.lines(), ("the last line was left", text)
        return status, self.lines(), LINE.sub("", text).replace("\r\x1b[K", "").replace("\r\n", "\n")


def slow_down(command, is_enough):
    """Lets the command run for a small part of the time, until is_enough() is true or the command has ended."""
    while command.poll() is None and not is_enough():
        command.send_signal(signal.SIGSTOP)
        time.sleep(STOPS)
        command.send_signal(signal.SIGCONT)
        time.sleep(RUNS)


def is_quiet(words, statuses):
    """Checks that a command shows no progress on a pipe, although the command takes longer than a second."""
    begin = time.monotonic()
    command = support.start(*STOPPED, MEMSTOW, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    slow_down(command, lambda: time.monotonic() - begin > 1.5)
    took = time.monotonic() - begin
    _, said = command.communicate(timeout=100)
    assert took > 1.2 and command.returncode in statuses, (words, took, command.returncode, said)
    assert "\r" not in said and "\x1b" not in said and " s)" not in said, (words, said)


def shows(words, expected, statuses=(0,)):
    """Checks a command that reads files."""
    shown = Shown(*words, before=STOPPED)
    slow_down(shown.command, shown.lines)
    status, lines, _ = shown.end()
    assert status in statuses and lines, (words, status, shown.written)
    assert all(expected.search(text) and int(seconds) >= 1 for text, seconds in lines), (words, lines)
    is_quiet(words, statuses)


support.run(support.BUILD / "tests/cost/deep", "deep.mst", 200_000, 1)
READS = re.compile(r"^(reading|looking up functions in|writing) ")
shows(["report", "deep.mst"], READS)
shows(["report", "deep.mst", "--html", "-o", "page.html"], READS)
shows(["diff", "deep.mst", "deep.mst"], READS)
shows(["leaks", "deep.mst"], READS, (0, 5))
program = [PYTHON, "-c", "import asyncio, email.message, http.client, json, os, unittest; os._exit(0)"]
shows(["check", "--baseline=base.txt", "--update-baseline", "--runs=1", "--warm-up=0", "--", *program], READS)

# A command that is fast enough shows nothing.
support.track(*program, file="small.mst")
shown = Shown("report", "small.mst", "--json", "--no-such-option")
assert shown.end()[1] == []

# Requests: the process is stopped until the line is there.
OWNER = """
import ctypes, os, time
ctypes.CDLL(None).memstow_owner_open(1, b"model", b"", ctypes.c_uint64(1), ctypes.c_uint64(1))
open("new", "w").write(str(os.getpid()))
os.rename("new", "pid")
time.sleep(1000)
"""
run = support.start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", PYTHON, "-c", OWNER)
support.wait_for(pathlib.Path("pid").exists)
pid = int(pathlib.Path("pid").read_text())
support.memstow("restore", pid, "model") # waits for the socket, which a stopped process cannot open
WAITS = "waiting for the program to take the request" # shown before the program's thread looks for requests
for verb, doing in (("stow", "stowing"), ("restore", "restoring")):
    os.kill(pid, signal.SIGSTOP)
    shown = Shown(verb, pid, "model")
    support.wait_for(lambda: shown.lines() or shown.command.poll() is not None, what="the line")
    quiet = support.start(MEMSTOW, verb, pid, "model", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    os.kill(pid, signal.SIGCONT)
    status, lines, rest = shown.end()
    assert status == 0 and lines and not rest.strip(), (verb, status, shown.written)
    assert doing in lines[0][0], lines # a process that is stopped tells nothing else
    assert all(text.startswith("model") and (doing in text or WAITS in text) for text, _ in lines), lines
    assert quiet.communicate(timeout=100)[1] == "" and quiet.returncode == 0
os.kill(pid, signal.SIGKILL)
run.wait()
