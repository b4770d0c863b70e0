# needs: comfy_aimdo
"""comfy-aimdo manages ranges of device memory itself. The report shows the resident part and the owner of each range.
memstow moves nothing while comfy-aimdo is loaded, and the ledger does not count memory that comfy-aimdo maps."""
import ctypes, json

import _gpu, support
from _gpu import MIB


def work():
    import memstow
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    import comfy_aimdo.control as control
    assert control.init("cuda") and control.init_device(0), "comfy-aimdo does not begin"
    from comfy_aimdo.model_vbar import ModelVBAR
    assert memstow.vbars() == []
    unet = memstow.owner("unet")
    with unet.scope():
        vbar = ModelVBAR(256 * MIB, 0)
    _gpu.keep(vbar)
    vbar.prioritize()
    _, address, size = vbar.alloc(96 * MIB)
    assert vbar.fault(address, size) is not None
    found = memstow.note_vbars()
    assert [(v.owner, v.size)
            for v in found] == [(unet.id, 256 * MIB)] and found[0].resident == vbar.loaded_size() >= 96 * MIB, found
    unet.set_idle(True)
    assert unet.stow() == 0 and unet.figures().cuda_bytes == 0
    print("resident:", found[0].resident)


def outside():
    print(_gpu.under_memstow(__file__, "work", MEMSTOW_CUDA_MOVES="2M").stdout, end="")
    vbars = support.report()["cuda"]["vbars"]
    assert [v["name"] for v in vbars] == ["unet"] and vbars[0]["resident_bytes"] >= 96 * MIB, vbars
    owners = {o["name"]: o for o in json.loads(support.memstow("owners", "out.mst", "--json").stdout)["owners"]}
    assert owners["unet"]["vbar_resident_bytes"] == vbars[0]["resident_bytes"]


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
