#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 600
"""A real ComfyUI under memstow has three models: one is stowed, one is kept, one has no policy. `memstow stow`,
`restore` and `trigger` from outside move the stowed model, as the ledger and RSS show. The button Free does not free
kept models, and the next run finds them. With MEMSTOW_FREE_BUTTON=all the button frees all models, and the system gets
their memory back."""
import support
from _comfy import MB, Comfy, mixed, need_real

need_real("stow", "restore", "trigger_begin", "trigger_end", "trace", "decisions")


def ask(comfy, *words):
    return support.memstow(words[0], comfy.pid(), *words[1:]).stdout


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


def model(comfy):
    return comfy.owners()["MODEL"]


def from_outside(comfy, owner):
    """Moves the model back and out again by its owner's id. Then moves it back once more, and out by a trigger."""
    stowed, rss = model(comfy)["stowed_bytes"], comfy.rss()
    text = ask(comfy, "restore", owner)
    assert model(comfy)["stowed_bytes"] == 0 and comfy.rss() - rss >= 0.9 * comfy.weights, (text, rss, comfy.rss())
    rss = comfy.rss()
    text = ask(comfy, "stow", owner)
    assert model(comfy)["stowed_bytes"] >= 0.95 * stowed, text
    assert rss - comfy.rss() >= 0.9 * comfy.weights, (text, rss, comfy.rss())
    ask(comfy, "restore", owner)
    ask(comfy, "trigger", "--reason=a test of ours")
    assert model(comfy)["stowed_bytes"] >= 0.95 * stowed and comfy.report()["reason"] == "request", comfy.report()
    trigger = comfy.lines("TRIGGER")[-1]
    assert (trigger["reason"], trigger["text"]) == ("request", "a test of ours"), trigger


def selective(comfy, digests):
    before = comfy.owners()
    rss = comfy.rss()
    comfy.free(unload_models=True, free_memory=True)
    after = comfy.owners()
    assert {t: o["id"] for t, o in after.items()} == {t: o["id"] for t, o in before.items()}, after
    assert after["CLIP"]["live_bytes"] == before["CLIP"]["live_bytes"] >= 230 * MB, after
    assert after["MODEL"]["stowed_bytes"], after
    assert rss - comfy.rss() < 32 * MB, "the button took what is to be kept"
    done = comfy.run(mixed(1, "stow", "keep"))
    assert {"unet", "clip", "clip_policy", "vae"} <= cached(done) and "words" not in cached(done), cached(done)
    assert [comfy.digest(done), comfy.digest(done, "image_digest")] == digests, "the output changed"
    assert {t: o["id"] for t, o in comfy.owners().items()} == {t: o["id"] for t, o in before.items()}


with Comfy("memstow", ffn=140_000) as comfy:
    assert comfy.weights >= 256 * MB
    done = comfy.run(mixed(1, "stow", "keep"))
    if not model(comfy)["stowed_bytes"] and any(line.get("why") == "cannot" for line in comfy.lines("DECISION")):
        support.skip("this kernel cannot move the model's pages")
    from_outside(comfy, model(comfy)["id"])
    selective(comfy, [comfy.digest(done), comfy.digest(done, "image_digest")])
    comfy.check_trace()
with Comfy("memstow", ffn=140_000, env={"MEMSTOW_FREE_BUTTON": "all"}, name="all") as comfy:
    comfy.run(mixed(1, "stow", "keep"))
    ask(comfy, "restore", model(comfy)["id"])
    rss, live = comfy.rss(), support.report(comfy.pid())["totals"]["live_bytes"]
    comfy.free(unload_models=True, free_memory=True)
    support.wait_for(lambda: not comfy.owners(), 30, "all models gone")
    support.wait_for(lambda: rss - comfy.rss() >= 0.95 * comfy.weights, 30, "the UNET's memory coming back")
    live -= support.report(comfy.pid())["totals"]["live_bytes"]
    assert live >= 0.95 * (comfy.weights + 230 * MB), live # some pages of the text encoder were never touched
    comfy.check_trace()
