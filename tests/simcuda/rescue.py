# A device has no memory for a request, because idle models use all of it. By their policies, these models leave the
# device, and the program does not notice. The trace has the decisions. Each case of _rescue.c runs by itself, over the
# simulated driver (a test double).
import json

import support
from _simcuda import BUILD, environment, left_out

program = BUILD / "rescue"
names = support.run(program, env=environment()).stdout.split()
assert len(names) == 25, names

WISH = {"turned_off": "0", "kept_is_taken": "kept"}
# The rescues of each case. A rescue is a list with the decision and its reason for each owner. Cases that are not
# listed have no rescue.
STOWED, CANNOT = ("stow", "policy"), ("keep", "cannot")
DECIDED = {"makes_room": [[STOWED]], "asked_twice": [[STOWED]], "other_entries": 3 * [[STOWED]], "in_use": [[CANNOT]],
           "is_kept": [[("keep", "policy")]], "nothing_said": [[("keep", "nothing_said")]],
           "kept_is_taken": [[("stow", "rescue")]], "to_be_freed": [[("stow", "rescue")]],
           "own_scope": [[("keep", "in_use")]], "captured": [[STOWED]],
           "in_order": [[STOWED, ("keep", "not_needed")], [STOWED, STOWED]], "threads": [[STOWED]],
           "behind_a_long_move": [[STOWED]], "a_kernel_does_not_end": [[STOWED]], "used_again": [[STOWED]],
           "too_much": [[STOWED]], "other_device": [[STOWED, CANNOT]]}


def rescues(lines):
    """Returns [(action, why), …] of each trigger that was a rescue. Asserts that each of these triggers finished."""
    found = []
    for line in lines:
        if line["kind"] == "TRIGGER" and line["reason"] == "rescue":
            number = line["trigger"]
            assert line["text"] == "no device memory was left" and line["needed"] >= 8 << 20, line
            assert any(l["kind"] == "ACT" and l["trigger"] == number for l in lines), lines
            found.append([(l["action"], l["why"]) for l in lines
                          if l["kind"] == "DECISION" and l["trigger"] == number and l.get("device_bytes")])
    return found


for name in names:
    if name in left_out("rescue"):
        continue
    wish = {"MEMSTOW_CUDA_RESCUE": WISH[name]} if name in WISH else {}
    done = support.track(program, name, file=f"{name}.mst", status=None,
                         env=environment(SIMCUDA_CAPACITY="48M", SIMCUDA_DEVICES="2" if name == "other_device" else "1",
                                         MEMSTOW_CUDA_MOVES="2M", **wish))
    assert done.returncode == 0 and done.stdout == "ok\n", f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"
    trace = support.memstow("decisions", f"{name}.mst", "--check", "--json", status=None)
    assert trace.returncode == 0, f"{name}: {trace.stdout}{trace.stderr}"
    lines = json.loads(trace.stdout)["lines"]
    expected = DECIDED.get(name, [])
    if name == "not_again_at_once": # 100 refusals at once, and more until a rescue is allowed again
        found = rescues(lines)
        assert len(found) <= 6 and found[:-1] == [[CANNOT]] * (len(found) - 1) and found[-1] == [STOWED], found
        continue
    assert rescues(lines) == expected, f"{name}: {rescues(lines)}, not {expected}\n{trace.stdout}"

text = support.memstow("decisions", "makes_room.mst").stdout
assert "rescue (no device memory was left)" in text, text
assert "stowed because a device had no memory left" in support.memstow("decisions", "to_be_freed.mst").stdout

# The program saw no error: no refusal is noted, and there is no snapshot.
cuda = support.report("makes_room.mst")["cuda"]
assert not cuda["refused"] or not cuda["refused"]["requests"], cuda["refused"]
assert not list(support.HERE.glob("makes_room.mst.oom*"))

# A value that cannot be read counts as not set, and the report says so.
support.track(program, "turned_off", file="word.mst", status=None, 
              env=environment(SIMCUDA_CAPACITY="48M", MEMSTOW_CUDA_MOVES="2M", MEMSTOW_CUDA_RESCUE="maybe"))
notes = support.report("word.mst")["process"]["notes"]
assert any(note.startswith("MEMSTOW_CUDA_RESCUE is not 0, 1 or kept") for note in notes), notes
