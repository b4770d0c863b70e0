#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""The run report shows the memory of each model on the host and on CUDA devices, both in place and moved out. It gives
each figure before the run, at its highest and after the run. The report has these figures as JSON, as text and in the
log. The tab "Memory" gets the same figures. It also gets what each model has on each device, and what PyTorch's
allocator keeps there. The test runs on the CPU, with a double of libmemstow that says what is on a device, and a double
of torch.cuda. This was never tried on a GPU."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import ctypes

import comfy.model_management as mm
import comfy.model_patcher
import torch

import memstow
from memstow_pack import panel, report, routes

double, cpu, MIB = ctypes.CDLL(None), torch.device("cpu"), 1 << 20
double.memstow_double_on_device.argtypes = [ctypes.c_uint32, ctypes.c_uint64]


def model(name):
    """A loaded model; returns it and its identity."""
    patcher = comfy.model_patcher.ModelPatcher(torch.nn.Sequential(torch.nn.Linear(4, 4)), cpu, cpu)
    mm.load_models_gpu([patcher])
    identity = runs.registry.find(patcher.model)
    identity.owner.name = name
    return patcher, identity


def on_device(identity, mib):
    double.memstow_double_on_device(identity.owner.id, mib * MIB)


def trigger():
    assert runs.trigger("run_ended", "ok") is not None
    return {owner["name"]: owner for owner in runs.last["owners"]}


def of_tab(name):
    """The figures of a model's device memory that the tab gets, in MiB: the total, the part that was moved out, and
    what lies on each device."""
    [one] = [one for one in routes.owners(runs) if one["name"] == name]
    return one["cuda_bytes"] // MIB, one["device_stowed_bytes"] // MIB, [each // MIB for each in one["on_device_bytes"]]


unet, its = model("unet")
vae, others = model("vae")
on_device(its, 10)
runs.watch.meter.begin()
on_device(its, 30)
runs.watch.meter.look()
on_device(its, 20)
runs.trigger("run_ended", "ok", run={"number": 1, "prompt_id": None, "outcome": "ok", "reason": "run_ended", "rss": 0})
found = {owner["name"]: owner for owner in runs.last["owners"]}
assert [found["unet"][key]
        for key in ("run_before_cuda_bytes", "run_peak_cuda_bytes", "before_cuda_bytes", "after_cuda_bytes",
                    "device_stowed_bytes")] == [10 * MIB, 30 * MIB, 20 * MIB, 20 * MIB, 0], found
assert found["vae"]["run_peak_cuda_bytes"] == found["vae"]["after_cuda_bytes"] == 0, found
first, second = panel.of_run(runs.last)["models"]
assert [first["name"], second["name"]] == ["unet", "vae"] and second["peak_cuda_bytes"] == 0, (first, second)
assert [first[f"{when}_cuda_bytes"] for when in ("before", "peak", "after")] == [10 * MIB, 30 * MIB, 20 * MIB], first
assert [second[f"{when}_bytes"] for when in ("before", "peak", "after")] == [
    found["vae"][key] for key in ("run_before_bytes", "run_peak_bytes", "after_bytes")], second
assert of_tab("unet") == (20, 0, [20] + [0] * 7) and of_tab("vae") == (0, 0, [0] * 8), of_tab("unet")
share = next(s for s in runs.last["shares"] if s["model"] == its.owner.id)
assert [share[f"{when}_cuda_bytes"] for when in ("before", "peak", "after")] == [10 * MIB, 30 * MIB, 20 * MIB], share
text = report.text(runs.last).split("\n")
at = next(i for i, line in enumerate(text) if line.startswith("unet "))
assert text[at + 1].split() == ["on", "CUDA", "devices", "10.0", "MiB", "30.0", "MiB", "20.0", "MiB"], text
at = next(i for i, line in enumerate(text) if line.startswith("vae "))
assert "CUDA" not in text[at + 1], text
assert max(map(len, text)) <= 88, text
assert "kept 2 (160 B and 20.0 MiB on CUDA devices)" in report.line(runs.last), report.line(runs.last)

# Memory that was moved out still belongs to the model, and the report says where it is.
memstow.stow(its.owner)
found = trigger()
assert found["unet"]["after_cuda_bytes"] == found["unet"]["device_stowed_bytes"] == 20 * MIB, found
assert "20.0 MiB of it out of CUDA devices" in " ".join(report.text(runs.last).split()), report.text(runs.last)
assert of_tab("unet") == (20, 20, [0] * 8), of_tab("unet")
memstow.restore(its.owner)

# The log's line has the memory of a freed model, on the host and on devices.
gone = {**runs.last, "owners": [found["vae"]], "freed": [{**found["unet"], "after_bytes": 0, "after_cuda_bytes": 0}]}
assert "freed 1 (80 B and 20.0 MiB on CUDA devices)" in report.line(gone), report.line(gone)
assert "on CUDA devices" in report.text(gone), report.text(gone)

# The tab's figures of devices, with a double of torch.cuda. The driver says how much memory is free on each device.
# PyTorch says how much memory it keeps there.
assert panel.devices() == [], "there is no GPU here"
GIB = 1 << 30
for name, answer in (("is_available", True), ("is_initialized", True), ("device_count", 2)):
    setattr(torch.cuda, name, lambda answer=answer: answer)
for name, answers in (("mem_get_info", ((10 * GIB, 24 * GIB), (15 * GIB, 16 * GIB))), ("get_device_name", ("A", "B")),
                      ("memory_reserved", (12 * GIB, 0)), ("memory_allocated", (11 * GIB, 0))):
    setattr(torch.cuda, name, lambda number, answers=answers: answers[number])
assert panel.devices() == [
    {"device": 0, "name": "A", "total_bytes": 24 * GIB, "free_bytes": 10 * GIB, "kept_bytes": GIB},
    {"device": 1, "name": "B", "total_bytes": 16 * GIB, "free_bytes": 15 * GIB, "kept_bytes": 0}], panel.devices()
