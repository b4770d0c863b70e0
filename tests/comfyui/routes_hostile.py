#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Hostile clients of the pack's routes, with ComfyUI's own server and its checks, in this process. A page of another
site that sends no Origin starts no command."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import asyncio

from aiohttp.test_utils import TestClient, TestServer

import server
from memstow_pack import asking

commands = []
asking.Work.run = lambda self: commands.append(self.subcommand) or b"" # a double: no command runs
instance = server.PromptServer.instance


async def another_site(client):
    """An image's address in a page of another site: browsers send no Origin with it."""
    for path in ("metrics", "leaks", "page", "diff", "loops", "loops?name=x&values=raw"):
        for site in ("cross-site", "same-site"):
            answer = await client.get(f"/memstow/{path}", headers={"Sec-Fetch-Site": site})
            assert answer.status == 403, (path, site, answer.status)
    assert not commands, commands
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}): # Prometheus, the user, our page
        assert (await client.get("/memstow/metrics", headers=headers)).status == 200, headers
    assert commands == ["metrics"] * 3, commands


async def main():
    instance.app.add_routes(instance.routes)
    async with TestClient(TestServer(instance.app)) as client:
        for check in (another_site,):
            await check(client)
            print(f"{check.__name__}: held", flush=True)


asyncio.get_event_loop().run_until_complete(main())
