#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 400
"""A loop gives the same result as its workflow without a loop. One iteration gives the same IMAGE and STRING, bit for
bit. A hundred iterations that carry a latent, a number and a text give the same as one graph with the whole chain, and
the nodes of each iteration ran. ComfyUI's history has nothing of the loop. A list of outputs is carried as a list. A
node that writes into its input changes no later iteration, not even if all iterations get the same input."""
import sys

import support
from _comfy import link
import _loops
from _loops import Loops, node, port

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow_loops # noqa: E402
import torch # noqa: E402

_loops.NODES += '''
@node(("INT",), image=("IMAGE",), number=INT)
def Halve(self, image, number):
    image.mul_(0.5)
    return (round(float(image.mean()) * 1000),)
NODE_CLASS_MAPPINGS["Halve"] = Halve
'''
COUNT = 100
STEP = {"latent": port("latent"), "number": port("number"), "text": port("text"),
        "mix": node("Mix", latent=link("latent"), number=link("number")), "add": node("AddInts", a=link("number"), b=1),
        "append": node("Append", text=link("text"), number=link("number")),
        "latent out": port("latent", "mix"), "number out": port("number", "add"), "text out": port("text", "append")}


def written_out():
    graph = {"latent": node("NewLatent", size=16)}
    latent, number, text = link("latent"), 0, ""
    for i in range(COUNT):
        graph |= {f"mix{i}": node("Mix", latent=latent, number=number), f"add{i}": node("AddInts", a=number, b=1),
                  f"append{i}": node("Append", text=text, number=number)}
        latent, number, text = link(f"mix{i}"), link(f"add{i}"), link(f"append{i}")
    return graph | {f"show {name}": node("Fingerprint", value=value) for name,
                    value in (("latent", latent), ("number", number), ("text", text))}


def digests(done):
    return {name.removeprefix("show "): of["digest"] for name, of in done["outputs"].items()}


with Loops() as comfy:
    # one iteration
    image = {"image": node("NewImage", seed=5, size=32), "text": node("Append", text="a", number=7)}
    bare = digests(
        comfy.run({
            **image, "show image": node("Fingerprint", value=link("image")),
            "show text": node("Fingerprint", value=link("text"))
        }))
    name = comfy.begin({**image, "1": port("image", "image"), "2": port("text", "text")})
    assert comfy.over(name)["state"] == "done", comfy.loop(name)
    read = {"image": node("DiscomfortLoopResult", loop=name, unique_id="image"),
            "text": node("DiscomfortLoopResult", loop=name, unique_id="text")}
    shown = digests(
        comfy.run({
            **read, "show image": node("Fingerprint", value=link("image")),
            "show text": node("Fingerprint", value=link("text"))
        }))
    assert shown == bare and comfy.loop(name)["values_of_ports"]["text"] == "a7,", (shown, bare)

    # the chain
    expected = digests(comfy.run(written_out()))
    comfy.ran()
    history = set(comfy.get("/history"))
    begin = comfy.begin({"new": node("NewLatent", size=16), "out": port("latent", "new")}, STEP,
                        inputs={"number": 0, "text": ""}, iterations=COUNT,
                        when=[{"port": "number", "op": "==", "value": 0}, None])
    found = comfy.over(begin, 300)
    assert found["state"] == "done" and found["committed"] == COUNT, found
    ran = comfy.ran()
    assert ran == {"Mix": COUNT, "AddInts": COUNT, "Append": COUNT}, ran # and NewLatent was cached
    values = found["values_of_ports"]
    assert values["number"] == COUNT and values["text"] == "".join(f"{i}," for i in range(COUNT)), values
    read = {name: node("DiscomfortLoopResult", loop=begin, unique_id=name) for name in ("latent", "number", "text")}
    assert digests(comfy.run({**read, **{f"show {name}": node("Fingerprint", value=link(name))
                                         for name in read}})) == expected
    assert len(set(comfy.get("/history")) - history) == 1, "of a loop's prompts nothing is in the history"
    print(f"{found['seconds'] / COUNT * 1000:.1f} ms an iteration")

    # a node that writes into a loaded tensor changes neither the store nor the tensor of the next iteration
    picture = {"image": node("NewImage", seed=5, size=32), "out": port("image", "image"),
               "n": node("AddInts", a=0, b=0), "n out": port("n", "n")}
    inverted = {"image": port("image"), "inverted": node("InvertInPlace", image=link("image")),
                "out": port("inverted", "inverted"),
                **{f"n {key}": value for key,
                   value in {"in": port("n"), "add": node("AddInts", a=link("n in"), b=1),
                             "out": port("n", "n add")}.items()}}
    name = comfy.begin(picture, inverted, inputs={"n": -1}, iterations=3,
                       when=[{"port": "n", "op": "==", "value": -1}, None])
    assert comfy.over(name)["values_of_ports"]["n"] == 3, comfy.loop(name)
    read = {"image": node("DiscomfortLoopResult", loop=name, unique_id="image"),
            "inverted": node("DiscomfortLoopResult", loop=name, unique_id="inverted")}
    again = digests(comfy.run({**read, **{f"show {name}": node("Fingerprint", value=link(name)) for name in read}}))
    once = digests(
        comfy.run({
            "image": node("NewImage", seed=5, size=32), "inverted": node("InvertInPlace", image=link("image")),
            "show inverted": node("Fingerprint", value=link("inverted"))
        }))
    assert again["image"] == bare["image"] and again["inverted"] == once["inverted"], (again, once)

    # A node writes into its input, which is an input of the loop that all iterations get. Each iteration gets it
    # unchanged nevertheless. ("m in" passes the input on without a copy.)
    halved = {"image": port("image"), "m in": port("m", "image"), "number": port("n"),
              "halve": node("Halve", image=link("m in"), number=link("number")), "m": port("m", "halve"),
              "add": node("AddInts", a=link("number"), b=1), "n": port("n", "add")}
    found = memstow_loops.run_sequential([halved], {"image": torch.ones(1, 4, 4, 3), "n": 0}, 3,
                                         server=f"http://127.0.0.1:{comfy.port}")
    assert found == {"m": 500, "n": 3}, found

    # a list of outputs is carried as a list
    lists = {"in": port("n"), "sum": node("SumList", numbers=link("in")), "three": node("Three", first=link("sum")),
             "out": port("n", "three")}
    found = comfy.loop_of(lists, inputs={"n": 1}, iterations=2)
    assert found["values_of_ports"] == {"n": [6, 7, 8]}, found
