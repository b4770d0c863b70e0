"""The directory of the output is removed while the program runs: the program goes on, and a line reports the loss."""
import pathlib, shutil

import _bad_day

program = _bad_day.program()
gone = pathlib.Path("gone")


def make():
    shutil.rmtree(gone, ignore_errors=True)
    gone.mkdir()


said = _bad_day.same([program, f"rmdir={gone}"], file=gone / "out.mst", before=make)
assert "no ledger" in said, said
assert not gone.exists()
