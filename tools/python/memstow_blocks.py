"""Finds the Python objects that hold the blocks of some call stacks. memstow leaks has found that these blocks stay
behind, run after run, and asks for their holders. In: numbers of call stacks in this process's ledger. Out: HELD lines
of the trace for each call stack.

Asks the ABI (the call memstow_blocks) for the call stack of every buffer that Python can reach: tensors, arrays, bytes,
large strings, the tables of lists, dictionaries and sets, and memory that objects of extension types point to, such as
PIL's images. From some of the blocks with a wanted stack, memstow_referrers goes outwards to their holders. The search
goes through all objects several times, and ends at a deadline. Call it between two runs."""
import builtins
import collections
import ctypes
import gc
import os
import struct
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

import memstow_referrers as referrers

# limits. SAMPLES: the most blocks of a group (class Group), from different runs, whose holders are searched. SAME: the
# most objects that are noted for one block
SAMPLES, SAME = 3, 4
# A text of more than LARGE bytes, or a tuple of more than MANY items, has a block of its own. Smaller objects share an
# arena.
LARGE, MANY = 500, 60
# limits for blocks of extension types. WORDS: how many words of a block are read. DEEP: how many blocks are read in
# all. EACH: how many objects of one type are followed. LEVELS: how many steps are made from block to block
WORDS, DEEP, EACH, LEVELS = 128, 10_000, 500, 3
AT_ONCE = 1 << 16                            # addresses in one call of the ABI
INSIDE = 1                                   # MEMSTOW_INSIDE
SHARE = 0.7                                  # part of the time limit for the pass over all objects


class Block(NamedTuple):
    """struct memstow_block of memstow.h."""
    start: int
    size: int
    model: int
    node: int
    run: int
    stack: int


LAYOUT = struct.Struct("<QQIIII")
# the size of a block's structure, and the offset of its field `stack`, both in words of 32 bits
WORDS_OF_BLOCK, STACK = LAYOUT.size // 4, 7


def look_up(ask: Callable[..., int], addresses: list[int], how: int = 0) -> Any:
    """The ABI's answer about the block at each address, as structures one after the other. None if the ABI has no
    answer."""
    answer = ctypes.create_string_buffer(len(addresses) * LAYOUT.size)
    found = ask((ctypes.c_uint64 * len(addresses))(*addresses), len(addresses), how, answer,
                LAYOUT.size) if addresses else 0
    return answer if found > 0 else None


def block_in(answer: Any, number: int) -> Block:
    return Block(*LAYOUT.unpack_from(answer, number * LAYOUT.size))


def stacks_in(answer: Any) -> list[int]:
    """The numbers of the stacks of all blocks in an answer; 0 for an address without a block."""
    return memoryview(answer).cast("B").cast("I")[STACK::WORDS_OF_BLOCK].tolist()


# ---- from an object to its memory

PLAIN = {int, float, complex, bool, type(None), types.CodeType, type(Ellipsis), type(NotImplemented), range, slice,
         *(kind for kind in vars(types).values() if isinstance(kind, type)), *(kind for kind in vars(builtins).values()
                                                                                if isinstance(kind, type))}
WITH_BUFFERS = ("array", "mmap", "builtins") # builtins: also for types without a module name, such as PIL's images
# types of these modules have no buffers, except for tensors, arrays, and types of the modules in WITH_BUFFERS
LIBRARIES = {"torch", "numpy", *getattr(sys, "stdlib_module_names", sys.builtin_module_names)}
COLLECTED, MANAGED = 1 << 14, 3 << 3         # Py_TPFLAGS_HAVE_GC; _MANAGED_DICT and _MANAGED_WEAKREF


def is_of_python(kind: type) -> bool:
    """Whether a class is written in Python. Objects of such a class refer to Python objects only, not to buffers."""
    return kind.__dictoffset__ != 0 or "__slots__" in type.__dict__["__dict__"].__get__(kind)


def words_of(thing: Any) -> Iterator[int]:
    """Words that may be addresses, in the fixed part of an object behind its reference count and its type."""
    size = type(thing).__basicsize__ // 8
    if size > 2:
        yield from addresses_in(ctypes.string_at(id(thing) + 16, 8 * (size - 2)))


def addresses_in(data: bytes) -> Iterator[int]:
    return (word for word, in struct.iter_unpack("<Q", data[:len(data) // 8 * 8]) if 0x10000 < word < 1 << 47
            and not word & 7)


def head_of(kind: type) -> int:
    """How many bytes of the block lie in front of the object: the collector's head, and a managed dictionary."""
    return (16 if kind.__flags__ & COLLECTED else 0) + (16 if kind.__flags__ & MANAGED else 0)


Addresses = Callable[[Any], Iterable[int]]
SIZED: dict[type, Addresses] = { # types of which only large objects have a block of their own
    **dict.fromkeys((str, bytes), lambda thing: (id(thing),) if len(thing) > LARGE else ()),
    **dict.fromkeys((list, dict, set, frozenset, collections.deque, collections.OrderedDict, collections.defaultdict,
                     collections.Counter), lambda thing: words_of(thing) if len(thing) > MANY // 4 else ()),
    tuple: lambda thing: (id(thing) - 16,) if len(thing) > MANY else (),
    bytearray: lambda thing: words_of(thing) if len(thing) > LARGE else ()}


class Tensors:
    """The addresses of tensors. Nothing of torch is called except for functions that read a field."""

    def __init__(self, torch: Any) -> None:
        self.kind = torch.Tensor
        self.strided = torch.strided
        self.plainly = getattr(torch._C, "DisableTorchFunctionSubclass", None)

    def address(self, tensor: Any) -> Iterator[int]:
        try:
            with self.plainly() if self.plainly is not None else _nothing:
                if tensor.layout is self.strided and tensor.device.type in ("cpu", "cuda"):
                    yield tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
        except (AttributeError, NotImplementedError, RuntimeError, TypeError): # it has no storage
            return


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exception: Any) -> None:
        pass


_nothing = _Nothing()


def array_addresses(array: Any) -> Iterator[int]:
    """The address of a numpy array's memory. If the array is a view of another array or of bytes, this is the address
    of that object's memory."""
    owner, kind = array, sys.modules["numpy"].ndarray
    while referrers.is_a(owner, kind):
        if owner.base is None:
            yield owner.__array_interface__["data"][0]
            return
        owner = owner.base
    yield id(owner) if type(owner) is bytes else array.__array_interface__["data"][0]


class Batch:
    """Objects and addresses that are looked up together. `take` is called with each object whose block has a wanted
    stack, and with this block."""

    def __init__(self, ask: Callable[..., int], how: int, stacks: set[int], take: Callable[[Any, Block], None]) -> None:
        self.ask, self.how, self.stacks, self.take = ask, how, stacks, take
        self.things: list[Any] = []
        self.addresses: list[int] = []

    def add_one(self, thing: Any, address: int) -> None:
        self.things.append(thing)
        self.addresses.append(address)
        if len(self.addresses) >= AT_ONCE:
            self.flush()

    def add(self, thing: Any, addresses: list[int]) -> None:
        self.things += [thing] * len(addresses)
        self.addresses += addresses
        if len(self.addresses) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        answer = look_up(self.ask, self.addresses, self.how)
        if answer is not None:
            for number in [number for number, stack in enumerate(stacks_in(answer)) if stack in self.stacks]:
                self.take(self.things[number], block_in(answer, number))
        self.things.clear()
        self.addresses.clear()


class Route(NamedTuple):
    """How to look up the objects of one type."""
    batch: Batch
    head: Optional[int]  # bytes in front of the object, if each object has a block of its own
    inside: Optional[Addresses]
    collected: int       # COLLECTED if the collector knows these objects, else 0


class Reach:
    """Finds the objects with a block that was allocated by one of the wanted call stacks, in a run up to `before` (0:
    in any run)."""

    def __init__(self, ask: Callable[..., int], stacks: set[int], before: int, deadline: referrers.Deadline) -> None:
        self.ask, self.before, self.deadline = ask, before, deadline
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        self.tensors = Tensors(torch) if hasattr(torch, "Tensor") else None
        self.array = getattr(numpy, "ndarray", None)
        self.all_apart = os.environ.get("PYTHONMALLOC", "").startswith("malloc") # each object has a block of its own
        self.routes: dict[type, Optional[Route]] = {}
        self.seen: set[int] = set()
        # address of a block → the block and the objects that have it
        self.found: dict[int, tuple[Block, list[Any]]] = {}
        self.starts = Batch(ask, 0, stacks, self._take)
        # for addresses that may be inside a mapping or on a device
        self.insides = Batch(ask, INSIDE, stacks, self._take)
        self.deep: list[tuple[Any, list[int]]] = []
        self.of_type: collections.Counter[Any] = collections.Counter()
        self.stacks = stacks
        self.nested: list[Any] = []
        self.is_cut = False

    def route(self, kind: type) -> Optional[Route]:
        """The route from an object of this type to the possible addresses of its blocks. None if the object cannot have
        a block."""
        batch, inside = self._inside_of(kind)
        head = head_of(kind) if self.all_apart else None
        return Route(batch, head, inside, kind.__flags__ & COLLECTED) if (head, inside) != (None, None) else None

    def _inside_of(self, kind: type) -> tuple[Batch, Optional[Addresses]]:
        if self.tensors is not None and issubclass(kind, self.tensors.kind):
            return self.insides, self.tensors.address
        if self.array is not None and issubclass(kind, self.array):
            return self.insides, array_addresses
        if kind in SIZED:
            return self.starts, SIZED[kind]
        if kind in PLAIN or kind.__basicsize__ < 24 or kind.__name__.startswith("pybind11_") or is_of_python(kind):
            return self.starts, None
        module = str(kind.__module__)
        if module not in WITH_BUFFERS and module.split(".")[0] in LIBRARIES:
            return self.starts, None
        return self.insides if module == "mmap" else self.starts, self._words_and_deeper

    def _words_and_deeper(self, thing: Any) -> list[int]:
        words = list(words_of(thing))
        self.of_type[type(thing)] += 1
        if self.of_type[type(thing)] <= EACH:
            self.deep.append((thing, words))
        return words

    def look(self) -> None:
        """Searches all objects. The garbage collector lists the objects that it tracks. All other objects are found by
        following references from the listed objects."""
        objects = gc.get_objects()
        self._note(objects, COLLECTED)
        self.nested = referrers.untracked(objects, self._note_others)
        self._note(self.nested, COLLECTED)
        self.starts.flush()
        self.insides.flush()
        self._go_deeper()

    def let_go(self) -> None:
        """Drops the references to the objects that were found, and the routes, which refer to this Reach."""
        self.routes.clear()
        self.deep.clear()
        self.found.clear()

    def _is_over(self) -> bool:
        self.is_cut = self.is_cut or self.deadline.is_over()
        return self.is_cut

    def _note_others(self, some: list[Any]) -> None:
        self._note(some, 0)

    def _note(self, some: list[Any], collected: int) -> None:
        """Looks up the addresses of some of these objects. `collected`: COLLECTED for the objects whose type the
        collector knows, 0 for the others."""
        routes, seen = self.routes, self.seen
        for number, thing in enumerate(some):
            if number % 1024 == 0 and self._is_over():
                return
            kind = type(thing)
            if kind in routes:
                route = routes[kind]
            else:
                route = routes[kind] = self.route(kind)
            if route is None or route.collected != collected or id(thing) in seen:
                continue
            batch, head, inside, _ = route
            addresses = list(inside(thing)) if inside is not None else []
            if head is not None:
                batch.add_one(thing, id(thing) - head)
            elif not addresses: # an object without addresses is not remembered: most are small strings
                continue
            if not collected: # objects that the collector knows come only once
                seen.add(id(thing))
            if addresses:
                batch.add(thing, addresses)

    def _take(self, thing: Any, block: Block) -> None:
        if self.before and not 0 < block.run <= self.before:
            return
        _block, things = self.found.setdefault(block.start, (block, []))
        if len(things) < SAME and not any(other is thing for other in things):
            things.append(thing)

    def _go_deeper(self) -> None:
        """Follows pointers in the blocks of extension objects, from block to block."""
        level, seen = self.deep, set[int]()
        try:
            memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            for _level in range(LEVELS):
                level = [(thing, found) for thing,
                         block in self._blocks_of(level) if (found := self._inside(memory, block, seen))]
                for thing, addresses in level:
                    self.starts.add(thing, addresses)
                self.starts.flush()
                if len(seen) > DEEP: # no deadline is needed: so few blocks take little time
                    break
        finally:
            os.close(memory)

    def _blocks_of(self, level: list[tuple[Any, list[int]]]) -> list[tuple[Any, Block]]:
        """The blocks at the addresses of each object."""
        pairs = [(thing, address) for thing, addresses in level for address in addresses]
        answer = look_up(self.ask, [address for _thing, address in pairs])
        if answer is None:
            return []
        return [(thing, block) for number,
                (thing, _address) in enumerate(pairs) if (block := block_in(answer, number)).size]

    @staticmethod
    def _inside(memory: int, block: Block, seen: set[int]) -> list[int]:
        """The addresses in a block. Another thread may free the block in the meantime, and a direct read would then
        crash. So the kernel reads the block: if the memory is gone, the kernel returns an error."""
        if block.start in seen or len(seen) > DEEP:
            return []
        seen.add(block.start)
        try:
            return list(addresses_in(os.pread(memory, min(block.size, 8 * WORDS), block.start)))
        except OSError:
            return []


# ---- from the blocks of a stack to their holders

class Wanted(NamedTuple):
    """A wanted call stack: its name in memstow leaks, and its numbers in the ledger."""
    path: str
    stacks: tuple[int, ...]


def parse(words: Iterable[str]) -> list[Wanted]:
    """Parses words of the form PATH=STACK,STACK…, in hexadecimal digits. Words with the same path are about one call
    stack. Raises ValueError if a word has another form."""
    found: dict[str, list[int]] = {}
    for word in words:
        path, _, stacks = word.partition("=")
        int(path, 16)
        found.setdefault(path, []).extend(int(stack, 16) for stack in stacks.split(","))
    return [Wanted(path, tuple(stacks)) for path, stacks in found.items()]


def spread(blocks: list[tuple[Block, list[Any]]], most: int) -> list[tuple[Block, list[Any]]]:
    """At most `most` of the blocks, evenly spaced in the order of the blocks' runs."""
    ordered = sorted(blocks, key=lambda found: found[0].run)
    if len(ordered) <= most:
        return ordered
    return [ordered[number * (len(ordered) - 1) // (most - 1)] for number in range(most)]


class Group:
    """The blocks of one stack that belong to one model and one node, and their holders."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.blocks: list[tuple[Block, list[Any]]] = []       # each with the objects that have it
        # for each followed block: the numbers of its objects among the targets
        self.samples: list[range] = []
        self.holders: list[list[referrers.Holder]] = []  # for each sample, the holders that were found

    def follow(self, targets: list[Any]) -> None:
        """Adds the objects of some of its blocks to the targets, and drops its own references to objects."""
        for _block, things in spread(self.blocks, SAMPLES):
            self.samples.append(range(len(targets), len(targets) + len(things)))
            targets += things
        self.blocks = [(block, []) for block, _things in self.blocks]

    def is_answered(self, more_later: bool) -> bool:
        """Whether the holders that were found count as the answer, although the search was not finished.
        `more_later` says that a later call gets more time."""
        found = [holder for holders in self.holders for holder in holders]
        return referrers.is_final(found) if more_later else bool(found)

    def line(self) -> dict[str, Any]:
        """The group's HELD line for the trace. Among equally likely places, the place that holds most samples comes
        first."""
        block = self.blocks[0][0]
        counts = collections.Counter(place for holders in self.holders
                                     for place in {holder.place for holder in holders})
        every = sorted((holder for holders in self.holders for holder in holders),
                       key=lambda holder: (holder.rank, not holder.is_whole, -counts[holder.place], holder.depth))
        first = {holder.place: holder for holder in reversed(every)} # the best holder for each place
        ordered = [holder for holder in sorted(first.values(), key=every.index) if holder.is_whole
                   or holder.place == every[0].place]
        return {"path": self.path, "model": block.model, "node": block.node, "blocks": len(self.blocks),
                "bytes": sum(block.size for block, _ in self.blocks), "followed": len(self.samples),
                "held": counts[ordered[0].place] if ordered else 0, **referrers.held(ordered)}


def grouped(reach: Reach, paths: dict[int, str], label: Callable[[int], Any]) -> dict[tuple[Any, ...], Group]:
    """The blocks that were found, by path and owners. This is a function of its own because its variables would
    otherwise stay in the caller and be found as holders."""
    groups: dict[tuple[Any, ...], Group] = {}
    for block, things in reach.found.values():
        path = paths[block.stack]
        groups.setdefault((path, label(block.model), label(block.node)), Group(path)).blocks.append((block, things))
    return groups


def holders_of(wanted: list[Wanted], before: int, ask: Callable[..., int], label: Callable[[int], Any],
               seconds: float, more_later: bool) -> tuple[list[dict[str, Any]], set[str]]:
    """Returns lines of the trace, and the paths for which time was too short. The lines are:
    - a line for each group of blocks that stay, from runs up to `before` (0: all runs)
    - a line without holders for each path that has no such block

    memstow leaks does not ask again about a group that has a line. So if the search was cut short, a group gets a line
    only in one of these cases:
    - a later call gets more time (`more_later`), but even a longer search cannot find a better holder for the group
    - no later call gets more time, and at least one holder was found

    `label` maps the id of an owner to a key that is the same in each run."""
    begun = time.thread_time()
    paths = {stack: one.path for one in wanted for stack in one.stacks}
    reach = Reach(ask, set(paths), before, referrers.Deadline(seconds * SHARE))
    reach.look()
    groups = grouped(reach, paths, label)
    targets: list[Any] = []
    for group in groups.values():
        group.follow(targets)
    nested, missed = reach.nested, {one.path for one in wanted if reach.is_cut}
    reach.let_go()
    found, is_cut = referrers.find(targets, (), referrers.Deadline(seconds - (time.thread_time() - begun)),
                                       nested=nested)
    for group in groups.values():
        group.holders = [[holder for number in numbers for holder in found[number]] for numbers in group.samples]
    answered = [group for group in groups.values() if not is_cut or group.is_answered(more_later)]
    missed |= {group.path for group in groups.values() if group not in answered}
    reached = {group.path for group in groups.values()}
    lines = [group.line() for group in answered]
    lines += [{"path": one.path, "blocks": 0, "holders": []} for one in wanted if one.path not in reached | missed]
    return lines, missed
