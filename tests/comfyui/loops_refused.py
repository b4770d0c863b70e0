#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""A request that cannot become a loop is refused with one clear message, before anything is queued: types that do not
match; values that are missing or of the wrong type; ports that are isolated, have no id, or have another port's id;
cycles; unknown classes; workflows that ComfyUI itself refuses in whole or in part; names outside of the folder of saved
workflows; bodies that are no JSON."""
import json

from _comfy import link
from _loops import Loops, counter, node, port

with Loops() as comfy:
    refused = comfy.refused
    outside = comfy.folder / "secret.json"
    outside.write_text(json.dumps(counter()))
    saved = comfy.folder / "user/default/workflows"
    saved.mkdir(parents=True, exist_ok=True)
    (saved / "link.json").symlink_to(outside)
    (saved / "damaged.json").write_text('{"1": ')
    (saved / "list.json").write_text("[]")

    refused("port n", "no value", workflows=[counter()])
    refused("port n", "INT", "str", workflows=[counter()], inputs={"n": "1"})
    refused("'m'", workflows=[counter()], inputs={"n": 1, "m": 1})
    refused("INT", "IMAGE", "workflow 1", "workflow 2",
            workflows=[counter(), {"in": port("n"), "show": node("PreviewImage", images=link("in"))}], inputs={"n": 1})
    refused("port image", "IMAGE", "list",
            workflows=[{"in": port("image"), "show": node("PreviewImage", images=link("in"))}],
            inputs={"image": [[1, 2]]})
    refused("node alone (DiscomfortPort)", "connected to nothing", workflows=[{**counter(), "alone": port("z")}],
            inputs={"n": 1})
    refused(
        "node in (DiscomfortPort)", "node in2 (DiscomfortPort)", "INPUT", workflows=[
            {**counter(), "in2": port("n"), "add2": node("AddInts", a=link("in2"), b=1), "out2": port("m", "add2")}
        ], inputs={"n": 1})
    refused("node e (DiscomfortPort)", "unique_id", workflows=[{**counter(), "e": port(" ", "add")}], inputs={"n": 1})
    refused(
        "cycle", "node a (AddInts)", workflows=[{
            "a": node("AddInts", a=link("b"), b=1), "b": node("AddInts", a=link("a"), b=1), "o": port("n", "a")
        }])
    refused("node x (Mystery)", "no node class", workflows=[{**counter(), "x": node("Mystery")}], inputs={"n": 1})
    # ComfyUI's own checks refuse a missing input, a value out of bounds and a wrong type, also if another output of the
    # workflow has no fault.
    refused("ComfyUI refuses", "AddInts", "b",
            workflows=[{"in": port("n"), "add": node("AddInts", a=link("in")), "out": port("n", "add")}],
            inputs={"n": 1})
    refused("ComfyUI refuses", "PreviewImage",
            workflows=[{**counter(), "show": node("PreviewImage", images=link("add"))}], inputs={"n": 1})
    refused("ComfyUI refuses", "EmptyLatentImage", "width",
            workflows=[{"l": node("EmptyLatentImage", width=1, height=64, batch_size=1), "o": port("l", "l")}])
    refused("workflow 2", "ComfyUI refuses",
            workflows=[counter(),
                       {"l": node("EmptyLatentImage", width=1, height=64, batch_size=1), "o": port("l", "l")}],
            inputs={"n": 1})
    refused("no output", workflows=[{"a": node("AddInts", a=1, b=1)}])
    # saved workflows
    for name in ("../../../secret", "../../../secret.json", str(outside), "/etc/passwd", "", ".", "..", "a/../../x",
                 "x\0y", "nobody"):
        refused("saved workflow", workflows=[name])
    refused("outside of the folder", workflows=["link"])
    refused("damaged", "not JSON", workflows=["damaged"])
    refused("list", "not a JSON object", workflows=["list"])
    # bodies
    for body in (b"", b"{", b"[]", b"7", b"null"):
        assert comfy.status_of("/memstow/loops", body) == 400, body
    refused("workflows", workflows=[])
    refused("workflows", inputs={})
    refused("unknown members: command", workflows=[counter()], command="x")
    for name, value in (("iterations", "3"), ("iterations", True), ("iterations", 1.5), ("inputs", []),
                        ("condition", "n > 1"), ("use_ram", 1), ("ram_limit", "1"), ("persist_prefix", 7),
                        ("independent", "yes"), ("name", 7), ("when", "x"), ("workflows", "x")):
        refused(name, **{"workflows": [counter()], "inputs": {"n": 1}, name: value})
    for iterations in (0, -1, 10**12):
        refused("bound", workflows=[counter()], inputs={"n": 1}, iterations=iterations)
    refused("op", workflows=[counter()], inputs={"n": 1}, condition={"port": "n", "op": "eval", "value": 1})
    refused("port z", workflows=[counter()], inputs={"n": 1}, condition={"port": "z", "op": "==", "value": 1})
    refused("when", workflows=[counter()], inputs={"n": 1}, when=[None, None])
    refused("independent", workflows=[counter()], inputs={"n": 1}, independent=True)
    refused("name", workflows=[counter()], inputs={"n": 1}, name="x" * 101)
    refused(
        "MODEL", "persist_prefix", workflows=[{
            "m": node("UNETLoader", unet_name="tiny.safetensors", weight_dtype="default"), "o": port("model", "m")
        }], persist_prefix="p")
    assert comfy.get("/memstow/loops")["loops"] == [], "nothing is left of them"

    # in an ordinary workflow, a port passes its value on like a wire; a port without an input fails, and says why
    done = comfy.run(
        {"a": node("AddInts", a=1, b=2), "wire": port("x", "a"), "show": node("Fingerprint", value=link("wire"))})
    assert done["outputs"]["show"]["digest"] == ["3"]
    done = comfy.run({"wire": port("x"), "show": node("Fingerprint", value=link("wire"))}, status="error")
    assert "is an INPUT" in json.dumps(done["status"])
    done = comfy.run({"r": node("DiscomfortLoopResult", loop="nobody", unique_id="n"),
                      "show": node("Fingerprint", value=link("r"))}, status="error")
    assert "no loop 'nobody'" in json.dumps(done["status"])
