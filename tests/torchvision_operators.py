"""Stands in for torchvision's compiled part if this part does not load, as with a PyTorch for the CPU. torchvision's
Python part works as soon as the two operators that it uses exist."""
import importlib.util, pathlib, sys, types

import torch


def compiled_part_loads():
    folder = pathlib.Path(importlib.util.find_spec("torchvision").origin).parent
    try:
        for library in folder.glob("_C*.so"):
            torch.ops.load_library(library)
    except OSError:
        return False
    return hasattr(torch.ops.torchvision, "nms")


library = None # kept, because its operators end with it


def ensure():
    global library
    if not compiled_part_loads() and library is None:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def import_without_dynamo():
    """Imports torchvision with a stand-in for torch._dynamo. To import the real torch._dynamo would take two to three
    seconds of a processor, although torchvision needs only one of its functions. The stand-in is removed afterwards, so
    the next import of torch._dynamo gets the real module."""
    utils = types.ModuleType("torch._dynamo.utils")
    utils.is_compile_supported = lambda device: False
    package = types.ModuleType("torch._dynamo")
    package.utils = utils
    stand_ins = {"torch._dynamo": package, "torch._dynamo.utils": utils}
    if not stand_ins.keys() & sys.modules.keys():
        sys.modules.update(stand_ins)
        import torchvision # noqa: F401
        for name in stand_ins:
            del sys.modules[name]
