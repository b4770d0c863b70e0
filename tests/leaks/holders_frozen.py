# timeout: 200
"""A search for holders names the variable that holds a leak, but not if gc.freeze() has hidden the variable's list."""
from _leaks import brief, leaks, waiting


def holder(freeze):
    program = waiting(f"""
import gc
import memstow
kept = []
{freeze}
for run in range(12):
    with memstow.run(f"run {{run}}"):
        kept.append([bytearray(40_000)])
""", file=f"{freeze or 'plain'}.mst")
    document = leaks(program.pid(), "--holders", status=1)
    program.end()
    assert len(document["leaks"]) == 1, brief(document)
    return document["leaks"][0]["held_at"]


assert holder("") == "__main__.kept"
assert holder("gc.freeze()") == "an object of type builtins.list"
