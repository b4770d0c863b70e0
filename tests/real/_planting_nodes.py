"""A node pack for the ComfyUI under test. One node plants a tensor of a unique size; another loads a file as ComfyUI's
own nodes do. Both keep their memory."""
import comfy.utils
import torch

PLANTED = 30_000_019
held = []


class Plant:
    RETURN_TYPES = ("LATENT",)
    FUNCTION = "plant"
    CATEGORY = "test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",)}}

    def plant(self, model):
        held.append(torch.empty(PLANTED, dtype=torch.uint8)) # LINE plant
        return ({"samples": held[-1]},)


class LoadFile:
    RETURN_TYPES = ()
    FUNCTION = "load"
    CATEGORY = "test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"name": ("STRING", {})}}

    def load(self, name):
        held.append(comfy.utils.load_torch_file(name)) # LINE load
        return ()


NODE_CLASS_MAPPINGS = {"Plant": Plant, "LoadFile": LoadFile}
