#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
# long
"""While the setting for badges is on, nodes on the canvas have badges, also while the tab is closed. A badge says what
the node held at most in the last run, and what stayed, as the report has it. The setting is off at first. When it is
turned off, the badges go. Only clients that ComfyUI knows get figures for badges. The tab looks for leaks only while
the setting for leaks is on."""
import json, sys

import support
from _comfy import Comfy, mixed

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import CLICK, PAGE, browse, set_to, settle, size # noqa: E402

browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)


def numbered(workflow):
    """The workflow with numbers as ids, as the editor makes them. The same node has the same number in all workflows
    here. The VAE's loader, and the image that needs the VAE, are left out, because front end 1.27.10 cannot make the
    VAELoader of ComfyUI 0.3.75."""
    workflow = {name: node for name, node in workflow.items() if name not in ("vae", "image", "image_digest")}
    number = {name: str(at) for at, name in enumerate(sorted(workflow), 1)}
    return {number[name]: {**node, "inputs": {
        key: [number[value[0]], *value[1:]] if isinstance(value, list) and value[0] in number else value
        for key, value in node["inputs"].items()}} for name, node in workflow.items()}, number


def badges():
    """The badges of memstow, by the id of their node."""
    return {one: text for one, text in browser.js("""
        return window.comfyAPI.app.app.graph.nodes.map((node) => [String(node.id), (node.badges ?? []).map(
            (badge) => (typeof badge === 'function' ? badge() : badge).text).find((text) => /stayed$/.test(text))])""")
            if text}


def expected(report):
    stayed = {}
    for share in report["shares"]:
        if share["run_name"] == f"run {report['run']}":
            name = share["node_name"]
            stayed[name] = stayed.get(name, 0) + share["after_bytes"] + share["after_cuda_bytes"]
    return {node["node"]: f"{size(node['peak_bytes'] - node['before_bytes'])} at most, "
            f"{size(stayed.get('{class} #{node}'.format(**node), 0))} stayed" for node in report["nodes"]}


def asks_for_leaks():
    """Turns the setting for leaks off and on. Returns whether the tab has asked the server for leaks. The tab does not
    ask again while the server has not answered."""
    for wanted in (False, True):
        set_to(browser, "memstow.leaks", wanted)
    return browser.js("return window.asked.includes('/memstow/leaks')")


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE))) as comfy:
    workflow, number = numbered(mixed(1, "keep", None))
    unet, sample = number["unet"], number["sample"]
    browse(browser, comfy)
    browser.js(CLICK)
    browser.wait("!document.querySelector('.memstow-body')")
    support.wait_for(lambda: browser.js("return window.comfyAPI.app.app.graph?.nodes.length > 0"), 300,
                     "the first workflow, which comes when the page knows all nodes")
    browser.driver.execute_async_script(
        "const done = arguments[1]; Promise.resolve(window.comfyAPI.app.app.loadApiJson(arguments[0], 'x')).then("
        "() => done(), (error) => done(String(error)))", workflow)
    browser.wait("window.comfyAPI.app.app.graph.nodes.length > 8")
    browser.js("""
        window.told = 0;
        window.comfyAPI.api.api.addEventListener("memstow.nodes", () => { window.told += 1; })""")
    comfy.run(workflow)
    assert badges() == {} and browser.js("return window.told") == 0, badges()

    set_to(browser, "memstow.badges", True) # shows the last run at once
    first = expected(comfy.report())
    support.wait_for(lambda: badges() == first, what="the badges of the last run")
    stay = comfy.owners()["MODEL"]["live_bytes"]
    assert first[unet].endswith(" stayed") and not first[unet].endswith(" 0 B stayed"), (first, stay)
    comfy.run(numbered(mixed(2, "keep", None))[0]) # what is cached does not run again
    second = expected(comfy.report())
    support.wait_for(lambda: badges() == second, what="the badges of the next run")
    assert unet in first and unet not in second and sample in second, (first, second)
    assert browser.js("return window.told") == 1
    made = browser.js("""
        let made = 0;
        const Format = Intl.NumberFormat, toLocaleString = Number.prototype.toLocaleString;
        Intl.NumberFormat = function (...given) { made += 1; return new Format(...given); };
        Number.prototype.toLocaleString = function (...given) { made += 1; return toLocaleString.apply(this, given); };
        for (let i = 0; i < 5; i += 1) window.comfyAPI.app.app.canvas.draw(true, true);
        Intl.NumberFormat = Format;
        Number.prototype.toLocaleString = toLocaleString;
        return made""")
    assert made == 0, f"{made} formats of numbers were made to draw five pictures"
    browser.driver.save_screenshot("badges.png")
    set_to(browser, "memstow.badges", False)
    support.wait_for(lambda: badges() == {}, what="the end of the badges")
    comfy.run(numbered(mixed(3, "keep", None))[0])
    comfy.settled()
    assert browser.js("return window.told") == 1 and badges() == {}

    # no look for leaks without the setting
    set_to(browser, "memstow.leaks", False)
    browser.js("""
        window.asked = [];
        const api = window.comfyAPI.api.api, before = api.fetchApi;
        api.fetchApi = function (path, ...more) {
            window.asked.push(path);
            if (path === '/memstow/leaks' && window.isBroken)
                return Promise.resolve({ ok: true, json: () => Promise.reject(new Error("no JSON")) });
            return before.call(this, path, ...more);
        };
        """ + CLICK)
    browser.wait("document.querySelector('.memstow-run')")
    assert "/memstow/leaks" not in browser.js("return window.asked"), browser.js("return window.asked")
    set_to(browser, "memstow.leaks", True)
    browser.wait("window.asked.includes('/memstow/leaks')")
    for is_broken in (True, False): # after an answer that cannot be read, the tab asks again
        browser.js("window.asked = []; window.isBroken = arguments[0]", is_broken)
        support.wait_for(asks_for_leaks, 60, "another question")

    for body in (b"[]", b"{}", b'{"client": 1, "on": true}', b'{"client": "x", "on": 1}'):
        assert comfy.status_of("/memstow/badges", body) == 400, body
    nobody = json.dumps({"client": "nobody", "on": True}).encode()
    assert comfy.status_of("/memstow/badges", nobody) == 409
    assert comfy.status_of("/memstow/badges", nobody, {"Sec-Fetch-Site": "cross-site"}) == 403
