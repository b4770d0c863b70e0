"""What a client on another machine is not told. ComfyUI itself tells each of its clients much: its arguments, its log,
names of models, workflows. Snapshots and pages have more (call stacks, command lines, paths of files). So they are for
clients on this machine, unless the user sets MEMSTOW_REMOTE=1. In: requests and answers. Out: refusals, and answers
without folders."""
import functools
import ipaddress
import json
import os
from typing import Any, Callable

FAR = ("this has call stacks and paths of files, and is only for clients on this machine; MEMSTOW_REMOTE=1 in "
       "ComfyUI's environment lets others have it")
KEPT = ("/site-packages/", "/dist-packages/", "/lib/python3", "/custom_nodes/") # the rest of a path tells what it is


def is_near(request: Any) -> bool:
    """Whether the client is on this machine, and is no proxy that passes on the request of another client."""
    if os.environ.get("MEMSTOW_REMOTE", "").strip() == "1":
        return True
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        address = ipaddress.ip_address((request.remote or "").partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def near_only(handler: Callable) -> Callable:
    """Wraps a handler: it refuses clients on other machines."""
    from aiohttp import web

    @functools.wraps(handler)
    async def checked(request: Any) -> Any:
        return await handler(request) if is_near(request) else web.Response(status=403, text=FAR)
    return checked


def hide_folder(app: Any, folder: Callable[[], str]) -> None:
    """Makes ComfyUI's own route for files of the output folder refuse the files in `folder` to clients on other
    machines."""
    import folder_paths
    from aiohttp import web

    @web.middleware
    async def hide(request: Any, handler: Callable) -> Any:
        if request.path in ("/view", "/api/view") and not is_near(request):
            places = (folder_paths.get_output_directory(), folder_paths.get_input_directory(),
                      folder_paths.get_temp_directory())
            asked = request.query.get("subfolder", "")
            if any(os.path.realpath(os.path.join(place, asked)) == os.path.realpath(folder()) for place in places):
                return web.Response(status=403, text=FAR)
        return await handler(request)

    app.middlewares.insert(0, hide)


def short(path: str) -> str:
    """The path without the folders that only this machine has."""
    places = [(path.rfind(mark), mark) for mark in KEPT if mark in path]
    return path[max(places)[0]:] if places else os.path.basename(path)


def shortened(value: Any) -> Any:
    """A document of the command with short paths."""
    if isinstance(value, dict):
        return {key: short(one) if key in ("file", "module") and isinstance(one, str) else shortened(one)
                for key, one in value.items()}
    return [shortened(one) for one in value] if isinstance(value, list) else value


def without_folders(body: bytes) -> bytes:
    return json.dumps(shortened(json.loads(body))).encode()
