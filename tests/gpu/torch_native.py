# needs: torch numpy
"""The tests of _torch.py with PyTorch's native allocator. Several tensors share a segment, and each model has its own
pool of segments."""
import _torch

if __name__ == "__main__":
    _torch.part(__file__, "native")
