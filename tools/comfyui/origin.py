"""Refuses requests from pages of other sites, if the requests would change something or make work. In: the headers of a
request. Out: whether a page of another site made the request. A browser names the page's site in the headers. Other
programs name no site, and may do what ComfyUI lets them do. ComfyUI's own check is for loopback addresses only, and
lets a sandboxed page pass, whose origin is "null"."""
import functools
import urllib.parse
from typing import Any, Callable


def is_readable(headers: Any) -> bool:
    """Whether the sites in the headers have the form of sites. If not, ComfyUI's own check fails with status 500."""
    try:
        for site in (headers.get("Origin", ""), "//" + headers.get("Host", "")):
            _port = urllib.parse.urlsplit(site).port # ValueError: the port is no number, or too large
    except ValueError:
        return False
    return True


def is_foreign(headers: Any) -> bool:
    """Whether a page of another site made the request."""
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"): # none: the user typed the address
        return True
    origin = headers.get("Origin")
    if origin is None:
        return False
    return not is_readable(headers) or urllib.parse.urlsplit(origin).netloc.lower() != headers.get("Host", "").lower()


def allows_others() -> bool:
    """Whether the user lets pages of other sites use this ComfyUI (--enable-cors-header)."""
    from comfy.cli_args import args
    return bool(args.enable_cors_header)


def refuse_unreadable(app: Any) -> None:
    """Makes the server refuse unreadable requests to the pack's routes, with status 403. A request is unreadable if it
    has an Origin, and this Origin or the Host does not have the form of a site. If allows_others(), nothing is
    refused."""
    from aiohttp import web

    @web.middleware
    async def refuse(request: Any, handler: Callable) -> Any:
        is_ours = request.path.startswith(("/memstow/", "/api/memstow/"))
        if is_ours and "Origin" in request.headers and not is_readable(request.headers) and not allows_others():
            return web.Response(status=403, text="the Origin of the request cannot be read")
        return await handler(request)

    app.middlewares.insert(0, refuse) # before ComfyUI's own check


def own_only(handler: Callable) -> Callable:
    """Wraps a handler: it refuses requests from pages of other sites, unless allows_others()."""
    from aiohttp import web

    @functools.wraps(handler)
    async def checked(request: Any) -> Any:
        if is_foreign(request.headers) and not allows_others():
            return web.Response(status=403, text="a page of another site may not do this")
        return await handler(request)
    return checked
