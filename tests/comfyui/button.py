#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""/free and unload_all_models() in a real ComfyUI, on the test double. As long as no model is to be stowed or freed,
both do what they do in ComfyUI without the pack: they unload kept models, too. If a model is to be stowed or freed, all
other models stay loaded, and the cached outputs that contain them stay in the cache. With MEMSTOW_FREE_BUTTON=all,
/free takes all models even then. full_cleanup() does the same as ComfyUI's button "Free model and node cache", but at
the end of the run."""
import support
from _comfy import Comfy, link, mixed, sample, unet


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


def none_kept(comfy):
    """Without policies the buttons are ComfyUI's own."""
    plain = mixed(1, None, None)
    comfy.run(plain)
    assert len(comfy.owners()) == 3
    comfy.free(unload_models=True)
    assert len(comfy.owners()) == 3 and not any(o["is_loaded"] for o in comfy.owners().values()), comfy.owners()
    assert "unet" in cached(comfy.run(plain))
    comfy.free(free_memory=True)
    support.wait_for(lambda: not comfy.owners(), 15, "all models gone") # ComfyUI collects garbage every ten seconds
    assert not cached(comfy.run(plain))
    assert not comfy.lines("LOST"), comfy.lines("LOST")


def selective(comfy):
    """A UNET that is stowed makes the button selective: CLIP (kept) and VAE (without a policy) stay."""
    workflow = mixed(2, "stow", "keep")
    comfy.run(workflow)
    ids = {t: o["id"] for t, o in comfy.owners().items()}
    comfy.free(unload_models=True)
    assert {t for t, o in comfy.owners().items() if o["is_loaded"]} == {"CLIP", "VAE"}, comfy.owners()
    comfy.free(unload_models=True, free_memory=True)
    assert {"CLIP", "VAE"} <= {t for t, o in comfy.owners().items() if o["is_loaded"]}, comfy.owners()
    done = comfy.run(mixed(3, "stow", "keep"))
    assert {"clip", "clip_policy", "vae"} <= cached(done) and "words" not in cached(done), cached(done)
    assert {t: o["id"] for t,
            o in comfy.owners().items() if t != "MODEL"} == {t: i for t, i in ids.items() if t != "MODEL"}
    # A node calls unload_all_models() in the middle of a run. The CLIP, which is to be kept, stays loaded.
    workflow = mixed(4, "stow", "keep")
    workflow["unload"] = {"class_type": "UnloadAll", "inputs": {"latent": link("sample"), "seed": 1}}
    workflow["image"]["inputs"]["samples"] = link("unload")
    comfy.run(workflow)
    assert comfy.owners()["CLIP"]["is_loaded"] and not comfy.owners()["MODEL"]["is_loaded"]
    assert not comfy.lines("LOST"), comfy.lines("LOST")


def all_of_it(comfy):
    """MEMSTOW_FREE_BUTTON=all: the button also takes kept models. A call by a node in a run is still selective."""
    workflow = mixed(1, "stow", "keep")
    workflow["unload"] = {"class_type": "UnloadAll", "inputs": {"latent": link("sample"), "seed": 1}}
    workflow["image"]["inputs"]["samples"] = link("unload")
    comfy.run(workflow)
    assert comfy.owners()["CLIP"]["is_loaded"]
    comfy.free(unload_models=True, free_memory=True)
    support.wait_for(lambda: not comfy.owners(), 15, "all models gone")
    assert not cached(comfy.run(workflow)) and not comfy.lines("LOST")


def deferred(comfy):
    comfy.run({"unet": unet(), **sample("unet", 1), "ask": {"class_type": "AskCleanup", "inputs": {}}})
    # An earlier workflow gave the CLIP the policy keep, so the pack still has the CLIP. But no model is to be stowed or
    # freed now, so the cleanup unloads the CLIP, as ComfyUI does without the pack.
    support.wait_for(lambda: set(comfy.owners()) == {"CLIP"}, 15, "the cleanup")
    assert not comfy.owners()["CLIP"]["is_loaded"] and not comfy.lines("LOST"), comfy.lines("LOST")
    assert "full cleanup: a node asks" in comfy.log()


ASKS = '''
class AskCleanup:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    def run(self):
        import memstow
        assert memstow.full_cleanup("a node asks")
        return ()
NODE_CLASS_MAPPINGS = {"AskCleanup": AskCleanup}
'''
for number, (env, scenarios) in enumerate((({}, (none_kept, selective, deferred)),
                                           ({"MEMSTOW_FREE_BUTTON": "all"}, (all_of_it,)))):
    with Comfy(env=env, name=f"comfyui{number}", before=(ASKS,)) as comfy:
        for scenario in scenarios:
            scenario(comfy)
