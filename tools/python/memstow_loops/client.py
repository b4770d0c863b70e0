"""Loops on a ComfyUI elsewhere, by HTTP. In: workflows and plain values. Out: what its node pack answers. Never a value
that JSON has no form for: tensors and models stay in ComfyUI."""
from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .driver import DONE, ENDED
from .graph import InfoClasses, LoopError

SECONDS, PAUSE = 120, 0.2 # for an answer; between two questions
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({})) # proxies do not know of this machine's servers


class Client:
    """A ComfyUI with memstow's node pack, by its URL."""

    def __init__(self, server: str) -> None:
        if urllib.parse.urlsplit(server).scheme not in ("http", "https"):
            raise LoopError(f"server is a URL as http://127.0.0.1:8188; not {server!r}")
        self.server = server.rstrip("/")

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The answer to a request; LoopError with the server's words where it refuses."""
        url = f"{self.server}{path}{'?' + urllib.parse.urlencode(query) if query else ''}"
        try:
            data = None if body is None else json.dumps(body).encode()
        except (TypeError, ValueError) as error:
            raise LoopError(f"this goes to a server as JSON, and cannot: {error}") from None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with DIRECT.open(request, timeout=SECONDS) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            words = error.read().decode(errors="replace")[:2000]
            told = words if error.code == 400 else f"{self.server}: {error.code} {words or error.reason}"
            raise LoopError(told) from None
        except (OSError, ValueError) as error:
            raise LoopError(
                f"{self.server} does not answer as a ComfyUI with memstow's node pack does: {error}") from None

    def classes(self) -> InfoClasses:
        return InfoClasses(self.ask("GET", "/object_info"))

    def run(self, workflows: Sequence[Any], **options: Any) -> dict[str, Any]:
        """Starts a loop, waits for its end, and returns its values. Interrupted, it cancels the loop."""
        name = self.ask("POST", "/memstow/loops", {"workflows": list(workflows), **options})["name"]
        try:
            while (found := self.ask("GET", "/memstow/loops", name=name))["state"] not in ENDED:
                time.sleep(PAUSE)
            if found["state"] != DONE:
                raise LoopError(f"loop {name}: {found['state']}: {found['error']}")
            values: Mapping[str, Any] = self.ask("GET", "/memstow/loops", name=name, values="1")["values_of_ports"]
            return dict(values)
        finally:
            self.forget(name)

    def forget(self, name: str) -> None:
        """Cancels the loop, if it still runs, and lets go of its values."""
        try:
            self.ask("DELETE", "/memstow/loops", name=name)
        except LoopError: # nobody is there any more, or it is gone
            pass


def client_of(server: Optional[str]) -> Optional[Client]:
    return None if server is None else Client(server)
