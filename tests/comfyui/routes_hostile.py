#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Clients of the pack's routes are hostile. ComfyUI's own server, with its checks, runs in this process. A page of
another site that sends no Origin starts no command. Texts that UTF-8 cannot express get an answer. Many clients that
wait for a trigger do not use up the server's threads. An Origin that cannot be read is refused. If the folder for
snapshots cannot be made, the answer says why. A client on another machine, whose request comes by a proxy on this
machine, is refused on each route of the pack but one; MEMSTOW_REMOTE lets this client in."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import asyncio
import json
import os

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

import server
import support
from memstow_pack import asking

WAITERS = 40 # more than the threads of Python's own executor: at most 32
commands = []
asking.Work.run = lambda self: commands.append(self.subcommand) or b"" # a double: no command runs
runs.trigger = lambda *arguments, **options: 7 # a double, too: nothing is freed
instance = server.PromptServer.instance


def report(name):
    """A run's report about one model. It has only the members that /memstow/report?format=text needs."""
    amounts = {f"{key}{unit}_bytes": 0 for key in ("run_before", "run_peak", "after", "before")
               for unit in ("", "_cuda")}
    model = {"name": name, "origin": "", "policy": None, "rule": "default", "action": "keep", "why": [], "holders": [],
             "stowed_bytes": 0, "device_stowed_bytes": 0, "detail": None, "cached": [], **amounts}
    return {"run": 1, "about": "run 1", "outcome": "ok", "owners": [model], "freed": [], "live": {}, "nodes": [],
            "shares": [], "glibc_free_bytes": None, "notes": [],
            "rss": {"before_bytes": 0, "peak_bytes": 0, "after_bytes": 0}}


async def another_site(client):
    """Asserts that the pack refuses the requests of a page of another site. If such a page uses an address of the pack
    as the source of an image, the browser sends no Origin. Then the pack must know the page by Sec-Fetch-Site alone."""
    for path in ("metrics", "leaks", "page", "diff", "loops", "loops?name=x&values=raw"):
        for site in ("cross-site", "same-site"):
            answer = await client.get(f"/memstow/{path}", headers={"Sec-Fetch-Site": site})
            assert answer.status == 403, (path, site, answer.status)
    for site in ("http://[::1", "http://a:b", "http://127.0.0.1:99999", "http://[x]:1"): # not the form of a site
        for method, path in (("GET", "owners"), ("GET", "metrics"), ("POST", "trigger"), ("POST", "restart")):
            answer = await client.request(method, f"/memstow/{path}", headers={"Origin": site})
            assert answer.status == 403, (path, site, answer.status)
    assert not commands, commands
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}): # Prometheus, the user, our page
        assert (await client.get("/memstow/metrics", headers=headers)).status == 200, headers
    assert commands == ["metrics"] * 3, commands


async def texts(client):
    """Sends half a character in JSON, and asks for a report with a model's name that is not UTF-8."""
    answer = await client.post("/memstow/loops", data=json.dumps({"\ud800": 1}))
    text = await answer.text()
    assert answer.status == 400 and "unknown members: \\ud800" in text, (answer.status, text)
    runs.last = report("caf\udce9")
    answer = await client.get("/memstow/report?format=text")
    text = await answer.text()
    assert answer.status == 200 and "caf\\udce9" in text, (answer.status, text)


async def waiters(client):
    waiting = [asyncio.ensure_future(client.post("/memstow/trigger", data=b'{"wait": true}')) for _ in range(WAITERS)]
    while len(runs.asked) < WAITERS:
        await asyncio.sleep(0.01)
    file = await asyncio.wait_for(client.get("/files/index.html"), 30)
    assert file.status == 200 and await file.text() == "<html></html>"
    assert not any(one.done() for one in waiting)
    for ticket in list(runs.asked.values()):
        runs.serve(ticket)
    for answer in await asyncio.gather(*waiting):
        assert (await answer.json())["done"] is True, await answer.text()


async def far(client):
    """Asserts that the pack refuses requests of a client on another machine if they come through a proxy on this
    machine. The proxy's headers name the client. tests/comfyui/listen makes requests by another address of this machine
    instead."""
    ours = {(route.method, route.path) for route in instance.routes if route.path.startswith("/memstow/")}
    assert len(ours) > 20 and ("GET", "/memstow/presence") in ours, ours
    before = len(commands), len(runs.asked)

    async def status(method, path, header="X-Forwarded-For"):
        headers = {header: "for=198.51.100.7" if header == "Forwarded" else "198.51.100.7"}
        answer = await client.request(method, path, headers=headers, data=b"{}" if method == "POST" else None)
        text = await answer.text()
        assert method == "HEAD" or (answer.status == 403) == ("only to clients on this machine" in text), (path, text)
        return answer.status

    for header in ("X-Forwarded-For", "Forwarded"):
        open_to_all = {one for one in ours if await status(*one, header) != 403}
        assert open_to_all == {("GET", "/memstow/presence")}, open_to_all
    assert await status("GET", "/memstow/%6fwners") == 403 and await status("HEAD", "/memstow/owners") == 403
    assert await status("GET", "/memstow/nothing") == 404 and await status("GET", "/files/index.html") == 200
    assert (len(commands), len(runs.asked)) == before, (commands, runs.asked)
    for word, opened in (("yes", []), ("metrics", ["metrics"]), ("1", ["metrics", "owners", "decisions", "leaks"])):
        os.environ["MEMSTOW_REMOTE"] = word
        assert [path for path in ("metrics", "owners", "decisions", "leaks")
                if await status("GET", f"/memstow/{path}") == 200] == opened, word
    del os.environ["MEMSTOW_REMOTE"]


async def no_folder(client):
    folder = support.HERE / "output/memstow"
    if folder.exists():
        folder.rmdir()
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    for method, path in (("POST", "snapshot"), ("GET", "snapshot"), ("GET", "diff"), ("DELETE", "snapshot?file=x")):
        answer = await client.request(method, f"/memstow/{path}", data=b"{}" if method == "POST" else None)
        text = await answer.text()
        assert answer.status == 500 and str(folder) in text, (method, path, answer.status, text)
    assert folder.read_text() == "in the way"


async def main():
    instance.app.add_routes([*instance.routes, web.static("/files", support.HERE / "web")])
    async with TestClient(TestServer(instance.app)) as client:
        for check in (another_site, texts, waiters, far, no_folder):
            await check(client)
            print(f"{check.__name__}: held", flush=True)


asyncio.get_event_loop().run_until_complete(main())
