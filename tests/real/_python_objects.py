"""Plants 20,000 Python objects of 500 bytes each in one line, and ends without giving any back."""
import os

COUNT, SIZE = 20_000, 500


def plant():
    return list(map(bytes, [SIZE - 33] * COUNT)) # 33: what a bytes object has besides its bytes


planted = plant()
os._exit(0)
