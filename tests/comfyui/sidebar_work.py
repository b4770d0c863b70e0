#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# needs: pip:axe-core-python==0.1.0
# timeout: 900
# long
"""Long work in the tab "Memory" shows its progress, and can be cancelled. Such work makes the page of the present
moment or the comparison with the last snapshot, takes a snapshot, or moves a model. When the user cancels:

- The command that makes a page ends.
- A snapshot leaves no file.
- A request that waits for the end of a run is withdrawn.
- A move that has begun stops where it is, and nothing of the model is lost.

The tab learns by ComfyUI's web socket that a request has ended; without the socket, it asks every few seconds.

Test doubles hold the work back. One is a command that waits for ever when it is to make a page. The other is a pack
that lets a snapshot wait, and moves a model out and back again and again until one of its moves is cancelled."""
import json, pathlib, sys

import support
from _comfy import Comfy, around_pack, mixed

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, audit, browse, press, press_button, settle # noqa: E402

HOLD, PIDS, GO, AGAIN, CANCELLED = (support.HERE / name for name in ("hold", "pids", "go", "again", "cancelled"))
double = support.HERE / "double"
double.write_text(f"""#!/bin/sh
case "$*" in *--html*) [ ! -e {HOLD} ] || {{ echo $$ >>{PIDS}; exec sleep 600; }} ;; esac
{pathlib.Path(support.MEMSTOW).resolve()} "$@"
status=$?
case "$*" in *--cancel*) [ $status != 0 ] || touch {CANCELLED} ;; esac
exit $status
""")
double.chmod(0o755)
FIRST = f"""
import os
os.environ["MEMSTOW_COMMAND"] = {str(double)!r} # as `memstow run` names itself
"""
LAST = f"""
import time
import memstow
snapshot, stow = memstow.snapshot, memstow.stow


def waiting(path):
    while not os.path.exists({str(GO)!r}):
        time.sleep(0.05)
    snapshot(path)


def again(owner):
    while True:
        moved = stow(owner)
        if os.path.exists({str(CANCELLED)!r}) or not os.path.exists({str(AGAIN)!r}):
            return moved
        memstow.restore(owner)


memstow.snapshot, memstow.stow = waiting, again
WEB_DIRECTORY = {str(support.ROOT / "tools/comfyui/web")!r}
"""
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(120)


def begin(text, model=None):
    """Presses a button, and waits for the line with its progress."""
    browser.js("""
        const rows = [...document.querySelectorAll('.memstow-models > li')];
        const row = rows.find((row) => row.querySelector('strong').textContent.startsWith(arguments[1]));
        window.pressed = [...(row ?? document.querySelector('.memstow-buttons')).querySelectorAll('button')].find(
            (one) => one.textContent === arguments[0]);
        window.pressed.click()""", text, model)
    browser.wait("document.querySelector('.memstow-work-line progress') && window.pressed.disabled")


def cancel():
    """Presses Cancel again and again until the work has ended, because at first there may be nothing to cancel yet."""
    def attempt():
        browser.js("document.querySelector('.memstow-work-line button:not(:disabled)')?.click()")
        return browser.js("return !window.pressed.disabled && !document.querySelector('.memstow-work-line')")
    support.wait_for(attempt, 300, "the end of the work")


# window.ends gets the messages on the web socket that say that a request has ended. window.asked gets the times at
# which the tab asks whether a request has ended. If window.isDeaf is set, the requests name no client, so that no such
# message comes.
LISTEN = """
    const api = window.comfyAPI.api.api, before = api.fetchApi;
    Object.assign(window, { ends: [], asked: [], isDeaf: false });
    api.addEventListener('memstow.ticket', (event) => window.ends.push(event.detail));
    api.fetchApi = function (path, options) {
        if (path.startsWith('/memstow/ticket')) window.asked.push(performance.now());
        if (window.isDeaf && options?.body)
            options = { ...options, body: JSON.stringify({ ...JSON.parse(options.body), client: undefined }) };
        return before.call(this, path, options);
    }"""


def is_slow(times):
    """Whether two seconds or more are between these moments."""
    return all(later - earlier >= 2000 for earlier, later in zip(times, times[1:]))


def said():
    return browser.js("return window.said[window.said.length - 1]")


def opened(what):
    """Clicks a link of the tab, which opens a page in a new window. Closes the window, and returns the page's text."""
    browser.wait(f"document.querySelector('[data-made={what}] a')")
    own = browser.driver.current_window_handle
    browser.js(f"document.querySelector('[data-made={what}] a').click()")
    support.wait_for(lambda: len(browser.driver.window_handles) == 2, what="the window")
    [other] = set(browser.driver.window_handles) - {own}
    browser.driver.switch_to.window(other)
    browser.wait("document.documentElement.dataset.loaded === 'yes'")
    text = browser.js("return document.title + document.body.textContent")
    browser.driver.close()
    browser.driver.switch_to.window(own)
    return text


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE)), pack=False,
           packs={"holding": {"__init__.py": around_pack(FIRST, LAST)}}) as comfy:
    before = comfy.digest(comfy.run(mixed(1, "keep", None)))
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")

    # a page
    HOLD.touch()
    begin("Page of this moment")
    support.wait_for(lambda: PIDS.exists() and PIDS.read_text().endswith("\n"), what="the command")
    audit(browser)
    browser.driver.save_screenshot("work.png")
    assert comfy.get("/memstow/cancel", {"what": "diff"})["cancelled"] is False
    cancel()
    assert said() == "Page of this moment: cancelled", said()
    support.wait_for(lambda: support.is_gone(int(PIDS.read_text())), what="the end of the command")
    assert not browser.all(".memstow-ready a")
    HOLD.unlink()
    press_button(browser, "Page of this moment")
    text = opened("page")
    assert str(comfy.pid()) in text, text[:2000]

    # a snapshot, and a comparison with it
    press_button(browser, "Compare with the last snapshot")
    support.wait_for(lambda: "there is no snapshot to compare with" in said(), what="the message")
    begin("Snapshot")
    browser.js("document.querySelector('.memstow-work-line button').click()")
    support.wait_for(lambda: comfy.get("/memstow/cancel", {"what": "snapshot"})["cancelled"], what="the snapshot")
    GO.touch()
    browser.wait("!window.pressed.disabled")
    assert said() == "Snapshot: cancelled", said()
    assert not list((comfy.folder / "output/memstow").glob("*.mst")) and not comfy.get("/memstow/snapshot")["snapshots"]
    press_button(browser, "Snapshot")
    [snapshot] = comfy.get("/memstow/snapshot")["snapshots"]
    press_button(browser, "Compare with the last snapshot")
    text = opened("diff")
    assert pathlib.Path(snapshot["file"]).name in text, text[:2000]

    # an order that waits for the end of a run
    slow = mixed(2, "keep", None)
    slow["slow"] = {"class_type": "Slow", "inputs": {"value": ["sample", 0], "seed": 1}}
    slow["digest"]["inputs"]["value"] = ["slow", 0]
    prompt = comfy.queue(slow)
    support.wait_for(lambda: comfy.get("/queue")["queue_running"], 30, "the run")
    browser.js(LISTEN)
    begin("Stow", "MODEL")
    cancel()
    assert said() == "Stow MODEL WAN21 (tiny.safetensors): cancelled", said()
    ends, asked = browser.js("return [window.ends, window.asked]") # the end came by itself
    assert len(ends) == 1 and ends[0]["done"] and ends[0]["given_bytes"] < 0, (ends, asked)
    assert is_slow(asked), asked
    assert comfy.get("/queue")["queue_running"], "it did wait for the run"
    assert comfy.status_of("/interrupt", b"{}") == 200
    comfy.wait(prompt)
    comfy.settled()
    assert comfy.owners()["MODEL"]["stowed_bytes"] == 0, comfy.owners()

    # without the web socket the tab asks, and not often
    browser.js("window.isDeaf = true; window.ends = []; window.asked = []")
    press(browser, "CLIP", "Why?")
    ends, asked = browser.js("return [window.ends, window.asked]")
    assert ends == [] and asked and is_slow(asked), (ends, asked)
    browser.js("window.isDeaf = false; window.asked = []")
    press(browser, "CLIP", "Why?")
    assert browser.js("return window.ends.length") == 1

    # a move
    AGAIN.touch()
    begin("Stow", "MODEL")
    browser.wait("document.querySelector('.memstow-models progress').hasAttribute('value')")
    cancel()
    assert CANCELLED.exists() and ("cancelled" in said() or "stowed" in said()), said()
    AGAIN.unlink()
    press(browser, "MODEL", "Restore")
    assert comfy.owners()["MODEL"]["stowed_bytes"] == 0, comfy.owners()
    assert comfy.digest(comfy.run(mixed(1, "keep", None, "keep"))) == before

    # requests that are refused
    assert comfy.get("/memstow/cancel", {"what": "move", "owner": 1})["cancelled"] is False
    for body in (b"[]", b"{}", b'{"what": "run"}', b'{"what": "move"}', b'{"what": "move", "owner": true}',
                 b'{"what": ["page"]}'):
        assert comfy.status_of("/memstow/cancel", body) == 400, body
    other = {"Sec-Fetch-Site": "cross-site"}
    assert comfy.status_of("/memstow/cancel", json.dumps({"what": "page"}).encode(), other) == 403
    assert comfy.status_of("/memstow/diff", None, other, "GET") == 403
