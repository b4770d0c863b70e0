"""Loops on another ComfyUI, by HTTP. In: workflows, plain values and tensors. Out: the answers of its node pack. Never
transfers a model, or a value that only pickle can express: such values stay in that ComfyUI."""
from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from memstow_serialize import SerializeError

from . import wire
from .driver import DONE, ENDED
from .graph import InfoClasses, LoopError

SECONDS, PAUSE = 120, 0.2 # seconds: to wait for an answer; between two requests
END_SECONDS = 30 # seconds for the end of a loop that was cancelled: a node may take long to notice the interrupt
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({})) # proxies do not apply to this machine's servers


class Client:
    """A ComfyUI with memstow's node pack, by its URL."""

    def __init__(self, server: str) -> None:
        if urllib.parse.urlsplit(server).scheme not in ("http", "https"):
            raise LoopError(f"server is a URL as http://127.0.0.1:8188; not {server!r}")
        self.server = server.rstrip("/")

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The answer to a request. Raises LoopError, with the server's message, if the server refuses the request."""
        try:
            data = None if body is None else json.dumps(body).encode()
        except (TypeError, ValueError) as error:
            raise LoopError(f"this cannot be sent to a server as JSON: {error}") from None
        return self._send(method, path, data, "application/json", _document, query)

    def _send(self, method: str, path: str, data: Any, kind: str, read: Callable[[Any], Any],
              query: Mapping[str, str]) -> Any:
        url = f"{self.server}{path}{'?' + urllib.parse.urlencode(query) if query else ''}"
        request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
        try:
            with DIRECT.open(request, timeout=SECONDS) as answer:
                return read(answer)
        except urllib.error.HTTPError as error:
            words = error.read().decode(errors="replace")[:2000]
            told = words if error.code == 400 else f"{self.server}: {error.code} {words or error.reason}"
            raise LoopError(told) from None
        except LoopError:
            raise
        except (OSError, ValueError) as error:
            raise LoopError(
                f"{self.server} does not answer as a ComfyUI with memstow's node pack does: {error}") from None

    def classes(self) -> InfoClasses:
        return InfoClasses(self.ask("GET", "/object_info"))

    def run(self, workflows: Sequence[Any], **options: Any) -> dict[str, Any]:
        """Starts a loop, waits for its end, and returns its values. The server drops its copy of the values. An
        interrupt cancels the loop."""
        started = self._start({"workflows": list(workflows), **options})
        name = started["name"]
        try:
            while (found := self.ask("GET", "/memstow/loops", name=name))["state"] not in ENDED:
                time.sleep(PAUSE)
            if found["state"] != DONE:
                raise LoopError(f"loop {name}: {found['state']}: {found['error']}")
            document, values = self._send("GET", "/memstow/loops", None, "", _values, {"name": name, "values": "raw"})
            return {**document["values_of_ports"], **values}
        finally:
            self.forget(name, started["begun"])

    def _start(self, body: dict[str, Any]) -> Any:
        """Starts a loop. Inputs that JSON cannot express are sent beside the JSON, as bytes."""
        beside = {port: value for port, value in body["inputs"].items() if not _is_plain(value)}
        if not beside:
            return self.ask("POST", "/memstow/loops", body)
        body = {**body, "inputs": {port: value for port, value in body["inputs"].items() if port not in beside}}
        try:
            data = b"".join(wire.packed(body, {port: wire.as_bytes(value) for port, value in beside.items()}))
        except (SerializeError, TypeError, ValueError) as error:
            raise LoopError(f"this cannot be sent to a server as JSON or bytes: {error}") from None
        return self._send("POST", "/memstow/loops", data, wire.CONTENT_TYPE, _document, {})

    def forget(self, name: str, begun: float) -> None:
        """Drops the values of the loop with this name that began at `begun`. A DELETE while the loop runs only cancels
        the loop. So this function waits at most END_SECONDS for the loop's end, and sends DELETE again."""
        until = time.monotonic() + END_SECONDS
        try:
            self.ask("DELETE", "/memstow/loops", name=name)
            while (found := self.ask("GET", "/memstow/loops", name=name))["begun"] == begun:
                if found["state"] in ENDED:
                    self.ask("DELETE", "/memstow/loops", name=name)
                elif time.monotonic() > until:
                    break
                else:
                    time.sleep(PAUSE)
        except LoopError: # the server or the loop is gone
            pass


def _document(answer: Any) -> Any:
    return json.loads(answer.read() or b"null")


def _values(answer: Any) -> tuple[Any, dict[str, Any]]:
    def read(length: int) -> Any:
        piece = bytearray(length)
        view, at = memoryview(piece), 0
        while at < length and (got := answer.readinto(view[at:])):
            at += got
        return view[:at]
    return wire.unpacked(answer.readline(wire.MOST_LINE), read)


def _is_plain(value: Any) -> bool:
    """Whether JSON returns exactly the same value."""
    if type(value) is dict:
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    if type(value) is list: # JSON would make a list of a tuple
        return all(map(_is_plain, value))
    return isinstance(value, (str, int, float, bool, type(None)))


def client_of(server: Optional[str]) -> Optional[Client]:
    return None if server is None else Client(server)
