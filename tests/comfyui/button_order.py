#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# long
"""The buttons in a real ComfyUI under memstow do these steps, in this order: unload, reset, collect, empty. A button
sets flags of ComfyUI's queue, unload_models and free_memory. The flags can leave out unload or reset. The buttons do no
other steps, whatever the flags and policies are. If every model has the policy keep, ComfyUI's own functions unload and
reset. No model is lost by that: the next run finds all models and loads none. With MEMSTOW_FREE_BUTTON=all the buttons
take kept models, too."""

import support
from _comfy import Comfy, around_pack, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")

FIRST = '''
import sys
import comfy.model_management as mm
import execution
steps = []
def own(holder, name, word):
    before = getattr(holder, name)
    def after(*arguments, **options):
        steps.append(word)
        return before(*arguments, **options)
    setattr(holder, name, after)
own(mm, "unload_all_models", "ComfyUI's own unload")
own(execution.PromptExecutor, "reset", "ComfyUI's own reset")
'''
LAST = '''
import gc
import aiohttp.web
import server
def step(holder, name, word):
    """Called by ComfyUI's worker itself, before it does the next."""
    before = getattr(holder, name)
    def after(*arguments, **options):
        if sys._getframe(1).f_code.co_name == "prompt_worker":
            steps.append(word)
        return before(*arguments, **options)
    setattr(holder, name, after)
step(mm, "unload_all_models", "unload")
step(execution.PromptExecutor, "reset", "reset")
step(gc, "collect", "collect")
step(mm, "soft_empty_cache", "empty")
def get_flags(self, *arguments, before=execution.PromptQueue.get_flags, **options):
    found = before(self, *arguments, **options)
    if found:
        steps[:] = ["flags"]
    return found
execution.PromptQueue.get_flags = get_flags
@server.PromptServer.instance.routes.get("/test/steps")
async def get_steps(_request):
    return aiohttp.web.json_response(steps)
@server.PromptServer.instance.routes.post("/test/flags")
async def post_flags(request):
    queue = server.PromptServer.instance.prompt_queue
    with queue.mutex: # all of them are seen at once
        queue.flags.update(await request.json())
        queue.not_empty.notify()
    return aiohttp.web.json_response({})
'''
UNLOAD, RESET, END = ["unload"], ["reset"], ["collect", "empty"]
COMBINATIONS = [({"unload_models": True}, UNLOAD + END), ({"free_memory": True}, UNLOAD + RESET + END),
                ({"unload_models": True, "free_memory": True}, UNLOAD + RESET + END),
                ({"unload_models": True, "free_memory": False}, UNLOAD + END),
                ({"unload_models": False, "free_memory": True}, RESET + END)]


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


def press(comfy, flags):
    """Sets the flags, as the buttons do. Returns the steps that followed: the worker's, and those of ComfyUI's own
    functions."""
    comfy.get("/test/flags", flags)
    support.wait_for(lambda: "empty" in comfy.get("/test/steps") and "flags" in comfy.get("/test/steps"), 30,
                     "the steps")
    comfy.settled()
    steps = comfy.get("/test/steps")[1:]
    steps = steps[:steps.index("empty") + 1]
    return [step for step in steps if "own" not in step], [step for step in steps if "own" in step]


def ids(comfy):
    return {kind: owner["id"] for kind, owner in comfy.owners().items()}


def in_order(comfy, workflow, is_selective):
    for flags, wanted in COMBINATIONS:
        comfy.run(workflow)
        worker, own = press(comfy, flags)
        assert worker == wanted, (flags, worker)
        functions = [f"ComfyUI's own {word}" for word in wanted if word == "reset" or word == "unload"
                     and not is_selective]
        assert own == functions, (flags, own)


with Comfy("memstow", pack=False, before=(around_pack(FIRST, LAST),)) as comfy:
    in_order(comfy, mixed(1, None, None), is_selective=False)
    support.wait_for(lambda: not comfy.owners(), 30, "all models gone")

    # all models are explicitly kept
    kept = mixed(2, "keep", "keep", "keep")
    done = comfy.run(kept)
    there, digests = ids(comfy), [comfy.digest(done), comfy.digest(done, "image_digest")]
    live = {kind: owner["live_bytes"] for kind, owner in comfy.owners().items()}
    assert set(there) == {"MODEL", "CLIP", "VAE"} and {o["policy"] for o in comfy.owners().values()} == {"keep"}
    for flags, _wanted in COMBINATIONS:
        press(comfy, flags)
        assert ids(comfy) == there and all(o["live_bytes"] > 0.95 * live[kind] for kind,
                                           o in comfy.owners().items()), comfy.owners()
        if flags.get("unload_models", True):
            assert not any(owner["is_loaded"] for owner in comfy.owners().values()), comfy.owners()
        done = comfy.run(kept)
        models = {"unet", "unet_policy", "clip", "clip_policy", "vae", "vae_policy"}
        found = cached(done)
        assert models <= found and ("words" in found) == (not flags.get("free_memory")), (flags, found)
        assert ids(comfy) == there, (flags, comfy.owners())
        if flags.get("free_memory"): # a cached image is not sent again
            assert digests == [comfy.digest(done), comfy.digest(done, "image_digest")], flags
    in_order(comfy, kept, is_selective=False)

    # one model is to be stowed
    stowed = mixed(3, "stow", "keep", "keep")
    in_order(comfy, stowed, is_selective=True)
    done = comfy.run(stowed)
    assert ids(comfy) == there and {"unet", "clip", "vae"} <= cached(done), (comfy.owners(), cached(done))
    assert not comfy.lines("LOST"), comfy.lines("LOST")
    comfy.check_trace()

with Comfy("memstow", pack=False, before=(around_pack(FIRST, LAST),), env={"MEMSTOW_FREE_BUTTON": "all"},
           name="all") as comfy:
    kept = mixed(2, "keep", "keep", "keep")
    comfy.run(kept)
    there = ids(comfy)
    assert press(comfy, {"unload_models": True}) == (UNLOAD + END, ["ComfyUI's own unload"])
    assert ids(comfy) == there, "without a reset they are in the node cache"
    assert press(comfy, {"unload_models": True, "free_memory": True})[0] == UNLOAD + RESET + END
    support.wait_for(lambda: not comfy.owners(), 30, "all models gone")
    assert not cached(comfy.run(kept)) and not comfy.lines("LOST"), comfy.lines("LOST")
    comfy.check_trace()
