"""Gives each model pools of PyTorch's. With pools, the native allocator takes allocations in a model's scope from
segments that belong to that model alone, so these segments count as the model's and can move.

In: the model whose scope a thread is in, from memstow.py. Out: threads enter and leave a torch.cuda.MemPool. Never
begins CUDA. Never destroys a pool, because PyTorch ends the process if another thread is in the pool then. memstow.py
catches the exceptions of this module, and then gives up pools.

While any thread is in a pool, PyTorch does not give back cached memory to make room (its issues 159674 and 175015), so
a request that would succeed without pools may fail. That is why pools are made only on request (docs/cuda.md)."""
from __future__ import annotations

import ctypes
import logging
import os
import threading
from typing import Any, Optional

# in older versions, a graph that is captured inside a pool takes its memory from that pool, and not from the graph's
# own pool
OLDEST = (2, 10)
log = logging.getLogger("memstow")


def possible(torch: Any) -> Optional[bool]:
    """Whether this PyTorch can have pools. None: not known yet, because PyTorch is being imported or CUDA has not
    begun. The devices must not be counted for this: if a process has counted them, its forked children cannot use
    CUDA."""
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


class Workspaces(threading.local):
    """The streams, each with its device, for which this thread has made cuBLAS's workspace."""

    def __init__(self) -> None:
        self.streams: set[tuple[int, int]] = set()


workspaces = Workspaces()


def make_workspace(torch: Any) -> None:
    """Makes cuBLAS's workspace for this thread and its stream now, if CUDA has begun. Without this call, PyTorch makes
    the workspace at the thread's first matrix product on the stream. It would lie in the memory of the model whose
    scope is open then, but the products of all models would use it."""
    cuda: Any = getattr(torch, "cuda", None)
    if getattr(getattr(torch, "__spec__", None), "_initializing", False) or not hasattr(cuda, "current_blas_handle"):
        return
    if not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return
    key = cuda.current_device(), cuda.current_stream().cuda_stream
    if key not in workspaces.streams:
        workspaces.streams.add(key)
        cuda.current_blas_handle()


class Pool:
    """A pool on one device. Only one thread is in it at a time, because PyTorch refuses a second thread."""
    __slots__ = ("owner", "device", "handle", "entered", "is_taken", "is_dropped", "is_released")

    def __init__(self, torch: Any, owner: int, device: int) -> None:
        self.owner, self.device = owner, device
        self.entered: Any = None
        self.is_taken = True
        self.is_dropped = self.is_released = False
        self.handle = torch.cuda.MemPool()
        # a reference that is never given back, so that the pool is never destroyed
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.handle))


class Thread(threading.local):
    pool: Optional[Pool] = None  # the pool that the thread is in
    outside = 0                  # above 0: the thread must not be in a pool


class Pools:
    """The pools of all models. When Python collects a model as garbage, drop() may be called for the model's pools,
    even in the middle of a function of this class. Therefore:
    - the lock is an RLock: a thread that holds it can take it again
    - a pool is marked as taken before a thread enters it, so that drop() leaves its release to that thread
    - a pool that was released is not released again"""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.pools: list[Pool] = []
        self.thread = Thread()
        self.is_over = False  # no pool is entered any more

    def _is_forked(self) -> bool:
        """Whether this is a forked child. It cannot use CUDA, and may lack the thread that held the lock."""
        return os.getpid() != self.process

    def follow(self, owner: int) -> None:
        """Puts this thread into a pool of `owner`, whose scope is now the thread's innermost model scope. If `owner` is
        0, takes the thread out of its pool."""
        if self._is_forked():
            return
        if self.is_over or self.thread.outside:
            owner = 0
        pool = self.thread.pool
        if pool is not None and pool.owner == owner and not pool.is_dropped:
            return
        if pool is not None:
            self._leave(pool)
        if owner and not self.torch.cuda.is_current_stream_capturing():  # a graph's memory belongs to the graph
            self._enter(owner)

    def stay_outside(self, more: int) -> None:
        """Adds to a counter of this thread. While the counter is above 0, the thread stays out of pools, from the next
        follow() on."""
        self.thread.outside += more

    def adopt(self, owner: int, other: int) -> None:
        if self._is_forked():
            return
        with self.lock:
            for pool in self.pools:
                if pool.owner == other:
                    pool.owner = owner

    def drop(self, owner: Optional[int] = None) -> None:
        """Lets PyTorch give back free memory in the pools of the model, or of all models, when PyTorch empties its
        cache the next time. Memory in use stays. If a thread is in a pool, that pool is dropped when the thread leaves
        it."""
        if self._is_forked():
            return
        with self.lock:
            for pool in list(self.pools):
                if owner is None or pool.owner == owner:
                    pool.is_dropped = True
                    if not pool.is_taken:
                        self._release(pool)
            self.pools = [pool for pool in self.pools if not pool.is_dropped]

    def _release(self, pool: Pool) -> None:
        if not pool.is_released:
            pool.is_released = True
            self.torch._C._cuda_releasePool(pool.device, pool.handle.id)

    def _take(self, owner: int) -> Pool:
        device = self.torch.cuda.current_device()
        with self.lock:
            for pool in self.pools:
                if pool.owner == owner and pool.device == device and not pool.is_taken and not pool.is_dropped:
                    pool.is_taken = True
                    return pool
            pool = Pool(self.torch, owner, device)
            self.pools.append(pool)
        return pool

    def _give_back(self, pool: Pool) -> None:
        with self.lock:
            pool.is_taken = False
            if pool.is_dropped:
                self._release(pool)

    def _enter(self, owner: int) -> None:
        pool = self._take(owner)
        try:
            pool.entered = self.torch.cuda.use_mem_pool(pool.handle, pool.device)
            pool.entered.__enter__()
        except BaseException:
            self._give_back(pool)
            raise
        self.thread.pool = pool

    def _leave(self, pool: Pool) -> None:
        self.thread.pool = None
        pool.entered.__exit__(None, None, None)
        self._give_back(pool)
