#!/usr/bin/env python3
"""A picture gallery that keeps more than it should. It makes thumbnails of pictures and drops the pictures, but keeps
the thumbnails in a cache without a limit. That cache is the live memory that `memstow report` shows at the end."""
import hashlib
import os
import zlib

PICTURES, WIDTH, HEIGHT = 60, 1280, 800

thumbnails = {}
index = []


def render(number):
    """A picture: one byte a pixel, a pattern that depends on the number."""
    row = bytes((x * number) & 255 for x in range(WIDTH))
    return bytearray(row * HEIGHT)


def shrink(picture):
    """Every second pixel of every second row."""
    return b"".join(bytes(picture[y * WIDTH:(y + 1) * WIDTH:2]) for y in range(0, HEIGHT, 2))


def visit(number):
    picture = render(number)
    thumbnails[number] = shrink(picture)
    index.append({"number": number, "name": f"picture-{number:03}", "digest": hashlib.sha256(picture).hexdigest(),
                  "packed": len(zlib.compress(picture))})


for picture_number in range(PICTURES):
    visit(picture_number)
kept = sum(map(len, thumbnails.values()))
print(f"{PICTURES} pictures of {WIDTH * HEIGHT:,} bytes each seen and dropped; {len(thumbnails)} thumbnails kept, "
      f"{kept:,} bytes in all", flush=True)
os._exit(0) # ends like a killed server, without cleaning up; the ledger has everything nevertheless
