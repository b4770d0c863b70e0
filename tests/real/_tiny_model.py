"""The weights of a small diffusion model in the shape of Wan 2.1: ComfyUI loads it like a real one."""
import torch

LAYERS, DIM = 2, 128


def linear(weights, name, outputs, inputs):
    weights[f"{name}.weight"] = torch.randn(outputs, inputs) * 0.02
    weights[f"{name}.bias"] = torch.zeros(outputs)


def attention(weights, name):
    for part in "qkvo":
        linear(weights, f"{name}.{part}", DIM, DIM)
    for part in "qk":
        weights[f"{name}.norm_{part}.weight"] = torch.ones(DIM)


def tiny_wan(ffn=65536):
    """Returns the weights of a model. Nearly all of their 130 MB are in the feed-forward layers. ComfyUI takes the
    sizes of the layers from the tensors, so tensors with random values will do."""
    w = {"patch_embedding.weight": torch.randn(DIM, 16, 1, 2, 2) * 0.02, "patch_embedding.bias": torch.zeros(DIM),
         "head.modulation": torch.randn(1, 2, DIM)}
    for name, outputs, inputs in (("text_embedding.0", DIM, 4096), ("text_embedding.2", DIM, DIM),
                                  ("time_embedding.0", DIM, 256), ("time_embedding.2", DIM, DIM),
                                  ("time_projection.1", 6 * DIM, DIM), ("head.head", 64, DIM)):
        linear(w, name, outputs, inputs)
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        attention(w, f"{block}.self_attn")
        attention(w, f"{block}.cross_attn")
        w[f"{block}.norm3.weight"], w[f"{block}.norm3.bias"] = torch.ones(DIM), torch.zeros(DIM)
        linear(w, f"{block}.ffn.0", ffn, DIM)
        linear(w, f"{block}.ffn.2", DIM, ffn)
        w[f"{block}.modulation"] = torch.randn(1, 6, DIM)
    return w
