# needs: torch
"""memstow's pools call PyTorch's functions as PyTorch declares them. The test imports torch.cuda.MemPool and
use_mem_pool, and reads the declarations of the two functions of torch._C in its stub file. A PyTorch without CUDA has
the same declarations, although it cannot make a pool."""
import inspect, pathlib, re, sys

import support

sys.path.insert(0, str(support.ROOT / "tools/python"))
import torch, memstow_pools

makes = inspect.signature(torch.cuda.MemPool.__init__).parameters.values()
assert all(p.name == "self" or p.default is not p.empty for p in makes), makes # memstow gives it no argument
assert isinstance(inspect.getattr_static(torch.cuda.MemPool, "id"), property)
enters = list(inspect.signature(torch.cuda.use_mem_pool).parameters)
assert enters == ["pool", "device"], enters
# PyTorch counts the uses of a pool. Making the pool is the first use. Entering adds a use, and leaving gives that use
# back. So memstow's own release gives back the first use.
left = inspect.getsource(torch.cuda.use_mem_pool).partition("finally:")[2]
assert re.search(r"_cuda_endAllocateToPool\(.*?\)\s+_cuda_releasePool\(", left, re.S), left
stub = (pathlib.Path(torch.__file__).parent / "_C/__init__.pyi").read_text()
for name in ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_releasePool"):
    declared = re.search(rf"def {name}\((.*?)\) -> None", stub, re.S)
    words = re.sub(r"[\s,]+", " ", declared[1]).strip() if declared else ""
    assert words == "device: _int mempool_id: tuple[_int _int]", (name, words)
assert memstow_pools.version_of(torch) >= memstow_pools.OLDEST, torch.__version__
print(torch.__version__)
