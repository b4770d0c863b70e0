#!/usr/bin/env python3
"""Tests folders that are refused, and values that pickle cannot express. A folder in memory is refused for files and
for a prefix, and nothing is left in it. A value that pickle cannot express goes through cloudpickle if cloudpickle is
installed (here a double of it). Otherwise the value is held by reference."""
import pathlib, shutil, tempfile

import _state, support

if support.run("stat", "-f", "-c", "%T", "/dev/shm", status=None).stdout.strip() != "tmpfs":
    support.skip("/dev/shm is not in memory")
DOUBLE = """import pickle

class CloudPickler(pickle.Pickler):
    def reducer_override(self, value):
        if getattr(value, "__name__", "") == "<lambda>":
            return eval, (value.source,)
        return NotImplemented
"""
folder, memory = _state.real_disk(), pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
try:
    _state.is_refused(memory, folder)
finally:
    shutil.rmtree(memory)
CODE = """
    sys.path.insert(0, str(folder))
    if not (folder / "cloudpickle.py").exists():
        sys.modules["cloudpickle"] = None  # as if it were not installed
    double = lambda number: 2 * number
    double.source = "lambda number: 2 * number"
    with memstow_state.open("loop") as store:
        store.begin(); store.put("f", double); store.commit()
        found, (row,) = store.get("f"), store.info()
        assert found(4) == 8 and (found is double) == (row["where"] == "reference"), row
        assert {expected}, row
    """
_state.python(CODE.format(expected='row["where"] == "reference"'), folder)
(folder / "cloudpickle.py").write_text(DOUBLE)
_state.python(CODE.format(expected='row["where"] == "ram" and row["type"] == "CUSTOM_CLOUDPICKLE"'), folder)
shutil.rmtree(folder)
