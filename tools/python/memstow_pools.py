"""A pool of PyTorch's for each model: with its native allocator, what a thread allocates in a model's scope then comes
from segments that are that model's alone, so that they count as its own and can move.

In: which model a thread is in, from memstow.py. Out: torch.cuda.MemPool, entered and left. Never: CUDA begun, a pool
destroyed (PyTorch ends the process where another thread is in one then), an exception in the program's scope.

While any thread is in a pool, PyTorch does not give back cached memory to find room (its issues 159674 and 175015): a
request fails then that would have been served. So this is for who asks for it; docs/cuda.md."""
from __future__ import annotations

import ctypes
import logging
import os
import threading
from typing import Any, Optional

OLDEST = (2, 10)  # before, a graph that is captured inside a pool took its memory from that, and not from its own
log = logging.getLogger("memstow")


def possible(torch: Any) -> Optional[bool]:
    """Whether this PyTorch can; None: it cannot be told yet, because it is being imported or CUDA has not begun.
    Devices are not counted for that: who has done so has no CUDA in the children that it forks."""
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
    """A pool on one device. One thread at a time has it: PyTorch refuses a second one."""
    __slots__ = ("owner", "device", "handle", "entered", "is_taken", "is_dropped", "is_released")

    def __init__(self, torch: Any, owner: int, device: int) -> None:
        self.owner, self.device = owner, device
        self.entered: Any = None
        self.is_taken = True
        self.is_dropped = self.is_released = False
        self.handle = torch.cuda.MemPool()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.handle))  # it is let go of, and never destroyed


class Thread(threading.local):
    pool: Optional[Pool] = None  # that it is in
    outside = 0                  # above 0: it is to be in none


class Pools:
    """A model may die wherever Python collects garbage, also in here, and what is done then drops its pools: so a
    thread may take the lock again, a pool is taken before anything else is done with it, and nothing is released
    twice."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.pools: list[Pool] = []
        self.thread = Thread()
        self.is_over = False  # no pool is entered any more

    def _is_forked(self) -> bool:
        """A forked child cannot use CUDA, and who held the lock may not be in it."""
        return os.getpid() != self.process

    def follow(self, owner: int) -> None:
        """This thread is in a scope of that model, and of none inside it; 0: in none."""
        if self._is_forked():
            return
        if self.is_over or self.thread.outside:
            owner = 0
        pool = self.thread.pool
        if pool is not None and pool.owner == owner and not pool.is_dropped:
            return
        if pool is not None:
            self._leave(pool)
        if owner and not self.torch.cuda.is_current_stream_capturing():  # a graph's memory is the graph's
            self._enter(owner)

    def stay_outside(self, more: int) -> None:
        """This thread is in no pool while the sum of these is above 0; from the next follow() on."""
        self.thread.outside += more

    def adopt(self, owner: int, other: int) -> None:
        if self._is_forked():
            return
        with self.lock:
            for pool in self.pools:
                if pool.owner == other:
                    pool.owner = owner

    def drop(self, owner: Optional[int] = None) -> None:
        """PyTorch may give back what is free in the pools of the model, or of all, when it empties its cache next; what
        is in use stays. A pool that a thread is in follows when it leaves."""
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
