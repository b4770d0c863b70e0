#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""A script outside of ComfyUI gives tensors to a loop and gets tensors, bit for bit, also in a batch. Without PyTorch
the script gets a description of the tensors. If the script is interrupted, its loop is cancelled, and its values are
dropped. A pickle is never read from a request, and damaged bytes start nothing."""
import json, os, pickle, sys, time, urllib.error, urllib.request

import support
from _comfy import link
from _loops import Loops, node, port

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow_loops # noqa: E402
from memstow_loops import client # noqa: E402
import memstow_serialize # noqa: E402
import torch # noqa: E402

MIX = {"latent": port("latent"), "n": port("n"), "mix": node("Mix", latent=link("latent"), number=link("n")),
       "add": node("AddInts", a=link("n"), b=1), "latent out": port("latent", "mix"), "n out": port("n", "add")}
INVERT = {"image": port("image"), "inverted": node("InvertInPlace", image=link("image")),
          "out": port("image", "inverted")}
WITHOUT = '''
import sys, json
sys.path.insert(0, sys.argv[1])
import memstow_loops
print(json.dumps(memstow_loops.run_sequential([json.loads(sys.argv[3])], {"seed": 3}, server=sys.argv[2])))
'''


class Trap:
    def __reduce__(self):
        return os.mkdir, (str(support.HERE / "trapped"),)


def post(server, body):
    request = urllib.request.Request(f"{server}/memstow/loops", body, {"Content-Type": memstow_loops.wire.CONTENT_TYPE})
    try:
        urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    raise AssertionError(f"it was not refused: {body[:300]}")


with Loops() as comfy:
    server = f"http://127.0.0.1:{comfy.port}"
    latent = {"samples": torch.randn(1, 4, 128, 128, generator=torch.Generator().manual_seed(3))}
    expected = latent["samples"].clone()
    for number in range(3):
        expected = expected * 0.9 + torch.randn(expected.shape, generator=torch.Generator().manual_seed(number)) * 0.1
    found = memstow_loops.run_sequential([MIX], {"latent": latent, "n": 0}, 3, server=server)
    assert found["n"] == 3 and torch.equal(found["latent"]["samples"], expected), found
    pictures = [torch.rand(1, 8, 8, 3) for _ in range(3)]
    found = memstow_loops.run_sequential([INVERT], {"image": pictures}, 3, independent=True, server=server)
    assert [torch.equal(one, 1 - before) for one, before in zip(found["image"], pictures)] == [True] * 3, found

    # If the script gets KeyboardInterrupt while the loop runs, the loop is cancelled, and its values are dropped.
    class Interrupted:
        monotonic, slept = time.monotonic, 0

        def sleep(self, seconds):
            self.slept += 1
            if self.slept == 1:
                raise KeyboardInterrupt
            time.sleep(seconds)

    slow = {"n": port("n"), "sleep": node("Sleepy", number=link("n"), seconds=0.5), "out": port("n", "sleep")}
    client.time = Interrupted()
    try:
        raise AssertionError(memstow_loops.run_sequential([slow], {"n": 1}, 1000, name="slow", server=server))
    except KeyboardInterrupt:
        pass
    client.time = time
    assert comfy.request("GET", "/memstow/loops?name=slow")[0] == 404, "its values are still there"

    # the script's Python has no PyTorch
    image = {"seed": port("seed"), "image": node("NewImage", seed=link("seed"), size=4), "out": port("image", "image")}
    told = support.run("/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "python3", "-S", "-c", WITHOUT,
                       support.ROOT / "tools/python", server, json.dumps(image)).stdout
    assert json.loads(told) == {"image": {"not_json": "torch.Tensor"}}, told
    comfy.ran()

    # requests that are refused
    trap = memstow_serialize.serialize({"latent": Trap()})
    assert trap.type == "CUSTOM"
    (support.HERE / "trapped").rmdir() # serialize() tried here whether the pickle can be read
    good = memstow_serialize.serialize(latent)
    body = {"workflows": [MIX], "inputs": {"n": 0}, "iterations": 1}
    for words, sent in (("pickle", b"".join(memstow_loops.wire.packed(body, {"latent": trap}))),
                        ("too early", b"".join(memstow_loops.wire.packed(body, {"latent": good}))[:-1]),
                        ("not the bytes", b"\x80\x05 no line"), ("not the bytes", b""),
                        ("not the bytes", b'{"document": {}, "values": []}\n'),
                        ("long", b'{"document": {}, "values": {"x": ["STRING", [-1]]}}\n'),
                        ("too early", b'{"document": {}, "values": {"x": ["STRING", [999999999999]]}}\n'),
                        ("has no bytes",
                         json.dumps({"document": body, "values": {"latent": ["TORCH_TENSOR", [99, 0]]}}).encode() +
                         b"\n" +
                         json.dumps({"type": "", "value": {"T": [1, "uint8", [10**12], [1]]}}).encode().ljust(99)),
                        ("number of elements", # a tensor of 300 MB, with a single byte of content
                         json.dumps({"document": body, "values": {"latent": ["TORCH_TENSOR", [99, 1]]}}).encode() +
                         b"\n" + json.dumps({"type": "", "value": {"T": [1, "uint8", [3 * 10**8], [0]]}}).encode()
                         .ljust(99) + b"\0"),
                        ("workflows is missing", b"".join(memstow_loops.wire.packed({}, {"latent": good})))):
        status, answer = post(server, sent)
        assert status == 400 and words in answer, (status, answer, sent[:200])
    assert pickle.loads and not (support.HERE / "trapped").exists(), "a pickle of a request was read"
    assert not comfy.ran() and comfy.get("/queue") == {"queue_running": [], "queue_pending": []}
    try:
        memstow_loops.run_sequential([MIX], {"latent": Trap(), "n": 0}, server=server)
        raise AssertionError("a value that only pickle knows was sent")
    except memstow_loops.LoopError as error:
        assert "Trap" in str(error) and "JSON or bytes" in str(error), error
