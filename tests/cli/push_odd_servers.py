"""Tests `memstow push` with servers that misbehave (test doubles). They send an answer without an end, reset the
connection, or refuse a request before they have read it. Each case costs one message, which says what happened and does
not speak of a time limit."""
import socket, struct, subprocess, threading

from support import MEMSTOW, memstow, start

program = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--exec", "--", "sh", "-c", "echo ready; read line",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert program.stdout.readline() == "ready\n"


def pour(connection):
    """Sends until the client has enough."""
    try:
        while True:
            connection.sendall(b"x" * 65536)
    except OSError:
        pass


def endless_head(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    pour(connection)


def endless_body(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    pour(connection)


def reset(connection):
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def refuse_early(connection):
    """Answers, and closes the connection with a part of the request unread. So the kernel resets the connection after
    the answer."""
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 413 Too Large\r\n\r\ntoo large")


def push(answer, *words):
    """Pushes one profile to a server, for which answer(connection) answers. Returns the complaint of `memstow push`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            connection = server.accept()[0]
            with connection:
                answer(connection)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        said = memstow("push", "--to=parca", url, program.pid, *words, status=3).stderr
        thread.join(60)
    assert said.startswith(f"memstow: {url}: ") and len(said.splitlines()) == 1, said
    return said.removeprefix(f"memstow: {url}: ").rstrip("\n")


for endless in (endless_head, endless_body):
    said = push(endless)
    assert said == "the answer is longer than 16 MiB", said
said = push(reset) # the kernel tells of the reset once: to the send, or to the receive
assert said in ("Connection reset by peer", "the connection ended without an answer"), said
for words in ((), ("--every=1h",)): # asking again would not help
    said = push(refuse_early, *words)
    assert said == "status 413: too large", said
program.stdin.close()
program.wait(60)
