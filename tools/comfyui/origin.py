"""Refuses requests from pages of other sites, if the requests would change something or make work. In: the headers of a
request. Out: whether a page of another site made the request. A browser names the page's site in the headers. Other
programs name no site, and may do what ComfyUI lets them do. ComfyUI's own check is for loopback addresses only, and
lets a sandboxed page pass, whose origin is "null"."""
import functools
import urllib.parse
from typing import Any, Callable


def is_foreign(headers: Any) -> bool:
    """Whether a page of another site made the request."""
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"): # none: the user typed the address
        return True
    origin = headers.get("Origin")
    return origin is not None and urllib.parse.urlsplit(origin).netloc.lower() != headers.get("Host", "").lower()


def allows_others() -> bool:
    """Whether the user lets pages of other sites use this ComfyUI (--enable-cors-header)."""
    from comfy.cli_args import args
    return bool(args.enable_cors_header)


def own_only(handler: Callable) -> Callable:
    """Wraps a handler: it refuses requests from pages of other sites, unless allows_others()."""
    from aiohttp import web

    @functools.wraps(handler)
    async def checked(request: Any) -> Any:
        if is_foreign(request.headers) and not allows_others():
            return web.Response(status=403, text="a page of another site may not do this")
        return await handler(request)
    return checked
