# needs: torch numpy
"""PyTorch's native allocator: several tensors share a segment; segments come from pools of one model each."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "native")
