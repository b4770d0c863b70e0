#!/usr/bin/env python3
# needs: pip:comfy-aimdo==0.6.0
"""PyPI's comfy-aimdo, a client by other authors, over the simulated driver (a test double). Report and owners show the
resident part and the owner of each of its VBARs. memstow calls comfy-aimdo's own functions, and passes nothing of its
own to it."""
import gc, json, os, sys, weakref

MIB = 1 << 20


def work():
    import ctypes
    import memstow
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    assert memstow.vbars() == []
    memstow.note_vbars() # nothing to look at: no line
    import comfy_aimdo.control as control
    assert control.init("cuda") and control.init_device(0)
    from comfy_aimdo.model_vbar import ModelVBAR
    unet, clip, vae = (memstow.owner(name) for name in ("unet", "clip", "vae"))
    early = ModelVBAR(64 * MIB, 0) # before memstow looks
    half = ModelVBAR.__new__(ModelVBAR)
    half._ptr = 1 # a VBAR that another thread is just making
    dead = weakref.proxy(type("Gone", (), {})()) # it must not be asked for anything
    late, objects = [], gc.get_objects
    gc.get_objects = lambda: (objects(), late.append(ModelVBAR(32 * MIB, 0)))[0] # from another thread, meanwhile
    assert [(v.owner, v.size // MIB) for v in memstow.vbars()] == [(0, 32), (0, 64)]
    gc.get_objects = objects
    late.pop().close()
    with unet.scope():
        own = ModelVBAR(256 * MIB, 0)
    half._ptr = None
    del dead
    memstow.assign(clip, early)
    loading = memstow.owner("loading")
    with loading.scope():
        early_own = ModelVBAR(32 * MIB, 0) # noqa: F841
    unet.adopt(loading)
    gone = ModelVBAR(64 * MIB, 0)
    model = type("Model", (), {"dynamic_vbars": {"cuda:0": ModelVBAR(128 * MIB, 0)}})()
    assert memstow._assign_vbars(vae.id, model) == list(model.dynamic_vbars.values())
    memstow.note_vbars()
    own.prioritize()
    _, address, size = own.alloc(96 * MIB)
    assert own.fault(address, size) is not None
    gone.close()
    found = {v.owner: v for v in memstow.note_vbars()}
    assert set(found) == {unet.id, loading.id, clip.id, vae.id}, found
    assert found[unet.id].address == own.base_addr and found[unet.id].size == 256 * MIB
    assert (found[unet.id].resident,
            found[unet.id].pinned) == (96 * MIB, 96 * MIB) and found[clip.id].resident == 0, found
    own.unpin(address, size)
    assert own.free_memory(64 * MIB) == 64 * MIB
    assert {(v.resident, v.pinned) for v in memstow.note_vbars() if v.owner == unet.id} == {(32 * MIB, 0)}
    made, ModelVBAR.loaded_size = ModelVBAR.loaded_size, lambda vbar: (
        kept.append(ModelVBAR(32 * MIB, 0)), made(vbar))[1]
    kept = []
    assert len(memstow.vbars()) >= 3 and kept, "others are made meanwhile"
    ModelVBAR.loaded_size = made
    print([memstow.figures(owner).cuda_bytes for owner in (unet, clip, vae)])


def many():
    """More VBARs than fit into one line of the trace. The line contains the only VBAR with resident memory."""
    import ctypes
    import memstow
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    import comfy_aimdo.control as control
    assert control.init("cuda") and control.init_device(0)
    from comfy_aimdo.model_vbar import ModelVBAR
    made = [ModelVBAR(64 * MIB, 0) for _ in range(30)]
    _, address, size = made[-1].alloc(32 * MIB)
    assert made[-1].fault(address, size) is not None
    assert len(memstow.note_vbars()) == 30


if len(sys.argv) > 1:
    {"work": work, "many": many}[sys.argv[1]]()
    sys.exit()

import support, _simulated

environment = _simulated.environment(SIMCUDA_CAPACITY="1G",
                                     PYTHONPATH=f"{support.ROOT / 'tools/python'}:{os.environ.get('PYTHONPATH', '')}")
done = support.track(support.PYTHON, __file__, "work", env=environment)
assert done.stdout == "[0, 0, 0]\n", "what aimdo maps is not the ledger's"
cuda = support.report()["cuda"]
assert [(v["name"], v["size_bytes"], v["resident_bytes"], v["pinned_bytes"])
        for v in cuda["vbars"]] == [("unet", 256 * MIB, 32 * MIB, 0), ("clip", 64 * MIB, 0, 0),
                                    ("unet", 32 * MIB, 0, 0), ("vae", 128 * MIB, 0, 0)], cuda["vbars"]
text = support.memstow("report", "out.mst").stdout
assert "comfy-aimdo manages memory that is not in the ledger" in text, text
assert "32.0 MiB resident of 256.0 MiB on device 0, 0 B pinned: unet" in text, text
owners = {o["name"]: o for o in json.loads(support.memstow("owners", "out.mst", "--json").stdout)["owners"]}
assert (owners["unet"]["vbar_bytes"],
        owners["unet"]["vbar_resident_bytes"]) == (288 * MIB, 32 * MIB), "what it adopted is its own"
assert (owners["vae"]["vbar_bytes"], owners["vae"]["vbar_resident_bytes"]) == (128 * MIB, 0)
assert "32.0 MiB of 288.0 MiB resident in comfy-aimdo's VBARs" in support.memstow("owners", "out.mst").stdout
support.memstow("decisions", "out.mst", "--check")

support.track(support.PYTHON, __file__, "many", env=environment, file="many.mst")
vbars = support.report("many.mst")["cuda"]["vbars"]
assert [v["resident_bytes"] // MIB for v in vbars] == [32] + 23 * [0] and {v["owner"] for v in vbars} == {None}, vbars
assert "  and 6 more\n" in support.memstow("report", "many.mst").stdout

# Without comfy-aimdo there is nothing about it.
support.track("true", file="none.mst", env=environment)
assert support.report("none.mst")["cuda"] is None and "comfy-aimdo" not in support.memstow("report", "none.mst").stdout
print(text[text.index("  comfy-aimdo"):].split("\n\n")[0])
