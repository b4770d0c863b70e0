#!/usr/bin/env python3
# needs: comfyui comfyui-manager
# timeout: 300
# long
"""The real ComfyUI-Manager beside the pack, under memstow. Both work. Manager's two buttons free models that are to be
freed and leave models that are to be kept. (The test sends the requests that Manager's page sends.)"""
import re, urllib.request

import _manager, support
from _comfy import Comfy, mixed, need_real

_manager.need()
need_real("trigger_begin", "trigger_end", "trace", "decisions")


def text_of(comfy, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{comfy.port}{path}", timeout=30) as answer:
        return answer.read().decode()


def buttons(comfy):
    """Returns what Manager's page posts to /free, for "Unload Models" and for "Free model and node cache"."""
    function = re.search(r"function free_models\(.*?\n}",
                         text_of(comfy, "/extensions/comfyui-manager-legacy/common.js"), re.S)[0]
    assert "fetchApi(`/free`" in function, function
    everything, models = re.findall(r"mode = '({.*?})';", function)
    assert "free_memory" in everything and "free_memory" not in models, function
    return models.encode(), everything.encode()


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


def ids(comfy):
    return {kind: owner["id"] for kind, owner in comfy.owners().items()}


def press(comfy, body):
    assert comfy.status_of("/free", body) == 200
    comfy.settled()


with Comfy("memstow", packs=_manager.PACK) as comfy:
    assert text_of(comfy, "/v2/manager/version").startswith("V"), comfy.log()
    models, everything = buttons(comfy)
    done = comfy.run(mixed(1, "free", "keep", "stow"))
    assert [o["type"] for o in comfy.report()["freed"]] == ["MODEL"] and set(comfy.owners()) == {"CLIP", "VAE"}
    there, digest = ids(comfy), comfy.digest(done)
    press(comfy, models)
    assert {kind for kind, owner in comfy.owners().items() if owner["is_loaded"]} == {"CLIP"}, comfy.owners()
    press(comfy, everything)
    assert ids(comfy) == there, comfy.owners()
    done = comfy.run(mixed(1, "free", "keep", "stow"))
    found = cached(done)
    assert {"clip", "vae"} <= found and not found & {"unet", "words"}, found
    assert comfy.digest(done) == digest
    assert ids(comfy) == there and not comfy.lines("LOST"), comfy.lines("LOST")

    # No model has a policy now, so the buttons do what they do without the pack.
    comfy.run(mixed(2, None, None))
    comfy.run(mixed(2, None, None), extra={"memstow": "free"})
    comfy.run(mixed(3, None, None))
    press(comfy, everything)
    support.wait_for(lambda: not comfy.owners(), 30, "all models gone") # ComfyUI collects garbage every ten seconds
    comfy.check_trace()
