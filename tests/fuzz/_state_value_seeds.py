"""Seeds for the file of a loop's value; the target pads it to whole pages and makes the checksum right."""
import pathlib, re, struct

SOURCE = pathlib.Path(__file__).parents[2] / "preload/state/state_bytes.h"
VERSION = int(re.search(r"STATE_VERSION = (\d+)", SOURCE.read_text())[1]) # another one is refused at once


def value(*parts, length=4096, count=None, type=b"JSON", magic=b"MSTVALUE", version=VERSION):
    head = struct.pack("<8sIIQ64s", magic, version, len(parts) if count is None else count, length, type)
    return head + b"".join(struct.pack("<QQ", start, size) for start, size in parts)


seeds = {"one": value((128, 40)), "none": value(), "two": value((128, 40), (192, 0)), "beyond": value((4096, 1)),
         "far": value((1 << 63, 1 << 63)), "at the end": value((4095, 1)), "many": value(count=1 << 20),
         "length": value((128, 1), length=8192), "two pages": value((4096, 4096), length=8192).ljust(8192, b"\1"),
         "type": value(type=b"x" * 64), "magic": value(magic=b"MSTSTATE"), "version": value(version=VERSION + 1)}
for name, seed in seeds.items():
    pathlib.Path(name).write_bytes(seed)
