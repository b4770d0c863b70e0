"""Flags that other programs set on a model are in the trace. `memstow decisions` shows them. --check finds a flag that
was set on one object and read on another, a flag that was overlooked, and a flag that was read but never set. If there
is a policy, a flag does not count."""
import json

import _decisions
from _decisions import UNET
from support import memstow

BASE, CLONE, COUSIN, INNER = 101, 111, 112, 201
FLAG = "_mgpu_unload_distorch_model"


def seen(policy, patcher=0, **members):
    return dict(kind="SET", by="comfyui", owner=UNET, patcher=patcher, inner=INNER, policy=policy, flag=FLAG, **members)


def said(policy, patcher):
    return dict(kind="SET", by="comfyui", owner=UNET, patcher=patcher, inner=INNER, policy=policy)


def read(policy, rule, patcher=CLONE, parents=(BASE,), on_patcher=None, on_inner=None, **members):
    if "from_" in members:
        members.update({"from": members.pop("from_"), "flag": FLAG, "on_patcher": on_patcher, "on_inner": on_inner})
    return dict(kind="READ", by="comfyui", owner=UNET, patcher=patcher, parents=list(parents), inner=INNER, rule=rule,
                policy=policy, **members)


def faults(*lines, first=1):
    """Returns (name, text) for each fault that is found in these lines. Asserts that all faults are in the last
    line."""
    _decisions.clean(lines, first).save("x.mst")
    done = memstow("decisions", "x.mst", "--check", "--json", status=None)
    found = json.loads(done.stdout)["faults"]
    assert done.returncode == bool(found) and all(f["line"] == len(lines) + first - 1 for f in found), found
    return [(f["fault"], f["text"]) for f in found]


def one(name, part, *lines):
    found = faults(*lines)
    assert len(found) == 1 and found[0][0] == name and part in found[0][1], found


# A flag counts on the object where it was set: the patcher, the object that it was cloned from, or the inner model.
assert faults(seen("free", CLONE), read("free", "flag", on_patcher=True, from_=CLONE)) == []
assert faults(seen("free", BASE), read("free", "flag", on_patcher=True, from_=BASE)) == []
assert faults(seen("keep"), read("keep", "flag", on_inner=False, from_=INNER)) == []
assert faults(seen("free"), seen("keep", BASE), read("keep", "flag", on_patcher=False, on_inner=True, from_=BASE)) == []

# A flag was set on another object.
one("ids_differ", f"flag set on one object, read on another: line 1 saw it on {COUSIN}, not on patcher {CLONE}",
    seen("free", COUSIN), read("keep", "default"))
assert faults(seen("free", COUSIN), seen("none", COUSIN), read("keep", "default")) == [] # the flag was removed by then
# a policy needs no flag
assert faults(seen("free", COUSIN), said("keep", BASE), read("keep", "parent", from_=BASE)) == []
assert faults(seen("free", COUSIN), read("free", "run")) == []
one("ids_differ", f"a flag was found on {BASE}, but none was seen on that object", seen("free", COUSIN),
    read("free", "flag", from_=BASE))
one("ids_differ", f"a flag was found on {BASE}", read("free", "flag", from_=BASE))
assert faults(read("free", "flag", from_=BASE), first=50) == [] # the line that set it may be gone
assert faults(read("free", "flag")) == [] # the program does not say where it was set

# The program overlooked a flag or a policy.
one("policy_not_found", "no policy was found, but line 1 saw a flag for free on a parent", seen("free", BASE),
    read("keep", "default"))
one("policy_not_found", "but line 1 saw a flag for free on its inner model", seen("free"), read("keep", "default"))
one("policy_not_found", "free was found, but line 2 saw a flag for keep on its patcher",
    seen("free"), seen("keep", CLONE), read("free", "flag", from_=INNER))
one("policy_not_found", "no policy was found, but line 1 set keep on a parent",
    said("keep", BASE), seen("free", CLONE), read("free", "flag", on_patcher=True, from_=CLONE))

# A flag does not remove a policy that was set on the same object or on the inner model.
assert faults(said("keep", CLONE), seen("free", CLONE), read("keep", "patcher")) == []
assert faults(said("keep", COUSIN), seen("free", CLONE), read("keep", "inner")) == []
assert faults(said("keep", CLONE), seen("free", CLONE), seen("none", CLONE), read("keep", "patcher")) == []

# The text.
LINES = [dict(kind="SET", owner=UNET, owner_kind="model", name="unet.safetensors", keys=[BASE, INNER], policy="free",
              priority=0), seen("free", BASE, node="4", value=True), read("free", "flag", on_patcher=True, from_=BASE),
         dict(kind="TRIGGER", trigger=1, reason="run_ended", text="ok", needed=0, owners=1, before_bytes=64),
         dict(kind="DECISION", trigger=1, owner=UNET, policy="free", action="free", why="policy", bytes=64),
         dict(kind="CATEGORY", trigger=1, owner=UNET, category="freed", before_bytes=64, after_bytes=0, stowed_bytes=0),
         dict(kind="ACT", trigger=1, kept=0, stowed=0, freed=1, blocked=0, models_before=1, models_after=0,
              before_bytes=64, after_bytes=0, moved_bytes=0, released_bytes=0, given_bytes=64, took_ns=1000)]
_decisions.clean(LINES).save("x.mst")
text = memstow("decisions", "x.mst", "--check").stdout
flat = " ".join(text.split())
assert f"policy free, by the flag {FLAG}, seen by comfyui on patcher {BASE} of inner model {INNER}" in flat, text
assert f"policy free, found by flag on object {BASE}" in flat and max(map(len, text.split("\n"))) <= 80, text
