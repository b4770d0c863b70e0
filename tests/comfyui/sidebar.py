#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
"""The tab "Memory" in ComfyUI's own page, in a browser: its figures are those of the report, and come by the web socket
while the tab is open, and no longer. Each button does what it says. A policy that is chosen holds for the next run.
Nothing is loaded from elsewhere. Where ComfyUI does not run under memstow, the tab says so and offers to change it."""
import http.server, json, os, pathlib, sys, threading

import support
from _comfy import Comfy, mixed
from _sidebar import CLICK, PAGE, browse, press, rows, settle

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402

PICTURES = pathlib.Path(os.environ.get("SIDEBAR_PICTURES", ".")) # by hand: a folder that stays
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)


def start(under, name):
    settle(name)
    return Comfy(under=under, name=name, arguments=("--front-end-root", str(PAGE)), env={"MEMSTOW_POLICY": "keep"})


def picture(name):
    browser.driver.save_screenshot(str(PICTURES / f"{name}.png"))


def near(shown, bytes_):
    """Whether a shown size is this one, to its last digit."""
    value, unit = shown.split()
    return abs(float(value) - bytes_ / UNITS[unit]) <= (0.051 if "." in value else 0)


def toasts():
    return browser.js("return window.said")


with start("memstow", "comfyui") as comfy:
    comfy.run(mixed(1, None, None))
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    picture("memory")
    owners = comfy.owners()
    shown = rows(browser)
    assert len(shown) == 3 == len(owners), (shown, owners)
    for owner in owners.values():
        [row] = [row for name, row in shown.items() if name.startswith(owner["name"])]
        assert near(row["where"].removesuffix(" RAM"), owner["live_bytes"]), (row, owner)
        assert row["policy"] == "keep" and "MEMSTOW_POLICY" in row["why"], row
    report = comfy.report()
    assert browser.text(".memstow-run h3") == "Run 1: ok", browser.text(".memstow-run")
    cells = browser.js("return [...document.querySelectorAll('.memstow-run tbody tr:first-child td')].map("
                       "(cell) => cell.textContent)")
    assert all(near(cell, report["rss"][f"{when}_bytes"]) for cell, when in zip(cells, ("before", "peak", "after")))
    legend = dict(browser.js("""
        return [...document.querySelectorAll('.memstow-above section:first-child li')].map(
            (row) => [row.children[1].textContent, row.children[2].textContent])"""))
    [model] = [name for name in shown if name.startswith("MODEL")]
    assert {"available", "other memory of ComfyUI", "other programs", model} <= legend.keys(), legend
    assert near(legend[model], owners["MODEL"]["resident_bytes"]), (legend, owners)

    # figures come by themselves, at most once in two seconds
    browser.js("""
        window.times = [];
        window.begun = performance.now();
        window.comfyAPI.api.api.addEventListener("memstow.figures", (event) => {
            window.times.push([performance.now(), event.detail.last.run]); })""")
    comfy.run(mixed(2, None, None))
    browser.wait("window.times.some(([, run]) => run === 2)")
    browser.wait("document.querySelector('.memstow-run h3').textContent === 'Run 2: ok'")
    times, begun, now = browser.js("return [window.times, window.begun, performance.now()]")
    assert len(times) <= 2 + (now - begun) / 2000, (times, begun, now) # one may have been on its way

    # the buttons of a model
    press(browser, "MODEL", "Stow")
    assert "stowed" in rows(browser)[model]["where"], (rows(browser), toasts())
    assert comfy.owners()["MODEL"]["stowed_bytes"] > 0.9 * comfy.owners()["MODEL"]["live_bytes"], comfy.owners()
    picture("stowed")
    press(browser, "MODEL", "Restore")
    assert comfy.owners()["MODEL"]["stowed_bytes"] == 0, comfy.owners()
    press(browser, "VAE", "Free now")
    assert set(comfy.owners()) == {"MODEL", "CLIP"} and len(rows(browser)) == 2, (comfy.owners(), rows(browser))
    assert any("VAE" in toast and "freed" in toast for toast in toasts()), toasts()

    # a policy, for the next run
    browser.js("""
        const row = [...document.querySelectorAll('.memstow-models > li')].find(
            (row) => row.querySelector('strong').textContent.startsWith('CLIP'));
        const choice = row.querySelector('select');
        choice.value = 'free'; choice.dispatchEvent(new Event('change'))""")
    support.wait_for(lambda: comfy.owners()["CLIP"]["policy"] == "free", what="the policy")
    comfy.run(mixed(3, None, None))
    assert set(comfy.owners()) == {"MODEL", "VAE"}, comfy.owners()

    # the buttons of all
    for button, condition in (("Apply policies now", lambda: "a trigger after run 3" in comfy.report()["about"]),
                              ("Snapshot", lambda: comfy.get("/memstow/snapshot")["snapshots"])):
        browser.js("[...document.querySelectorAll('.memstow-buttons button')].find((one) => one.textContent === "
                   "arguments[0]).click()", button)
        support.wait_for(condition, what=button)
    picture("buttons")
    for size in ((1400, 1000), (900, 700)):
        browser.size(*size)
        wide = browser.js("""
            const tab = document.querySelector('.memstow'), edge = tab.getBoundingClientRect().right;
            return [tab.scrollWidth, tab.clientWidth, ...[...tab.querySelectorAll('*')].filter(
                (one) => one.getBoundingClientRect().right > edge).map((one) => one.outerHTML.slice(0, 99))]""")
        assert wide[0] <= wide[1], (size, wide)
        picture(f"buttons-{size[0]}")
    assert browser.js("return [...document.querySelectorAll('.memstow button, .memstow select')].every((one) => "
                      "one.textContent.trim() && one.tabIndex >= 0)")

    # the curve of the last runs, and the same as a table
    comfy.run({"1": {"class_type": "RandomConditioning", "inputs": {"seed": 1}},
               "2": {"class_type": "Fail", "inputs": {"value": ["1", 0], "seed": 1}},
               "3": {"class_type": "Digest", "inputs": {"value": ["2", 0]}}}, status="error")
    browser.wait("document.querySelectorAll('.memstow-curve tbody tr').length === 4")
    reports = [comfy.get(f"/memstow/report?run={number}") for number in range(1, 5)]
    table = browser.js("return [...document.querySelectorAll('.memstow-curve tbody tr')].map((row) => "
                       "[...row.children].map((cell) => cell.textContent))")
    for (name, *cells), report in zip(table, reports):
        assert all(near(cell, report["rss"][f"{when}_bytes"])
                   for cell, when in zip(cells, ("before", "peak", "after"))), (name, cells, report["rss"])
        assert (report["outcome"] == "ok") == (report["outcome"] not in name), (name, report["outcome"])
        assert ("gave back" in name) == (report["given_bytes"] >= 2**20), (name, report["given_bytes"])
    assert reports[3]["outcome"] == "failed" and reports[2]["given_bytes"] > 2**20, reports
    said = browser.js("return document.querySelector('.memstow-curve svg[role=img]').getAttribute('aria-label')")
    highest = max(report["rss"]["peak_bytes"] for report in reports)
    assert said.startswith("Resident memory in the last 4 runs: ") and near(said.split(", ")[1].removesuffix(
        " at most"), highest), said
    marks = browser.js("return [...document.querySelectorAll('.memstow-curve svg title')].map("
                       "(one) => one.textContent)")
    assert "Run 4: failed" in marks and any(mark.startswith("Run 3: gave back") for mark in marks), marks
    corners = browser.js("return document.querySelector('.memstow-curve polyline').points.length")
    assert corners == 3 * 4, corners
    browser.js("document.querySelector('.memstow-curve summary').click(); "
               "document.querySelector('.memstow-curve').scrollIntoView()")
    browser.wait("document.querySelector('.memstow-curve details').open")
    picture("curve")

    # closed: nothing comes any more
    browser.js(CLICK)
    browser.wait("!document.querySelector('.memstow-body')")
    browser.js("window.times = []")
    comfy.run(mixed(4, None, None))
    comfy.run(mixed(5, None, None))
    assert browser.js("return window.times") == []

    own = f"127.0.0.1:{comfy.port}/"
    others = [url for url in browser.asked_for() if own not in url and not url.startswith("ws:")]
    assert not [url for url in others if "memstow" in url], others
    assert not [line for line in browser.complaints() if "memstow" in line], browser.complaints()

    # a page of another site, also a sandboxed one, can do nothing and read nothing
    before = comfy.report(), comfy.owners(), len(comfy.get("/memstow/snapshot")["snapshots"])
    attack = f"""<script>
        const go = async () => {{
            const seen = [];
            for (const [path, body] of [["trigger", {{}}], ["snapshot", {{}}], ["loops", {{workflows: ["x"]}}],
                                        ["model", {{owner: {comfy.owners()["MODEL"]["id"]}, do: "free"}}]])
                seen.push(await fetch("http://{own}memstow/" + path, {{method: "POST", mode: "no-cors",
                    body: JSON.stringify(body)}}).then((answer) => answer.type, () => "refused"));
            for (const path of ["owners", "report", "metrics", "decisions"])
                seen.push(await fetch("http://{own}memstow/" + path).then(() => "read", () => "refused"));
            parent.postMessage(seen, "*"); document.title = seen.join(" ");
        }}; go()</script>"""
    (support.HERE / "hostile").mkdir()
    (support.HERE / "hostile/attack.html").write_text(attack)
    (support.HERE / "hostile/frame.html").write_text(
        "<iframe sandbox='allow-scripts' src='attack.html'></iframe>"
        "<script>onmessage = (event) => {document.title = event.data.join(' ')}</script>")
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    site = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *given: handler(*given, directory=str(support.HERE / "hostile")))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    for page in ("attack.html", "frame.html"):
        browser.driver.get(f"http://127.0.0.1:{site.server_address[1]}/{page}")
        browser.wait("document.title.split(' ').length === 8")
        seen = browser.js("return document.title").split()
        assert set(seen[:4]) <= {"opaque", "refused"} and set(seen[4:]) == {"refused"}, (page, seen)
    comfy.settled()
    site.shutdown()
    after = comfy.owners(), len(comfy.get("/memstow/snapshot")["snapshots"])
    assert {name: owner["id"] for name, owner in after[0].items()} == {
        name: owner["id"] for name, owner in before[1].items()} and after[1] == before[2], (before, after)
    for headers in ({"Origin": "null"}, {"Origin": "http://evil.example", "Host": f"192.0.2.1:{comfy.port}"},
                    {"Sec-Fetch-Site": "cross-site"}):
        for path in ("trigger", "snapshot", "model", "watch", "loops"):
            assert comfy.status_of(f"/memstow/{path}", b"{}", headers) == 403, (path, headers)
    same = {"Origin": f"http://{own[:-1]}", "Sec-Fetch-Site": "same-origin"}
    assert comfy.status_of("/memstow/trigger", b"{}", same) == 200
    for body in (b"{", b"[]", b"{}", b'{"owner": true, "do": "free"}', b'{"owner": 1, "do": "sell"}',
                 b'{"owner": 1, "do": "policy", "policy": "sell"}', b'{"owner": -1, "do": "free"}'):
        assert comfy.status_of("/memstow/model", body) == 400, body
    assert comfy.status_of("/memstow/model", b'{"owner": 123456, "do": "free"}') == 404
    for body in (b"[]", b"{}", b'{"client": 1, "open": true}', b'{"client": "x", "open": 1}'):
        assert comfy.status_of("/memstow/watch", body) == 400, body
    assert comfy.status_of("/memstow/watch", b'{"client": "nobody", "open": true}') == 409

with start(None, "plain") as comfy:
    browse(browser, comfy)
    browser.wait("document.querySelector('.memstow-body button')")
    assert "does not run under memstow" in browser.text(".memstow-body")
    picture("plain")
    browser.one(".memstow-body button").click()
    file = support.HERE / "plain/user/default/comfy.settings.json"
    support.wait_for(lambda: json.loads(file.read_text() or "{}").get("memstow.start") is True, what="the setting")
