# needs: torch numpy
"""PyTorch's native allocator: segments that several tensors share, from pools that are one model's each."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "native")
