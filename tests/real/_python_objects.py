"""Plants 20,000 Python objects of 500 bytes each in one line, and ends without freeing any."""
import os

COUNT, SIZE = 20_000, 500


def plant():
    return list(map(bytes, [SIZE - 33] * COUNT)) # 33: the size of a bytes object without its bytes


planted = plant()
os._exit(0)
