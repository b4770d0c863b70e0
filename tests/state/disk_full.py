#!/usr/bin/env python3
# needs: root
"""Tests a full disk, for a loop without a prefix and for one with a prefix. A put fails and keeps nothing, and the
values of the last iteration are still there."""
import sys

import _state, support

sys.path.insert(0, str(support.ROOT / "tests/stow"))
import _moving

with _moving.mounted("ext4", 24, "small") as disk:
    for prefix in ("None", "'p'"):
        _state.python(f"""
            store = memstow_state.open("loop", use_ram=False, persist_prefix={prefix}, directory=folder)
            store.begin(); store.put("x", bytes(5_000_000)); store.commit()
            before = os.statvfs(folder).f_bfree
            for turn in range(3):
                store.begin()
                store.put("small", "text")
                try:
                    store.put("y", bytes(40_000_000))
                    raise AssertionError("40 MB on a disk of 24 MiB")
                except memstow_state.StateError as error:
                    assert error.errno == errno.ENOSPC, error
                    assert "the disk is full" in str(error) and "'y'" in str(error), error
                store.abandon()
                assert store.generation == 1 and store.ids() == ["x"] and store.get("x") == bytes(5_000_000)
            assert abs(os.statvfs(folder).f_bfree - before) < 64, (before, os.statvfs(folder).f_bfree)
            store.begin(); store.put("x", "new"); assert store.commit() == 2 and store.get("x") == "new"
            store.close()
            assert os.listdir(folder) == ["lost+found"], os.listdir(folder)
            """, disk)
