#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 600
"""A real ComfyUI under memstow. If all models have the policy free, at most 5 % of the memory that loading took is
left. If all have the policy keep, the trigger changes nothing. Without kept models, /free with both flags gives back as
much as in a ComfyUI without memstow, and our own trigger gives back as much as /free. The ledger and RSS both show
this.

RSS is read at moments when it is comparable. ComfyUI makes weights that nobody writes, and chance decides how many of
their pages exist, so the test writes all of them. Garbage and free pages of the C library are removed first: without
that, two ComfyUIs without memstow differed by 28 MB. glibc keeps free memory at the end of all arenas but the first, so
the test limits glibc to one arena."""
import time

import support
from _comfy import MB, Comfy, link, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")
FFN, CLIP = 140_000, 230 * MB
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}


def live(comfy):
    return support.report(comfy.pid())["totals"]["live_bytes"]


def written(seed):
    """Three models, all their weights written."""
    return {**mixed(seed, None, None),
            "write": {"class_type": "WriteWeights", "inputs": {"clip": link("clip"), "vae": link("vae")}}}


def loaded_and_freed(comfy, presses=1):
    """Loads three models and frees them by the button "Free model and node cache", twice. Returns by how much RSS fell
    the second time, when the libraries were warm. The button is pressed again, at most `presses` times in all, until
    memory comes back: without memstow, ComfyUI may overlook the button for minutes if it is pressed while ComfyUI
    collects garbage after a run."""
    at_least = comfy.weights + CLIP
    for seed in (1, 2):
        comfy.run(written(seed))
        time.sleep(3)
        before = comfy.tidy_rss()
        for again in reversed(range(presses)):
            comfy.free(unload_models=True, free_memory=True)
            try:
                support.wait_for(lambda: before - comfy.tidy_rss() > 0.8 * at_least, 30, "memory coming back")
                break
            except AssertionError:
                if not again:
                    raise
        time.sleep(1)
    return before - comfy.tidy_rss()


comfy = Comfy(None, ffn=FFN, pack=False, name="bare", env=ENVIRONMENT)
with comfy:
    bare = loaded_and_freed(comfy, presses=4)
comfy = Comfy("memstow", ffn=FFN, env=ENVIRONMENT)
with comfy:
    unloaded = live(comfy)
    button = loaded_and_freed(comfy)
    assert button >= 0.98 * bare, f"/free gave back {button / MB:.1f} MB; without memstow {bare / MB:.1f} MB"
    comfy.run(written(3), extra={"memstow": "keep"})
    rss = comfy.tidy_rss()
    comfy.run(written(4), extra={"memstow": "free"})
    ours = rss - comfy.tidy_rss()
    assert ours >= 0.98 * button, f"by RSS the trigger gave back {ours / MB:.1f} MB, /free {button / MB:.1f} MB"
    print(f"by RSS: /free without memstow {bare / MB:.1f} MB, with it {button / MB:.1f} MB, trigger {ours / MB:.1f} MB")

    comfy.run(mixed(5, None, None))
    comfy.free(unload_models=True, free_memory=True)
    time.sleep(1)
    least = live(comfy)
    comfy.run(mixed(6, None, None), extra={"memstow": "keep"})
    owners, rss = comfy.owners(), comfy.rss()
    assert comfy.get("/memstow/trigger", {"wait": True})["done"]
    assert owners.keys() == comfy.owners().keys() and abs(comfy.rss() - rss) < 8 * MB, (rss, comfy.rss())
    comfy.free(unload_models=True)
    assert not any(o["is_loaded"] for o in comfy.owners().values()) and len(comfy.owners()) == 3
    loaded = live(comfy)
    comfy.run(mixed(7, None, None), extra={"memstow": "free"})
    assert not comfy.owners() and len(comfy.report()["freed"]) == 3
    by_button, ours = loaded - least, loaded - live(comfy)
    assert by_button >= comfy.weights + CLIP, f"/free gave back {by_button / MB:.1f} MB"
    assert ours >= 0.98 * by_button, f"the trigger gave back {ours / MB:.1f} MB, /free {by_button / MB:.1f} MB"
    print(f"by the ledger: /free {by_button / MB:.1f} MB, trigger {ours / MB:.1f} MB")
    # `least` was read after libraries were imported, because the memory that imports take differs by megabytes between
    # versions.
    left = live(comfy) - least
    print(f"left: {left / MB:.1f} MB, and {(least - unloaded) / MB:.1f} MB of imports and of the runs before")
    assert left <= 0.05 * (loaded - least), f"{left / MB:.1f} MB are left of what loading took"
    base = comfy.rss()
    comfy.run(mixed(8, None, None), extra={"memstow": "free"})
    assert comfy.rss() - base <= max(0.05 * by_button, 32 * MB), (base, comfy.rss())
    comfy.check_trace()
