#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""Code within ComfyUI starts loops. A condition may be a function. No node changes a tensor of the caller. A thread
that every loop needs must not wait for a loop: run_sequential() is refused on ComfyUI's worker thread, and
run_sequential() and start_loop() are refused on the server's thread. The error comes at once. The Loop node has the
inputs storage, ram_limit_mb and persist_prefix. Only a loop's own prompts can write into the loop. A node that blocks
an OUTPUT ends the loop, and the message names the port's node."""
import json

import _loops
import support
from _comfy import link
from _loops import Loops, counter, node, port

GRAPH = counter()
INVERT = {"in": port("image"), "invert": node("InvertInPlace", image=link("in")), "out": port("image", "invert")}
_loops.NODES += f"GRAPH, INVERT = {GRAPH!r}, {INVERT!r}\n" + '''
import asyncio
def told(function, *arguments, **options):
    import memstow_loops
    begun = time.monotonic()
    try:
        return str(getattr(memstow_loops, function)([GRAPH], {"n": 1}, *arguments, **options))
    except memstow_loops.LoopError as error:
        assert time.monotonic() - begun < 30, "it has waited first"
        return str(error)
@node(("STRING",), True, number=INT)
def Calls(self, number):
    words = told("run_sequential")
    return {"ui": {"words": [words]}, "result": (words,)}
NODE_CLASS_MAPPINGS["Calls"] = Calls
@node(("INT",), number=INT, at=INT)
def Blocks(self, number, at):
    from comfy_execution.graph import ExecutionBlocker
    return (ExecutionBlocker(None) if number == at else number,)
NODE_CLASS_MAPPINGS["Blocks"] = Blocks
def here():
    import memstow_loops
    seen = []
    found = memstow_loops.run_sequential([GRAPH, GRAPH], {"n": 1}, 100,
                                         lambda values: seen.append(dict(values)) or values["n"] >= 5,
                                         [None, lambda values: values["n"] != 2])
    image = torch.full((1, 4, 4, 3), 0.25)
    inverted = memstow_loops.run_sequential([INVERT], {"image": image}, 3)["image"]
    return {"found": found, "seen": seen, "given": float(image.mean()), "inverted": float(inverted.mean())}
@server.PromptServer.instance.routes.get("/test/here")
async def _here(request):
    return aiohttp.web.json_response(await asyncio.get_running_loop().run_in_executor(None, here))
@server.PromptServer.instance.routes.get("/test/on_server")
async def _on_server(request):
    return aiohttp.web.json_response([told("run_sequential"), told("start_loop")])
'''

with Loops() as comfy:
    found = comfy.get("/test/here")
    assert found["found"] == {"n": 6} and found["seen"] == [{"n": 2}, {"n": 4}, {"n": 6}], found
    assert found["given"] == 0.25 and found["inverted"] == 0.75, found
    assert all("this thread is the server's" in words for words in comfy.get("/test/on_server"))
    words = comfy.run({"calls": node("Calls", number=1)})["outputs"]["calls"]["words"]
    assert "this thread runs the prompts of loops" in words[0], words

    # A user's prompt has a node that is to save a value into the loop. The node is refused, because it does not have
    # the loop's serial.
    slow = {**counter(), "sleep": node("Sleepy", number=link("add"), seconds=0.5), "out": port("n", "sleep")}
    name = comfy.begin(slow, inputs={"n": 0}, iterations=6)
    prompt = comfy.queue({"add": node("AddInts", a=100, b=0),
                          "save": node("MemstowLoopSave", value=link("add"), loop=name, serial="", port="n",
                                       iteration=1)})
    found = comfy.over(name)
    assert found["state"] == "done" and found["values_of_ports"] == {"n": 6}, found
    support.wait_for(lambda: comfy.get(f"/history/{prompt}"), 60, "the other prompt")
    assert "with this serial" in json.dumps(comfy.get(f"/history/{prompt}")), "the saver was not refused"

    # a node that blocks an OUTPUT
    blocks = {"in": port("n"), "block": node("Blocks", number=link("in"), at=2),
              "add": node("AddInts", a=link("block"), b=1), "out": port("n", "add")}
    found = comfy.loop_of(blocks, inputs={"n": 0}, iterations=5, state="failed")
    assert found["error"].startswith("iteration 3, workflow 1: node out (DiscomfortPort): nothing came"), found
    assert found["committed"] == 2 and found["values_of_ports"] == {"n": 2}, found

    # options of the Loop node decide whether the values lie in RAM or in files
    def started(**options):
        answer = comfy.run({"loop": node("DiscomfortLoopExecutor", workflow_paths=json.dumps([counter()]),
                                         initial_inputs="n: 1", **options)})
        return comfy.over(answer["outputs"]["loop"]["loop"][0])

    for options, where in (({}, "ram"), ({"storage": "disk"}, "file"), ({"ram_limit_mb": 1}, "ram")):
        found = started(max_iterations=3, **options)
        assert found["state"] == "done" and found["values_of_ports"] == {"n": 4}, found
        assert [value["where"] for value in found["values"]] == [where], found["values"]
    found = comfy.loop_of(counter(), inputs={"n": 1}, ram_limit=1)
    assert [value["where"] for value in found["values"]] == ["file"], found["values"]
    for iterations, resumed in ((2, 0), (5, 2)):
        found = started(max_iterations=iterations, persist_prefix="node/one")
        assert found["resumed_after"] == resumed and found["values_of_ports"] == {"n": iterations + 1}, found
    assert (comfy.folder / "user/memstow/node/one.state/manifest").exists()
