#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# needs: pip:axe-core-python==0.1.0
# timeout: 900
# long
"""A node leaks. As soon as there is a verdict, and not before, the tab "Memory" warns of the leak. It shows the node,
its line and what each run leaves, as `memstow leaks` does. The HTML report of the present moment opens, and shows the
leak, too. A page of another site can neither have ComfyUI look for leaks nor have it make that report. axe finds no
fault in the tab, dark or light."""
import json, os, pathlib, sys

import support
from _comfy import Comfy

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, audit, browse, settle # noqa: E402

PICTURES = pathlib.Path(os.environ.get("SIDEBAR_PICTURES", ".")) # set it by hand to keep the pictures
KEEPER = """
kept = []


class Keeper:
    RETURN_TYPES, FUNCTION, OUTPUT_NODE, CATEGORY = (), "keep", True, "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seed": ("INT", {"default": 0})}}

    def keep(self, seed):
        kept.append(bytearray(300_000))
        return ()


NODE_CLASS_MAPPINGS = {"Keeper": Keeper}
"""
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(120)


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE)), before=[KEEPER]) as comfy:
    run = lambda seed: comfy.run({"1": {"class_type": "Keeper", "inputs": {"seed": seed}}})
    run(0)
    browse(browser, comfy)
    support.wait_for(lambda: browser.text(".memstow-run h3") == "Run 1: ok", what="the run")
    assert not browser.all(".memstow-leaks")
    for seed in range(1, 12):
        run(seed)
    browser.wait("document.querySelector('.memstow-leaks')")
    [leak] = json.loads(support.memstow("leaks", comfy.pid(), "--timeout=0", "--json", status=1).stdout)["leaks"]
    words = browser.text(".memstow-leaks li")
    assert words.startswith("+293.0 KiB a run Keeper") and "keep, aaa_other.py:13" in words, (words, leak)
    assert leak["node"] == "Keeper" and 300_000 <= leak["bytes_per_run"] < 301_000, leak
    audit(browser, PICTURES / "dark.png")
    palette = "window.comfyAPI.app.app.extensionManager.setting.set('Comfy.ColorPalette', 'light')"
    dark = browser.js("return getComputedStyle(document.querySelector('.memstow h2')).color")
    browser.driver.execute_async_script(f"const done = arguments[0]; {palette}.then(() => done())")
    browser.wait(f"getComputedStyle(document.querySelector('.memstow h2')).color !== '{dark}'")
    audit(browser, PICTURES / "light.png")
    browser.driver.get(browser.js("return document.querySelector('.memstow-leaks a').href"))
    browser.wait("document.documentElement.dataset.loaded === 'yes'")
    assert "keep" in browser.js("return document.body.textContent"), browser.js("return document.body.textContent")
    for path in ("leaks", "page"):
        assert comfy.status_of(f"/memstow/{path}", method="GET") == 200
        assert comfy.status_of(f"/memstow/{path}", None, {"Sec-Fetch-Site": "cross-site"}, "GET") == 403
        assert comfy.status_of(f"/memstow/{path}", None, {"Sec-Fetch-Site": "none"}, "GET") == 200
