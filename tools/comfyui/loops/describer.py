"""The node DiscomfortImageDescriber: gets a text for each image from an endpoint with OpenAI's chat API. In: images, a
URL and a key, from inputs or the environment. Out: texts. Never writes the key anywhere, and gives up after a given
time."""
import base64
import http.client
import io
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Optional

URL, KEY = "MEMSTOW_DESCRIBER_URL", "MEMSTOW_DESCRIBER_KEY"
MOST_ANSWER = 1 << 20 # bytes
FIRST_PAUSE, MOST_PAUSE = 0.5, 20.0 # seconds between two tries: at first, and at most
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504) # statuses after which another try may succeed


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the key to another server."""

    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


class Call(threading.Thread):
    """One request, on a thread of its own, so that the node stops waiting as soon as the time is up or the user
    interrupts the run. The time limit of a socket is not enough: it holds for each read alone, so a server that sends a
    byte now and then could hold the node for hours."""

    def __init__(self, request: urllib.request.Request, seconds: float) -> None:
        super().__init__(name="memstow describer", daemon=True)
        self.request, self.seconds = request, seconds
        self.connections: list[socket.socket] = []
        self.given_up = False
        self.over = threading.Event()
        self.found = b""
        self.error: Optional[Exception] = None

    def run(self) -> None:
        try:
            with self._opener().open(self.request, timeout=self.seconds) as answer:
                self.found = answer.read(MOST_ANSWER)
        except Exception as error: # noqa: BLE001: answer() raises it on the thread that waits
            self.error = error
        self.over.set()

    def _opener(self) -> urllib.request.OpenerDirector:
        call = self

        class Plain(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                call._connected(self.sock)

        class Secure(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                call._connected(self.sock)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, request: Any) -> Any:
                return self.do_open(Plain, request)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, request: Any) -> Any:
                return self.do_open(Secure, request)

        return urllib.request.build_opener(NoRedirects, PlainHandler, SecureHandler)

    def answer(self) -> bytes:
        """Starts the request, and waits for its answer. An interrupt of the run is raised at once."""
        import comfy.model_management
        until = time.monotonic() + self.seconds
        self.start()
        try:
            while not self.over.wait(0.1):
                comfy.model_management.throw_exception_if_processing_interrupted()
                if time.monotonic() > until:
                    raise TimeoutError("no whole answer came in time")
        finally:
            self._shut()
        if self.error is not None:
            raise self.error
        return self.found

    def _connected(self, connection: socket.socket) -> None:
        """Runs on the request's thread. If the node has given up by now, closes the new connection before the request
        is sent."""
        self.connections.append(connection)
        if self.given_up:
            connection.close()
            raise ConnectionAbortedError("the node no longer waits")

    def _shut(self) -> None:
        """Shuts the connections, which ends the request's thread if it still reads."""
        self.given_up = True # set before the loop: a connection that comes later sees it and closes itself
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError: # closed already
                pass


def endpoint_of(url: str) -> str:
    """The chat endpoint for a URL: the URL itself, or a path below it if it is the base of an API."""
    url = (url or os.environ.get(URL, "")).strip()
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("set api_url to the URL of an endpoint, such as http://127.0.0.1:8000/v1, or set "
                         f"{URL} in the environment")
    if "@" in parts.netloc:
        raise ValueError("api_url has a user or password in it: the key goes into api_key, or "
                         f"{KEY} in the environment")
    try:
        parts.port
    except ValueError:
        raise ValueError("the port in api_url is not a number") from None
    path = parts.path.rstrip("/")
    if path.endswith("/chat/completions"):
        return url
    return parts._replace(path=path + "/chat/completions").geturl()


def key_of(key: str) -> str:
    """The key, without the spaces and line ends around it. A message about a key never quotes it."""
    key = key.strip() or os.environ.get(KEY, "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise ValueError("the key has a character that a key cannot have: look at api_key, or at "
                         f"{KEY} in the environment")
    return key


def place_of(endpoint: str) -> str:
    """The endpoint as messages show it: without the query."""
    parts = urllib.parse.urlsplit(endpoint)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def data_url(image: Any) -> str:
    """An image for the protocol: a PNG in a data URL. The protocol requires base64."""
    import numpy
    from PIL import Image
    pixels = (image.detach().cpu().float().clamp(0, 1).numpy() * 255.0).round().astype(numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels[..., :3]).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def body_of(image: Any, prompt: str, model: str, most: int) -> bytes:
    content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": data_url(image)}}]
    return json.dumps({"model": model, "max_tokens": most, "messages": [{"role": "user", "content": content}]}).encode()


def text_in(answer: bytes) -> str:
    """The text in an answer; ValueError if there is none."""
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        raise ValueError("the answer is not one of OpenAI's chat API") from None
    if isinstance(content, list): # a text in parts
        texts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(texts) if all(isinstance(text, str) for text in texts) else None
    if not isinstance(content, str):
        raise ValueError("the answer has no text")
    return content


class Asker:
    """Asks one endpoint for a text. Repeats the request after errors that may pass, until the time or the tries are
    used up."""

    def __init__(self, endpoint: str, key: str, seconds: float, tries: int) -> None:
        self.endpoint, self._key, self.tries = endpoint, key, tries
        self.until = time.monotonic() + seconds

    def ask(self, body: bytes) -> str:
        pause, why = FIRST_PAUSE, "no time was left"
        for number in range(self.tries):
            left = self.until - time.monotonic()
            if left <= 0:
                break
            try:
                return self._once(body, left)
            except urllib.error.HTTPError as error:
                why = f"status {error.code}"
                if error.code not in AGAIN:
                    break
                pause = max(pause, retry_after(error))
            except (OSError, http.client.HTTPException) as error: # refused, reset, no answer in time
                why = self._clean(str(getattr(error, "reason", error)))
            except ValueError as error: # an answer came, but without a description
                why = str(error)
                break
            if number + 1 < self.tries:
                wait(min(pause, MOST_PAUSE, max(0.0, self.until - time.monotonic())))
                pause *= 2
        raise ValueError(f"{place_of(self.endpoint)} gave no description: {why}")

    def _once(self, body: bytes, seconds: float) -> str:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return text_in(Call(urllib.request.Request(self.endpoint, body, headers), seconds).answer())

    def _clean(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


def retry_after(error: urllib.error.HTTPError) -> float:
    try:
        return float(error.headers.get("Retry-After", 0))
    except ValueError: # a date
        return 0.0


def wait(seconds: float) -> None:
    """Waits, and stops when the run is interrupted."""
    import comfy.model_management
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        comfy.model_management.throw_exception_if_processing_interrupted()
        time.sleep(min(left, 0.1))


class DiscomfortImageDescriber:
    """A text for each image, from an endpoint that speaks OpenAI's chat API."""
    RETURN_TYPES = ("STRING",)
    RETURN_NAMES = ("descriptions",)
    FUNCTION = "describe_images"
    CATEGORY = "memstow/loops"
    DESCRIPTION = __doc__

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {
            "required": {
                "images": ("IMAGE", ),
                "api_url": ("STRING",
                            {"default": "", "tooltip": f"http://127.0.0.1:8000/v1; empty: {URL} in the environment"}),
                "api_key": ("STRING", {
                    "default": "", "password": True,
                    "tooltip": f"is saved with the workflow: better leave it empty, and set {KEY} in the environment"
                }), "prompt": ("STRING", {"default": "Describe this image in full detail.", "multiline": True})
            }, "optional": {
                "model": ("STRING", {"default": "gpt-4o-mini"}),
                "seconds": ("FLOAT",
                            {"default": 60.0, "min": 0.1, "max": 3600.0, "tooltip": "for each image, with all tries"}),
                "tries": ("INT", {"default": 3, "min": 1,
                                  "max": 20}), "max_tokens": ("INT", {"default": 500, "min": 1, "max": 100_000})
            }
        }

    def describe_images(self, images: Any, api_url: str, api_key: str, prompt: str, model: str = "gpt-4o-mini",
                        seconds: float = 60.0,
                        tries: int = 3, max_tokens: int = 500) -> tuple:
        endpoint, key = endpoint_of(api_url), key_of(api_key)
        return ("\n".join(Asker(endpoint, key, seconds, tries).ask(body_of(image, prompt, model, max_tokens))
                          for image in images),)
