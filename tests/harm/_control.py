"""A tracked Python program that is told line by line what to do, and raw messages to its control socket."""
import os, pathlib, select, socket, struct, subprocess, sys

from support import MEMSTOW, memstow, start, wait_for

LOOP = r'''
import ctypes, os, sys, threading, time
abi = ctypes.CDLL(None, use_errno=True)
class Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("ticket", ctypes.c_uint64),
                ("owner", ctypes.c_uint32), ("reason", ctypes.c_uint32), ("text", ctypes.c_char * 256),
                ("needed", ctypes.c_uint64)]
abi.memstow_owner_open.restype = ctypes.c_int64
def owner(name, kind=4, origin="test"):
    return abi.memstow_owner_open(kind, name.encode(), origin.encode(), ctypes.c_uint64(0), ctypes.c_uint64(0))
def take(milliseconds=20000):
    request = Request(size=ctypes.sizeof(Request))
    code = abi.memstow_request_next(ctypes.byref(request), milliseconds)
    return (request.kind, request.owner, request.ticket, request.text.decode(), request.reason) if code == 1 else code
def done(ticket, result, text=""):
    return abi.memstow_request_done(ctypes.c_uint64(ticket), ctypes.c_int64(result), text.encode())
def threads():
    return sorted(open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task"))
def descriptors():
    return sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1]
for line in sys.stdin:
    try:
        value = eval(line, globals())
    except SyntaxError:
        value = exec(line, globals())
    print(repr(value), flush=True)
'''
TRIGGER, STOW, RESTORE, RELEASE, CANCEL, END = 1, 2, 3, 4, 5, 6
WAITING, WORKING, DONE = 16, 17, 18


class Program:
    """A program under memstow that executes lines of Python. tell() sends it a line, and returns the value of the line.
    begin() only sends a line; after() waits for the value of this line, and returns it."""

    def __init__(self, *options, runtime=None, **more):
        self.runtime = pathlib.Path(runtime or "run").resolve()
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        env = {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime), **more.pop("env", {})}
        wrapper = more.pop("wrapper", ())
        self.process = start(MEMSTOW, "run", "--quiet", *options, "--", *wrapper, sys.executable, "-S", "-c", LOOP,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, **more)
        self.pid = self.tell("os.getpid()")

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def after(self):
        answer = self.process.stdout.readline()
        assert answer, f"the program ended: {self.process.wait(20)}"
        return eval(answer)

    def has_answered(self, seconds=0):
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def tell(self, line):
        self.begin(line)
        return self.after()

    def end(self, status=0):
        self.process.stdin.close()
        got = self.process.wait(60)
        assert got == status, got

    def socket_path(self):
        return self.runtime / "memstow" / f"{self.pid}.{start_ticks(self.pid)}"

    def listening(self):
        """Waits until the program listens. Returns the path of its socket."""
        path = self.socket_path()
        wait_for(lambda: connected(path), what="listening")
        return path

    def held(self):
        """Returns how many descriptors the listening thread has, or None if there is no such thread."""
        thread = control_thread(self.pid)
        return len(os.listdir(thread / "fd")) if thread else None

    def ask(self, verb, *words, status=0, **more):
        return memstow(verb, self.pid, *words, status=status, **more)


def control_thread(pid):
    """Returns the control thread's folder in /proc, or None if there is no such thread."""
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            if (thread / "comm").read_text() == "memstow\n":
                return thread
        except OSError: # a worker that has ended
            pass
    return None


def start_ticks(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def connected(path):
    """A connection, or None."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(str(path)) # without a time-out, connect waits until the queue has room
        connection.settimeout(20)
    except OSError:
        connection.close()
        return None
    return connection


def pack(type, owner=0, text=b"", version=1, magic=0x4357534d, length=None, number=0):
    return struct.pack("<IHHIIQq", magic, version, type, 32 + len(text) if length is None else length, owner, 0,
                       number) + text


def receive(connection):
    """(type, ticket, number, text), or None at the end."""
    answer = connection.recv(1000)
    if not answer:
        return None
    magic, version, type, length, _, ticket, number = struct.unpack("<IHHIIQq", answer[:32])
    assert (magic, version, length) == (0x4357534d, 1, len(answer)), answer
    return type, ticket, number, answer[32:].decode()


GOOD = [pack(TRIGGER, text=b"because"), pack(STOW, 1), pack(RELEASE, 1), pack(RESTORE, 9), pack(CANCEL)]


def send_garbage(path, dice):
    """A connection with up to three messages: good, bad, or cut. It may stay open."""
    connection = connected(path)
    for _ in range(dice.randrange(4)):
        message = bytearray(dice.choice(GOOD))
        for _ in range(dice.choice((0, 0, 1, 3))):
            message[dice.randrange(len(message))] = dice.randrange(256)
        try:
            connection.send(message[:dice.choice((len(message), dice.randrange(len(message) + 1)))])
        except OSError:
            break
    if dice.random() < 0.3:
        connection.close()


def last(connection):
    """The answer that ends the request."""
    while (answer := receive(connection)) and answer[0] != DONE:
        pass
    return answer
