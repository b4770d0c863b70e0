#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 900
"""A loop carries three tiny models of ComfyUI (a CLIP, a VAE and a ControlNet), and a conditioning that refers to the
ControlNet. Each model is loaded once, and each iteration gets the same object. If only the loop holds the models, they
stay, also after a post to /free, and the report says that the loop holds them. When the loop is forgotten, the models
go. A loop that would carry a model with persist_prefix or use_ram=False is refused before anything is queued, and the
error names the port. If the port is a wildcard, the loop fails in its first iteration."""

import support
from _comfy import link, policy
import _loops
from _loops import Loops, node, port

_loops.NODES += '''
import gc, weakref
import folder_paths, nodes, safetensors.torch
import comfy.cldm.cldm, comfy.ops
def tiny_control_net():
    """What the loader finds in a file: a UNet of one level, with random weights."""
    net = comfy.cldm.cldm.ControlNet(
        image_size=32, in_channels=4, model_channels=64, hint_channels=3, num_res_blocks=[1], channel_mult=[1],
        transformer_depth=[1], transformer_depth_middle=1, context_dim=32, num_heads=8, use_spatial_transformer=True,
        operations=comfy.ops.disable_weight_init, device="cpu", dtype=torch.float32)
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(weights.shape, generator=generator) * 0.02 for name, weights in net.state_dict().items()}
folder = folder_paths.get_folder_paths("controlnet")[0]
os.makedirs(folder, exist_ok=True)
safetensors.torch.save_file(tiny_control_net(), os.path.join(folder, "tiny.safetensors"))
def count(loader, name):
    before = getattr(loader, name)
    def counted(self, *arguments, **options):
        ran[name] += 1
        return before(self, *arguments, **options)
    setattr(loader, name, counted)
count(nodes.CLIPLoader, "load_clip")
count(nodes.VAELoader, "load_vae")
count(nodes.ControlNetLoader, "load_controlnet")
met = collections.defaultdict(list)
@node((ANY,), of=STRING, value=(ANY,))
def Meet(self, of, value):
    met[of].append((f"{type(value).__module__}.{type(value).__name__}", id(value), weakref.ref(value)))
    return (value,)
@node(("LATENT",), net=("CONTROL_NET",), number=INT)
def UseNet(self, net, number):
    comfy.model_management.load_models_gpu(net.get_models())
    generator = torch.Generator().manual_seed(number)
    x, hint, context = (torch.randn(shape, generator=generator) for shape in ((1, 4, 8, 8), (1, 3, 64, 64), (1, 5, 32)))
    with torch.no_grad():
        return ({"samples": net.control_model(x, hint, torch.ones(1), context)["output"][0][:, :4].clone()},)
NODE_CLASS_MAPPINGS.update({c.__name__: c for c in (Meet, UseNet)})
@server.PromptServer.instance.routes.get("/test/met")
async def _met(request):
    gc.collect()
    return aiohttp.web.json_response({kind: [[name, number, ref() is not None] for name, number, ref in found]
                                      for kind, found in met.items()})
'''
_loops.NODES = _loops.NODES.replace("import collections,", "import os, collections,", 1)

LOADERS = {"clip": node("CLIPLoader", clip_name="tiny.safetensors", type="stable_diffusion"),
           "vae": node("VAELoader", vae_name="tiny.safetensors"),
           "net": node("ControlNetLoader", control_net_name="tiny.safetensors")}
TYPES = {"clip": "CLIP", "vae": "VAE", "net": "CONTROL_NET"}
FIRST = {"zero": node("AddInts", a=0, b=0), "n": port("n", "zero")}
STEP = {"n in": port("n"), "add": node("AddInts", a=link("n in"), b=1), "n out": port("n", "add")}
for kind, loader in LOADERS.items():
    FIRST |= {f"load {kind}": loader, f"policy {kind}": policy(f"load {kind}", "free"),
              f"{kind}": port(kind, f"policy {kind}")}
    STEP |= {f"{kind} in": port(kind), f"meet {kind}": node("Meet", of=kind, value=link(f"{kind} in")),
             f"{kind} out": port(kind, f"meet {kind}")}
STEP |= {"text": node("Append", text="words ", number=link("n in")),
         "encode": node("CLIPTextEncode", clip=link("meet clip"), text=link("text")), "words": port("words", "encode"),
         "use": node("UseNet", net=link("meet net"), number=link("n in")), "residual": port("residual", "use"),
         "wan": node("EmptyHunyuanLatentVideo", width=64, height=64, length=1, batch_size=1),
         "decode": node("VAEDecode", samples=link("wan"), vae=link("meet vae")), "picture": port("picture", "decode"),
         "control": node("ControlNetApply", conditioning=link("encode"), control_net=link("meet net"),
                         image=link("decode"), strength=1.0), "controlled": port("controlled", "control")}
LOOP = {"inputs": {"n": -1}, "iterations": 4, "when": [{"port": "n", "op": "==", "value": -1}, None]}
CLASSES = {"clip": "comfy.sd.CLIP", "vae": "comfy.sd.VAE", "net": "comfy.controlnet.ControlNet"}

with Loops() as comfy:
    # a loop that would carry one of these models is refused before anything is queued, and the message names the port
    for options in ({"persist_prefix": "references"}, {"use_ram": False}):
        for kind, loader in LOADERS.items():
            comfy.refused(f"port {kind} gives {TYPES[kind]}", "by reference", next(iter(options)),
                          workflows=[{"load": loader, "out": port(kind, "load")}], **options)
    assert not (comfy.folder / "user/memstow").exists() or not list((comfy.folder / "user/memstow").iterdir())

    name = comfy.begin(FIRST, STEP, name="references", **LOOP)
    found = comfy.over(name, values=False)
    assert found["state"] == "done" and found["committed"] == 4, found
    ran, met = comfy.ran(), comfy.get("/test/met")
    assert [ran.get(loader) for loader in ("load_clip", "load_vae", "load_controlnet")] == [1, 1, 1], ran
    assert ran["Meet"] == 4 * 3 and ran["UseNet"] == 4, ran
    for kind, seen in met.items():
        assert [name for name, _number, _lives in seen] == [CLASSES[kind]] * 4, seen
        assert len({number for _name, number, _lives in seen}) == 1, f"it is not the same object: {seen}"
    values = {value["id"]: value for value in found["values"]}
    for id, words in (("clip", "CLIP has weights"), ("vae", "VAE has weights"), ("net", "ControlNet has weights"),
                      ("controlled", "ControlNet has weights")):
        assert values[id]["where"] == "reference" and words in values[id]["why"], values[id]
    assert all(values[id]["where"] == "ram" for id in ("n", "words", "residual", "picture")), values

    # the loop alone holds them now
    comfy.free(unload_models=True, free_memory=True)
    comfy.get("/test/tidy")
    assert all(seen[-1][2] for seen in comfy.get("/test/met").values()), comfy.get("/test/met")
    comfy.run({"a": node("AddInts", a=1, b=1), "show": node("Fingerprint", value=link("a"))})
    comfy.held_by_loop(CLIP="port clip of loop references", VAE="port vae of loop references",
                       CONTROLNET="port net of loop references; port controlled of loop references")
    assert comfy.loop(name)["values_of_ports"]["n"] == 4

    # another workflow gets the same objects
    reads = {f"read {kind}": node("DiscomfortLoopResult", loop=name, unique_id=kind) for kind in LOADERS}
    reads |= {f"meet {kind}": node("Meet", of=kind, value=link(f"read {kind}")) for kind in LOADERS}
    comfy.run({**reads, **{f"show {kind}": node("Fingerprint", value=link(f"meet {kind}")) for kind in LOADERS}})
    again = comfy.get("/test/met")
    assert all(again[kind][-1][:2] == met[kind][0][:2] for kind in LOADERS), (met, again)

    # when the loop is forgotten, nothing holds them
    assert comfy.request("DELETE", "/memstow/loops?name=references")[0] == 200
    comfy.free(unload_models=True, free_memory=True)
    support.wait_for(lambda: not any(seen[-1][2] for seen in comfy.get("/test/met").values()), 60, "their end")
    support.wait_for(lambda: not comfy.owners(), 60, "the end of their owners")

    # At a wildcard port nobody knows the type of a value before the value comes. So the loop fails in its first
    # iteration, and the message names the port.
    wild = {kind: {"load": loader, "meet": node("Meet", of=kind, value=link("load")), "out": port(kind, "meet")}
            for kind, loader in LOADERS.items()}
    for options in ({"persist_prefix": "references"}, {"use_ram": False}):
        for kind, graph in wild.items():
            found = comfy.loop_of(graph, state="failed", **options)
            assert all(words in found["error"] for words in ("iteration 1, workflow 1", f"'{kind}'", "has weights")), \
                found["error"]
