#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
# long
"""ComfyUI's two buttons in the tab "Memory". The text beside each button names the models that the button unloads or
frees. "Free model and node cache" does not free models with the policy keep. If a model has the policy free, this
button frees only this model. Each control of the tab is reached and used by the keyboard alone; it has a name, and a
frame that shows where the focus is. In the narrowest side bar that the page allows, and in one of 200 pixels if the
page allows it, nothing overlaps and nothing is cut off, dark or light."""
import os, pathlib, sys

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import support
from _comfy import Comfy, mixed

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import (PAGE, TAB, browse, choose, drag_edge, faults_of_layout, press_button, set_to, # noqa: E402
                      settle)

PICTURES = pathlib.Path(os.environ.get("SIDEBAR_PICTURES", ".")) # set it by hand to keep the pictures
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)


def named(button):
    """Returns the types of the models that are named beside a button, and the size that is given there."""
    text = browser.text(f"#memstow-{button}").partition(": ")[2].partition("; besides")[0].partition(". It")[0]
    models, _, size = text.rpartition(": ")
    return {model.split()[0] for model in models.split(", ") if model}, size


def says(button, types):
    support.wait_for(lambda: named(button)[0] == types, what=f"{button} that names {types}")


def is_near(size, owners):
    return size == f"{sum(owner['live_bytes'] for owner in owners) / 2**20:.1f} MiB"


# ---- the keyboard

CONTROLS = """[...document.querySelectorAll('.memstow :is(button, select, input, a[href], summary):not(:disabled)')]
    .filter((one) => one.checkVisibility())"""


def type_keys(*keys):
    ActionChains(browser.driver).send_keys(*keys).perform()


def is_in_tab():
    return browser.js("return Boolean(document.activeElement.closest('.memstow'))")


def see_focus():
    """Asserts that the focus can be seen. Returns the role and the name of the control that has it, as a screen reader
    says them."""
    seen = browser.js("""
        const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
        return [one.outerHTML.slice(0, 200), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
            box.width > 0 && box.top < innerHeight && box.bottom > 0]""")
    assert all(seen), seen
    active = browser.driver.switch_to.active_element
    assert active.accessible_name, seen
    return active.aria_role, active.accessible_name


def tour():
    """Presses Tab from the tab's button through all of the tab. Returns the controls."""
    browser.js(f"document.querySelector('{TAB}').focus()")
    for _ in range(40): # other buttons of the side bar come between
        type_keys(Keys.TAB)
        if is_in_tab():
            break
    found = []
    while is_in_tab() and len(found) < 100:
        found.append(see_focus())
        type_keys(Keys.TAB)
    return found


def go_to(selector, name=""):
    """Presses Tab, or Shift and Tab, until the control has the focus. A control may come late, or be drawn anew
    meanwhile."""
    is_it = """(one.matches(arguments[0])
        && (one.getAttribute('aria-label') ?? one.textContent).startsWith(arguments[1]))"""

    def has_focus():
        at, to = browser.js(f"""const all = {CONTROLS};
            return [all.indexOf(document.activeElement), all.findIndex((one) => {is_it})]""", selector, name)
        if at < 0 or to < 0:
            return False
        for _ in range(abs(to - at)):
            type_keys(Keys.TAB) if to > at else ActionChains(browser.driver).key_down(Keys.SHIFT).send_keys(
                Keys.TAB).key_up(Keys.SHIFT).perform()
        return browser.js(f"const one = document.activeElement; return {is_it}", selector, name)

    support.wait_for(has_focus, what=f"the focus on {selector} {name}")


def says_next(*keys):
    """Presses keys, and waits until a toast says what came of them. Returns its text."""
    before = len(browser.js("return window.said"))
    type_keys(*keys)
    support.wait_for(lambda: len(browser.js("return window.said")) > before, 120, f"what {keys} did")
    return browser.js("return window.said.at(-1)")


def use_by_keyboard(comfy):
    browser.js(f"document.querySelector('{TAB}').focus()")
    type_keys(Keys.ENTER)
    browser.wait("!document.querySelector('.memstow-body')")
    type_keys(Keys.ENTER)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    found, there = tour(), browser.js(f"return {CONTROLS}.length")
    assert len(found) == there == len(set(found)) > 20, (there, found)
    browser.js(f"document.querySelector('{TAB}').focus()")
    while not is_in_tab():
        type_keys(Keys.TAB)

    # a policy and a priority, by arrows
    go_to("select", "Policy of CLIP")
    assert "policy keep" in says_next(Keys.ARROW_DOWN)
    go_to("input", "Priority of CLIP")
    assert "priority 1" in says_next(Keys.ARROW_UP)
    assert (comfy.owners()["CLIP"]["policy"], comfy.owners()["CLIP"]["priority"]) == ("keep", 1), comfy.owners()
    go_to("select", "Policy of CLIP")
    assert "policy none" in says_next(Keys.ARROW_UP)

    # Enter and the space bar press a button. The focus stays on the button.
    for keys, name, expected in ((Keys.ENTER, "Why is VAE", "VAE WanVAE"), (Keys.SPACE, "Stow MODEL", "stowed"),
                                 (Keys.ENTER, "Restore MODEL", "restored"), (Keys.SPACE, "Snapshot", "Snapshot"),
                                 (Keys.ENTER, "Apply", "kept 3"), (Keys.ENTER, "Unload models", "asked for")):
        go_to("button", name)
        assert expected in says_next(keys), browser.js("return window.said")
        browser.wait("document.activeElement.closest('.memstow') && !document.activeElement.disabled")
        assert name in browser.js("return document.activeElement.getAttribute('aria-label') ?? "
                                  "document.activeElement.textContent"), name
    go_to("summary")
    type_keys(Keys.ENTER)
    browser.wait("document.querySelector('.memstow-curve details').open")
    go_to("a", "Report of the last run")
    type_keys(Keys.ENTER)
    support.wait_for(lambda: len(browser.driver.window_handles) == 2, what="the report")
    own = browser.driver.current_window_handle
    [other] = set(browser.driver.window_handles) - {own}
    browser.driver.switch_to.window(other)
    browser.driver.close()
    browser.driver.switch_to.window(own)


# Each row is a step: the wanted width of the tab, the size of the window, and the least and the greatest width that the
# tab may then have, all in pixels. In the front ends of 2025, a side bar has at least a tenth of the window's width. In
# the front end of November 2026, it has at least 297 pixels.
OLDER = ((10, (900, 700), 60, 95), (10, (1400, 1000), 110, 145), (200, (1400, 1000), 195, 205))
PRESENT = ((10, (900, 700), 295, 300), (10, (1400, 1000), 295, 300))


def be_narrow():
    for palette in ("dark", "light"):
        set_to(browser, "Comfy.ColorPalette", palette)
        for width, size, least, most in OLDER if browser.all(".p-splitter-gutter") else PRESENT:
            browser.size(*size)
            support.wait_for(lambda w=width, a=least, b=most: a <= drag_edge(browser, w) <= b, what=f"{least} pixels")
            browser.driver.save_screenshot(str(PICTURES / f"{palette}-{least}.png"))
            assert not (faults := faults_of_layout(browser)), (palette, least, faults)
    browser.js("document.querySelector('.memstow-where').style.marginTop = '-1.5em'") # a planted fault is found
    assert faults_of_layout(browser)


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
    assert named("unload")[1] == "0 B", named("unload") # all models are on the CPU: none leaves a device
    use_by_keyboard(comfy)
    comfy.run(mixed(4, None, None)) # everything is loaded again
    says("unload", loaded)
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

    # If one model has the policy free, the button frees only this model.
    comfy.run(mixed(3, None, None))
    choose(browser, "VAE", policy="free")
    says("free", {"VAE"})
    press_button(browser, "Free model and node cache")
    support.wait_for(lambda: set(comfy.owners()) == {"MODEL", "CLIP"}, what="the end of the VAE")
    comfy.check_trace()
    comfy.run(mixed(5, None, None))
    browser.wait("document.querySelectorAll('.memstow-models > li').length >= 2")
    be_narrow()
