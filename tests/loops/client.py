#!/usr/bin/env python3
"""Tests how a client puts inputs into a request, without a server. A value that JSON would change, such as a tuple, is
sent as bytes beside the JSON, and is read as the same value. A value that only pickle can express is refused. The test
also checks the node that describes images: to which address it sends its requests if it is given a URL, and which
answers it refuses because they have no text."""
import importlib.util, json

from _graphs import refused
import support
from memstow_loops import client, wire


class Sent(client.Client):
    """A client that keeps the body of its request."""

    def _send(self, method, path, data, kind, read, query):
        self.body = wire.from_bytes(data) if kind == wire.CONTENT_TYPE else (json.loads(data), {})


def received(**inputs):
    sender = Sent("http://127.0.0.1:1")
    sender._start({"workflows": [], "inputs": inputs})
    document, values = sender.body
    return {**document["inputs"], **values}


same = {"pair": (1, 2), "deep": {"a": [1, (2, "x")]}, "list": [1, [2.5]], "text": "x", "none": None, "empty": ()}
found = received(**same)
assert {name: repr(value) for name, value in found.items()} == {name: repr(value) for name, value in same.items()}
refused(lambda: received(odd={1, 2}), "cannot")

spec = importlib.util.spec_from_file_location("describer", support.ROOT / "tools/comfyui/loops/describer.py")
describer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(describer)
for url, endpoint in (("http://x:80/v1", "http://x:80/v1/chat/completions"),
                      ("http://x/v1/", "http://x/v1/chat/completions"),
                      ("http://x", "http://x/chat/completions"),
                      ("http://x/v1/chat/completions", "http://x/v1/chat/completions"),
                      ("https://x/v1?api-version=2", "https://x/v1/chat/completions?api-version=2"),
                      ("https://x/v1/chat/completions?api-version=2", "https://x/v1/chat/completions?api-version=2")):
    assert describer.endpoint_of(url) == endpoint, (url, describer.endpoint_of(url))


# the text in an answer
def answer(content):
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


assert describer.text_in(answer([{"text": "a"}, {"type": "image"}, {"text": "b"}])) == "ab"
for content in ([{"text": 5}], [{"text": None}], 7, None, {}):
    try:
        raise AssertionError(describer.text_in(answer(content)))
    except ValueError as error:
        assert str(error) == "the answer has no text", error
