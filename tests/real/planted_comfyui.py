#!/usr/bin/env python3
# needs: comfyui
# timeout: 120
"""In a running ComfyUI a custom node plants a tensor, another custom node loads a file, and ComfyUI's own loader loads
a model. Their memory is found at its Python lines and at the C++ operators that allocated it."""
import pathlib, shutil

import safetensors.torch
import torch

import support
from _planted import check_planted, largest, line_of
from _tiny_model import DIM, LAYERS, tiny_wan
from _workflow import run

NODES = pathlib.Path(__file__).with_name("_planting_nodes.py")
PLANTED, FFN, CHECKPOINT = 30_000_019, 20_011, 7_000_003
PROMPT = {
    "model": {"class_type": "UNETLoader", "inputs": {"unet_name": "tiny.safetensors", "weight_dtype": "default"}},
    "plant": {"class_type": "Plant", "inputs": {"model": ["model", 0]}},
    "load": {"class_type": "LoadFile", "inputs": {"name": str(pathlib.Path("old.ckpt").resolve())}},
}


def at(function, mark):
    file, line = line_of(NODES, f"# LINE {mark}")
    return f"py {function} */custom_nodes/planting.py:{line}"


port, folder = support.free_port(), support.HERE / "comfyui"
command = support.comfyui_command(port, folder)
safetensors.torch.save_file(tiny_wan(FFN), folder / "models/diffusion_models/tiny.safetensors")
torch.save({"weights": torch.ones(CHECKPOINT)}, "old.ckpt")
shutil.copy(NODES, folder / "custom_nodes/planting.py")
with open("log", "w") as log:
    server = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", *command, stdout=log, stderr=log)
try:
    support.wait_for(lambda: server.poll() is not None or support.http(port, "/system_stats"), 60, "ComfyUI answering")
    run(port, PROMPT)
    sites = largest("out.mst")
    server.terminate()
    server.wait(20)
except BaseException:
    print(pathlib.Path("log").read_text()[-4000:])
    raise
EMPTY = ["c10::alloc_cpu", "at::native::empty_cpu", "at::_ops::empty_memory_format::call"]
EXECUTOR = "py PromptExecutor.execute_async */execution.py:*"
check_planted(sites, PLANTED, [*EMPTY, at("Plant.plant", "plant"), EXECUTOR])
check_planted(sites, 4 * CHECKPOINT, ["c10::alloc_cpu", "caffe2::serialize::PyTorchStreamReader::getRecord",
                                      "py load_torch_file */comfy/utils.py:*", at("LoadFile.load", "load"), EXECUTOR])
for line in ("Linear(dim, ffn_dim", "Linear(ffn_dim, dim"):
    file, number = line_of(support.ROOT / "build/comfyui/comfy/ldm/wan/model.py", line)
    check_planted(sites, 4 * DIM * FFN, [*EMPTY, "py Linear.__init__ */torch/nn/modules/linear.py:*",
                                         f"py WanAttentionBlock.__init__ */comfy/ldm/wan/model.py:{number}",
                                         "py load_diffusion_model */comfy/sd.py:*",
                                         "py UNETLoader.load_unet */nodes.py:*", EXECUTOR], LAYERS)
