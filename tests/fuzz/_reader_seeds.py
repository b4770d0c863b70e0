"""Seeds for the reader: for example a finished ledger, a snapshot of a running program, a ledger with all call stacks,
a ledger with sampled call stacks, and ledgers with a trace of decisions."""
import os, pathlib, struct, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import _decisions
from _ledger import Ledger

MEMSTOW = os.environ["MEMSTOW"]
PROGRAM = [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(60)"]

running = subprocess.Popen([MEMSTOW, "run", "--quiet", "-o", "ledger", "--", *PROGRAM], stdout=subprocess.PIPE)
running.stdout.readline()
children = open(f"/proc/{running.pid}/task/{running.pid}/children").read().split()
pid = int(children[0]) if children else running.pid
subprocess.run([MEMSTOW, "snapshot", str(pid), "-o", "snapshot"], check=True, stdout=subprocess.DEVNULL)
os.kill(pid, 15)
running.wait()

stacks = Ledger()
module = stacks.module("/opt/program", bias=0x10000, build_id=bytes(range(20)))
main, inner = stacks.frame(0x11010, module), stacks.frame(0x11020, module, interrupted=True)
outer = stacks.node([main, stacks.python("load", "/opt/load.py", 7)])
for number, node in enumerate([outer, stacks.node([inner], outer), stacks.node([main, inner])]):
    stacks.count(stacks.site(module, stack=node), alloc=(100 + number, 1))
stacks.save("stacks.ledger")
stacks.header["sample_bytes"] = 4096
stacks.save("sampled.ledger")

decisions = _decisions.clean()
decisions.save("decisions.ledger")
ring = decisions.trace()
decisions.trace = lambda: struct.pack("<QQQQ", len(ring) - 32, 8 * 5, 8 * 5 + len(ring) - 32, 99) + ring[
    -8 * 5:] + ring[32:-8 * 5]
decisions.save("round.ledger")

# Ledgers with CUDA memory (snapshot.h): a head, a device, two sites and two blocks. In cuda_odd, they have ids that do
# not exist.
cuda = Ledger()
cuda.count(cuda.site(cuda.module("/opt/program")), alloc=(100, 1))
plain = cuda.sections


def cuda_sections(number):
    site = struct.pack("<IIIHBBIIQQQQ", 1, number, number, 0, number & 255, 0, 0, 0, 4096, 2, 0, 0)
    block = struct.pack("<IBBHQQQQQQIIII", 2, 2, 0, number & 63, 4096, 512, 1, 2, 3, 4, number, 2, 1, 0)
    return [*plain(), (22, 160, 1, bytes(160)), (23, 152, 1, struct.pack("<II", 1, 0) + bytes(144)),
            (24, 56, 2, 2 * site), (25, 72, 2, 2 * block)]


for name, number in (("cuda", 2), ("cuda_odd", 0xFFFFFFFF)):
    cuda.sections = lambda number=number: cuda_sections(number)
    cuda.save(f"{name}.ledger")

# Ledgers with origins of descriptors, threads and shared memory. In births_odd, the origins have ids that do not exist.
births = Ledger()
module = births.module("/opt/program", bias=0x10000, build_id=bytes(range(20)))
births.count(births.site(module), alloc=(100, 1))
births.site(module, stack=births.node([births.frame(0x11010, module)]))
without = births.sections


def birth_sections(number, sequence):
    record = struct.pack("<IIIIQQQ", sequence, number & 7, number, number, 2 * 10**9, number, number)
    mapping = struct.pack("<IIQQQQQIIII", 2, 2, number << 12, 4096, 2 * 10**9, 0, 0, number, 1000, 1, 0)
    return [*without(), (41, 40, 0, 2 * record), (42, 40, 0, record), (10, 64, 1, mapping)]


for name, number, sequence in (("births", 3, 2), ("births_odd", 0xFFFFFFFF, 2), ("births_busy", 3, 1)):
    births.sections = lambda number=number, sequence=sequence: birth_sections(number, sequence)
    births.save(f"{name}.ledger")

# Ledgers with blocks that were freed twice. In misuse_odd, the blocks have ids that do not exist.
for name, number in (("misuse", 3), ("misuse_odd", 0xFFFFFFFF)):
    places = 3 * struct.pack("<IIII", number, number, number, number)
    record = struct.pack("<IHHQQQII", number, number & 0xFFFF, number & 0xFFFF, number, number, 2 * 10**9, number,
                         0) + places
    births.sections = lambda record=record: [*without(), (43, 88, 2, 2 * record)]
    births.save(f"{name}.ledger")

# Ledgers with memory over time: points out of order, a point that is there twice, and marks. In history_odd, the
# figures cannot be right.
for name, number in (("history", 3), ("history_odd", 0xFFFFFFFFFFFFFFFF)):
    points = b"".join(struct.pack("<QQQII", ns, number, number, 3, 3) for ns in (3 * 10**9, 2 * 10**9, 2 * 10**9, 0))
    devices = struct.pack("<9Q", 2 * 10**9, *8 * [number])
    marks = b"".join(struct.pack("<QIIIIQQQQQQ", 2 * 10**9, kind, 3, number & 0xFFFFFFFF, 0, *6 * [number])
                     for kind in (*range(13), number & 0xFFFFFFFF))
    births.sections = lambda points=points, devices=devices, marks=marks: [
        *without(), (44, 32, 4, points), (45, 72, 1, devices), (46, 72, 14, marks)]
    births.save(f"{name}.ledger")
