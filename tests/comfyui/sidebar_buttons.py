#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
"""ComfyUI's two buttons in the tab "Memory": what is said beside each is what it takes, also when kept models stay, and
when a policy makes the buttons selective."""
import sys

import support
from _comfy import Comfy, mixed

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, choose, press_button, settle # noqa: E402

browser = Browser(1400, 1000)


def named(button):
    """The types of the models that are named beside a button, and the size that is said."""
    text = browser.text(f"#memstow-{button}").partition(": ")[2].partition("; besides")[0].partition(". It")[0]
    models, _, size = text.rpartition(": ")
    return {model.split()[0] for model in models.split(", ") if model}, size


def says(button, types):
    support.wait_for(lambda: named(button)[0] == types, what=f"{button} that names {types}")


def is_near(size, owners):
    return size == f"{sum(owner['live_bytes'] for owner in owners) / 2**20:.1f} MiB"


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE))) as comfy:
    comfy.run(mixed(1, None, None))
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    says("free", {"MODEL", "CLIP", "VAE"})
    assert is_near(named("free")[1], comfy.owners().values()), (named("free"), comfy.owners())
    loaded = {kind for kind, owner in comfy.owners().items() if owner["is_loaded"]}
    assert loaded, comfy.owners()
    says("unload", loaded)
    assert named("unload")[1] == "0 B", named("unload") # it is on the CPU
    press_button(browser, "Unload models")
    support.wait_for(lambda: not any(owner["is_loaded"] for owner in comfy.owners().values()), what="the unloading")
    assert set(comfy.owners()) == {"MODEL", "CLIP", "VAE"}, comfy.owners()
    says("unload", set())

    # a kept model stays
    choose(browser, "MODEL", policy="keep")
    comfy.run(mixed(2, None, None))
    says("free", {"CLIP", "VAE"})
    taken = [comfy.owners()[kind] for kind in ("CLIP", "VAE")]
    assert is_near(named("free")[1], taken), (named("free"), taken)
    browser.driver.save_screenshot("buttons.png")
    press_button(browser, "Free model and node cache")
    support.wait_for(lambda: set(comfy.owners()) == {"MODEL"}, what="the end of two models")
    says("free", set())

    # one model that is to be freed: the buttons take nothing else
    comfy.run(mixed(3, None, None))
    choose(browser, "VAE", policy="free")
    says("free", {"VAE"})
    press_button(browser, "Free model and node cache")
    support.wait_for(lambda: set(comfy.owners()) == {"MODEL", "CLIP"}, what="the end of the VAE")
    comfy.check_trace()
