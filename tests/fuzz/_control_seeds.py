"""Seeds for the control socket's parser: each kind of message, and invalid ones."""
import pathlib, struct


def message(type, owner=0, ticket=0, number=0, text=b"", version=1, magic=0x4357534d, length=None):
    length = 32 + len(text) if length is None else length
    return struct.pack("<IHHIIQq", magic, version, type, length, owner, ticket, number) + text


seeds = [
    message(1, text="freed — at once €".encode()),
    message(2, 7),
    message(3, 7),
    message(4, 1 << 31),
    message(5),
    message(6, 7, number=2),
    message(6, number=3),
    message(7),
    message(8, text=b"5,9"),
    message(16, ticket=1),
    message(17, ticket=1, number=1 << 30),
    message(18, ticket=1, number=-5, text=b"no room"),
    message(18, text=b"x" * 255),
    message(2),
    message(6, 7),
    message(1, 3),
    message(1, version=2),
    message(1, length=99),
    message(1, text=b"\xed\xa0\x80"),
    message(1, text=b"a\0b"),
    message(1, text=b"\xf0\x9f\x98\x80\xff"), b"", b"MSWC"
]
for number, seed in enumerate(seeds):
    pathlib.Path(f"seed{number}").write_bytes(seed)
