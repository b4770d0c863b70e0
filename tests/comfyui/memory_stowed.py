#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""A real ComfyUI under memstow: a UNET of more than 512 MB that is to be stowed is out after the run, by RSS and by the memory
of its cgroup, and the next run's output is the same to the bit."""
import pathlib, time

from _comfy import MB, Comfy, need_real, policy, sample, unet

need_real("stow", "restore", "trigger_begin", "trigger_end", "trace", "decisions")
comfy = Comfy("memstow", ffn=263_000)


def cgroup():
    """memory.current of ComfyUI's cgroup; None where it cannot be read."""
    for line in pathlib.Path(f"/proc/{comfy.pid()}/cgroup").read_text().splitlines():
        file = pathlib.Path(f"/sys/fs/cgroup{line.split(':')[2]}") / "memory.current"
        if line.startswith("0:") and file.is_file():
            return int(file.read_text())
    return None


def workflow(word, seed):
    return {"unet": unet(), "policy": policy("unet", word), **sample("policy", seed)}


try:
    assert comfy.weights >= 512 * MB
    expected = [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)]
    rss, group, owner = comfy.rss(), cgroup(), comfy.owners()["MODEL"]["id"]
    begun = time.monotonic()
    comfy.run(workflow("stow", 2))
    took = time.monotonic() - begun
    fallen, group_fallen = rss - comfy.rss(), None if group is None else group - cgroup()
    stowed = comfy.owners()["MODEL"]
    print(f"stowed {stowed['stowed_bytes'] / MB:.0f} MB in {took:.1f} s: RSS fell by {fallen / MB:.0f} MB, the cgroup's memory "
          f"by {'?' if group_fallen is None else round(group_fallen / MB)} MB")
    if not stowed["stowed_bytes"] and any(line.get("why") == "cannot" for line in comfy.lines("DECISION")):
        import support
        support.skip("this kernel cannot move the model's pages")
    assert stowed["stowed_bytes"] >= 0.95 * comfy.weights, stowed
    assert fallen >= 0.95 * comfy.weights, fallen
    assert group_fallen is None or group_fallen >= 0.95 * comfy.weights, group_fallen
    again = [comfy.digest(comfy.run(workflow("stow", seed))) for seed in (1, 2)]
    assert again == expected, "the output changed"
    assert comfy.owners()["MODEL"]["id"] == owner
    comfy.check_trace()
    owners = comfy.get("/memstow/owners")["owners"][0]
    print(f"afterwards: live {owners['live_bytes']}, resident {owners['resident_bytes']}, stowed {owners['stowed_bytes']}")
except BaseException:
    print(comfy.log()[-3000:])
    raise
finally:
    comfy.stop()
