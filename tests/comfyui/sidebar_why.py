#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
# long
"""The tab "Memory" says for each model why it is there. For a model without a policy, the button "Why?" names the nodes
whose cached outputs have the model. If a pack holds a model that was to be freed, the tab names the pack and its
variable, as the report does. If a dead model left memory behind, the tab shows this memory and what holds it, as
`memstow decisions` does."""
import json, sys

import support
from _comfy import Comfy, link, mixed

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, press, rows, settle # noqa: E402

KEEPER = """
kept = {}


class KeepModel:
    RETURN_TYPES, FUNCTION, OUTPUT_NODE, CATEGORY = (), "keep", True, "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "what": ("STRING", {"default": ""})}}

    def keep(self, model, what):
        kept.clear()
        if what == "weights":
            kept["weights"] = [weight.data for weight in model.model.parameters()]
        elif what:
            kept[what] = model
        return ()


NODE_CLASS_MAPPINGS = {"KeepModel": KeepModel}
"""
browser = Browser(1400, 1000)


def run(comfy, seed, what, policy=None):
    workflow = mixed(seed, policy, None)
    workflow["keep"] = {"class_type": "KeepModel",
                        "inputs": {"model": link("unet_policy" if policy else "unet"), "what": what}}
    comfy.run(workflow)


def why(model):
    [row] = [row for name, row in rows(browser).items() if name.startswith(model)]
    return row["reason"]


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE)), before=[KEEPER]) as comfy:
    run(comfy, 1, "")
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    assert why("CLIP") == "Here because: policy: none set, so ComfyUI decides", rows(browser)
    press(browser, "CLIP", "Why?")
    support.wait_for(lambda: "node cache" in why("CLIP"), what="the reason")
    assert "CLIPLoader" in why("CLIP") and "CLIPTextEncode" not in why("CLIP"), why("CLIP")
    assert any("CLIPLoader" in said for said in browser.js("return window.said"))
    assert comfy.owners()["CLIP"]["why"] == why("CLIP").removeprefix("Here because: ")
    assert not comfy.lines("HELD"), comfy.lines("HELD") # "Why?" notes no holder in the trace

    # a pack holds a model
    run(comfy, 2, "model", "free")
    [owner] = [owner for owner in comfy.report()["owners"] if owner["type"] == "MODEL"]
    [held] = [reason for reason in owner["why"] if reason.startswith("held by")]
    assert "aaa_other.kept['model']" in held, owner
    support.wait_for(lambda: held in why("MODEL"), what="the holder in the page")
    assert not browser.all(".memstow-gone li")

    # the model is gone, but a pack holds its weights
    run(comfy, 3, "weights", "free")
    assert "MODEL" not in comfy.owners(), comfy.owners()
    support.wait_for(lambda: "aaa_other.kept['weights']" in (browser.text(".memstow-gone li") or ""),
                     what="the leftover")
    words = browser.text(".memstow-gone li")
    [line] = [line for line in comfy.lines("HELD") if any("weights" in holder for holder in line["holders"])]
    assert words.startswith("MODEL WAN21 (tiny.safetensors)") and line["holders"][0] in words, (words, line)
    browser.driver.save_screenshot("left.png")
    left = json.loads(support.memstow("owners", comfy.pid(), "--json").stdout)["owners"]
    [gone] = [owner for owner in left if owner["id"] == line["owner"]]
    assert f"{gone['live_bytes'] / 2**20:.1f} MiB" in words, (words, gone)
    run(comfy, 4, "", "keep")
    browser.wait("!document.querySelector('.memstow-gone')")
