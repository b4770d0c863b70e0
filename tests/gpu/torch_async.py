# needs: torch numpy
"""PyTorch's backend cudaMallocAsync, ComfyUI's default: about one call a tensor, out of the driver's pool."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "cudaMallocAsync")
