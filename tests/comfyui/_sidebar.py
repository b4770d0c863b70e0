"""ComfyUI's own page in a browser, with the tab "Memory" open. A test that uses it needs:
deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9"""
import importlib.util, json, os, pathlib

import support

PACKAGE = "comfyui_frontend_package"
PAGE = pathlib.Path(os.environ.get("FRONT_END") or
                    pathlib.Path(importlib.util.find_spec(PACKAGE).origin).parent / "static")
TAB = ".memstow-tab-button, [data-testid=memstow-tab-button]" # of older front ends, and of present ones
CLICK = f"document.querySelector('{TAB}').click()" # opens the tab, or closes it


def with_front_end(version, *tests):
    """Runs tests of this room with another version of ComfyUI's page."""
    page = support.ROOT / f"build/front-ends/{version}/{PACKAGE}/static"
    if not (page / "index.html").is_file():
        support.skip(f"ComfyUI's front end {version} is not there: tests/check installs it where it can")
    for test in tests:
        folder = support.HERE / test
        folder.mkdir()
        support.run(support.PYTHON, pathlib.Path(__file__).with_name(f"{test}.py"), cwd=folder, timeout=900,
                    env={**os.environ, "FRONT_END": str(page)})


def settle(name):
    """Writes the settings of a user who has seen ComfyUI before, so that no dialogue covers its page."""
    settings = support.HERE / name / "user/default/comfy.settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"Comfy.TutorialCompleted": True, "Comfy.InstalledVersion": "1.32.9"}))
    return settings


def browse(browser, comfy, address="127.0.0.1"):
    """Opens the page and the tab. window.said has what toasts say from now on."""
    browser.driver.get(f"http://{address}:{comfy.port}/")
    support.wait_for(lambda: browser.all(TAB), 300, "ComfyUI's page") # the browser compiles its scripts anew
    browser.requests() # drops the requests of the page itself
    browser.js(CLICK)
    browser.wait("document.querySelector('.memstow-body')")
    browser.js("""
        const toast = window.comfyAPI.app.app.extensionManager.toast, add = toast.add;
        window.said = [];
        toast.add = (message) => { window.said.push(message.detail); add(message); }""")


def audit(browser, picture=None):
    """Asserts that axe finds no fault in the tab. A test that calls this needs pip:axe-core-python==0.1.0"""
    if picture is not None:
        browser.driver.save_screenshot(str(picture))
    file = pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js"
    browser.driver.execute_script(file.read_text())
    found = browser.driver.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run(document.querySelector('.memstow'), "
        "{resultTypes: ['violations']}).then((found) => done(found.violations))")
    assert not found, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def rows(browser):
    """The models that the tab shows, by name."""
    return {row["name"]: row for row in browser.js("""
        return [...document.querySelectorAll('.memstow-models > li')].map((row) => ({
            name: row.querySelector('strong').textContent, where: row.querySelector('.memstow-where').textContent,
            why: row.querySelector('.memstow-why').textContent, policy: row.querySelector('select').value,
            priority: row.querySelector('input').value,
            reason: row.querySelector('.memstow-reason').textContent}))""")}


def in_row(browser, model, script, *arguments):
    """Runs a script once, with the row of a model as `row`. First waits for the row, because the tab shows a model only
    a while after the model's run."""
    support.wait_for(lambda: browser.js(f"""
        const row = [...document.querySelectorAll('.memstow-models > li')].find(
            (row) => row.querySelector('strong').textContent.startsWith(arguments[0]));
        if (row) {{ {script} }}
        return Boolean(row)""", model, *arguments), what=f"the row of {model}")


def press(browser, model, button):
    """Presses a button of a model, and waits until the button's action is done."""
    in_row(browser, model, """
        window.pressed = [...row.querySelectorAll('button')].find((one) => one.textContent === arguments[1]);
        window.pressed.click()""", button)
    browser.wait("!window.pressed.disabled")


def choose(browser, model, policy=None, priority=None, done=True):
    """Chooses a policy or a priority for a model, and waits until it is done."""
    said = len(browser.js("return window.said"))
    in_row(browser, model, """
        const field = row.querySelector(arguments[1]);
        field.value = arguments[2]; field.dispatchEvent(new Event('change'))""",
        "input" if policy is None else "select", policy if policy is not None else str(priority))
    if done:
        browser.wait(f"window.said.length > {said}")


def press_button(browser, text):
    """Presses a button that belongs to no model, and waits until the button's action is done."""
    found = browser.js("""
        window.pressed = [...document.querySelectorAll('.memstow button')].find(
            (one) => one.textContent === arguments[0] && !one.closest('.memstow-models'));
        window.pressed?.click(); return Boolean(window.pressed)""", text)
    assert found, text
    support.wait_for(lambda: browser.js("return !window.pressed.disabled"), 300, f"the end of {text}")


def set_to(browser, setting, value):
    """Changes a setting of ComfyUI's page."""
    fault = browser.driver.execute_async_script(
        "const done = arguments[2]; window.comfyAPI.app.app.extensionManager.setting.set(arguments[0], arguments[1])"
        ".then(() => done(), (error) => done(String(error)))", setting, value)
    assert fault is None, fault


def drag_edge(browser, width):
    """Moves the edge of the side bar with the mouse, so that the tab has this width, as far as the page lets it.
    Returns the width that the tab has then."""
    x, y, pixels = browser.js("""
        const separators = [...document.querySelectorAll('.p-splitter-gutter, [role=separator]')];
        const edge = separators.find((one) => one.checkVisibility()).getBoundingClientRect();
        return [edge.x + edge.width / 2, edge.y + 300, arguments[0] - document.querySelector('.memstow').clientWidth]
        """, width)
    for kind, to in (("mouseMoved", 0), ("mousePressed", 0), *(("mouseMoved", pixels * at / 5) for at in range(1, 6)),
                     ("mouseReleased", pixels)):
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": max(x + to, 1), "y": y,
                                                                    "button": "left", "buttons": 1, "clickCount": 1})
    browser.js("getSelection().removeAllRanges()")
    return browser.js("return document.querySelector('.memstow').clientWidth")


def faults_of_layout(browser):
    """Lists what reaches out of the tab to the right, and which texts and controls overlap."""
    return browser.js("""
        const tab = document.querySelector('.memstow'), edge = tab.getBoundingClientRect().right + 0.5, boxes = [];
        const walk = document.createTreeWalker(tab, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            if (!walk.currentNode.data.trim() || walk.currentNode.parentElement.closest('option')) continue;
            const range = document.createRange();
            range.selectNodeContents(walk.currentNode);
            const one = walk.currentNode.parentElement, its = one.getBoundingClientRect();
            const isCut = getComputedStyle(one).overflowX !== 'visible'; // only what is in its own box is seen
            for (const box of range.getClientRects()) boxes.push([one, isCut ? new DOMRect(box.left, box.top,
                Math.min(box.right, its.right) - box.left, Math.min(box.bottom, its.bottom) - box.top) : box]);
        }
        for (const one of tab.querySelectorAll('button, select, input, progress'))
            boxes.push([one, one.getBoundingClientRect()]);
        const shown = boxes.filter(([, box]) => box.width > 1 && box.height > 1), found = [];
        const name = (one) => `${one.tagName} ${one.textContent.slice(0, 40)}`;
        const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3.5;
        shown.forEach(([one, box], at) => {
            if (box.right > edge) found.push(`${name(one)} reaches out`);
            for (const [other, its] of shown.slice(at + 1))
                if (one !== other && !one.contains(other) && !other.contains(one) && over(box, its))
                    found.push(`${name(one)} is over ${name(other)}`);
        });
        if (tab.scrollWidth > tab.clientWidth) found.push(`${tab.scrollWidth} pixels in ${tab.clientWidth}`);
        return found""")


def size(bytes_):
    """A size in the form of the tab."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if bytes_ >= scale:
            return f"{bytes_ / scale:.1f} {unit}"
    return f"{bytes_} B"
