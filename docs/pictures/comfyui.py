#!/usr/bin/env python3
"""docs/pictures/comfyui.py: makes the picture of the tab "Memory" in ComfyUI's page. The picture shows two runs of a
workflow from the tests. The workflow's models are small and have random weights. Their policies are free, keep and
stow.

Needs what tests/check comfyui/sidebar installs, and the command in build/dev."""
import os, pathlib, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "comfyui")]
import in_venv # noqa: E402, F401
os.chdir(tempfile.mkdtemp(prefix="memstow-pictures-"))
from _comfy import Comfy, mixed # noqa: E402
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, settle # noqa: E402

SIZE_MOST = 100_000 # bytes

browser = Browser(900, 800)
settle("comfyui")
with Comfy("memstow", name="comfyui", arguments=("--front-end-root", str(PAGE))) as comfy:
    browse(browser, comfy)
    comfy.run(mixed(1, "free", "keep", "stow"))
    comfy.run(mixed(2, "free", "keep", "stow"))
    browser.wait("document.querySelector('.memstow-run h3')?.textContent === 'Run 2: ok'")
    browser.js("""document.querySelector(".side-bar-panel").style.flexBasis = "60%";
        [...document.querySelectorAll("button")].find((button) => button.textContent === "Try it out")
            ?.parentElement.parentElement.remove()""")
    browser.wait("document.querySelector('.memstow').clientWidth > 300")
    picture = browser.one(".memstow").screenshot_as_png
    assert len(picture) < SIZE_MOST, len(picture)
    (HERE / "comfyui.png").write_bytes(picture)
    print("comfyui.png", len(picture), "bytes")
