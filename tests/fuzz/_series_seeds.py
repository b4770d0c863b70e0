"""Seeds for the section SERIES: a series in which sites grow, fluctuate and stay; the same series, truncated; a series
without sites; and a series with huge changes."""
import pathlib


def leb128(*numbers):
    out = b""
    for number in numbers:
        while number >= 0x80:
            out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
        out += bytes([number])
    return out


def folded(number):
    return (number << 1 ^ number >> 63) & (1 << 64) - 1


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


def series(points, sites):
    body = leb128(points) + b"".join(leb128(4, 1, 1000 + i, 5000 * i, i) for i in range(points)) + leb128(len(sites))
    for model, node, path, changes in sites:
        body += leb128(model, node, path, len(changes))
        last = 0
        for point, size in changes:
            body += leb128(point - last, folded(size), folded(1))
            last = point
    return body


NOWHERE = fnv(b"(unknown module)")
growing = series(40, [(1, 0, NOWHERE, [(i, 4096) for i in range(40)]),
                      (1, 2, NOWHERE, [(i, (-1)**i * 999) for i in range(40)]), (0, 0, NOWHERE, [(0, 1 << 20)]),
                      (9, 9, 9, [(3, 3)])])
pathlib.Path("growing").write_bytes(growing)
pathlib.Path("cut").write_bytes(growing[:-7])
pathlib.Path("few").write_bytes(series(1, []))
pathlib.Path("huge").write_bytes(series(3, [(1, 0, NOWHERE, [(0, 2**62), (1, 2**62), (2, -2**62)])]))
