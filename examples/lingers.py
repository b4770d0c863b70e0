"""A program whose worker goes on when it should have ended. docs/endings.md shows how `memstow watch` finds the
worker."""
import socket, subprocess, sys, time


def worker():
    kept, listener = [], socket.create_server(("127.0.0.1", 0)) # noqa: F841

    def remember():
        kept.append(bytearray(15_000))
    while True:
        remember()
        time.sleep(0.1)


if __name__ == "__main__":
    if "worker" in sys.argv:
        worker()
    subprocess.Popen(["setsid", sys.executable, __file__, "worker"])
    time.sleep(2)
