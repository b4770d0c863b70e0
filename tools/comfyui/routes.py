"""What the pack says over HTTP, under ComfyUI's own rules of who may ask. A client never names a file."""
import asyncio
import os
import time
from typing import Any

from . import log, memstow, report
from .runs import PATIENCE, Runs, Ticket

MOST_LINES = 10_000
WAITS = "asked for: it is done when the run that is on has ended; with \"wait\": true the answer comes then"


def owners(runs: Runs) -> list[dict]:
    """The models that are alive, while the worker thread may be making more."""
    for _attempt in range(5):
        try:
            return owners_now(runs)
        except RuntimeError: # a set changed its size while it was looked at
            continue
    return []


def owners_now(runs: Runs) -> list[dict]:
    from . import unload
    patchers, found = unload.loaded(), []
    for identity in runs.registry.all():
        patcher = runs.registry.found(identity, patchers)
        ruling = runs.registry.ruling(identity, patcher)
        figures = report.figures_of(identity.owner)
        found.append({"id": identity.owner.id, "kind": "model", "type": identity.kind, "name": identity.owner.name,
                      "origin": identity.origin, "policy": ruling.policy, "priority": ruling.priority,
                      "rule": ruling.detail or ruling.rule, "live_bytes": figures.live_bytes,
                      "live_blocks": figures.live_blocks, "resident_bytes": figures.resident_bytes,
                      "stowed_bytes": figures.stowed_bytes, "cuda_bytes": figures.cuda_bytes,
                      "is_loaded": any(id(p.model) == identity.key for p in patchers)})
    return found


def install(runs: Runs) -> None:
    from aiohttp import web
    from server import PromptServer
    routes = PromptServer.instance.routes

    def document(kind: str, **members: Any) -> Any:
        return web.json_response({"format": f"memstow-comfyui-{kind}", "version": 1, **members})

    def answer(ticket: Ticket) -> Any:
        done = ticket.done.is_set()
        return document("trigger", ticket=ticket.number, done=done, given_bytes=ticket.result,
                        text=ticket.words if done else WAITS)

    @routes.get("/memstow/owners")
    async def get_owners(_request: Any) -> Any:
        return document("owners", owners=owners(runs))

    @routes.get("/memstow/decisions")
    async def get_decisions(request: Any) -> Any:
        try:
            start = int(request.query.get("from", "0"))
        except ValueError:
            return web.Response(status=400, text="from must be a number")
        lines, following = memstow.decisions(max(start, 0))
        if len(lines) > MOST_LINES: # the others are the next answer's
            following = lines[MOST_LINES]["n"]
        return document("decisions", lines=lines[:MOST_LINES], next=following)

    @routes.get("/memstow/report")
    async def get_report(request: Any) -> Any:
        if request.query.get("format") == "text":
            return web.Response(text=report.text(runs.last))
        return web.json_response(runs.last)

    @routes.post("/memstow/snapshot")
    async def post_snapshot(_request: Any) -> Any:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}.mst"
        path = os.path.join(report.folder(), name)
        try:
            await asyncio.get_running_loop().run_in_executor(None, memstow.snapshot, path)
        except OSError as error:
            log.warning("no snapshot: %s", error)
            return web.Response(status=500, text=str(error))
        return document("snapshot", file=f"memstow/{name}", in_folder="output")

    @routes.post("/memstow/trigger")
    async def post_trigger(request: Any) -> Any:
        try:
            body = await request.json() if request.can_read_body else {}
        except ValueError:
            return web.Response(status=400, text="not JSON")
        if not isinstance(body, dict):
            return web.Response(status=400, text="not a JSON object")
        ticket = runs.ask(Ticket(memstow.Request("trigger", 0, 0, str(body.get("reason", "HTTP"))[:200])))
        if body.get("wait"):
            await asyncio.get_running_loop().run_in_executor(None, ticket.done.wait, PATIENCE)
        return answer(ticket)

    @routes.get("/memstow/ticket")
    async def get_ticket(request: Any) -> Any:
        number = request.query.get("id", "")
        ticket = runs.asked.get(int(number)) if number.isdecimal() else None
        return answer(ticket) if ticket is not None else web.Response(status=404, text="no such ticket, or an old one")
