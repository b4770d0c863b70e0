#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 600
"""ComfyUI's dialogue of settings has memstow's settings under a heading of its own, with their values. A click there
changes a setting, and ComfyUI stores it."""
import json, sys

import support
from _comfy import Comfy

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, settle # noqa: E402

NAMES = {"Start ComfyUI under memstow": False, "Show on each node what it held in the last run": False,
         "Look for leaks when runs have ended": True}
SWITCHES = """Object.fromEntries([...document.querySelectorAll('[role=dialog] [role=switch]')].map((one) =>
    [document.getElementById(one.getAttribute('aria-labelledby')).textContent.trim(), one]))"""
browser = Browser(1400, 1000)
stored = settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE))) as comfy:
    browse(browser, comfy)
    browser.js("window.comfyAPI.app.app.extensionManager.command.execute('Comfy.ShowSettingsDialog')")
    heading = """[...document.querySelectorAll('[role=dialog] [role=option], [role=dialog] li')].find(
        (one) => one.textContent.trim() === 'memstow')"""
    browser.wait(heading)
    browser.js(f"{heading}.click()")
    browser.wait(f"Object.keys({SWITCHES}).length === {len(NAMES)}")
    values = browser.js(f"return Object.entries({SWITCHES}).map(([name, one]) => [name, one.checked])")
    assert dict(values) == NAMES, values
    assert "memstow.start" not in json.loads(stored.read_text())
    browser.js(f"{SWITCHES}['Start ComfyUI under memstow'].click()")
    support.wait_for(lambda: json.loads(stored.read_text()).get("memstow.start") is True, what="the stored setting")
