#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
"""A real ComfyUI under memstow, in a control group of its own. The policy stow applies to a UNET of more than 512 MB.
After the run, RSS and the group's memory show that this model was moved out. The output of the next run is the same to
the bit, and the model's memory is anonymous again."""
import pathlib, time

import support
from _comfy import MB, Comfy, need_real, policy, sample, unet

need_real("stow", "restore", "trigger_begin", "trigger_end", "trace", "decisions")
group = support.MemoryGroup.make()
comfy = Comfy("memstow", ffn=263_000, preexec_fn=group and group.join)


def field(file, name):
    """Bytes of a line of smaps_rollup or meminfo."""
    return int(
        next(line.split()[1]
             for line in pathlib.Path(file).read_text().splitlines() if line.startswith(f"{name}:"))) << 10


def now():
    """RSS, its anonymous part, and the memory in use by the control group. Without a control group, the last figure is
    the machine's available memory, negated. When memory is given back, the negated figure falls, as the memory in use
    does."""
    rollup = f"/proc/{comfy.pid()}/smaps_rollup"
    return (comfy.rss(), field(rollup, "Anonymous"), group.used() if group else -field("/proc/meminfo", "MemAvailable"))


def workflow(word, seed):
    return {"unet": unet(), "policy": policy("unet", word), **sample("policy", seed)}


with comfy:
    assert comfy.weights >= 512 * MB
    expected = [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)]
    before, owner = now(), comfy.owners()["MODEL"]["id"]
    begun = time.monotonic()
    comfy.run(workflow("stow", 2))
    took = time.monotonic() - begun
    fallen = [then - there for then, there in zip(before, now())]
    stowed = comfy.owners()["MODEL"]
    where = "its control group" if group else "the machine (MemAvailable)"
    print(f"stowed {stowed['stowed_bytes'] / MB:.0f} MB, run and all in {took:.1f} s: RSS fell by "
          f"{fallen[0] / MB:.0f} MB, the "
          f"memory of {where} by {fallen[2] / MB:.0f} MB")
    if not stowed["stowed_bytes"] and any(line.get("why") == "cannot" for line in comfy.lines("DECISION")):
        support.skip("this kernel cannot move the model's pages")
    assert stowed["stowed_bytes"] >= 0.95 * comfy.weights, stowed
    assert fallen[0] >= 0.95 * comfy.weights, fallen
    assert not group or fallen[2] >= 0.95 * comfy.weights, fallen
    begun = time.monotonic()
    again = [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)]
    took = time.monotonic() - begun
    assert again == expected, "the output changed"
    back = comfy.owners()["MODEL"]
    assert back["id"] == owner and not back["stowed_bytes"], back
    rss, anonymous, _used = (there - then for there, then in zip(now(), before))
    print(f"back in two runs of {took:.1f} s: against before it was stowed, RSS {rss / MB:+.0f} MB, anonymous memory "
          f"{anonymous / MB:+.0f} MB; of the model's {back['live_bytes'] / MB:.0f} MB "
          f"{back['resident_bytes'] / MB:.0f} MB are resident")
    assert back["resident_bytes"] >= 0.95 * comfy.weights, back
    assert rss - anonymous <= 0.05 * comfy.weights, "it came back as something else than anonymous memory"
    comfy.check_trace()
    if not group:
        support.skip(f"no control group can be made here: RSS fell by {fallen[0] / MB:.0f} MB, MemAvailable rose by "
                     f"{fallen[2] / MB:.0f} MB")
