"""Tells ComfyUI's page whether memstow is there, and starts ComfyUI again under memstow if the user presses the button.
Each of these two tasks has a route, also if the pack could not start. In: requests, and what the pack knows of memstow.
Out: one word, the state of memstow; or this process, started again under memstow."""
import asyncio
import sys
from typing import Any, Callable

from . import command, log, near, starting
from .origin import own_only, refuse_unreadable

# The library is preloaded, and
UNDER: str = "under"                 # the pack works
OTHER_VERSION: str = "other-version" # memstow's module is missing, or of another version
UNKNOWN: str = "unknown-comfyui"     # the pack does not know this ComfyUI
NO_LEDGER: str = "no-ledger"         # memstow keeps no ledger
# The library is not preloaded, and
READY, NOT_INSTALLED = "ready", "not-installed" # ComfyUI can be started again; memstow is not installed
FORBIDDEN, OTHER_SYSTEM = "forbidden", "other-system" # MEMSTOW=0 prevents it; this system is not Linux
WHY_NOT = {UNDER: "ComfyUI runs under memstow already", NOT_INSTALLED: "memstow is not installed (docs/install.md)",
           FORBIDDEN: "MEMSTOW=0 in ComfyUI's environment prevents it", OTHER_SYSTEM: "memstow runs on Linux only"}
BUSY = "workflows run or wait, and would be lost: try again when they have ended"


def outside() -> str:
    """The state of a ComfyUI that does not run under memstow: one of the words above."""
    if sys.platform != "linux":
        return OTHER_SYSTEM
    if command.find() is None:
        return NOT_INSTALLED
    return FORBIDDEN if starting.said() is False else READY


def install(inside: Callable[[], str]) -> None:
    """Adds the routes. `inside` gives the state of a ComfyUI that has the library in it."""
    from aiohttp import web
    from server import PromptServer
    server = PromptServer.instance
    refuse_unreadable(server.app)
    near.refuse_far(server.app)

    def now() -> str:
        return inside() if starting.is_preloaded() else outside()

    def is_busy() -> bool:
        return server.prompt_queue.get_tasks_remaining() > 0

    def document(**members: Any) -> Any:
        return web.json_response({"format": "memstow-comfyui-presence", "version": 1, **members})

    @server.routes.get("/memstow/presence")
    async def get_presence(_request: Any) -> Any:
        return document(state=now())

    @server.routes.post("/memstow/restart")
    @own_only
    async def post_restart(request: Any) -> Any:
        state = now()
        if state != READY:
            return web.Response(status=409, text=WHY_NOT.get(state, WHY_NOT[UNDER]))
        if is_busy():
            return web.Response(status=409, text=BUSY)
        chosen, remark = await asyncio.get_running_loop().run_in_executor(None, starting.plan)
        if chosen is None:
            log.warning("memstow: %s; ComfyUI runs as always", remark)
            return web.Response(status=503, text=remark)
        if is_busy(): # a workflow has come meanwhile
            return web.Response(status=409, text=BUSY)
        answer = document(state=READY, restarts=True)
        await answer.prepare(request)
        await answer.write_eof() # the client must have its answer before this process is another program
        log.warning("memstow: %s; ComfyUI runs as always", starting.become(chosen, remark))
        return answer
