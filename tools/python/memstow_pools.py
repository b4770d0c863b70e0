"""A pool of PyTorch's for each model: with its native allocator, what a thread allocates in a model's scope then comes from
segments that are that model's alone, so that they count as its own and can move.

In: which model a thread is in, from memstow.py. Out: torch.cuda.MemPool, entered and left. Never: CUDA begun, a pool
destroyed (PyTorch ends the process where another thread is in one then), an exception in the program's scope.

While any thread is in a pool, PyTorch does not give back cached memory to find room (its issues 159674 and 175015): a request
fails then that would have been served. So this is for who asks for it; docs/cuda.md."""
from __future__ import annotations

import ctypes
import logging
import os
import threading
from typing import Any, Optional

OLDEST = (2, 10)  # before, a graph that is captured inside a pool took its memory from that, and not from its own
log = logging.getLogger("memstow")


def possible(torch: Any) -> Optional[bool]:
    """Whether this PyTorch can; None: it cannot be told yet, because it is being imported or CUDA has not begun. Devices are not
    counted for that: who has done so has no CUDA in the children that it forks."""
    if getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return None
    cuda: Any = getattr(torch, "cuda", None)
    inner: Any = getattr(torch, "_C", None)
    has_all = all(hasattr(cuda, name) for name in ("MemPool", "use_mem_pool", "get_allocator_backend")) and all(
        hasattr(inner, name) for name in ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_releasePool"))
    if not has_all or version_of(torch) < OLDEST:
        return False
    return cuda.get_allocator_backend() == "native" if cuda.is_initialized() else None


def version_of(torch: Any) -> tuple[int, ...]:
    numbers = str(getattr(torch, "__version__", "")).split("+")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())


class Pool:
    """A pool on one device. One thread at a time is in it: PyTorch refuses a second one."""
    __slots__ = ("owner", "device", "handle", "entered", "is_dropped")

    def __init__(self, torch: Any, owner: int, device: int) -> None:
        self.owner, self.device, self.is_dropped = owner, device, False
        self.entered: Any = None
        self.handle = torch.cuda.MemPool()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.handle))  # it is let go of, and never destroyed


class Pools:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.pools: list[Pool] = []
        self.thread = threading.local()

    def follow(self, owner: int) -> None:
        """This thread is in a scope of that model, and of none inside it; 0: in none. A forked child cannot use CUDA."""
        if os.getpid() != self.process:
            return
        pool: Optional[Pool] = getattr(self.thread, "pool", None)
        if pool is not None and pool.owner == owner and not pool.is_dropped:
            return
        if pool is not None:
            self._leave(pool)
        if owner and not self.torch.cuda.is_current_stream_capturing():  # a graph's memory is the graph's
            self._enter(owner)

    def adopt(self, owner: int, other: int) -> None:
        with self.lock:
            for pool in self.pools:
                if pool.owner == other:
                    pool.owner = owner

    def drop(self, owner: Optional[int] = None) -> None:
        """PyTorch may give back what is free in the pools of the model, or of all, when it empties its cache next; what is in
        use stays. A pool that a thread is in follows when it leaves."""
        with self.lock:
            dropped = [pool for pool in self.pools if owner is None or pool.owner == owner]
            self.pools = [pool for pool in self.pools if pool not in dropped]
            for pool in dropped:
                pool.is_dropped = True
                if pool.entered is None:
                    self._release(pool)

    def _release(self, pool: Pool) -> None:
        self.torch._C._cuda_releasePool(pool.device, pool.handle.id)

    def _take(self, owner: int) -> Pool:
        device = self.torch.cuda.current_device()
        with self.lock:
            for pool in self.pools:
                if pool.owner == owner and pool.device == device and pool.entered is None:
                    break
            else:
                pool = Pool(self.torch, owner, device)
                self.pools.append(pool)
            pool.entered = self.torch.cuda.use_mem_pool(pool.handle, device)
        return pool

    def _enter(self, owner: int) -> None:
        pool = self._take(owner)
        try:
            pool.entered.__enter__()
        except BaseException:
            pool.entered = None
            raise
        self.thread.pool = pool

    def _leave(self, pool: Pool) -> None:
        self.thread.pool = None
        pool.entered.__exit__(None, None, None)
        with self.lock:
            pool.entered = None
            if pool.is_dropped:
                self._release(pool)
