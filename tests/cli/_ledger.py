"""Makes ledgers for tests of the command, without the library. Their format is that of preload/shared/snapshot.h."""
import json, struct

STRINGS, PROCESS, MODULE, TAG, OWNER, SITE, THREAD, COUNTERS, LARGE, MAPPING, PEAK_0, REGION = range(1, 13)
FRAME, CODE, SEGMENT, NODE = range(14, 18)
WIDE = 19
TRACE = 21
POINT, CUDA_POINT, MARK, OWNER_MARK = 44, 45, 46, 47
UNKNOWN = 2**64 - 1
WIDE_AT = 0x7f0000000000 # the address of the wide counters in the process
INTERRUPTED = 0x80000000
RUNNING, EXITED, ABRUPT, EXECED = 1, 2, 3, 4
ENDED_EXITED, ENDED_KILLED = 1, 2
FORK_CHILD, RESIDENCY = 2, 4
MIB = 1 << 20


def leb128(number):
    groups = [number >> shift & 0x7f for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def fnv1a(data):
    check = 2166136261
    for byte in data:
        check = (check ^ byte) * 16777619 & 0xffffffff
    return check


def narrow(allocated, allocated_blocks, freed, freed_blocks):
    """Returns the word of a narrow counter, which can count a few blocks of one size. Returns None if a wide counter is
    needed."""
    size = allocated // allocated_blocks if allocated_blocks else freed // max(freed_blocks, 1)
    if (allocated,
        freed) != (size * allocated_blocks, size * freed_blocks) or size >> 32 or allocated_blocks + freed_blocks > 15:
        return None
    return size | allocated_blocks << 32 | freed_blocks << 48


class Ledger:
    """Fields of the header are keyword arguments. Methods add tables. save() writes the file."""

    def __init__(self, **header):
        self.header = dict(name="program", pid=1000, parent_pid=1, state=EXITED, flags=0, start_ns=10**9,
                           end_ns=3 * 10**9, start_wall_ns=10**18, total_peak=0, host_peak=0, mapped_peak=0,
                           picture=None, lost={}, inherited=0, rss=0, file_mapped=0, reserved=0, header_overhead=16,
                           run_id=bytes(16), start_ticks=1, boot_id=bytes(16), uid=0, exec_generation=0, major=1,
                           minor=0, kind=1, stacks=1, sample_bytes=0, ended=(0, 0))
        self.header.update(header)
        self.pool, self.offsets = bytearray(b"\0"), {"": 0}
        self.modules, self.facts, self.counters, self.large, self.mappings, self.regions = [], [], {}, [], [], []
        self.sites, self.peaks, self.tags, self.owners = [0] * 2, {}, [(0, 0, 0, 0)], []
        self.frames, self.codes, self.words, self.nodes, self.segments = [], [], [0], [(0, 0, 0)], {}
        self.lines, self.ring = [], bytearray()
        self.points, self.device_points, self.marks, self.owner_marks = [], [], [], []
        self.threads = [(0, 1, "", 1)] * 2 + [(1000, 1, "program", 1)]

    def string(self, text):
        if text not in self.offsets:
            self.offsets[text] = len(self.pool)
            self.pool += text.encode("utf-8", "surrogateescape") + b"\0"
        return self.offsets[text]

    def fact(self, key, text):
        self.facts.append(struct.pack("<II", key, self.string(text)))

    def owner(self, kind, name, origin="", policy=0, priority=0, retired=0, adopted_by=0, stowed=0, outcome=0,
              begin_ns=0, end_ns=0):
        """kind: 1 model, 2 node, 3 run, 4 custom. Returns the id."""
        self.owners.append(
            struct.pack("<IIIIIiIIQQQQIIQ",
                        len(self.owners) + 1, kind, self.string(name), self.string(origin), policy, priority,
                        1 + retired, adopted_by, 0, 0, begin_ns, end_ns, outcome, 0, stowed))
        return len(self.owners)

    def point(self, ns, host, mapped=0, run=0, node=0):
        self.points.append(struct.pack("<QQQII", ns, host, mapped, run, node))

    def device_point(self, ns, *live):
        self.device_points.append(struct.pack("<9Q", ns, *live, *[0] * (8 - len(live))))

    def mark(self, ns, kind, owner=0, detail=0, moved=0, live=UNKNOWN, host=0, rss=0):
        """kind: enum snap_mark_kind."""
        self.marks.append(struct.pack("<QIIIIQQQQQQ", ns, kind, owner, detail, 0, moved, live, host, 0, 0, rss))

    def owner_mark(self, ns, owner, live, on_devices=0):
        self.owner_marks.append(struct.pack("<QIIQQ", ns, owner, 0, live, on_devices))

    def tag(self, model=0, node=0, run=0):
        self.tags.append((model, node, run, 0))
        return len(self.tags) - 1

    def module(self, path, bias=0, build_id=b"", size=0x1000):
        """Returns the number by which sites name the module: 1 + id."""
        self.modules.append(
            struct.pack("<QQQIIII24s", bias + 0x1000, bias + 0x1000 + size, bias, self.string(path), 0, 0,
                        len(build_id), build_id))
        return len(self.modules)

    def frame(self, address, module=0, interrupted=False):
        """A native frame; returns its id."""
        self.frames.append(struct.pack("<QII", address, module, INTERRUPTED if interrupted else 0))
        return len(self.frames) - 1

    def python(self, name, file, line):
        """A Python frame; returns its id."""
        self.codes.append(struct.pack("<IIII", self.string(name), self.string(file), 1, 0))
        self.frames.append(struct.pack("<QII", 0, line, len(self.codes)))
        return len(self.frames) - 1

    def node(self, frames, parent=0):
        """The stack that extends `parent` inwards by these frames, outermost first. Returns its id."""
        key = tuple(frames)
        if key not in self.segments:
            self.segments[key] = len(self.words)
            self.words += [len(key), *key]
        self.nodes.append((parent, self.segments[key], 0))
        return len(self.nodes) - 1

    def unsampled(self):
        """The site of blocks that are no samples. It must be made before any other site."""
        assert len(self.sites) == 2
        return self.site()

    def site(self, module=0, tag=0, peak=None, stack=0):
        self.sites.append(tag | stack << 20 | module << 44)
        if peak is not None:
            self.peaks[len(self.sites) - 1] = peak
        return len(self.sites) - 1

    def thread(self, name, tid=2000):
        self.threads.append((tid, 1, name, 1))
        return len(self.threads) - 1

    def count(self, site, alloc=(0, 0), free=(0, 0), thread=2):
        """alloc and free: (bytes, blocks). Thread 1 counts mappings."""
        self.counters[thread, site] = (*alloc, *free)

    def block(self, address, size, site=0, birth_ns=2 * 10**9, resident=0, thread=2):
        self.large.append(struct.pack("<QQQQII", address, size, birth_ns, resident, site, thread))

    def mapping(self, address, length, site=0, kind=1, birth_ns=2 * 10**9, resident=0):
        self.mappings.append(
            struct.pack("<IIQQQQQIIII", 2, kind, address, length, birth_ns, resident, 0, site, 1000, 0, 0))

    def region(self, start, length, resident, path="", anonymous=None, flags=1):
        self.regions.append(struct.pack("<QQQQII", start, start + length, resident,
                                        resident if anonymous is None else anonymous, self.string(path), flags))

    def line(self, number=None, **members):
        """Adds a line to the trace of decisions. It gets a number, and a time one second after the line before."""
        self.lines.append(number or (self.lines[-1] + 1 if self.lines else 1))
        text = json.dumps({"n": self.lines[-1], "t": (1 + len(self.lines)) * 10**9, **members}, ensure_ascii=False)
        self.raw_line(self.lines[-1], text.encode())

    def raw_line(self, number, text, check=None):
        self.ring += struct.pack("<IIQ", len(text), fnv1a(struct.pack("<Q", number) + text) if check is None else check,
                                 number)
        self.ring += text + bytes(-len(text) % 8)

    def trace(self):
        """The section of the trace: a ring that is exactly full."""
        return struct.pack("<QQQQ", len(self.ring), 0, len(self.ring), len(self.lines) + 1) + self.ring

    def chunks(self):
        """Records of COUNTERS and of WIDE."""
        groups, wide = {}, [struct.pack("<Q24x", WIDE_AT)]
        for (thread, site), counter in self.counters.items():
            word = narrow(*counter)
            if word is None:
                word = 1 << 63 | WIDE_AT + 32 * len(wide)
                wide.append(struct.pack("<QQQQ", *counter))
            groups.setdefault((thread, site // 128), {})[site % 128] = word
        return [struct.pack("<II128Q", thread + 1, index, *(sites.get(i, 0) for i in range(128)))
                for (thread, index), sites in groups.items()], wide

    def picture(self):
        """The picture of the peak. It has three numbers for each site: the site's id less the id before, the bytes, and
        the blocks, of which there is always 1."""
        steps = zip(sorted(self.peaks), [0, *sorted(self.peaks)])
        return b"".join(leb128(number) for site, before in steps for number in (site - before, self.peaks[site], 1))

    def sections(self):
        chunks, wide = self.chunks()
        tables = [(PROCESS, 8, self.facts), (MODULE, 64, self.modules), (OWNER, 80, self.owners),
                  (TAG, 16, [struct.pack("<IIII", *tag) for tag in self.tags]),
                  (SITE, 8, [struct.pack("<Q", site) for site in self.sites]),
                  (THREAD, 128, [struct.pack("<IIQQQQ16sII64x", tid, state, 0, 0, 0, 0, name.encode(), uses, 0)
                                 for tid, state, name, uses in self.threads]),
                  (COUNTERS, 1032, chunks), (WIDE, 32, wide), (LARGE, 40, self.large), (MAPPING, 64, self.mappings),
                  (REGION, 40, self.regions), (FRAME, 16, self.frames), (CODE, 16, self.codes),
                  (POINT, 32, self.points), (CUDA_POINT, 72, self.device_points), (MARK, 72, self.marks),
                  (OWNER_MARK, 32, self.owner_marks)]
        if len(self.nodes) > 1:
            tables.append((SEGMENT, 4, [struct.pack("<I", word) for word in self.words]))
            tables.append((NODE, 12, [struct.pack("<III", *node) for node in self.nodes]))
        if self.header["picture"]:
            tables.append((PEAK_0, 1, [bytes([byte]) for byte in self.picture()]))
        if self.ring:
            tables.append((TRACE, 1, [bytes([byte]) for byte in self.trace()]))
        yield STRINGS, 1, len(self.pool), bytes(self.pool)
        for kind, size, records in tables:
            if records:
                yield kind, size, len(records), b"".join(records)

    def pack_header(self, size):
        h = self.header
        lost = [h["lost"].get(i, 0) for i in range(16)]
        picture = h["picture"] or (0, 0, 0)
        head = struct.pack("<8sHHIIIQIIIIQ16s16sIIIIII32sQQQQQQqqQQQQQ", b"MEMSTOW\n", h["major"], h["minor"],
                           0x01020304, 4096, h["kind"], size, h["flags"], h["state"], h["pid"], h["parent_pid"],
                           h["start_ticks"], h["boot_id"], h["run_id"], h["uid"], h["exec_generation"], 0, h["stacks"],
                           0, 4096, h["name"].encode(), h["start_wall_ns"], h["start_ns"], h["end_ns"], 0, 0, h["rss"],
                           0, 0, h["host_peak"], h["mapped_peak"], h["total_peak"], h["end_ns"], 0)
        head += struct.pack("<IIQQQQQQQ256x16QII1056xQ", 0 if h["picture"] else 2, 0, *picture, len(self.picture()),
                            h["inherited"], h["file_mapped"], h["reserved"], *lost, 0, h["header_overhead"],
                            h["sample_bytes"])
        head += struct.pack("<24xII", *h["ended"])
        return head.ljust(4096, b"\0")

    def bytes(self):
        body = b""
        for kind, size, count, records in self.sections():
            records += bytes(-len(records) % 8)
            body += struct.pack("<IHHQQQ", kind, 1, size, 32 + len(records), count, 0) + records
        return self.pack_header(4096 + len(body)) + body

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.bytes())
        return path


def simple(live=3 * MIB, blocks=30, **header):
    """A ledger of two modules. One has `live` bytes, and the other has freed everything."""
    ledger = Ledger(total_peak=8 * MIB, host_peak=8 * MIB, **header)
    ledger.fact(2, "./program --all")
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(live + MIB, blocks + 10), free=(MIB, 10))
    ledger.count(ledger.site(ledger.module("/usr/lib/libx.so")), alloc=(2 * MIB, 5), free=(2 * MIB, 5))
    return ledger


def path_of(module):
    """The name that a HELD line gives to a site of this module that has no call stack."""
    found = 0xcbf29ce484222325
    for byte in module.encode():
        found = (found ^ byte) * 0x100000001b3 % 2**64
    return f"{found:x}"
