"""Threads, sockets and files that a Python program leaves are shown with the function and line that made them."""
import pathlib, re, signal, subprocess

from support import MEMSTOW, PYTHON, start, wait_for

source = '''import os, queue, signal, socket, sys, threading, time
def consume(jobs):
    jobs.get()
def begin():
    threading.Thread(target=consume, args=(queue.Queue(),), name="consumer").start()
def listen():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    return server, client, server.accept()
def hold():
    return open("held.txt", "w"), os.open("closed.txt", os.O_CREAT)
def again():
    return os.open("again.txt", os.O_CREAT)
begin()
kept = [listen(), hold()]
os.close(kept[1][1])
kept.append(again())
signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_DFL))
open("ready", "w").close()
time.sleep(600)
'''
pathlib.Path("app.py").write_text(source)


def line(text):
    return 1 + next(number for number, at in enumerate(source.split("\n")) if text in at)


process = start(MEMSTOW, "watch", "--quiet", "--grace=1s", "--end", "--", PYTHON, "app.py", stderr=subprocess.PIPE,
                text=True)
wait_for(lambda: pathlib.Path("ready").exists(), 60)
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=90)[1]


def expect(what, function, at):
    found = re.search(rf"^( +){what}.*\n((\1  .*\n)+)", text, re.M)
    assert found and f"py {function}  app.py:{at}\n" in found[2], (what, function, at, text)


expect(r"\d+ \S+, since .* 'consumer'", "begin", line("threading.Thread"))
expect(r"descriptor \d+: tcp 127.0.0.1:\d+, listens", "listen", line("create_server"))
expect(r"descriptor \d+: tcp 127.0.0.1:\d+ to ", "listen", line("create_connection"))
expect(r"descriptor \d+: \S+/held.txt", "hold", line('open("held.txt"'))
expect(r"descriptor \d+: \S+/again.txt", "again", line('os.open("again.txt"'))
assert "app.py:%d\n" % line("server.accept()") in text, text
assert "closed.txt" not in text, text
