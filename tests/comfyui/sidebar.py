#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
"""The tab "Memory" in ComfyUI's own page, in a browser. Its figures are those of `memstow report --json`. They come by
the web socket, but only while the tab is open. Each button does what it says. A policy that is chosen holds for the
next run. Nothing is loaded from elsewhere. If memstow is not installed, the tab says so, and how to install it. If
memstow is installed, but ComfyUI does not run under it, a button restarts ComfyUI under memstow, in place."""
import http.server, json, os, pathlib, re, shutil, sys, threading, urllib.parse

import support
from _comfy import AGAIN, Comfy, mixed
from _sidebar import CLICK, PAGE, browse, press, rows, settle, size as size_text

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402

PICTURES = pathlib.Path(os.environ.get("SIDEBAR_PICTURES", ".")) # set it by hand to keep the pictures
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


def bytes_of(shown):
    value, unit = shown.split()
    return float(value) * UNITS[unit]


def places(where):
    """Reads a text such as "300.0 KiB RAM, 4.0 MiB not in RAM". Returns for each place how many bytes are there."""
    found = re.findall(r"([\d.]+ [KMG]?i?B) (RAM|not in RAM|GPU|stowed)", where)
    return {place: bytes_of(size) for size, place in found}


def rows_of_run(kind):
    """What the page shows of the last run for each model or node (`kind`): its name → its sizes before the run, at the
    highest, and after the run."""
    return {name: cells for name, *cells in browser.js(f"""
        return [...document.querySelectorAll('.memstow-run tbody[data-of={kind}] tr')].slice(1).map(
            (row) => [...row.children].map((cell) => cell.textContent))""")}


def has_models_of(report):
    """The last run on the page has each model of the report, with its bytes before, at most and after."""
    named = lambda one: f"{one['name']} ({one['origin']})"
    models = {named(one): [size_text(one[f"{when}_bytes"]) for when in ("run_before", "run_peak", "after")]
              for one in report["owners"] + report["freed"]}
    assert rows_of_run("models") == models and len(models) == 3, (rows_of_run("models"), models)


def has_nodes_of(report):
    """The last run on the page has the nodes of the report with the highest peaks, each with its three sizes."""
    nodes = {f"{one['class']} #{one['node']}": [size_text(one[f"{when}_bytes"]) for when in ("before", "peak", "after")]
             for one in report["nodes"]}
    shown = rows_of_run("nodes")
    assert len(shown) == min(len(nodes), 10) > 3 and all(nodes[name] == cells for name, cells in shown.items()), (
        shown, nodes)
    least = min(bytes_of(peak) for _before, peak, _after in shown.values())
    assert all(bytes_of(nodes[name][1]) <= least for name in nodes.keys() - shown.keys()), (shown, nodes)


def says_what_the_trigger_did(comfy, run, *parts):
    """Asserts that the page shows the same line about the run's trigger as the log."""
    line = browser.text(".memstow-run .memstow-line")
    assert line.startswith(f"run {run} ok: ") and all(part in line for part in parts), line
    assert f"memstow: {line}" in comfy.log(), (line, comfy.log())


# Puts two made-up devices into the server's figures, because there is no GPU here. Returns what the tab then shows.
DEVICES = """
    const GiB = 2 ** 30, [figures, models] = [structuredClone(arguments[0]), arguments[1]];
    figures.devices = [{ device: 0, name: "Made-up A", total_bytes: 24 * GiB, free_bytes: 10 * GiB, kept_bytes: GiB },
                       { device: 1, name: "Made-up B", total_bytes: 16 * GiB, free_bytes: 15 * GiB,
                         kept_bytes: 2 * GiB }];
    for (const model of figures.models) {
        const onDevice = models[model.name.split(" ")[0]] ?? [0, 0], out = onDevice[2] ?? 0;
        model.on_device_bytes = [onDevice[0] * GiB, onDevice[1] * GiB, 0, 0, 0, 0, 0, 0];
        model.cuda_bytes = (onDevice[0] + onDevice[1] + out) * GiB;
        model.device_stowed_bytes = out * GiB;
        model.stowed_bytes += out * GiB;
    }
    for (const model of figures.last.models)
        if (model.name.startsWith("MODEL"))
            Object.assign(model, { before_cuda_bytes: 0, peak_cuda_bytes: 9 * GiB, after_cuda_bytes: 8 * GiB });
    const api = window.comfyAPI.api.api;
    api.dispatchEvent(new CustomEvent("memstow.figures", { detail: figures }));
    const found = [...document.querySelectorAll('.memstow-above section')].slice(1).map((section) => [
        section.getAttribute('aria-label'),
        Object.fromEntries([...section.querySelectorAll('li')].map((row) => [...row.children].slice(1).map(
            (cell) => cell.textContent)))]);
    const widths = [...document.querySelectorAll('.memstow-above section:nth-child(2) .memstow-part')].map(
        (part) => parseFloat(part.style.width));
    const where = [...document.querySelectorAll('.memstow-models > li')].map((row) => [
        row.querySelector('strong').textContent.split(' ')[0], row.querySelector('.memstow-where').textContent]);
    const ofGpu = [...document.querySelectorAll('.memstow-run tbody[data-of=models] tr')].map(
        (row) => [...row.children].map((cell) => cell.textContent)).filter(([name]) => name.endsWith(', on GPU'));
    api.dispatchEvent(new CustomEvent("memstow.figures", { detail: arguments[0] }));
    return [found, widths, Object.fromEntries(where), ofGpu]"""


def devices_are_shown():
    """Each device has a bar with what each model has there, what PyTorch's allocator keeps, other memory, and free
    memory. A model that was moved off its device is in no bar."""
    figures = browser.driver.execute_async_script("""
        const done = arguments[0], api = window.comfyAPI.api.api;
        api.fetchApi('/memstow/watch', { method: 'POST', body: JSON.stringify({ client: api.clientId, open: true }) })
            .then((answer) => answer.json()).then(done)""")
    assert figures["devices"] == [] and all(one["on_device_bytes"] == [0] * 8 for one in figures["models"]), figures
    label = {one["name"].split()[0]: f"{one['name']} ({one['origin']})" for one in figures["models"]}
    # The same script shows these figures and then reads the tab, because figures from the server may come at any time
    # and replace them.
    bars, widths, where, of_gpu = browser.js(DEVICES, figures, {"MODEL": [8, 0], "CLIP": [2, 0.5], "VAE": [0, 0, 3]})
    assert bars == [
        ["GPU 0: Made-up A", {label["MODEL"]: "8.0 GiB", label["CLIP"]: "2.0 GiB", "freed, kept by PyTorch": "1.0 GiB",
                              "other": "3.0 GiB", "free": "10.0 GiB"}],
        ["GPU 1: Made-up B", {label["CLIP"]: "512.0 MiB", "freed, kept by PyTorch": "512.0 MiB", "free": "15.0 GiB"}]
    ], bars
    assert len(widths) == 5 and abs(sum(widths) - 100) < 0.01, widths
    assert where["MODEL"].endswith(", 8.0 GiB GPU") and where["VAE"].endswith(", 3.0 GiB stowed"), where
    assert of_gpu == [[f"{label['MODEL']}, on GPU", "0 B", "9.0 GiB", "8.0 GiB"]], of_gpu


def nothing_came_from_elsewhere(comfy):
    """Asserts that the pack has requested nothing but ComfyUI's own address since the tab was opened. ComfyUI's page
    may request other addresses. Such a request counts as the page's if a stack of scripts led to it, and no script in
    this stack is of the pack. A request without a stack counts as the pack's."""
    def from_elsewhere():
        return [(url, scripts) for url, scripts in browser.requests()
                if urllib.parse.urlsplit(url).netloc != f"127.0.0.1:{comfy.port}"
                and not (scripts and not any("/extensions/memstow/" in script for script in scripts))]

    found = from_elsewhere()
    assert not found, found
    browser.js("import('/extensions/memstow/tools.js').then(({ element }) => { "
               "window.planted = element('img', { src: 'http://127.0.0.1:9/planted.png' }) })")
    support.wait_for(lambda: [url for url, _scripts in from_elsewhere()] == ["http://127.0.0.1:9/planted.png"],
                     what="a request that the test makes")
    browser.complaints() # drops those about the planted request


def is_as_reported(comfy, run):
    """Whether the tab shows what `memstow report --json` has. ComfyUI is idle, but the tab and the report are not read
    at the same moment. So the live memory of a model may differ by 64 KiB, which a garbage collection may free
    meanwhile. Resident memory may differ by 4 MiB, because the tab learns only of changes of a megabyte. Each figure
    may also differ because the tab rounds it."""
    report, shown = support.report(comfy.pid()), rows(browser)
    ours = {f"{one['name']} ({one['origin']})": one for one in report["owners"]
            if one["kind"] == "model" and one["live_bytes"] and not one["name"].startswith("loading ")}
    assert set(shown) == set(ours), (shown, ours)
    close = lambda bytes_, other, most: abs(bytes_ - other) <= most + max(other / 2000, 0.051 * 2**20)
    found = []
    for name, row in shown.items():
        seen = places(row["where"])
        of_host = seen.get("RAM", 0) + seen.get("not in RAM", 0)
        found += [close(of_host, ours[name]["live_bytes"] - ours[name]["stowed_bytes"], 2**16),
                  close(seen.get("stowed", 0), ours[name]["stowed_bytes"], 2**16),
                  row["policy"] == (ours[name]["policy"] or "none")]
    legend = dict(browser.js("""
        return [...document.querySelectorAll('.memstow-above section:first-child li')].map(
            (row) => [row.children[1].textContent, row.children[2].textContent])"""))
    resident = sum(bytes_of(value) for name, value in legend.items() if name not in ("available", "other programs"))
    residency = report["residency"]
    # The kernel's figure of mapped files also contains the ledger, and the pages of .data that nobody has written to.
    files = residency["mapped_file_bytes"], residency["memstow_bytes"] + residency["program_data_bytes"]
    found += [close(resident, residency["rss_bytes"], 4 * 2**20),
              files[0] - 4 * 2**20 <= bytes_of(legend["mapped files"]) <= sum(files) + 4 * 2**20, files[0] > 2**26]
    # mallinfo counts free memory that is not resident, too, so the tab says "at most"
    kept = bytes_of(legend["freed, kept by the allocator (at most)"])
    found += [residency["retained_bytes"] - 4 * 2**20 <= kept <= residency["rss_bytes"], kept > 0]
    marks = {one["kind"]: one for one in report["history"]["marks"] if one["name"] == f"run {run}"}
    cells = browser.js("return [...document.querySelectorAll('.memstow-run tbody:first-of-type td')].map("
                       "(cell) => cell.textContent)")
    if not cells: # the tab does not have the run yet: it gets models while the run still ends
        return False
    found += [browser.text(".memstow-run h3") == f"Run {run}: {marks['run_ended']['detail']}",
              close(bytes_of(cells[0]), marks["run_began"]["rss_bytes"], 4 * 2**20),
              close(bytes_of(cells[1]), marks["run_ended"]["rss_bytes"], 4 * 2**20)]
    if run == 1: # the highest moment of the process is in the first run, which loads everything
        peaks = [cells[1] for cells in rows_of_run("nodes").values()]
        found.append(close(max(map(bytes_of, peaks)), report["totals"]["peak_bytes"], 2**20))
    return all(found) or print(found, shown, ours, legend, report["residency"]["rss_bytes"], cells, marks, sep="\n")


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
        seen = places(row["where"])
        assert abs(seen.get("RAM", 0) - owner["resident_bytes"]) < 2**20, (row, owner)
        assert abs(seen.get("RAM", 0) + seen.get("not in RAM", 0) - owner["live_bytes"]) < 2**20, (row, owner)
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
    assert {"available", "mapped files", "other memory of ComfyUI", "other programs", model} <= legend.keys(), legend
    assert near(legend[model], owners["MODEL"]["resident_bytes"]), (legend, owners)
    has_models_of(report)
    has_nodes_of(report)
    says_what_the_trigger_did(comfy, 1, "kept 3 (")
    support.wait_for(lambda: is_as_reported(comfy, 1), 30, "figures that are those of the report")
    devices_are_shown()

    # The tab gets figures without asking for them, at most once in two seconds.
    browser.js("""
        window.times = [];
        window.begun = performance.now();
        window.comfyAPI.api.api.addEventListener("memstow.figures", (event) => {
            window.figures = event.detail;
            window.times.push([performance.now(), event.detail.last.run]); })""")
    comfy.run(mixed(2, None, None))
    browser.wait("window.times.some(([, run]) => run === 2)")
    browser.wait("document.querySelector('.memstow-run h3').textContent === 'Run 2: ok'")
    times, begun, now = browser.js("return [window.times, window.begun, performance.now()]")
    assert len(times) <= 2 + (now - begun) / 2000, (times, begun, now) # one event may have been on its way

    # After a restart of ComfyUI, another model may have an id that the tab knows already. The tab then shows the new
    # model's name.
    names = browser.js("""
        const show = (figures) => window.comfyAPI.api.api.dispatchEvent(
            new CustomEvent("memstow.figures", { detail: figures }));
        const real = window.figures, changed = structuredClone(real);
        changed.models.find((model) => model.name.startsWith("VAE")).name = "VAE Other";
        show(changed);
        const names = [...document.querySelectorAll('.memstow-models strong')].map((name) => name.textContent);
        show(real);
        return names""")
    assert any(name.startswith("VAE Other") for name in names), names
    assert rows(browser).keys() == shown.keys(), rows(browser)

    # the buttons of a model
    press(browser, "MODEL", "Stow")
    assert "stowed" in rows(browser)[model]["where"], (rows(browser), toasts())
    assert comfy.owners()["MODEL"]["stowed_bytes"] > 0.9 * comfy.owners()["MODEL"]["live_bytes"], comfy.owners()
    support.wait_for(lambda: is_as_reported(comfy, 2), 30, "figures that are those of the report")
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
    browser.wait("document.querySelector('.memstow-run h3').textContent === 'Run 3: ok'")
    says_what_the_trigger_did(comfy, 3, "kept 2 (", "freed 1") # or "not freed 1", if the tab just looks at it

    # the buttons for all models
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

    # the tab is closed: no figures come any more
    browser.js("""
        const api = window.comfyAPI.api.api, before = api.fetchApi;
        api.fetchApi = async function (path, options) {
            const answer = await before.call(this, path, options);
            if (path === '/memstow/watch' && JSON.parse(options.body).open === false) window.isClosed = true;
            return answer;
        }""")
    browser.js(CLICK)
    browser.wait("!document.querySelector('.memstow-body') && window.isClosed")
    comfy.settled() # what was on its way has come
    browser.js("window.times = []")
    comfy.run(mixed(4, None, None))
    comfy.run(mixed(5, None, None))
    assert browser.js("return window.times") == []

    complaints = [line for line in browser.complaints() if "memstow" in line]
    assert not complaints, complaints
    nothing_came_from_elsewhere(comfy)

    # A page of another site can do nothing and read nothing. The same holds for a sandboxed page.
    before = comfy.report(), comfy.owners(), len(comfy.get("/memstow/snapshot")["snapshots"])
    own = f"127.0.0.1:{comfy.port}/"
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
        for path in ("trigger", "snapshot", "model", "watch", "loops", "restart"):
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

    assert comfy.status_of("/memstow/restart", b"{}", same) == 409, "it runs under memstow already"

# memstow is not installed: its command is neither beside the pack nor beside Python nor in PATH
shutil.copytree(support.ROOT / "tools/comfyui", support.HERE / "pack", ignore=shutil.ignore_patterns("__pycache__"))
(support.HERE / "bin").mkdir()
settle("plain")
file = support.HERE / "plain/user/default/comfy.settings.json"
with Comfy(None, name="plain", pack=False, packs={"memstow": support.HERE / "pack"},
           arguments=("--front-end-root", str(PAGE)),
           env={"PATH": str(support.HERE / "bin"), "MEMSTOW_OPTIONS": "--follow=none -o plain.mst"}) as comfy:
    browse(browser, comfy)
    browser.wait("document.querySelector('.memstow-body pre')")
    assert comfy.get("/memstow/presence")["state"] == "not-installed"
    assert "memstow is not installed" in browser.text(".memstow-body") and not browser.all(".memstow-body button")
    # what the clone offers: PyPI does not have memstow
    install = "./quickstart && python -m pip install build/wheel/memstow-*.whl"
    assert browser.text(".memstow-body pre") == install, browser.text(".memstow-body")
    assert "not on PyPI yet" in browser.text(".memstow-body") and (support.ROOT / "quickstart").is_file()
    assert f"`{install.replace('python -m ', '')}`" in (support.ROOT / "docs/install.md").read_text()
    picture("not-installed")
    assert comfy.status_of("/memstow/restart", b"{}") == 409

    # memstow is installed: there is one button, which does not restart ComfyUI while a workflow runs
    (support.HERE / "bin/memstow").symlink_to(pathlib.Path(support.MEMSTOW).resolve())
    browser.js(CLICK)
    browser.wait("!document.querySelector('.memstow-body')")
    browser.js(CLICK)
    browser.wait("document.querySelector('.memstow-body button')")
    assert "is installed, but ComfyUI does not run under it" in browser.text(".memstow-body")
    picture("plain")
    workflow = mixed(1, None, None)
    workflow["slow"] = {"class_type": "Slow", "inputs": {"value": ["sample", 0], "seed": 1}}
    workflow["digest"]["inputs"]["value"] = ["slow", 0]
    prompt = comfy.queue(workflow)
    press_restart = lambda: browser.js("document.querySelector('.memstow-body button').click()")
    press_restart()
    support.wait_for(lambda: any("would be lost" in toast for toast in toasts()), what="the refusal")
    assert comfy.status_of("/interrupt", b"{}") == 200
    comfy.wait(prompt)
    assert json.loads(file.read_text())["memstow.start"] is True
    pid = comfy.server.pid
    press_restart()
    support.wait_for(lambda: browser.all(".memstow-none"), 300, "the figures, without a reload of the page")
    assert comfy.server.poll() is None and comfy.pid() == pid and comfy.log().count(AGAIN) == 1
    assert comfy.get("/memstow/presence")["state"] == "under"
    comfy.run(mixed(2, None, None))
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    support.wait_for(lambda: is_as_reported(comfy, 1), 30, "figures that are those of the report")
    picture("restarted")
