"""Loops over HTTP, with ComfyUI's own access rules. In: requests. Out: JSON, and the bytes of tensors. A client can
only name files in the folder of saved workflows, and no pickle is read or sent."""
import asyncio
import math
from typing import Any

from ..answers import words
from ..origin import own_only

MEMBERS: dict[str, Any] = {
    "workflows": list, "inputs": dict, "iterations": int, "condition": dict, "when": (list, dict), "use_ram": bool,
    "ram_limit": int, "persist_prefix": str, "independent": bool, "name": str}
PIECE = 1 << 20 # bytes in one piece of a response
MOST_DEEP, MOST_PARTS, MOST_BITS = 200, 1_000_000, 10_000 # limits of a value in JSON: levels, parts, bits of an integer


def fault_of(body: Any) -> str:
    """The fault in the body of a request for a loop, or "" if there is no fault."""
    if not isinstance(body, dict):
        return "not a JSON object"
    if unknown := sorted(set(body) - set(MEMBERS)):
        return f"unknown members: {', '.join(unknown)}; known are {', '.join(MEMBERS)}"
    for name, value in body.items():
        if value is not None and (
                not isinstance(value, MEMBERS[name]) or isinstance(value, bool) and MEMBERS[name] is int):
            return f"{name} is of the wrong type: {type(value).__name__}"
    return "workflows is missing: a list of workflows, or of names of saved ones" if not body.get("workflows") else ""


def plain(value: Any) -> Any:
    """A value as JSON. A value that JSON cannot express, or that exceeds the limits, becomes a description."""
    return Plain().of(value)


class Plain:
    def __init__(self) -> None:
        self.left = MOST_PARTS

    def of(self, value: Any, depth: int = 0) -> Any:
        self.left -= 1
        if isinstance(value, (str, bool, type(None))):
            return value
        if isinstance(value, (int, float)):
            return number(value)
        if depth < MOST_DEEP and isinstance(value, (list, tuple)) and len(value) <= self.left:
            return [self.of(part, depth + 1) for part in value]
        if depth < MOST_DEEP and isinstance(value, dict) and len(value) <= self.left:
            if all(isinstance(key, str) for key in value):
                return {key: self.of(part, depth + 1) for key, part in value.items()}
        return {"not_json": type(value).__name__, **shape_of(value)}


def number(value: Any) -> Any:
    """A number as JSON. JSON has neither infinite numbers nor NaN, and Python refuses to write integers with thousands
    of digits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"not_json": "float", "text": repr(float(value))}
    return value if value.bit_length() <= MOST_BITS else {"not_json": "int", "bits": value.bit_length()}


def shape_of(value: Any) -> dict:
    try:
        return {"shape": list(value.shape), "dtype": str(value.dtype)}
    except Exception: # the value has no shape, or its code raises
        return {}


def install(pack: Any, functions: Any) -> None:
    from aiohttp import web
    from server import PromptServer
    routes, loops, wire = PromptServer.instance.routes, pack.loops, functions.wire

    async def aside(function: Any, *arguments: Any) -> Any:
        """Runs a function on another thread than the server's. The server's thread must not wait, because the threads
        of loops need it."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    def document(**members: Any) -> Any:
        return web.json_response({"format": "memstow-comfyui-loops", "version": 1, **members})

    def unknown() -> Any:
        return web.Response(status=404, text="no such loop: GET /memstow/loops lists them")

    def start(body: dict) -> Any:
        return functions.start_loop(**{name: value for name, value in body.items() if value is not None})

    @routes.post("/memstow/loops")
    @own_only
    async def post_loop(request: Any) -> Any:
        values: dict = {}
        try:
            if request.content_type == wire.CONTENT_TYPE:
                body, values = await aside(wire.from_bytes, await request.read())
            else:
                body = await request.json()
        except functions.LoopError as error:
            return words(str(error), 400)
        except (ValueError, LookupError, RecursionError): # LookupError: an unknown charset
            return web.Response(status=400, text="the body is not JSON")
        if fault := fault_of(body):
            return words(fault, 400)
        try:
            started = await aside(start, {**body, "inputs": {**(body.get("inputs") or {}), **values}})
            return document(**await aside(started.document))
        except (ValueError, OSError) as error:
            return words(str(error), 400)

    @routes.get("/memstow/loops")
    @own_only
    async def get_loops(request: Any) -> Any:
        name, with_values = request.query.get("name"), request.query.get("values")
        try:
            if name is None:
                return document(loops=await aside(lambda: [loop.document() for loop in list(loops.loops.values())]))
            loop = loops.find(name)
            if loop is None:
                return unknown()
            if with_values not in ("1", "raw"):
                return document(**await aside(loop.document))
            entry, values = await aside(loop.document_and_values)
        except (ValueError, OSError) as error: # the store cannot give a value, for example while its memory is moved
            return words(str(error), 503)
        if with_values == "raw":
            return await send_raw(request, entry, values)
        return document(**entry, values_of_ports=plain(values))

    async def send_raw(request: Any, entry: dict, values: dict) -> Any:
        """Sends values as bytes, so that values that JSON cannot express can be sent. A value that only pickle can
        express is sent as a description."""
        found, told = await aside(split, values)
        body = {"format": "memstow-comfyui-loops", "version": 1, **entry, "values_of_ports": told}
        answer = web.StreamResponse(headers={"Content-Type": wire.CONTENT_TYPE})
        await answer.prepare(request)
        for piece in wire.packed(body, found):
            view = memoryview(piece).cast("B")
            for at in range(0, len(view), PIECE):
                await answer.write(bytes(view[at:at + PIECE]))
        await answer.write_eof()
        return answer

    def split(values: dict) -> tuple[dict, dict]:
        found, told = {}, {}
        for port, value in values.items():
            try:
                found[port] = wire.as_bytes(value)
            except ValueError:
                told[port] = plain(value)
        return found, told

    @routes.delete("/memstow/loops")
    @own_only
    async def delete_loop(request: Any) -> Any:
        name = request.query.get("name", "")
        if not await aside(loops.remove, name):
            return unknown()
        return document(name=name, deleted=True)
