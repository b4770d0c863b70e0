#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""A real ComfyUI under memstow. All free: what loading took is back, against before the first load. All keep: the trigger touches
nothing. Parity: with nothing kept, /free with both flags gives back as much as in a ComfyUI without memstow, and our own
trigger as much as that, by the ledger and by RSS."""
import time

import support
from _comfy import MB, Comfy, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")
FFN = 140_000


def live(comfy):
    return support.report(comfy.pid())["totals"]["live_bytes"]


def press(comfy, is_back, presses):
    """ComfyUI itself overlooks for minutes what is asked while it collects garbage after a run: without memstow the button is
    pressed again."""
    for again in reversed(range(presses)):
        comfy.free(unload_models=True, free_memory=True)
        try:
            return support.wait_for(is_back, 30, "memory coming back")
        except AssertionError:
            if not again:
                raise


def loaded_and_freed(comfy, presses=1):
    """RSS with three models, and when the button has taken them: of the second time, when libraries are warm."""
    for seed in (1, 2):
        comfy.run(mixed(seed, None, None))
        time.sleep(3) # see press()
        before = comfy.rss()
        press(comfy, lambda: before - comfy.rss() > 0.8 * comfy.weights, presses)
        time.sleep(1)
        after = comfy.rss()
    return before, after


comfy = Comfy(None, ffn=FFN, pack=False, name="bare")
with comfy:
    before, after = loaded_and_freed(comfy, presses=4)
    bare = before - after
comfy = Comfy("memstow", ffn=FFN)
with comfy:
    unloaded = live(comfy)
    before, after = loaded_and_freed(comfy)
    button, least = before - after, live(comfy)
    assert button >= 0.98 * bare, f"/free gave back {button / MB:.1f} MB; without memstow {bare / MB:.1f} MB"
    comfy.run(mixed(3, None, None), extra={"memstow": "keep"})
    owners, rss = comfy.owners(), comfy.rss()
    assert comfy.get("/memstow/trigger", {"wait": True})["done"]
    assert owners.keys() == comfy.owners().keys() and abs(comfy.rss() - rss) < 8 * MB, (rss, comfy.rss())
    comfy.free(unload_models=True)
    assert not any(o["is_loaded"] for o in comfy.owners().values()) and len(comfy.owners()) == 3
    loaded, rss = live(comfy), comfy.rss()
    comfy.run(mixed(4, None, None), extra={"memstow": "free"})
    assert not comfy.owners() and len(comfy.report()["freed"]) == 3
    time.sleep(1)
    rss -= comfy.rss()
    # in the same state, with three models: by the ledger, and by RSS, of which the C library keeps some, sooner or later
    by_button, ours = loaded - least, loaded - live(comfy)
    assert ours >= 0.98 * by_button, f"the trigger gave back {ours / MB:.1f} MB, /free {by_button / MB:.1f} MB"
    assert rss >= 0.98 * button, f"by RSS the trigger gave back {rss / MB:.1f} MB, /free {button / MB:.1f} MB"
    left = live(comfy) - unloaded # of all that three models and four runs took, with what the first of them imported
    assert left <= max(0.05 * (loaded - unloaded), 32 * MB), f"{left / MB:.1f} MB are left of what loading took"
    base = comfy.rss()
    comfy.run(mixed(5, None, None), extra={"memstow": "free"})
    assert comfy.rss() - base <= max(0.05 * by_button, 32 * MB), (base, comfy.rss())
    comfy.check_trace()
    print(f"given back: /free without memstow {bare / MB:.1f} MB, with it {button / MB:.1f} MB, trigger {ours / MB:.1f} of {by_button / MB:.1f} MB")
