"""A kernel for lib_triton.py: Triton reads its text from a file."""
import triton
import triton.language as tl


@triton.jit
def add_kernel(to, from_, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(to + at, tl.load(to + at, mask=inside) + tl.load(from_ + at, mask=inside), mask=inside)
