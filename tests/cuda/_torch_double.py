"""A double of PyTorch's torch.cuda, for tests: the part of its native allocator that memstow's pools need, over the
CUDA driver in libcuda.so.1 (in tests, the simulated one). It is not PyTorch, and shows nothing about PyTorch except
these rules:

- Requests of at most 1 MiB share segments of 2 MiB. Requests below 10 MiB share segments of 20 MiB. Others have
  segments of their own.
- A thread in a pool gets its memory from that pool. A thread in two pools gets its memory from the pool that it entered
  last.
- It is an error to enter a pool that some thread is already in, and to enter a pool that has no user any more.
- Cached memory of a pool is given back only when the pool has no user and no thread is in any pool.
- cuBLAS's workspace of 8 MiB is made at a thread's first matrix product on a stream, even if the thread is in a pool.
  The workspace is kept.
- In PyTorch, the destructor of a pool ends the process if a thread is in a pool. Here, the destructor only adds the
  pool's id to `destroyed`."""
import ctypes
import sys
import threading
import types

MIB = 1 << 20
cuda_driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p() # the primary context, which the runtime makes current on any thread
destroyed = []


def must(result):
    if result:
        raise RuntimeError(f"CUDA error {result}")


class Segment:
    def __init__(self, size, pool):
        self.size, self.pool, self.used = size, pool, {} # offset: bytes
        must(cuda_driver.cuCtxSetCurrent(context))
        address = ctypes.c_uint64()
        must(cuda_driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        self.address = address.value

    def place(self, size):
        at = 0
        for start in sorted(self.used):
            if start - at >= size:
                break
            at = start + self.used[start]
        return at if self.size - at >= size else None


class Allocator:
    def __init__(self):
        self.segments = []
        self.users = {}     # users of each pool, by the pool's id
        self.underway = []  # (id, thread) of pools that are entered
        self.lock = threading.RLock()
        self.last = 0

    def pool_now(self):
        return next((pool for pool, thread in reversed(self.underway) if thread == threading.get_ident()), (0, 0))

    def allocate(self, size):
        size = (size + 511) & ~511
        with self.lock:
            pool, large = self.pool_now(), size > MIB
            for segment in self.segments:
                at = segment.place(size)
                if segment.pool == pool and (segment.size > 2 * MIB) == large and at is not None:
                    break
            else:
                taken = 2 * MIB if not large else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) & -2 * MIB
                segment, at = Segment(taken, pool), 0
                self.segments.append(segment)
            segment.used[at] = size
            return segment.address + at

    def free(self, address):
        with self.lock:
            for segment in self.segments:
                if segment.address <= address < segment.address + segment.size:
                    del segment.used[address - segment.address]

    def empty(self):
        with self.lock:
            if self.underway:
                return
            kept = []
            for segment in self.segments:
                if segment.used or self.users.get(segment.pool, 0):
                    kept.append(segment)
                else:
                    must(cuda_driver.cuMemFree_v2(ctypes.c_uint64(segment.address)))
            self.segments = kept

    def begin(self, _device, pool):
        with self.lock:
            if self.users.get(pool, 1) == 0:
                raise RuntimeError("use_count > 0 INTERNAL ASSERT FAILED")
            self.users[pool] = self.users.get(pool, 0) + 1
            if any(pool == other for other, _thread in self.underway):
                raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
            self.underway.append((pool, threading.get_ident()))

    def end(self, _device, pool):
        with self.lock:
            self.underway.remove((pool, threading.get_ident()))

    def release(self, _device, pool):
        with self.lock:
            self.users[pool] -= 1
            assert self.users[pool] >= 0, "released once more than used"


allocator = Allocator()


class MemPool:
    def __init__(self):
        allocator.last += 1
        self.id = (0, allocator.last)
        allocator.users[self.id] = 1

    def __del__(self):
        destroyed.append(self.id)


class use_mem_pool:
    def __init__(self, pool, device=None):
        self.pool, self.device = pool, device

    def __enter__(self):
        allocator.begin(self.device, self.pool.id)

    def __exit__(self, *_exception):
        allocator.end(self.device, self.pool.id)
        allocator.release(self.device, self.pool.id)


workspaces = {} # by thread and stream: the address
stream = types.SimpleNamespace(cuda_stream=0)


def blas_handle():
    key = threading.get_ident(), stream.cuda_stream
    if key not in workspaces:
        workspaces[key] = allocator.allocate(8 * MIB)


def install(version="2.13.0", backend="native", initialized=True, blas=False):
    """Puts the double in the place of PyTorch in this process, and begins CUDA."""
    must(cuda_driver.cuInit(0))
    must(cuda_driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    torch = types.ModuleType("torch")
    torch.__version__, torch.Tensor, torch.nn = version, type(
        "Tensor", (), {}), types.SimpleNamespace(Module=type("Module", (), {}))
    torch._C = types.SimpleNamespace(_cuda_beginAllocateCurrentThreadToPool=allocator.begin,
                                     _cuda_releasePool=allocator.release)
    state = types.SimpleNamespace(initialized=initialized, capturing=False, counted=False)

    def is_available(): # it counts devices; after that a forked child has no CUDA
        state.counted = True
        return True
    torch.cuda = types.SimpleNamespace(
        MemPool=MemPool, use_mem_pool=use_mem_pool, is_available=is_available, is_initialized=lambda: state.initialized,
        get_allocator_backend=lambda: backend, current_device=lambda: 0, empty_cache=allocator.empty,
        is_current_stream_capturing=lambda: state.capturing, state=state, current_stream=lambda: stream)
    if blas:
        torch.cuda.current_blas_handle = blas_handle
    sys.modules["torch"] = torch
    return torch
