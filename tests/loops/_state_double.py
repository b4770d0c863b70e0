"""A double of memstow_state, for tests of loops without memstow. It has the interface of the store, but it counts
nothing and keeps nothing in files. It keeps values in a dictionary, and copies tensors on their way in and out."""
import copy, threading


class StateError(ValueError):
    pass


class StateBusy(StateError):
    pass


_open, _lock = {}, threading.RLock()
MODELS = ("ModelPatcher", "CLIP", "VAE", "Reference")


def available():
    return True


def open(loop, *, use_ram=True, ram_limit=None, persist_prefix=None, directory=None):
    with _lock:
        if loop in _open:
            raise StateBusy(f"loop {loop} is open")
        _open[loop] = Store(loop, "persist_prefix" if persist_prefix else "" if use_ram else "use_ram=False")
        return _open[loop]


def is_model(value):
    return type(value).__name__ in MODELS


def bytes_of(value):
    return len(value) if isinstance(value, str) else 8


def private(value):
    return value if is_model(value) else copy.deepcopy(value)


class Store:
    def __init__(self, loop, storage):
        self.loop, self.storage, self.generation = loop, storage, 0
        self.committed, self.open, self.closed = {}, None, False
        self.full = False # commit fails

    def begin(self):
        with _lock:
            assert self.open is None and not self.closed
            self.open = {}

    def put(self, id, value):
        if is_model(value) and self.storage:
            raise StateError(f"{id}: a {type(value).__name__} passes by reference, which {self.storage} rules out")
        with _lock:
            self.open[id] = private(value)

    def commit(self):
        if self.full:
            raise StateError("the disk is full")
        with _lock:
            self.committed.update(self.open)
            self.open, self.generation = None, self.generation + 1
            return self.generation

    def abandon(self):
        with _lock:
            self.open = None

    def get(self, id, default=None):
        with _lock:
            tables = [self.committed] if self.open is None else [self.open, self.committed]
            return next((private(table[id]) for table in tables if id in table), default)

    def get_committed(self, id, default=None):
        with _lock:
            return private(self.committed[id]) if id in self.committed else default

    def ids(self):
        with _lock:
            return list({**self.committed, **(self.open or {})})

    def info(self):
        with _lock:
            return [{"id": id, "type": type(value).__name__, "bytes": bytes_of(value), "generation": self.generation,
                     "where": "ram", "policy": "keep"} for id, value in self.committed.items()]

    def release(self, id):
        with _lock:
            self.committed.pop(id, None)

    def close(self, keep):
        with _lock:
            self.closed = True
            _open.pop(self.loop, None)
