"""A node pack for the ComfyUI under test. It makes conditioning from random numbers, so that no text encoder is
needed."""
import torch


class RandomConditioning:
    RETURN_TYPES = ("CONDITIONING",)
    FUNCTION = "make"
    CATEGORY = "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seed": ("INT", {"default": 0})}}

    def make(self, seed):
        generator = torch.Generator().manual_seed(seed)
        return ([[torch.randn(1, 8, 4096, generator=generator), {}]],)


NODE_CLASS_MAPPINGS = {"RandomConditioning": RandomConditioning}
