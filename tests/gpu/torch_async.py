# needs: torch numpy
"""Runs PyTorch with the backend cudaMallocAsync, which is ComfyUI's default. It makes about one call of the driver for
each tensor, whose memory comes from the driver's pool."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "cudaMallocAsync")
