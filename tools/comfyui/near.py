"""Refuses clients on other machines. The pack's routes, except one, are for clients on this machine, unless the user
sets MEMSTOW_REMOTE. The reason is that these routes let a client do more than ComfyUI does: they tell what memstow
knows, and one of them restarts ComfyUI. ComfyUI itself does neither, although it tells its clients much, for example
its arguments, its log, names of models, and workflows. In: requests. Out: refusals."""
import ipaddress
import os
from typing import Any, Callable

FAR = ("memstow tells this only to clients on this machine, and takes orders from no others; MEMSTOW_REMOTE=1 in "
       "ComfyUI's environment lets them have it")
FOR_ALL = "/memstow/presence" # one word, which says why the tab is empty
METRICS = "/memstow/metrics"


def is_near(request: Any) -> bool:
    """Whether the client is on this machine, and is no proxy that passes on the request of another client."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        address = ipaddress.ip_address((request.remote or "").partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def may_have(request: Any, route: str) -> bool:
    """Whether the client may use the route. Clients on this machine may use all routes, other clients only FOR_ALL.
    With MEMSTOW_REMOTE=metrics, other clients may also use the route of the metrics. With MEMSTOW_REMOTE=1, they may
    use all routes."""
    word = os.environ.get("MEMSTOW_REMOTE", "").strip()
    return route == FOR_ALL or word == "1" or (word == "metrics" and route == METRICS) or is_near(request)


def route_of(request: Any) -> str:
    """The route that serves the request, however the client has written the path. "" if no route serves it."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical.removeprefix("/api")


def refuse_far(app: Any) -> None:
    """Makes the server refuse clients on other machines on all routes of the pack."""
    from aiohttp import web

    @web.middleware
    async def refuse(request: Any, handler: Callable) -> Any:
        route = route_of(request)
        if route.startswith("/memstow/") and not may_have(request, route):
            return web.Response(status=403, text=FAR)
        return await handler(request)

    app.middlewares.insert(0, refuse)


def hide_folder(app: Any, folder: Callable[[], str]) -> None:
    """Changes ComfyUI's own route for files of the output folder: it no longer gives the files in `folder` to clients
    on other machines."""
    import folder_paths
    from aiohttp import web

    @web.middleware
    async def hide(request: Any, handler: Callable) -> Any:
        if route_of(request) == "/view" and not may_have(request, "/view"):
            places = (folder_paths.get_output_directory(), folder_paths.get_input_directory(),
                      folder_paths.get_temp_directory())
            asked = request.query.get("subfolder", "")
            if any(os.path.realpath(os.path.join(place, asked)) == os.path.realpath(folder()) for place in places):
                return web.Response(status=403, text=FAR)
        return await handler(request)

    app.middlewares.insert(0, hide)
