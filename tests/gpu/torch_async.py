# needs: torch numpy
"""PyTorch's backend cudaMallocAsync, ComfyUI's default: about one call for each tensor, from the driver's pool."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "cudaMallocAsync")
