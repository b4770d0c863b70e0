#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
# long
"""The tab "Memory" in a French ComfyUI: its texts, sizes and toasts are French. If ComfyUI does not run under memstow,
what the tab offers is French, too. The tab follows a change of the language. Except names and the sentences of the
server, all words of the tab come from its table of messages: the test puts brackets around each message, and finds no
other words."""
import json, re, sys

import support
from _comfy import Comfy, mixed
from _sidebar import PAGE, browse, choose, press, rows, set_to, settle

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402

browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)
LOCALE = "Comfy.Locale"
WORDS = """
    const tab = document.querySelector('.memstow'), found = [];
    const walk = document.createTreeWalker(tab, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) found.push(walk.currentNode.data);
    for (const one of tab.querySelectorAll('[aria-label], [title]'))
        found.push(one.getAttribute('aria-label') ?? '', one.getAttribute('title') ?? '');
    return found"""
BRACKETS = """
    const done = arguments[0];
    import('/extensions/memstow/messages.js').then(({ MESSAGES }) => {
        for (const key of Object.keys(MESSAGES.fr)) MESSAGES.fr[key] = `⟦${MESSAGES.fr[key]}⟧`;
        done();
    })"""


# The tab's requests for figures get no answer until window.release() is called.
HOLD = """
    const api = window.comfyAPI.api.api, before = api.fetchApi;
    const held = new Promise((resolve) => { window.release = resolve; });
    api.fetchApi = async function (path, ...more) {
        if (path === '/memstow/watch') await held;
        return before.call(this, path, ...more);
    }"""


def start(under, name):
    settings = settle(name)
    settings.write_text(json.dumps({**json.loads(settings.read_text()), LOCALE: "fr"}))
    return Comfy(under=under, name=name, arguments=("--front-end-root", str(PAGE)),
                 env={"MEMSTOW_POLICY": "keep", "MEMSTOW_COMMAND": str(support.MEMSTOW)})


def strings(value):
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def others(words, data):
    """What is left of the tab's words without the messages in brackets and without the server's texts."""
    for text in sorted(filter(None, data), key=len, reverse=True):
        words = [word.replace(text, "") for word in words]
    before = None
    while words != before:
        before, words = words, [re.sub(r"⟦[^⟦⟧]*⟧", "", word) for word in words]
    return [word for word in words if re.search(r"[^\W\d_]", word)]


with start("memstow", "comfyui") as comfy:
    comfy.run(mixed(1, None, None))
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    assert browser.text(".memstow h2") == "Mémoire", browser.text(".memstow")
    assert browser.text(".memstow-run h3") == "Exécution 1 : réussie", browser.text(".memstow-run")
    [model] = [name for name in rows(browser) if name.startswith("MODEL")]
    assert re.fullmatch(r"\d+,\d Mio en mémoire vive", rows(browser)[model]["where"]), rows(browser)
    press(browser, "MODEL", "Mettre sur disque")
    assert rows(browser)[model]["where"].endswith(" sur disque"), rows(browser)
    assert re.fullmatch(rf"{re.escape(model)} : \d+,\d Mio mis sur disque", browser.js("return window.said.at(-1)"))
    choose(browser, "CLIP", policy="free")
    assert "politique free ; retenue" in browser.js("return window.said.at(-1)"), browser.js("return window.said")

    # When the language is changed, the tab shows the new language at once, also if the server is slow to answer.
    browser.js(HOLD)
    set_to(browser, LOCALE, "en")
    browser.wait("document.querySelector('.memstow h2').textContent === 'Memory'")
    assert browser.js("return document.querySelectorAll('.memstow-models > li').length") == 3, browser.text(".memstow")
    browser.js("window.release()")

    # While the tab is open, the language changes to English, then to one that the tab does not have, then back to
    # French. For the language that the tab does not have, it shows English.
    for language, title in (("en", "Memory"), ("ja", "Memory"), ("fr", "Mémoire")):
        set_to(browser, LOCALE, language)
        browser.wait(f"document.querySelector('.memstow h2').textContent === '{title}'")
        browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")

    # each message in brackets
    browser.driver.execute_async_script(BRACKETS)
    browser.js("window.comfyAPI.api.api.addEventListener('memstow.figures', (event) => { window.last = event.detail })")
    for language, title in (("en", "Memory"), ("fr", "⟦Mémoire⟧")):
        set_to(browser, LOCALE, language)
        browser.wait(f"document.querySelector('.memstow h2').textContent === '{title}'")
    comfy.run(mixed(2, None, None))
    browser.wait("window.last?.last?.run === 2 && document.querySelectorAll('.memstow-curve tbody tr').length === 2")
    server = [text.removeprefix("memstow: ") for text in strings(browser.js("return window.last"))]
    shown, data = browser.js(WORDS), [*server, "keep", "stow", "free", "none"]
    assert sum("⟦" in word for word in shown) > 60, shown
    assert not others(shown, data), others(shown, data)
    assert others([*shown, "Some words"], data) # a planted word is found

with start(None, "plain") as comfy:
    browse(browser, comfy)
    browser.wait("document.querySelector('.memstow-body button')")
    assert "ne tourne pas sous memstow" in browser.text(".memstow-body"), browser.text(".memstow-body")
    assert browser.text(".memstow-body button") == "Redémarrer sous memstow"
