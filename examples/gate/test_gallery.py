"""Tests with limits, for docs/gate.md: `memstow run --python-objects -- python3 -m pytest -p pytest_memstow
--memstow`."""
import os

import pytest

thumbnails = {}


def shrink(picture):
    return bytes(picture[::4])


def visit(number, keep):
    small = shrink(bytearray(4 * 2**20))
    if keep:
        thumbnails[number] = small


@pytest.mark.limit_memory("16 MB")
@pytest.mark.limit_leaks("256 KB")
def test_a_visit_leaves_nothing():
    for number in range(8):
        visit(number, keep="GALLERY_KEEPS" in os.environ)
