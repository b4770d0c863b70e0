#!/usr/bin/env python3
"""`memstow push` waits ten seconds for a server. The look-up of its name is a part of this time, so name servers that
say nothing cost no more time, over HTTP and over HTTPS. The name server is a test double, in a namespace of its own."""
import fcntl, os, pathlib, socket, struct, subprocess, sys, time

from support import HERE, MEMSTOW, PYTHON, features, run, skip, start

if features()["sanitize"] == "thread":
    skip("ThreadSanitizer does not know the thread of getaddrinfo_a")

LIMIT = 100 # seconds, on a busy machine; a look-up without a limit takes 150


def up():
    """Switches on the namespace's loopback interface."""
    with socket.socket() as any_socket:
        name = struct.pack("16sH14x", b"lo", 1)
        fcntl.ioctl(any_socket, 0x8914, name) # SIOCSIFFLAGS, IFF_UP


def inside():
    up()
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    pathlib.Path("resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    pathlib.Path("nsswitch.conf").write_text("hosts: files dns\n")
    for name in ("resolv.conf", "nsswitch.conf"):
        run("mount", "--bind", HERE / name, f"/etc/{name}")
    program = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--exec", "--", PYTHON, "-c",
                    "print(flush=True); input()", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    for scheme in ("http", "https"):
        begun = time.monotonic()
        done = run(MEMSTOW, "push", "--to=parca", f"{scheme}://worker.example", program.pid, status=3, timeout=LIMIT)
        took = time.monotonic() - begun
        if "needs libcurl" in done.stderr:
            print("libcurl is not installed: https was not tried")
            continue
        assert silent.recv(4096), "the name server was asked"
        assert 9 < took < LIMIT and len(done.stderr.splitlines()) == 1, (took, done.stderr)
        assert scheme == "https" or done.stderr.endswith("the name servers do not answer in time\n"), done.stderr
        print(f"{scheme}: {took:.1f} s: {done.stderr}", end="")


if len(sys.argv) > 1:
    inside()
else:
    words = ("unshare", "--user", "--map-root-user", "--net", "--mount")
    if run(*words, "true", status=None).returncode:
        skip("no namespace of the network can be made here")
    print(run(*words, PYTHON, os.path.abspath(__file__), "inside", timeout=3 * LIMIT).stdout, end="")
