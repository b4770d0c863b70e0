#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# long
"""A loop comes to the same result if ComfyUI's RAM-pressure cache evicts all outputs again and again. The test gives
the cache a headroom that is larger than any machine's memory, so that the cache always evicts. A node that no iteration
changes shows that outputs were evicted, because it runs more than once."""
import support
from _comfy import link
from _loops import Loops, node, port

STEP = {"n": port("n"), "constant": node("NewImage", seed=1, size=8),
        "show": node("Fingerprint", value=link("constant")), "add": node("AddInts", a=link("n"), b=1),
        "latent": port("latent"), "mix": node("Mix", latent=link("latent"), number=link("n")),
        "n out": port("n", "add"), "latent out": port("latent", "mix")}
BEGIN = {"new": node("NewLatent", size=16), "out": port("latent", "new")}
COUNT = 3 # few, because ComfyUI collects garbage for each output that it evicts


def run(*cache):
    """Runs the loop in a ComfyUI with these options. Returns the latent's digest, and how often the constant node
    ran."""
    with Loops(*cache, name="with" + "".join(cache[:1])) as comfy:
        found = comfy.loop_of(BEGIN, STEP, inputs={"n": 0}, iterations=COUNT, name="evicted",
                              when=[{"port": "n", "op": "==", "value": 0}, None])
        assert found["committed"] == COUNT and found["values_of_ports"]["n"] == COUNT, found
        read = {"read": node("DiscomfortLoopResult", loop="evicted", unique_id="latent"),
                "show": node("Fingerprint", value=link("read"))}
        return comfy.run(read)["outputs"]["show"]["digest"], comfy.ran()["NewImage"]


if "--cache-ram" not in (support.COMFYUI / "comfy/cli_args.py").read_text():
    support.skip("this ComfyUI has no RAM-pressure cache")
whole, once = run()
evicted, often = run("--cache-ram", "1000000")
assert once == 1, f"the constant node ran {once} times with the classic cache"
assert often > 1, "nothing was evicted"
assert evicted == whole
