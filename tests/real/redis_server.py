#!/usr/bin/env python3
# needs: deb:redis-server
# timeout: 120
"""redis-server, which contains jemalloc and uses every byte of malloc_usable_size, serves under memstow as without it.
While it runs, a report of its process shows its data as live. Its forked child saves all keys and leaves a file of its
own. All files can be read after the end."""
import os, signal, socket

import support
from _report import check_report, check_residency

KEYS, VALUE = 5000, b"x" * 1000


class Redis:
    """The part of the protocol that this test needs: strings, integers and errors."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.stream = self.socket.makefile("rb")

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def read(self):
        line = self.stream.readline().rstrip()
        assert not line.startswith(b"-"), line
        if line.startswith(b"$"):
            length = int(line[1:])
            return None if length < 0 else self.stream.read(length + 2)[:-2]
        return int(line[1:]) if line.startswith(b":") else line[1:]

    def call(self, *words):
        self.send(*words)
        return self.read()


def connect(port):
    try:
        return Redis(port)
    except OSError:
        return None


port = support.free_port()
server = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", "redis-server", "--port", port,
                       "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
                       stdout=open("log", "w"))
redis = support.wait_for(lambda: connect(port), 30, "redis answering")
pid = int(dict(line.split(b":") for line in redis.call("INFO", "server").split(b"\r\n") if b":" in line and
               line.startswith(b"process_id"))[b"process_id"])
before = support.report(pid)
assert before["process"]["foreign_allocator"], before["process"]
for key in range(KEYS):
    redis.send("SET", f"key:{key}", VALUE + str(key).encode())
assert all(redis.read() == b"OK" for key in range(KEYS))
assert all(redis.call("GET", f"key:{key}") == VALUE + str(key).encode() for key in range(0, KEYS, 7))
assert redis.call("APPEND", "key:1", b"y" * 100000) == len(VALUE) + 1 + 100000
assert redis.call("SETRANGE", "key:2", 50000, "end") == 50003

full = support.report(pid)
check_residency(full)
grown = full["totals"]["host"]["live_bytes"] - before["totals"]["host"]["live_bytes"]
assert grown >= KEYS * len(VALUE), grown
memory = dict(line.split(b":", 1) for line in redis.call("INFO", "memory").split(b"\r\n") if b":" in line)
used, live = int(memory[b"used_memory"]), full["totals"]["host"]["live_bytes"]
assert memory[b"mem_allocator"].startswith(b"jemalloc"), memory
assert 0.8 * used <= live <= 1.05 * used, f"redis counts {used} (usable sizes), the ledger {live} (as asked for)"
assert int(redis.call("DEBUG", "OBJECT", "key:3").count(b"serializedlength")) == 1
assert redis.call("MEMORY", "USAGE", "key:3") > len(VALUE)

assert redis.call("BGSAVE").startswith(b"Background saving")
support.wait_for(lambda: b"rdb_bgsave_in_progress:0" in redis.call("INFO", "persistence"), 30, "the end of the save")
assert b"rdb_last_bgsave_status:ok" in redis.call("INFO", "persistence")

assert redis.call("FLUSHALL") == b"OK"
left = support.report(pid)["totals"]["host"]["live_bytes"] - before["totals"]["host"]["live_bytes"]
assert left < grown / 10, f"{left} of {grown} bytes are left after FLUSHALL"
os.kill(pid, signal.SIGTERM)
support.expect_exit(server, seconds=30)
ended = support.report("out.mst")
check_report(ended)
children = [support.report(file)["process"] for file in support.HERE.glob("out.mst.*")]
assert [c["fork_depth"]
        for c in children] == [1] and children[0]["inherited"]["bytes_at_fork"] >= KEYS * len(VALUE), children
print(f"grown {grown}, left {left}; redis {used}, ledger {live}; rest {full['residency']['rest_bytes']} of "
      f"{full['residency']['rss_bytes']}")
