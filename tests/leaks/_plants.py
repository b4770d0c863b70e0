"""Programs that leak as real ones did, and one that does not: _plants.py NAME RUNS [STEP [READINGS]]. Each makes RUNS
runs of an honest node and, unless NAME is clean, of a node that leaks. Then it prints "ready" and waits for a line.
With STEP it also prints "step" after every STEP runs, and waits. With READINGS it goes on after "ready": READINGS
times, it calls the nodes outside of any run, makes an empty run, prints "step", and waits.

The table at the end has the expected owner and function of each leak."""
import asyncio, functools, gc, json, logging, mmap, os, pathlib, re, sys, threading, weakref

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/python"))
import memstow # noqa: E402

KB = 1024
WEIGHTS = 300 * KB
kept: list = []
table: dict = {}


def tensor(size):
    """Memory of a size that the allocator of Python's objects leaves to malloc."""
    return bytearray(size)


# ---- leaks: those of ComfyUI's issues, with the numbers of the issues, and other kinds of leaks

class Patcher:
    def __init__(self, weights):
        self.weights = weights

    def clone(self):
        return Patcher(bytearray(self.weights))


loaded: list = []
real_model = Patcher(tensor(WEIGHTS))


def popped_clones(run):
    """Issue 9979: a clone is removed from the list. Its finalizer, which keeps the clone's weights, stays until the
    real model is gone."""
    owner = memstow.owner("UNET", "model", "tiny.safetensors")
    with memstow.scope(owner):
        loaded.append(real_model.clone())
    weakref.finalize(real_model, lambda weights: None, loaded[0].weights)
    weights = loaded.pop().weights
    owner.retire()
    memstow.held(owner, weights)


def decode(latent):
    decoded = tensor(60 * KB)
    raise MemoryError(f"{len(latent)} and {len(decoded)}")


def pinned_by_a_traceback(run):
    """Issue 10139: the fallback runs inside `except`, and the error is kept. Its traceback has the variables of each
    frame."""
    try:
        decode(tensor(10))
    except MemoryError as error:
        kept.append(error)


class Vae:
    def __init__(self):
        self.features = []

    def encode(self):
        self.features.append(tensor(80 * KB))
        raise ValueError("as planted: the features are cleared by the next line")


vae = Vae()


def feature_cache(run):
    """Issues 10141 and 10308: an error leaves a cache of features on an object that the node cache keeps."""
    try:
        vae.encode()
    except ValueError:
        pass


def backup(weights):
    return bytes(weights)


def lora_backups(run):
    """Issues 1462 and 7176: each patch has an id of its own, so no later patch replaces its backup, and nobody removes
    it."""
    model = memstow.owner("UNET", "model", "base.safetensors", keys=(7, 7))
    with memstow.scope(model):
        table.setdefault("weights", tensor(WEIGHTS))
        table["backup", run] = backup(table["weights"])


def pin(address):
    table[address] = tensor(40 * KB)


def never_unpinned(run):
    """Issue 11775: a table lists pinned memory by its address. The weights move before they are unpinned, so their
    entry is not found and stays."""
    address, moved = 2 * run, 2 * run + 1
    pin(address)
    table.pop(moved, None)


def materialise(file):
    copy = mmap.mmap(-1, 1024 * KB)
    copy[:] = file[:]
    return copy


def mapped_twice(run):
    """10896: the file is mapped, and so is a copy of it."""
    path = pathlib.Path("weights.bin")
    if not path.exists():
        path.write_bytes(bytes(1024 * KB))
    with open(path, "rb") as handle:
        file = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    kept.append(materialise(file))
    file.close()


class Session:
    """A cycle that does not die: its __del__ adds it to the list of objects to clean up."""
    def __init__(self):
        self.buffer, self.me = tensor(50 * KB), self

    def __del__(self):
        kept.append(self)


def cycle_with_del(run):
    Session()
    gc.collect()


loop = asyncio.new_event_loop()


async def wait_for_ever(buffer):
    await loop.create_future()
    return buffer


def preview():
    return tensor(30 * KB)


def pending_tasks(run):
    """Tasks that wait for something that never comes."""
    async def node():
        kept.append(asyncio.ensure_future(wait_for_ever(preview())))
        await asyncio.sleep(0)
    loop.run_until_complete(node())


class Pool:
    def __init__(self):
        self.idle = {}

    def connect(self, host):
        return self.idle.pop(host, None) or tensor(24 * KB)

    def give_back(self, host, connection):
        self.idle[host] = connection


pool = Pool()


def connection_pool(run):
    """A connection pool whose key is never the same."""
    host = f"server?token={run}"
    pool.give_back(host, pool.connect(host))


class Encoder:
    @functools.lru_cache(maxsize=None)
    def encode(self, text):
        return tensor(20 * KB)


encoder = Encoder()


def cache_without_end(run):
    encoder.encode(f"a prompt, number {run}")


def listener(image):
    return lambda: image


def listeners(run):
    """One callback a run, each with the variables of its closure."""
    kept.append(listener(tensor(16 * KB)))


def report(image):
    logging.getLogger("plants").warning("done", extra={"image": image})


class Handler(logging.Handler):
    def emit(self, record):
        kept.append(record)


def log_records(run):
    """A log of everything."""
    if run == 0:
        logging.getLogger("plants").addHandler(Handler())
        logging.getLogger("plants").propagate = False
    image = tensor(12 * KB)
    report(image)


# ---- growth that is no leak

recent: list = []
initialised: dict = {}
patterns: list = []


def clean(run):
    """Does what an honest node does: it initialises once, fills a limited cache, replaces old memory, and uses memory
    for a while."""
    if not initialised:
        initialised["tables"] = [tensor(10 * KB) for _ in range(50)]
    recent.append(tensor(100 * KB))
    del recent[:-7]
    initialised["last"] = tensor(200 * KB)
    if run % 3 == 0:
        initialised["sometimes"] = tensor((run % 5 + 1) * 100 * KB)
    words = json.loads(json.dumps({str(i): list(range(i % 50)) for i in range(500)}))
    re.compile(f"{run}+").match("1")
    cycle = [tensor(20 * KB)]
    cycle.append(cycle)
    try:
        raise ValueError(words)
    except ValueError:
        pass
    threads = [threading.Thread(target=lambda: sorted(str(i) for i in range(1000))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def node():
        await asyncio.gather(*(asyncio.sleep(0) for _ in range(20)))
    loop.run_until_complete(node())
    with mmap.mmap(-1, 512 * KB) as scratch:
        scratch[:10] = b"0123456789"
    model = memstow.owner("CLIP", "model", f"clip {run % 2}")
    with memstow.scope(model):
        weights = tensor(500 * KB)
    del weights
    model.retire()


# name: (owner's name or None, function, whether a gone owner still has memory)
LEAKS = {
    "popped_clones": ("UNET", "Patcher.clone", True),
    "pinned_by_a_traceback": (None, "decode", False),
    "feature_cache": (None, "Vae.encode", False),
    "lora_backups": ("UNET", "backup", False),
    "never_unpinned": (None, "pin", False),
    "mapped_twice": (None, "materialise", False),
    "cycle_with_del": (None, "Session.__init__", False),
    "pending_tasks": (None, "preview", False),
    "connection_pool": (None, "Pool.connect", False),
    "cache_without_end": (None, "Encoder.encode", False),
    "listeners": (None, "listeners", False),
    "log_records": (None, "log_records", False),
}


def wait(word):
    print(word, flush=True)
    sys.stdin.readline()


def main():
    name, runs, step, readings = sys.argv[1], *(int(word) for word in (*sys.argv[2:], "0", "0")[:3])
    work = globals()[name]
    nodes = [(memstow.owner("Honest", "node", "node 1", keys=(1, 1)), clean)]
    if work is not clean:
        nodes.append((memstow.owner("Leaky", "node", "node 2", keys=(1, 2)), work))

    def do_nodes(run):
        for node, function in nodes:
            with memstow.scope(node):
                function(run)

    for run in range(runs):
        with memstow.run(f"run {run}"):
            do_nodes(run)
        if step and (run + 1) % step == 0:
            wait("step")
    gc.collect()
    wait("ready")
    for run in range(runs, runs + readings):
        do_nodes(run)
        gc.collect()
        with memstow.run(f"run {run}"):
            pass
        wait("step")


if __name__ == "__main__":
    main()
    os._exit(0)
