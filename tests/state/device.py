#!/usr/bin/env python3
# needs: torch
# timeout: 200
"""A tensor that a node gives on a device is carried on the host: each save makes one copy from the device, the next
iteration gets a tensor of the host with the same bytes, shape and type, and nothing on the device is held for the
store. The CUDA driver is the simulated one. ComfyUI's queue and the device's tensors are doubles, because the tests'
PyTorch has no CUDA. This was never tried on a GPU."""
import os, sys

import _state, support

sys.path.insert(0, str(support.ROOT / "tests/cuda"))
import _simulated # noqa: E402

CODE = """if True:
    import ctypes, gc, threading
    sys.path[:0] = [%r, %r]
    import torch
    from _double_host import MORE, Pack, Queue
    from _graphs import described, port
    import memstow_loops
    from memstow_loops import InfoClasses

    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()

    def must(result):
        assert not result, f"CUDA error {result}"

    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    made, live, copies = [], set(), []

    class OnDevice(torch.Tensor):
        '''A double of a CUDA tensor: PyTorch sees a device, and the bytes are in the simulated driver's memory. It can
        only be detached and copied to the host.'''

        @staticmethod
        def __new__(cls, host):
            self = torch.Tensor._make_wrapper_subclass(cls, host.shape, dtype=host.dtype, device="cuda:0")
            self.address, self.length = ctypes.c_uint64(), host.nbytes
            must(cuda.cuCtxSetCurrent(context))
            must(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(host.nbytes)))
            must(cuda.cuMemcpyHtoD_v2(self.address, ctypes.c_void_p(host.data_ptr()), ctypes.c_size_t(host.nbytes)))
            made.append(self.address.value)
            live.add(self.address.value)
            return self

        def __del__(self):
            must(cuda.cuCtxSetCurrent(context))
            must(cuda.cuMemFree_v2(self.address))
            live.discard(self.address.value)

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), options=None):
            if function is torch.ops.aten.detach.default:
                return arguments[0]
            assert function is torch.ops.aten._to_copy.default and options["device"].type == "cpu", function
            self, host = arguments[0], torch.empty(arguments[0].shape, dtype=arguments[0].dtype)
            must(cuda.cuCtxSetCurrent(context))
            must(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(host.data_ptr()), self.address, ctypes.c_size_t(self.length)))
            copies.append(threading.current_thread().name)
            return host

    queue, loaded = Queue(), []
    queue.classes = InfoClasses({**MORE, "Add": described(["*"], a=["*", {}], b=["INT", {}])})
    memstow_loops.serve(Pack(queue))
    queue.loops.open_store = lambda name, **options: memstow_state.open(name, **options, directory=folder)
    save, load = memstow_loops.driver.Loop.save, memstow_loops.driver.Loop.load

    def save_from_device(loop, port, values):
        '''As if the node before the OUTPUT had worked on the device.'''
        save(loop, port, [{"samples": OnDevice(values[0]["samples"] if type(values[0]) is dict else values[0])}])

    def load_and_note(loop, port):
        (value,) = load(loop, port)
        loaded.append(value["samples"])
        return [value["samples"]] # the double's Add takes a tensor

    memstow_loops.driver.Loop.save, memstow_loops.driver.Loop.load = save_from_device, load_and_note
    graph = {"1": port("latent"), "add": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": 1}},
             "2": port("latent", ["add", 0])}
    first = torch.arange(6 * 1024, dtype=torch.float32).reshape(3, 2, 1024)
    for options in (dict(), dict(use_ram=False), dict(persist_prefix="device")):
        made.clear(), copies.clear(), loaded.clear()
        loop = memstow_loops.start_loop([graph], {"latent": {"samples": OnDevice(first)}}, 4, **options)
        loop.wait(100)
        assert loop.state == "done", loop.error
        gc.collect()
        assert len(made) == 5 and not live, f"{len(live)} of {len(made)} are on the device"
        most = 5 if not options.get("persist_prefix") else 6 # the digest of an input needs its bytes, too
        assert len(copies) == most, copies
        for number, value in enumerate(loaded):
            assert type(value) is torch.Tensor and value.device.type == "cpu", (type(value), value.device)
            assert value.dtype == first.dtype and torch.equal(value, first + number), number
        assert torch.equal(loop.values()["latent"]["samples"], first + 4)
        (row,) = [row for row in loop.document()["values"] if row["id"] == "latent"]
        assert memstow.figures(row["owner"]).live_bytes >= first.nbytes, row
        kept = loop.values()["latent"]["samples"]
        queue.loops.drop(loop)
        assert torch.equal(kept, first + 4)
    print("copies:", len(copies))
    """ % (str(support.ROOT / "tests"), str(support.ROOT / "tests/loops"))
folder = _state.real_disk()
os.environ["LD_LIBRARY_PATH"] = _simulated.environment()["LD_LIBRARY_PATH"]
print(_state.python(CODE, folder, timeout=150).stdout)
report = support.report("python.mst")
kinds = {name: kind for name, kind in report["cuda"]["kinds"].items() if kind["live_bytes"]}
assert report["cuda"]["kinds"] and not kinds, kinds
