"""--check finds each of the five faults in a trace with just this fault, says where it is, and exits with 1. Without
--check the exit status is 0."""
import copy, json

import _decisions
from _decisions import CACHE, CLIP, LINES, OLD, UNET, VAE
from _ledger import MIB, Ledger
from support import memstow


def position(kind, **members):
    """The position of the line of LINES with these members."""
    found = [i for i, line in enumerate(LINES) if line["kind"] == kind and members.items() <= line.items()]
    assert len(found) == 1, (kind, members, found)
    return found[0]


def faults(lines, first=1):
    """The faults of a trace: (name, line, trigger, owner)."""
    _decisions.clean(lines, first).save("x.mst")
    memstow("decisions", "x.mst")
    document = json.loads(memstow("decisions", "x.mst", "--json").stdout)
    found = [(f["fault"], f["line"], f["trigger"], f["owner"]) for f in document["faults"]]
    text = memstow("decisions", "x.mst", "--check", status=1 if found else 0).stdout
    assert all(len(line) <= 80 for line in text.split("\n")) and text.count("\nFaults\n") == bool(found), text
    assert all(f"  line {line}, owner {owner}: {name}: " in text for name, line, _, owner in found), text
    memstow("decisions", "x.mst", "--check", "--json", status=1 if found else 0)
    return found


def changed(where, **members):
    lines = copy.deepcopy(LINES)
    lines[where].update(members)
    return lines


def expect(fault, lines, where, trigger, owner):
    found = faults(lines)
    assert found == [(fault, where + 1, trigger, owner)], (fault, where + 1, trigger, owner, found)


assert faults(LINES) == []

# Ids differ: a policy was set on one object and read from another.
unet, clip, vae = (position("READ", owner=owner, rule=rule) for owner,
                   rule in ((UNET, "parent"), (CLIP, "patcher"), (VAE, "default")))
expect("ids_differ", changed(unet, parents=[999], inner=222), unet, 1, UNET)
expect("ids_differ", changed(unet, parents=[999]), unet, 1, UNET) # the policy is on no parent, only on the inner model
expect("ids_differ", changed(clip, patcher=110, inner=210), clip, 1, CLIP)
assert faults(changed(clip, rule="inner")) == [] # two ways to find one policy
expect("ids_differ", changed(vae, rule="patcher"), vae, 1, VAE) # a policy was set on no object at all
lines = changed(clip, rule="default", patcher=110, inner=210)
expect("ids_differ", lines, clip, 1, CLIP)
last = position("READ", owner=CLIP, rule="inner")
expect("ids_differ", changed(last, rule="patcher"), last, 2, CLIP) # the patcher's policy was removed
# If the beginning of the trace is gone, the line that set the policy may be gone, too.
assert faults(changed(vae, rule="patcher")[2:], first=50) == []

# A policy was set, and not found.
lines = changed(clip, rule="default")
expect("policy_not_found", lines, clip, 1, CLIP)
decision, trigger_line = position("DECISION", owner=UNET), position("TRIGGER", trigger=1)
read = changed(unet, policy="keep")
assert faults(read) == [("policy_not_found", unet + 1, 1, UNET), ("policy_not_found", decision + 1, 1, UNET)]
expect("policy_not_found", changed(position("READ", owner=CACHE), instead="free"), position("DECISION", owner=CACHE), 1,
       CACHE)
first = position("SET", owner=UNET, priority=0)
lines = changed(first, policy="keep")
expect("policy_not_found", lines, decision, 1, UNET) # memstow decided by a policy that differs from the set one
lines.insert(trigger_line - 1, lines.pop(first)) # now it is the last line before the trigger
assert ("policy_not_found", decision + 1, 1, UNET) in faults(lines)
lines[trigger_line]["began_ns"] = (trigger_line + 1) * 10**9 # it was set after the trigger had looked at the owners
assert ("policy_not_found", decision + 1, 1, UNET) not in faults(lines)
keep = position("DECISION", owner=CLIP, trigger=1)
lines = changed(keep, why="nothing_said")
expect("policy_not_found", lines, keep, 1, CLIP)
other = dict(kind="SET", by="comfyui", owner=CLIP, inner=202, policy="stow") # it counts for patchers without a policy
lines = copy.deepcopy(LINES[:clip] + [other] + LINES[clip:])
assert faults(lines) == []
lines[clip + 1].update(rule="inner", policy="stow", instead="keep")
expect("policy_not_found", lines, clip + 1, 1, CLIP) # a policy was set on this patcher
assert faults(changed(position("READ", owner=VAE), rule="flag")) == [] # a flag of another program keeps it

# A wrong category.
freed, kept, blocked = (position("CATEGORY", owner=owner, trigger=1) for owner in (UNET, CLIP, OLD))
act = position("ACT", trigger=1)
lines = changed(freed, category="blocked")
lines[act].update(freed=0, blocked=2, models_after=5)
expect("wrong_category", lines, freed, 1, UNET)
lines = changed(kept, category="freed")
lines[act].update(freed=2, kept=1, models_after=3)
expect("wrong_category", lines, kept, 1, CLIP)
lines = changed(position("CATEGORY", owner=CACHE), category="kept")
lines[act].update(stowed=0, kept=3)
expect("wrong_category", lines, position("CATEGORY", owner=CACHE), 1, CACHE)
lines = changed(freed, category="given away")
lines[act].update(freed=0, models_after=5)
expect("wrong_category", lines, freed, 1, UNET)
in_use = position("DECISION", trigger=2)
lines = changed(in_use, why="not_needed") # with this reason the category would be kept, not blocked
expect("wrong_category", lines, position("CATEGORY", trigger=2), 2, CLIP)
found = faults(changed(decision, action="stow"))
assert ("wrong_category", decision + 1, 1, UNET) in found, found
lines = copy.deepcopy(LINES)
empty = position("DECISION", why="empty")
lines[empty]["why"] = "nothing_said" # so it has no reason
expect("wrong_category", lines, empty, 1, _decisions.IDLE)

# A kept model is gone if a line LOST says so, or if nothing is left of the model.
lost = dict(kind="LOST", by="comfyui", owner=VAE, name="vae", phase="after the run",
            stack=["reset (execution.py:612)", "run (main.py:7)"])
lines = LINES[:act + 1] + [lost] + LINES[act + 1:]
expect("kept_model_gone", lines, act + 1, 1, VAE)
text = memstow("decisions", "x.mst").stdout
assert """\nLost vae.safetensors (model 3) is gone, after the run
      reset (execution.py:612)
      run (main.py:7)
""" in text, text
expect("kept_model_gone", LINES[:act + 1] + [{**lost, "owner": 42}] + LINES[act + 1:], act + 1, 1, 42)
assert faults(LINES[:act + 1] + [{**lost, "owner": UNET}] + LINES[act + 1:]) == [] # its policy was "free"
expect("kept_model_gone", LINES + [{**lost, "owner": VAE}], len(LINES), 2, VAE) # trigger 1 decided to keep it
vanished = [line for line in changed(kept, after_bytes=0)
            if not (line["kind"] == "REMAINING" and line["owner"] == CLIP and line["trigger"] == 1)]
act_now = vanished.index(LINES[act])
vanished[act_now] = {**LINES[act], "after_bytes": 433 * MIB}
expect("kept_model_gone", vanished, kept, 1, CLIP)

# Counts do not add up.
trigger = position("TRIGGER", trigger=1)
for member, wrong in (("kept", 3), ("stowed", 0), ("freed", 2), ("blocked", 0), ("models_before", 4),
                      ("models_after", 5), ("before_bytes", 1199 * MIB)):
    expect("counts", changed(act, **{member: wrong}), act, 1, 0)
assert faults(changed(act, after_bytes=1)) == [("counts", act + 1, 1, 0)] * 2 # neither sum fits
expect("counts", changed(trigger, owners=5), trigger, 1, 0)
expect("counts", changed(trigger, before_bytes=0), trigger, 1, 0)
expect("counts", changed(position("REMAINING", owner=UNET), bytes=2 * MIB), act, 1, 0)

# Memory in devices has sums of its own, separate from those of host memory.
of_devices = [dict(kind="TRIGGER", trigger=3, reason="run_ended", text="ok", needed=0, owners=1, before_bytes=0,
                   device_before_bytes=64),
              dict(kind="DECISION", trigger=3, owner=UNET, policy="free", action="free", why="policy", bytes=0,
                   device_bytes=64),
              dict(kind="CATEGORY", trigger=3, owner=UNET, category="blocked", before_bytes=0, after_bytes=0,
                   stowed_bytes=0, device_before_bytes=64, device_after_bytes=48),
              dict(kind="REMAINING", trigger=3, owner=UNET, bytes=0, stowed_bytes=0, device_bytes=48, why="alive"),
              dict(kind="ACT", trigger=3, kept=0, stowed=0, freed=0, blocked=1, models_before=1, models_after=1,
                   before_bytes=0, after_bytes=0, device_before_bytes=64, device_after_bytes=48, moved_bytes=0,
                   released_bytes=0, given_bytes=16, took_ns=1000)]
assert faults(LINES + of_devices) == []
text = memstow("decisions", "x.mst").stdout
assert ("    blocked, in devices 64 B before, 48 B left\n" in text
        and "; in devices 64 B before, 48 B after;" in text.replace("\n  ", " ")), text
for line, member, at, owner in ((0, "device_before_bytes", 0, 0), (3, "device_bytes", 4, 0),
                                (4, "device_before_bytes", 4, 0)):
    lines = copy.deepcopy(LINES + of_devices)
    lines[len(LINES) + line][member] = 63
    expect("counts", lines, len(LINES) + at, 3, owner)
lines = copy.deepcopy(LINES + of_devices)
lines[-3]["category"] = "freed" # 48 of 64 are left
assert ("wrong_category", len(LINES) + 3, 3, UNET) in faults(lines)
lines = copy.deepcopy(LINES)
lines.insert(empty, lines[empty])
lines[trigger]["owners"] = 7
expect("counts", lines, empty + 1, 1, _decisions.IDLE)
# A line in the middle is missing.
ledger = _decisions.clean(LINES[:6])
for number, line in enumerate(LINES[6:]):
    ledger.line(number + 17, **line)
ledger.save("gap.mst")
document = json.loads(memstow("decisions", "gap.mst", "--check", "--json", status=1).stdout)
assert [(f["fault"], f["line"]) for f in document["faults"]] == [("counts", 17)], document["faults"]

# The largest numbers do not wrap around: sums stop at the largest number.
most = 2**64 - 1
lines = copy.deepcopy(LINES)
for line in lines:
    if line.get("trigger") == 1:
        line.update({key: most for key in line if key in ("before_bytes", "bytes", "after_bytes")})
found = faults(lines)
# these bytes say that the UNET was not freed, and that the idle owner is not empty
assert {name for name, *_ in found} == {"wrong_category"}, found

# A file with the largest possible number of settings of one owner is read in seconds.
ledger = Ledger()
ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(64, 1))
for policy in ("free", "none"):
    for number in range(5000):
        ledger.line(kind="SET", by="test", owner=1, patcher=7, inner=1000 + number, policy=policy)
for _ in range(3000):
    ledger.line(kind="READ", by="test", owner=1, patcher=7, inner=5, rule="patcher", policy="free")
ledger.save("many.mst")
faults = json.loads(memstow("decisions", "many.mst", "--check", "--json", status=1).stdout)["faults"]
assert {fault["fault"] for fault in faults} == {"ids_differ"} and len(faults) == 1000, faults[:3]
