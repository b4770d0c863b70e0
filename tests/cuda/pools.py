#!/usr/bin/env python3
# timeout: 400
"""A PyTorch pool for each model, over a double of torch.cuda (a test double: there is no PyTorch with CUDA here) and
the simulated driver. Without pools, a segment mixes models, and the report shows the part of each. With pools, each
model has its own segments, whatever scopes, threads and coroutines do, and cached memory of a model can be given
back."""
import asyncio, os, signal, sys, threading, types

MIB = 1 << 20
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def begin(**options):
    """Installs the double, and opens two models. Returns torch, the double, memstow and the models."""
    import _torch_double as double
    import memstow
    torch = double.install(**options)
    return torch, double, memstow, memstow.owner("unet"), memstow.owner("clip", "custom")


def segments(double, *pools):
    return sorted((s.size // MIB, s.pool != (0, 0)) for s in double.allocator.segments)


@case
def mixed():
    """Without pools: each model's memory is assigned to it."""
    torch, double, memstow, unet, clip = begin()
    double.allocator.allocate(2 * MIB)
    for owner, size in ((unet, 4), (clip, 2), (unet, 1.5)):
        with owner.scope():
            memstow.assign(owner, (double.allocator.allocate(int(size * MIB)), int(size * MIB)))
    assert segments(double) == [(20, False)] and not double.allocator.last


@case
def apart():
    torch, double, memstow, unet, clip = begin()
    take = double.allocator.allocate
    with unet.scope():
        take(4 * MIB)
        with memstow.owner("node", "node").scope(): # a node has no pool: this is still the model's
            take(1000)
        with clip.scope():
            take(2 * MIB)
            with unet.scope(): # PyTorch refuses to enter a pool twice
                take(2 * MIB)
        with unet.scope():
            take(3 * MIB)
    take(5 * MIB)
    with memstow.scope(unet.id):
        take(1 * MIB)
    assert segments(double) == [(2, True), (20, False), (20, True), (20, True)], segments(double)
    assert double.allocator.last == 2 and not double.allocator.underway


@case
def workspaces():
    """A thread's first matrix product on a stream makes a workspace. The workspace belongs to no owner, even if the
    thread is in a scope."""
    torch, double, memstow, unet, clip = begin(blas=True)

    def multiply():
        torch.cuda.current_blas_handle()
        double.allocator.allocate(4 * MIB)

    def work(stream):
        double.stream = types.SimpleNamespace(cuda_stream=stream)
        with unet.scope(), clip.scope():
            multiply()
        with memstow.scope(unet.id):
            multiply()
    work(0)
    work(7)
    thread = threading.Thread(target=work, args=(7, ))
    thread.start()
    thread.join()
    assert len(double.workspaces) == 3, double.workspaces
    for address in double.workspaces.values():
        segment = next(s for s in double.allocator.segments if s.address <= address < s.address + s.size)
        assert segment.pool == (0, 0), segment.pool


@case
def not_begun_workspaces():
    """No workspace is made before CUDA has begun, nor while the stream is captured."""
    torch, double, memstow, unet, clip = begin(blas=True, initialized=False)
    with unet.scope():
        pass
    torch.cuda.state.initialized = torch.cuda.state.capturing = True
    with unet.scope():
        pass
    assert not double.workspaces
    torch.cuda.state.capturing = False
    with unet.scope():
        assert len(double.workspaces) == 1


@case
def threads():
    torch, double, memstow, unet, clip = begin()
    inside, go_on = threading.Barrier(3, timeout=60), threading.Barrier(3, timeout=60)

    def work(owner):
        with owner.scope():
            inside.wait()
            double.allocator.allocate(2 * MIB)
            go_on.wait()
    workers = [threading.Thread(target=work, args=(owner,)) for owner in (unet, unet)]
    for worker in workers:
        worker.start()
    inside.wait()
    double.allocator.allocate(2 * MIB) # nobody's memory, while the models are in their pools
    go_on.wait()
    for worker in workers:
        worker.join()
    with unet.scope():
        double.allocator.allocate(2 * MIB)
    assert segments(double) == [(20, False), (20, True), (20, True)] and double.allocator.last == 2, segments(double)


@case
def coroutines():
    torch, double, memstow, unet, clip = begin()

    async def work(size):
        double.allocator.allocate(size * MIB)
        await asyncio.sleep(0)
        double.allocator.allocate(size * MIB)

    async def both():
        tasks = [asyncio.create_task(memstow.follow(work(size), owner)) for owner, size in ((unet, 4), (clip, 3))]
        await asyncio.sleep(0)
        double.allocator.allocate(2 * MIB)
        await asyncio.gather(*tasks)
    asyncio.run(both())
    used = {s.pool: sorted(size // MIB for size in s.used.values()) for s in double.allocator.segments}
    assert sorted(used.values()) == [[2], [3, 3], [4, 4]], used
    assert not double.allocator.underway


@case
def given_back():
    torch, double, memstow, unet, clip = begin()
    take, free = double.allocator.allocate, double.allocator.free
    with unet.scope():
        weights, cached = take(4 * MIB), take(30 * MIB)
    free(cached)
    torch.cuda.empty_cache()
    assert segments(double) == [(20, True), (30, True)] # a pool that may be used again keeps its segments
    unet.release()
    torch.cuda.empty_cache()
    assert segments(double) == [(20, True)]
    with unet.scope(): # goes on in a pool of its own
        more = take(4 * MIB)
        memstow.drop_pools() # while the thread is in it
        inside = take(3 * MIB)
    provisional = memstow.owner("loading")
    with provisional.scope():
        adopted = take(2 * MIB)
    unet.adopt(provisional)
    with unet.scope(): # the provisional owner's pool is now its own
        own = take(2 * MIB)
    assert double.allocator.last == 3, double.allocator.last
    for address in (weights, more, inside, adopted, own):
        free(address)
    unet.retire()
    torch.cuda.empty_cache()
    assert segments(double) == [] and not any(double.allocator.users.values()), double.allocator.users
    assert not double.destroyed, "a pool's destructor may end the process"


@case
def emptied_inside():
    torch, double, memstow, unet, clip = begin()
    double.allocator.free(double.allocator.allocate(30 * MIB))
    with unet.scope():
        double.allocator.allocate(2 * MIB)
        torch.cuda.empty_cache() # does nothing while a thread is in a pool
        assert segments(double) == [(20, True), (30, False)]
        try:
            with memstow.outside_pools():
                torch.cuda.empty_cache()
                assert segments(double) == [(20, True)] and not double.allocator.underway
                raise KeyError
        except KeyError:
            pass
        double.allocator.allocate(2 * MIB)
        assert segments(double) == [(20, True)], "back in the pool"
    with memstow.outside_pools():
        double.allocator.allocate(2 * MIB)
    assert segments(double) == [(20, False), (20, True)] and not double.allocator.underway


@case
def scopes_outside():
    """Scopes inside `outside_pools` do not lead back into a pool."""
    torch, double, memstow, unet, clip = begin()
    with unet.scope():
        with memstow.outside_pools():
            with clip.scope():
                assert not double.allocator.underway
                with memstow.outside_pools():
                    pass
            assert not double.allocator.underway
        assert len(double.allocator.underway) == 1
    assert not double.allocator.underway


@case
def in_a_finalizer():
    """Pools are dropped, as by a finalizer, at two moments: while a pool is made, and just before a pool is entered."""
    torch, double, memstow, unet, clip = begin()
    signal.alarm(60) # ends the test if a lock never comes
    with clip.scope():
        double.allocator.allocate(2 * MIB)
    make, enter = double.MemPool.__init__, torch.cuda.use_mem_pool
    double.MemPool.__init__ = lambda pool: (make(pool), clip.retire())[0]
    torch.cuda.use_mem_pool = lambda *arguments: (memstow.drop_pools(), enter(*arguments))[1]
    for _round in range(2):
        with unet.scope():
            assert len(double.allocator.underway) == 1
    double.MemPool.__init__, torch.cuda.use_mem_pool = make, enter
    memstow.drop_pools()
    assert not any(double.allocator.users.values()) and len(double.allocator.users) == 3, double.allocator.users


@case
def two_begin():
    """Two threads that enter the first scope at the same time have the same pools."""
    torch, double, memstow, unet, clip = begin()
    inside, go_on = threading.Event(), threading.Event()

    def work():
        with clip.scope():
            inside.set()
            go_on.wait(60)
    other, backend = threading.Thread(target=work), torch.cuda.get_allocator_backend

    def while_asked():
        torch.cuda.get_allocator_backend = backend
        other.start()
        assert inside.wait(60)
        return backend()
    torch.cuda.get_allocator_backend = while_asked
    with unet.scope():
        assert len(double.allocator.underway) == 2
        go_on.set()
        other.join()
        assert len(double.allocator.underway) == 1
    assert not double.allocator.underway


@case
def refused_later():
    """PyTorch refuses a pool while another thread is in one. That thread can leave it nevertheless, and no call of the
    program fails."""
    torch, double, memstow, unet, clip = begin()
    inside, go_on = threading.Event(), threading.Event()

    def work():
        with clip.scope():
            inside.set()
            go_on.wait(60)
    other = threading.Thread(target=work)
    other.start()
    assert inside.wait(60)
    torch.cuda.use_mem_pool = None
    with unet.scope():
        assert len(double.allocator.underway) == 1
        memstow._innermost_model = None # the thread leaves, even if memstow does not know its pool
        go_on.set()
        other.join()
        assert not double.allocator.underway
    torch._C._cuda_releasePool = None
    unet.release(), clip.retire()
    with memstow.outside_pools():
        pass


@case
def forked():
    torch, double, memstow, unet, clip = begin()
    held, go_on = threading.Event(), threading.Event()

    def hold():
        with memstow._pools.lock:
            held.set()
            go_on.wait(60)
    with unet.scope():
        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(60)
        child = os.fork()
        if not child:
            # these functions must not be called
            torch.cuda.use_mem_pool = torch.cuda.current_device = torch._C._cuda_releasePool = None
            signal.alarm(60)
            with clip.scope():
                memstow.drop_pools() # another thread held the lock at the fork
                os._exit(0 if len(double.allocator.underway) == 1 and not memstow._pools.is_over else 1)
        assert os.waitpid(child, 0)[1] == 0
        go_on.set()
        holder.join()


@case
def not_wanted():
    torch, double, memstow, unet, clip = begin(initialized=False)
    with unet.scope(): # CUDA has not begun, and a scope does not begin it
        pass
    assert not torch.cuda.state.initialized and not torch.cuda.state.counted
    torch.__spec__ = types.SimpleNamespace(_initializing=True) # as while PyTorch is being imported
    backend = torch.cuda.__dict__.pop("get_allocator_backend")
    with unet.scope():
        pass
    torch.__spec__, torch.cuda.get_allocator_backend = None, backend
    torch.cuda.state.initialized = torch.cuda.state.capturing = True
    with unet.scope(): # a graph's memory comes from the graph's own pool
        assert not double.allocator.underway
    torch.cuda.state.capturing = False
    with unet.scope():
        assert len(double.allocator.underway) == 1
    torch.cuda.use_mem_pool = None # PyTorch has changed: scopes still work
    with clip.scope(), unet.scope():
        pass


@case
def cannot():
    torch, double, memstow, unet, clip = begin(**eval(os.environ["DOUBLE"]))
    with unet.scope():
        double.allocator.allocate(2 * MIB)
    assert not double.allocator.last


if len(sys.argv) > 1:
    CASES[sys.argv[1]]()
    sys.exit()

import support, _simulated

SEARCHED = f"{support.ROOT / 'tools/python'}:{support.ROOT / 'tests/cuda'}"


def under(name, **environment):
    environment = _simulated.environment(PYTHONPATH=f"{SEARCHED}:{os.environ.get('PYTHONPATH', '')}", **environment)
    done = support.track(sys.executable, __file__, name, env=environment, file=f"{name}.mst")
    return done.stderr


def shares(block):
    return [(share["name"], share["bytes"]) for share in block["shares"]]


under("mixed")
cuda = support.report("mixed.mst")["cuda"]
assert [(b["size_bytes"], shares(b)) for b in cuda["mixed_blocks"]] == [
    (20 * MIB, [(None, 12.5 * MIB), ("unet", 5.5 * MIB), ("clip", 2 * MIB)])], cuda["mixed_blocks"]
assert sum(share["bytes"] for share in cuda["mixed_blocks"][0]["shares"]) == cuda["kinds"]["device"]["live_bytes"]
text = support.memstow("report", "mixed.mst").stdout
assert "blocks that several owners share: 1, 20.0 MiB" in text, text
assert "20.0 MiB: 12.5 MiB untagged, 5.5 MiB unet, 2.0 MiB clip" in text, text

under("apart", MEMSTOW_CUDA_POOLS="1")
report = support.report("apart.mst")
has = {(o["name"], o["cuda_bytes"] // MIB) for o in report["owners"] if o["kind"] in ("model", "custom")}
assert has == {("unet", 22), ("clip", 20), ("untagged", 20)}, has
assert not report["cuda"]["mixed_blocks"] and "several owners" not in support.memstow("report", "apart.mst").stdout
assert report["totals"]["cuda"]["live_bytes"] == 62 * MIB
for name in ("threads", "coroutines", "given_back", "emptied_inside", "scopes_outside", "in_a_finalizer", "two_begin",
             "forked", "workspaces", "not_begun_workspaces"):
    assert "no pools" not in under(name, MEMSTOW_CUDA_POOLS="1"), name
for name in ("not_wanted", "refused_later"):
    errors = under(name, MEMSTOW_CUDA_POOLS="1")
    assert errors.count("no pools of PyTorch's for models any more") == 1, errors

# If MEMSTOW_CUDA_MOVES is set, each model has its own pool, unless MEMSTOW_CUDA_POOLS is 0. There are no pools if
# MEMSTOW_CUDA_MOVES has no valid size, or if PyTorch uses cudaMallocAsync or is too old.
under("given_back", MEMSTOW_CUDA_MOVES="2M")
under("workspaces", MEMSTOW_CUDA_MOVES="2M", MEMSTOW_CUDA_POOLS="0")
under("cannot", MEMSTOW_CUDA_MOVES="2M", MEMSTOW_CUDA_POOLS="0", DOUBLE="{}")
for moves in ("", "0", "0M", "much", "2 M"): # the library does not accept these either
    under("cannot", MEMSTOW_CUDA_MOVES=moves, DOUBLE="{}")
for options in ({"backend": "cudaMallocAsync"}, {"version": "2.9.1+cu130"}):
    assert not under("cannot", MEMSTOW_CUDA_POOLS="1", DOUBLE=repr(options))
print("pools apart, shares shown (doubles of torch.cuda and of the driver)")
