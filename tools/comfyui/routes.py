"""The pack's answers over HTTP, with ComfyUI's own access rules. A client never chooses the name of a file."""
import asyncio
import contextlib
import functools
from typing import Any, Callable

from . import asking, log, memstow, metrics, near, panel, report
from .answers import words
from .origin import own_only
from .choices import is_whole
from .hooks import quietly
from .registry import MOST_PRIORITY, POLICIES, Identity, Ruling
from .runs import PATIENCE, Order, Runs, Ticket
from .snapshots import Snapshots, TooMany

HTML = "text/html; charset=utf-8"
LONG = ("page", "diff", "snapshot", "move") # work that can be cancelled
LEAKS_CODES = (0, 1, 5)     # exit codes of memstow leaks: no leak, a leak, no verdict
WAIT = "--timeout=20"       # the command waits 20 seconds at most, because the worker may be in a long run
ORDERS = ("stow", "restore", "free", "policy", "why")
MOST_LINES, MOST_REASON = 10_000, 200
TICKET = "memstow.ticket" # the event on a client's web socket when its request is done
WAITS = "asked for: ComfyUI does it when the current run has ended; with \"wait\": true the answer comes then"


def owners(runs: Runs) -> list[dict]:
    """The live models."""
    return panel.steady(lambda: owners_now(runs), [])


def rulings_now(runs: Runs) -> list[tuple[Identity, Ruling, bool]]:
    """The live models, the policy of each, and whether ComfyUI has it loaded. The function holds the patchers for as
    short a time as possible, because a trigger on the worker thread cannot free them meanwhile."""
    from . import unload
    patchers = unload.loaded()
    loaded = {id(patcher.model) for patcher in patchers}
    return [(identity, runs.registry.ruling(identity, runs.registry.found(identity, patchers)), identity.key in loaded)
            for identity in runs.registry.all()]


def owners_now(runs: Runs) -> list[dict]:
    found = []
    for identity, ruling, is_loaded in rulings_now(runs):
        figures = report.figures_of(identity.owner)
        found.append({"id": identity.owner.id, "kind": "model", "type": identity.kind, "name": identity.owner.name,
                      "origin": identity.origin, "policy": ruling.policy, "priority": ruling.priority,
                      "rule": ruling.detail or ruling.rule, "is_remembered": identity.file_key is not None,
                      "why": runs.whys.get(identity.owner.id), "live_bytes": figures.live_bytes,
                      "live_blocks": figures.live_blocks, "resident_bytes": figures.resident_bytes,
                      "stowed_bytes": figures.stowed_bytes, "cuda_bytes": figures.cuda_bytes,
                      "device_stowed_bytes": figures.device_stowed_bytes,
                      "on_device_bytes": list(figures.on_device_bytes),
                      "is_loaded": is_loaded})
    return found


def fault_of(body: Any) -> str:
    """The fault in the body of a trigger; "": none."""
    if not isinstance(body, dict):
        return "not a JSON object"
    reason = body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > MOST_REASON:
        return f"reason must be a text of at most {MOST_REASON} characters"
    if not isinstance(body.get("wait", False), bool):
        return "wait must be true or false"
    return fault_of_client(body)


def fault_of_client(body: dict) -> str:
    """The fault in the client that a request names, or "" if there is no fault. A request need not name a client."""
    return "" if isinstance(body.get("client", ""), str) else panel.NO_CLIENT


def fault_of_order(body: Any) -> str:
    """The fault in the body of an order for a model, or "" if there is no fault."""
    if not isinstance(body, dict):
        return "not a JSON object"
    owner: Any = body.get("owner")
    priority: Any = body.get("priority")
    if not is_whole(owner) or owner <= 0:
        return "owner must be the id of a model: GET /memstow/owners lists them"
    if body.get("do") not in ORDERS:
        return f"do must be one of {', '.join(ORDERS)}"
    if body["do"] == "policy" and body.get("policy") not in ("none", *POLICIES):
        return f"policy must be one of none, {', '.join(POLICIES)}"
    if priority is not None and not (body["do"] == "policy" and is_whole(priority) and abs(priority) <= MOST_PRIORITY):
        return f"priority must be a number from -{MOST_PRIORITY} to {MOST_PRIORITY}, and goes with a policy"
    return fault_of_client(body)


def fault_of_cancel(body: Any) -> str:
    """The fault in the body of a cancellation, or "" if there is no fault."""
    if not isinstance(body, dict) or body.get("what") not in LONG:
        return f"what must be one of {', '.join(LONG)}"
    if body["what"] == "move" and not is_whole(body.get("owner")):
        return "owner must be the id of a model: GET /memstow/owners lists them"
    return ""


def is_number(text: str) -> bool:
    """Whether the text is a number in digits, short enough for int()."""
    return text.isascii() and text.isdecimal() and len(text) <= 18


def install(runs: Runs) -> None:
    from aiohttp import web
    from server import PromptServer
    routes = PromptServer.instance.routes
    snapshots, command = Snapshots(), asking.Asking()
    quietly(snapshots.tidy)()
    quietly(near.hide_folder)(PromptServer.instance.app, report.folder)
    server = PromptServer.instance
    tab = panel.Panel(runs, owners, server.send_sync, lambda: server.sockets)

    def document(kind: str, **members: Any) -> Any:
        return web.json_response({"format": f"memstow-comfyui-{kind}", "version": 1, **members})

    def about(ticket: Ticket) -> dict[str, Any]:
        done = ticket.done.is_set()
        return {"format": "memstow-comfyui-trigger", "version": 1, "ticket": ticket.number, "done": done,
                "given_bytes": ticket.result, "text": ticket.words if done else WAITS}

    def answer(ticket: Ticket) -> Any:
        return web.json_response(about(ticket))

    def ask(asked: memstow.Request, body: dict, tell: Callable[[], None] = lambda: None) -> Ticket:
        """Queues a request. When the request is done, the client that `body` names gets a message on its web socket."""
        def done(_result: int, _words: str) -> None: # on the worker thread
            tell()
            if body.get("client"):
                quietly(server.send_sync)(TICKET, about(ticket), body["client"])

        ticket = Ticket(asked, done)
        return runs.ask(ticket)

    @routes.get("/memstow/owners")
    async def get_owners(_request: Any) -> Any:
        return document("owners", owners=owners(runs))

    @routes.get("/memstow/decisions")
    async def get_decisions(request: Any) -> Any:
        start = request.query.get("from", "0")
        if not is_number(start):
            return web.Response(status=400, text="from must be a number that is not below 0")
        lines, following = memstow.decisions(int(start))
        if len(lines) > MOST_LINES: # the remaining lines are for the next answer
            following = lines[MOST_LINES]["n"]
        return document("decisions", lines=lines[:MOST_LINES], next=following)

    @routes.get("/memstow/report")
    async def get_report(request: Any) -> Any:
        number, found = request.query.get("run"), runs.last
        if number is not None:
            found = next((one for one in list(runs.reports) if str(one["run"]) == number), None)
            if found is None:
                return web.Response(status=404, text="no such run, or its report is no longer kept")
        if request.query.get("format") == "text":
            return words(report.text(found))
        return web.json_response(found)

    @routes.get("/memstow/runs")
    async def get_runs(_request: Any) -> Any:
        return document("runs", runs=[{**{key: one[key] for key in ("run", "prompt", "outcome", "rss", "live")},
                                       "text": report.line(one)} for one in list(runs.reports)])

    async def said(kind: str, subcommand: str, *options: str, before: tuple = (), fine: tuple = (0,)) -> Any:
        """The command's output as a response of the content type `kind`."""
        try:
            body = await command.get(subcommand, *options, before=before, fine=fine)
        except asking.Failed as error:
            log.warning("no %s: %s", subcommand, error)
            return web.Response(status=503, text=str(error))
        return web.Response(body=body, headers={"Content-Type": kind, "Cache-Control": "no-store"})

    @routes.get("/memstow/metrics")
    @own_only
    async def get_metrics(request: Any) -> Any:
        options, kind = metrics.form_of(request.headers.get("Accept", ""))
        return await said(kind, "metrics", *options)

    @routes.get("/memstow/leaks")
    @own_only
    async def get_leaks(_request: Any) -> Any:
        return await said("application/json", "leaks", WAIT, "--json", fine=LEAKS_CODES)

    @routes.get("/memstow/page")
    @own_only
    async def get_page(_request: Any) -> Any:
        return await said(HTML, "leaks", WAIT, "--html", fine=LEAKS_CODES)

    def with_files(handler: Any) -> Any:
        """If the folder of snapshots or a file in it cannot be used, makes the handler's answer say why."""
        @functools.wraps(handler)
        async def checked(request: Any) -> Any:
            try:
                return await handler(request)
            except OSError as error:
                log.warning("no snapshot: %s", error)
                return words(str(error), 500)
        return checked

    @routes.get("/memstow/diff")
    @own_only
    @with_files
    async def get_diff(_request: Any) -> Any:
        path = snapshots.newest()
        if path is None:
            return web.Response(status=409, text="there is no snapshot to compare with: make one first")
        return await said(HTML, "diff", "--html", before=(path,))

    @routes.post("/memstow/snapshot")
    @own_only
    @with_files
    async def post_snapshot(_request: Any) -> Any:
        try:
            path = snapshots.begin()
        except TooMany as error:
            return web.Response(status=409, text=str(error))
        try:
            await asyncio.get_running_loop().run_in_executor(None, memstow.snapshot, path)
        finally:
            stays = snapshots.end(path)
        if not stays:
            return web.Response(status=409, text="it was cancelled")
        return document("snapshot", file=snapshots.file_of(path), in_folder="output")

    @routes.get("/memstow/snapshot")
    @with_files
    async def get_snapshots(_request: Any) -> Any:
        return document("snapshots", snapshots=snapshots.listed(), most=snapshots.most, in_folder="output")

    @routes.delete("/memstow/snapshot")
    @own_only
    @with_files
    async def delete_snapshot(request: Any) -> Any:
        file = request.query.get("file", "")
        if not snapshots.remove(file):
            return web.Response(status=404, text="no such snapshot: GET /memstow/snapshot lists them")
        return document("snapshot", file=file, in_folder="output", deleted=True)

    def with_body(faults: Any) -> Any:
        """Makes a handler get the body of the request. A body that is not JSON, or in which `faults` finds a fault, is
        refused."""
        def wrap(handler: Any) -> Any:
            async def checked(request: Any) -> Any:
                try:
                    body = await request.json()
                except (ValueError, LookupError, RecursionError): # also for an empty body
                    return web.Response(status=400, text="the body is not JSON")
                fault = faults(body)
                return web.Response(status=400, text=fault) if fault else await handler(body)
            return checked
        return wrap

    @routes.post("/memstow/watch")
    @own_only
    @with_body(functools.partial(panel.fault_of, "open"))
    async def post_watch(body: Any) -> Any:
        if not body["open"]:
            tab.close(body["client"])
            return web.json_response({})
        if not tab.open(body["client"]):
            return web.Response(status=409, text="no such client, or too many have the tab open")
        return web.json_response(tab.figures())

    @routes.post("/memstow/badges")
    @own_only
    @with_body(functools.partial(panel.fault_of, "on"))
    async def post_badges(body: Any) -> Any:
        if not tab.show_badges(body["client"], body["on"]):
            return web.Response(status=409, text="no such client, or too many show badges")
        return document("nodes", nodes=panel.nodes_of(tab.last()) if body["on"] else [])

    @routes.post("/memstow/model")
    @own_only
    @with_body(fault_of_order)
    async def post_model(body: Any) -> Any:
        if runs.registry.by_owner(body["owner"]) is None:
            return web.Response(status=404, text="no such model: GET /memstow/owners lists them")
        text = body["policy"] if body["do"] == "policy" else ""
        return answer(ask(Order(body["do"], 0, body["owner"], text, priority=body.get("priority")), body))

    async def cancel_move(owner: int) -> bool:
        """For a model: withdraws the orders that nobody has begun, and ends a move that has begun. Memory that has
        already moved stays where it is. Returns whether anything was withdrawn or ended."""
        is_any, begun = runs.withdraw(owner)
        if begun is None or begun.asked.kind not in ("stow", "restore"):
            return is_any
        try:
            await command.get(begun.asked.kind, str(owner), "--cancel", WAIT)
        except asking.Failed as error:
            log.debug("not cancelled: %s", error)
            return is_any
        return True

    @routes.post("/memstow/cancel")
    @own_only
    @with_body(fault_of_cancel)
    async def post_cancel(body: Any) -> Any:
        what = body["what"]
        if what == "move":
            cancelled = await cancel_move(body["owner"])
        elif what == "snapshot":
            cancelled = snapshots.cancel()
        else:
            cancelled = command.cancel("leaks" if what == "page" else "diff", "--html")
        return document("cancel", what=what, cancelled=cancelled)

    @routes.post("/memstow/trigger")
    @own_only
    @with_body(fault_of)
    async def post_trigger(body: Any) -> Any:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError): # the server has ended
                loop.call_soon_threadsafe(over.set)

        ticket = ask(memstow.Request("trigger", 0, 0, body.get("reason", "HTTP")), body, tell)
        if body.get("wait"): # no thread waits: ComfyUI's server has few, and sends files with them
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(over.wait(), PATIENCE)
        return answer(ticket)

    @routes.get("/memstow/ticket")
    async def get_ticket(request: Any) -> Any:
        number = request.query.get("id", "")
        ticket = runs.asked.get(int(number)) if is_number(number) else None
        return answer(ticket) if ticket is not None else web.Response(status=404, text="no such ticket, or an old one")
