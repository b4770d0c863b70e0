"""Seeds for the manifest of a loop's folder; the target makes the checksum right."""
import pathlib, re, struct

SOURCE = pathlib.Path(__file__).parents[2] / "preload/state/state_files.c"
VERSION = int(re.search(r" VERSION = (\d+)", SOURCE.read_text())[1]) # another one is refused at once


def manifest(*ids, magic=b"MSTSTATE", version=VERSION, count=None):
    entries = b"".join(struct.pack("<208sQQQ", name, 3 + number, 4096, 5) for number, name in enumerate(ids))
    return struct.pack("<8sIIQQ", magic, version, len(ids) if count is None else count, 9, 0) + entries


seeds = {"one": manifest(b"latent"), "none": manifest(), "three": manifest(b"a", b"b/../c", b"\xff\n"),
         "same": manifest(b"a", b"a"), "long": manifest(b"x" * 200), "endless": manifest(b"x" * 208),
         "no id": manifest(b""), "count": manifest(b"a", count=2**31),
         "version": manifest(b"a", version=VERSION + 1), "later": manifest(*[b"a"] * 9),
         "magic": manifest(b"a", magic=b"MSTVALUE"), "cut": manifest(b"a")[:-1], "empty": b""}
for name, seed in seeds.items():
    pathlib.Path(name).write_bytes(seed)
