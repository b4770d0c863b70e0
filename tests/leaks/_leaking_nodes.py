"""Nodes that leak as real nodes did, for the ComfyUI under test."""
import torch

kept = []
backups = {}


class KeepWeights:
    """Keeps a few weights of a model in a list that outlives it: the model is freed, the weights are not."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("MODEL",), "keep", "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "seed": ("INT", {"default": 0, "max": 2**40})}}

    def keep(self, model, seed):
        weights = [weight for weight in model.model.parameters() if weight.numel() >= 2**18]
        kept.append({"seed": seed, "weights": weights[:2]})
        return (model,)


class PatchWithoutEnd:
    """Copies the original weights for patches that are never undone."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("MODEL",), "patch", "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "seed": ("INT", {"default": 0, "max": 2**40})}}

    def patch(self, model, seed):
        for key, weight in list(model.model.named_parameters())[:40]:
            backups[seed, key] = weight.detach().clone()
        return (model,)


class FeatureCache:
    """A cache of features that is cleared at the end, but not after an error."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("LATENT",), "encode", "test"
    features = []

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"latent": ("LATENT",), "seed": ("INT", {"default": 0, "max": 2**40})}}

    def encode(self, latent, seed):
        self.features.append(torch.zeros(100_000))
        raise ValueError("as planted")


NODE_CLASS_MAPPINGS = {kind.__name__: kind for kind in (KeepWeights, PatchWithoutEnd, FeatureCache)}
