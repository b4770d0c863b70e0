"""Runs loops. In: plans, a store for the values, and a host that runs prompts. Out: a prompt for each workflow of each
iteration, a commit for each iteration, and values. Each loop has a thread of its own, and never blocks the host's
worker."""
from __future__ import annotations

import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Protocol

from .graph import Classes, LoopError, name_of, one_line
from .plan import Plan, Prompt, Step
from .ports import OURS
from .values import PICKLE, digests

log = logging.getLogger("memstow")

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
MOST_ENDED = 16    # how many ended loops keep their values; older loops are closed
MOST_FAILURES = 100 # the latest failures of a batch that are reported
CHUNK = 64          # the most elements of a batch that become one value in the store
CHUNK_BYTES = 32 << 20 # most bytes of the elements in one value; while elements are folded, they take memory twice
BEGUN = f"{OURS} the inputs" # an id in the store: digests of the inputs that the loop was begun with
# an id in the store, which only a batch with a prefix uses: the numbers of the elements that are done
FINISHED = f"{OURS} the elements that are done"
# marks several outputs of one port in the store. Without the mark, they would look like one value that is a list
SEVERAL = f"{OURS} several values"
PROGRESS_SECONDS = 30 # seconds between two lines in the log about a loop that runs


class Cancelled(Exception):
    """The loop was ended from outside, or its prompt was taken out of the queue."""


@dataclass(frozen=True)
class Outcome:
    """How a prompt ended: "ok", "failed" or "cancelled"; and if it is not "ok", the node and the reason."""
    status: str
    node: str = ""
    text: str = ""


class Store(Protocol):
    """The store of a loop's values: memstow_state, which documents each function."""

    @property
    def generation(self) -> int: ...
    def begin(self) -> None: ...
    def put(self, id: str, value: Any) -> None: ...
    def commit(self) -> int: ...
    def abandon(self) -> None: ...
    def get(self, id: str, default: Any = ...) -> Any: ...
    def get_committed(self, id: str, default: Any = ...) -> Any: ...
    def ids(self) -> list[str]: ...
    def info(self) -> list[dict[str, Any]]: ...
    def references(self) -> dict[str, Any]: ...
    def release(self, id: str) -> None: ...
    def close(self, keep: bool) -> None: ...


class Host(Protocol):
    """The part that runs prompts: the node pack, through ComfyUI's queue."""

    @property
    def classes(self) -> Classes: ...

    def check(self, prompt: Prompt) -> None:
        """Raises LoopError if ComfyUI would refuse the prompt or a part of it."""

    def run(self, prompt: Prompt, cancelled: threading.Event) -> Outcome:
        """Queues the prompt and waits for its end. When `cancelled` is set, the prompt is taken out of the queue, or
        interrupted."""

    def end(self, serial: str) -> None:
        """Drops the outputs of the loop's prompts from the node caches, when the loop has ended."""


class Seen(Mapping[str, Any]):
    """The values for conditions: the values of this iteration, else of the last commit, else the inputs."""

    def __init__(self, loop: "Loop") -> None:
        self.loop = loop

    def __getitem__(self, key: str) -> Any:
        found = self.loop.look(self.loop.plan.place(key)) or self.loop.look(key)
        if found is None:
            raise KeyError(key)
        return unwrapped(found[0])

    def __iter__(self) -> Iterator[str]:
        return (key for key in {*self.loop.plan.ids(), *self.loop.plan.inputs} if self.loop.has(key))

    def __len__(self) -> int:
        return sum(1 for _key in self)


def is_several(value: Any) -> bool:
    """Whether a value is several outputs, in the form in which save() puts them: a dictionary with the key SEVERAL
    alone. A node's own dictionaries do not have this key."""
    return type(value) is dict and value.keys() == {SEVERAL} and type(value[SEVERAL]) is list


def unwrapped(value: Any) -> Any:
    """A value in the form for callers: several outputs become a list."""
    return value[SEVERAL] if is_several(value) else value


def listed(value: Any) -> list[Any]:
    """A value in the form for a loader: a list of outputs, which has one element if the value is a single output."""
    return list(value[SEVERAL]) if is_several(value) else [value]


def grouped(sizes: list[tuple[int, int]]) -> Iterator[list[int]]:
    """Yields groups of elements, each as a list of the elements' numbers. A group has at least two elements, which
    together are small enough for one value. `sizes` has a pair for each element: its number, and its size in bytes."""
    group: list[int] = []
    total = 0
    for number, size in [*sizes, (0, CHUNK_BYTES + 1)]:
        if total + size > CHUNK_BYTES or len(group) == CHUNK:
            if len(group) > 1:
                yield group
            group, total = [], 0
        group.append(number)
        total += size


def text_of(error: BaseException) -> str:
    """The text of an exception. The exception's class may be the caller's, and its __str__() may raise."""
    try:
        return str(error)
    except BaseException as other:
        return f"the exception's text cannot be read: {type(other).__name__}"


class Loop:
    """One loop, from its start until it is closed. Any thread may call it; its own thread runs it."""

    def __init__(self, name: str, serial: str, plan: Plan, store: Store, host: Host, prefix: Optional[str]) -> None:
        self.name, self.serial, self.plan, self.store, self.host, self.prefix = name, serial, plan, store, host, prefix
        self.state, self.error = WAITING, ""
        self.iteration = 0                   # the current iteration, or the latest if none is on; counted from 1
        self.at = ""                         # name of the running workflow
        self.failures: list[dict[str, Any]] = []
        self.versions: dict[str, int] = {}   # id → how often its value was put since the loop began
        self.fresh: set[str] = set()         # ids that were put in this iteration
        self.given: set[str] = set()         # ids of ports into which a value came in this run
        self.done = 0                        # iterations that were completed since the loop began
        self.begun, self.ended = time.time(), 0.0
        self.next_line = time.monotonic() + PROGRESS_SECONDS # when the log gets its next line
        self.cancelled, self.over = threading.Event(), threading.Event()
        self.closed = False
        self.lock = threading.Lock()         # held while the store must stay open
        # held while the committed values must stay those of one iteration; taken before `lock`
        self.whole = threading.RLock()
        self.committed = set(store.ids())    # keys in the store that have a committed value
        self.lists = {name for name, value in plan.inputs.items() if plan.independent and isinstance(value, list)}
        # the elements of a batch that are done, as ranges: [first, last], counted from 1
        self.elements: list[list[int]] = []
        # for each port, the elements that _fold() may still move into a chunk: key of the port → numbers of the
        # elements, counted from 0. Each of these elements has a key of its own in the store
        self.singles: dict[str, list[int]] = {}
        self.resumed = self._recall() if plan.independent else store.generation
        self.thread = threading.Thread(target=self._main, name=f"memstow loop {name}", daemon=True)

    # ---- the values of ports, in the store

    def _key(self, port: str) -> str:
        """The key of a port's value in the store. In a batch each element has a key of its own."""
        return f"{port}[{self.iteration - 1}]" if self.plan.independent else port

    def _is_kept(self, port: str) -> bool:
        return port in self.fresh or not self.plan.independent and port in self.committed

    def look(self, port: str) -> Optional[tuple[Any]]:
        """The value of a port in a tuple, or None if the port has no value. (The tuple is needed because a value may be
        None.) The value is that of this iteration, else that of the last commit, else the input."""
        if self._is_kept(port):
            return (self.store.get(self._key(port)),)
        if port not in self.plan.inputs:
            return None
        if not self.plan.independent: # the input is not in the store yet
            return (self.plan.inputs[port],)
        group = self.store.get(self._input_key(port, self.iteration - 1))
        return (group[(self.iteration - 1) % CHUNK] if port in self.lists else group,)

    def has(self, port: str) -> bool:
        """Whether a port has a value for conditions."""
        return self._is_kept(self.plan.place(port)) or self._is_kept(port) or port in self.plan.inputs

    def load(self, port: str) -> list[Any]:
        """The output of a loader node: a list of one value, or of all values that came into the OUTPUT port."""
        found = self.look(port)
        if found is None:
            raise LoopError(f"port {port} has no value")
        return listed(found[0])

    def save(self, port: str, values: list[Any]) -> None:
        """Stores the values that came into a port. A saver node calls this function, on the thread that runs nodes."""
        place = self.plan.place(port)
        self.store.put(self._key(place), values[0] if len(values) == 1 else {SEVERAL: list(values)})
        self.fresh.add(place)
        self.given.add(port)
        self.versions[port] = self.versions.get(port, 0) + 1

    def committed_values(self, port: str) -> Optional[list[Any]]:
        """The last committed value of a port, as load() returns it. None if no value was committed. For a batch, it is
        a list with an element for each iteration. The element is None if the iteration has given nothing. Nothing is
        copied: each caller has a view of its own."""
        place = self.plan.place(port)
        with self.whole:
            if self.closed or not self._is_committed(place):
                return None
            if self.plan.independent:
                return [unwrapped(value) for value in self._elements(place)]
            return listed(self.store.get_committed(place))

    def _is_committed(self, place: str) -> bool:
        """Whether a value was committed for the port with the key `place`, or in a batch for any of its elements."""
        if not self.plan.independent:
            return place in self.committed
        return any(f"{place}[{number}]" in self.committed for number in range(self.plan.iterations)) \
            or bool(self._chunks(place))

    def values(self) -> dict[str, Any]:
        """The last committed values, all of the same iteration. In a batch each port has a list, with None for each
        failed element. A closed loop has no values. Nothing is copied: each caller has views of its own."""
        places = {port: self.plan.place(port) for port in self.plan.ids()}
        with self.whole:
            if self.closed:
                return {}
            if self.plan.independent:
                return {port: [unwrapped(value) for value in self._elements(place)] for port, place in places.items()}
            return {port: unwrapped(self.store.get_committed(place))
                    for port, place in places.items() if place in self.committed}

    # ---- a batch: each iteration takes one element of a list. In the store, the value of each element has a key of its
    # own, and each key takes a file descriptor. Therefore the values of many elements are folded into one chunk

    def _places(self) -> list[str]:
        return [self.plan.place(port) for port in self.plan.ids()]

    def _input_key(self, name: str, number: int) -> str:
        """The key of an input in the store. A list is stored in parts. For a list, this is the key of the part with the
        element `number`."""
        return f"{name}[<{number // CHUNK if name in self.lists else ''}]"

    def _put_batch_inputs(self) -> None:
        """Puts all inputs into the store, where they are counted, before the first element runs."""
        if BEGUN in self.committed:
            return
        try:
            self._put_all(self._input_parts())
        except (OSError, ValueError) as error:
            raise LoopError(f"the inputs cannot be kept: {error}") from error

    def _input_parts(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.plan.inputs.items():
            if name not in self.lists:
                yield self._input_key(name, 0), value
                continue
            for at in range(0, len(value), CHUNK):
                if self.cancelled.is_set():
                    raise Cancelled("it was cancelled before the first element")
                yield self._input_key(name, at), value[at:at + CHUNK]
        if self.prefix is not None:
            yield BEGUN, self._begun(self.plan.inputs, {})

    def _put_all(self, values: Iterable[tuple[str, Any]]) -> None:
        """Commits values outside of an iteration."""
        keys = set()
        self.store.begin()
        try:
            for key, value in values:
                self.store.put(key, value)
                keys.add(key)
            with self.whole:
                self.store.commit()
                self.committed = self.committed | keys
        except BaseException:
            self._abandon()
            raise

    def _chunks(self, place: str) -> list[str]:
        """The keys of the chunks of a port. A chunk is two lists: the numbers of its elements, and their values."""
        return [key for key in self.committed if key.startswith(f"{place}[") and key.endswith(":]")
                and key[len(place) + 1:-2].isdecimal()]

    def _elements(self, place: str) -> list[Any]:
        found = [None] * self.plan.iterations
        for key in self._chunks(place):
            for number, value in zip(*self.store.get_committed(key)):
                found[number] = value
        for number in range(self.plan.iterations):
            if (key := f"{place}[{number}]") in self.committed:
                found[number] = self.store.get_committed(key)
        return found

    def _fold(self, least: int = CHUNK) -> None:
        """Folds elements into chunks, if there are more than `least`. The last element is left out, because a batch
        that is continued asks its condition about that element. If a chunk cannot be stored, as on a full disk, its
        elements stay as they are."""
        for place, numbers in self.singles.items():
            if len(numbers) <= least:
                continue
            sizes = {row["id"]: row["bytes"] for row in self.store.info()}
            for group in grouped([(number, sizes.get(f"{place}[{number}]", 0)) for number in numbers[:-1]]):
                self._fold_group(place, group)
            self.singles[place] = numbers[-1:]

    def _fold_group(self, place: str, numbers: list[int]) -> None:
        keys = [f"{place}[{number}]" for number in numbers]
        try:
            self._put_all([(f"{place}[{numbers[0]}:]", [numbers, [self.store.get(key) for key in keys]])])
        except (OSError, ValueError) as error:
            log.warning("memstow: loop %s: values of %s take a file each: %s", self.name, place, error)
        else:
            self._release(keys)

    def _release(self, keys: list[str]) -> None:
        with self.whole:
            self.committed = self.committed - set(keys)
            for key in keys:
                self.store.release(key)

    def _note_done(self) -> None:
        """Notes that this element is done, in the same commit as its values."""
        number, before = self.iteration, self.elements
        joined = [one for one in before if one[1] == number - 1 or one[0] == number + 1]
        first, last = min([number, *(one[0] for one in joined)]), max([number, *(one[1] for one in joined)])
        self.elements = sorted([*(one for one in before if one not in joined), [first, last]])
        if self.prefix is not None:
            self.store.put(FINISHED, {"elements": self.elements, "last": number})

    def _recall(self) -> int:
        """Reads which elements of a batch are done. Returns their number."""
        if FINISHED not in self.committed:
            return 0
        finished = self.store.get(FINISHED)
        self.elements, self.iteration = finished["elements"], finished["last"]
        return sum(last - first + 1 for first, last in self.elements)

    def _go_on(self) -> None:
        """Takes over the values that a stopped batch left in the store. If the batch's process was killed while values
        were folded into one file, the store has some values twice. The single files of these values are removed."""
        for place in self._places():
            folded = {number for key in self._chunks(place) for number in self.store.get(key)[0]}
            single = {number for number in range(self.plan.iterations) if f"{place}[{number}]" in self.committed}
            self._release([f"{place}[{number}]" for number in single & folded])
            self.singles[place] = sorted(single - folded, key=lambda number: (number + 1 == self.iteration, number))
        self.fresh = {place for place in self._places() if self._key(place) in self.committed}

    def check_inputs(self) -> None:
        """Raises LoopError if this call continues a stored loop, but gives other inputs than the stored ones. The loop
        would use the stored inputs and ignore the new ones."""
        if BEGUN not in self.committed:
            return
        begun, given = self.store.get(BEGUN), digests(self.plan.inputs)
        if begun["independent"] != self.plan.independent:
            raise LoopError(f"persist_prefix has {'a batch' if begun['independent'] else 'a loop that is no batch'}: "
                            "take another prefix, or delete its folder")
        names = {*given, *begun["inputs"]} if self.plan.independent else given.keys() & self.committed
        others = sorted(name for name in names if begun["inputs"].get(name) != given.get(name))
        if others:
            raise LoopError(f"persist_prefix was begun with another value of {', '.join(others)}, or without one, and "
                            f"goes on after iteration {self.resumed} with what it has: give the inputs that it was "
                            "begun with, take another prefix, or delete its folder" + self._hint(others, given))

    def _hint(self, names: list[str], given: Mapping[str, str]) -> str:
        pickles = [name for name in names if given.get(name, "").startswith(PICKLE)]
        leave = "" if self.plan.independent else ", so leave it out"
        return f"; {', '.join(pickles)} may also be the same and have other bytes as a pickle{leave}" if pickles else ""

    def check_stored(self) -> None:
        """Raises LoopError if the loop would continue with a stored value that a workflow cannot take."""
        given: set[str] = set() # ids that an earlier workflow gives in each iteration
        for step in self.plan.steps if not self.plan.independent else ():
            for port in step.takes.keys() & self.committed - given:
                for value in listed(self.store.get(port)):
                    step.check(port, value)
            given |= self.plan.gives(step).keys() if step.when is None else set()

    # ---- on the loop's own thread

    def _main(self) -> None:
        try:
            self.state = RUNNING
            self.state, self.error = self._ended()
            self.ended = time.time()
            self._tidy()
            log.log(logging.INFO if self.state == DONE else logging.WARNING,
                    "memstow: loop %s: %s after %d of %d iterations%s", self.name, self.state, self.completed(),
                    self.plan.iterations, f": {one_line(self.error)}" if self.error else "")
        finally: # callers wait for `over`
            if self.state not in ENDED: # the code above has failed
                self.state = FAILED
            self.over.set()

    def _ended(self) -> tuple[str, str]:
        """Runs the iterations. Returns the state in which they ended, and the reason. Catches every exception, because
        a condition that the caller gave may raise anything, even SystemExit."""
        try:
            self._iterate()
        except Cancelled as error:
            return CANCELLED, str(error)
        except BaseException as error:
            if self.closed: # the error comes from the closed store
                return CANCELLED, f"{self._where()}: it was cancelled"
            return FAILED, self._told(error)
        return DONE, ""

    def _where(self) -> str:
        return f"iteration {self.iteration}{f', {self.at}' if self.at else ''}"

    def _told(self, error: BaseException) -> str:
        if isinstance(error, LoopError):
            return text_of(error)
        log.debug("loop %s", self.name, exc_info=True)
        return f"{self._where()}: {type(error).__name__}: {text_of(error)}"

    def _tidy(self) -> None:
        try:
            self.host.end(self.serial)
        except Exception as error:
            log.warning("memstow: loop %s: the node caches were not tidied: %s: %s", self.name, type(error).__name__,
                        error)

    def _tell_progress(self) -> None:
        """Writes a line into the log, twice a minute at most."""
        if time.monotonic() < self.next_line:
            return
        self.next_line = time.monotonic() + PROGRESS_SECONDS
        log.info("memstow: loop %s: %d of %d iterations%s", self.name, self.completed(), self.plan.iterations,
                 f", and {self.at} runs" if self.at else "")

    def _iterate(self) -> None:
        done = self._begin_batch() if self.plan.independent else set(range(1, self.resumed + 1))
        self._drop_inputs(self.plan.inputs.keys() & self.committed)
        if self.resumed:
            log.info("memstow: loop %s goes on after %d of %d iterations", self.name, len(done), self.plan.iterations)
            if self._is_enough():
                return
        for number in range(1, self.plan.iterations + 1):
            if number in done:
                continue
            self._tell_progress()
            self.iteration, self.fresh = number, set()
            try:
                self._one()
            except LoopError as error:
                if not self.plan.independent:
                    raise
                self._note_failure(number, error)
            if self._is_enough():
                break
            self._fold()
        self._fold(2)

    def _begin_batch(self) -> set[int]:
        """Prepares a batch. Returns the numbers of the elements that are done, counted from 1."""
        self._put_batch_inputs()
        self._drop_inputs(self.plan.inputs.keys())
        self._go_on()
        return {number for first, last in self.elements for number in range(first, last + 1)}

    def _drop_inputs(self, names: Iterable[str]) -> None:
        """Drops the plan's references to the values of these inputs, which are in the store."""
        self.plan.inputs.update(dict.fromkeys(names))

    def _is_enough(self) -> bool:
        return self.plan.condition is not None and bool(self.plan.condition(Seen(self)))

    def _note_failure(self, number: int, error: LoopError) -> None:
        log.warning("memstow: loop %s: %s; it goes on", self.name, one_line(str(error)))
        self.failures = [*self.failures, {"iteration": number, "error": str(error)}][-MOST_FAILURES:]

    def _one(self) -> None:
        """Runs one iteration. Its values become valid with the commit. If the iteration fails, all of them are
        dropped."""
        self.store.begin()
        try:
            if not self.plan.independent:
                self._put_inputs()
            for step in self.plan.steps:
                if step.when is None or step.when(Seen(self)):
                    self._run(step)
            if self.cancelled.is_set():
                raise Cancelled(f"iteration {self.iteration}, {self.at}: it was cancelled")
            with self.whole:
                self._commit()
        except BaseException:
            self._abandon()
            raise
        self.at = ""

    def _abandon(self) -> None:
        with self.whole:
            if not self.closed:
                self.store.abandon()
            self.fresh = set()

    def _commit(self) -> None:
        """Commits the values of an iteration. If that fails, as on a full disk, raises LoopError, which names the
        workflows and nodes that gave the values."""
        before = self.elements
        try:
            if self.plan.independent:
                self._note_done()
            self.store.commit()
        except (OSError, ValueError) as error:
            givers = [f"{step.name}: {name_of(port.node, step.graph[port.node])}"
                      for step in self.plan.steps for port in self.plan.gives(step).values()
                      if self.plan.place(port.id) in self.fresh]
            self.elements = before
            raise self._unkept(', '.join(givers) or "inputs", error) from error
        self.committed = self.committed | {self._key(place) for place in self.fresh}
        if self.prefix is not None:
            self.committed = self.committed | {BEGUN}
        for place in self.fresh if self.plan.independent else ():
            self.singles.setdefault(place, []).append(self.iteration - 1)
        self.done += 1

    def _unkept(self, what: str, error: Exception) -> LoopError:
        return LoopError(f"iteration {self.iteration}, {what}: the values cannot be kept: {error}")

    def _put_inputs(self) -> None:
        """Puts the inputs into the store once. They are counted there, and a node that writes into its input cannot
        change them."""
        new = {name: value for name, value in self.plan.inputs.items() if name not in self.committed}
        for name, value in new.items():
            self._put_input(name, value)
            self.fresh.add(name)
        if self.prefix is not None and (new or BEGUN not in self.committed):
            before = self.store.get(BEGUN)["inputs"] if BEGUN in self.committed else {}
            self._put_input(BEGUN, self._begun(new, before))
        self._drop_inputs(new)

    def _begun(self, new: Mapping[str, Any], before: Mapping[str, str]) -> dict[str, Any]:
        return {"independent": self.plan.independent, "inputs": {**before, **digests(new)}}

    def _put_input(self, name: str, value: Any) -> None:
        try:
            self.store.put(name, value)
        except (OSError, ValueError) as error:
            raise self._unkept(f"input {name}", error) from error

    def _run(self, step: Step) -> None:
        self.at, self.given = step.name, set()
        where = self._where()
        for port in step.takes.values():
            found = self.look(port.id)
            if found is None:
                raise LoopError(f"{where}: port {port.id} has no value: the workflow that gives it did not run")
            for value in listed(found[0]):
                try:
                    step.check(port.id, value)
                except LoopError as error:
                    raise LoopError(f"iteration {self.iteration}, {error}") from None
        self._end_of(step, self._outcome(step))
        for port in self.plan.gives(step).values(): # a node may block the nodes after it, which is no error to ComfyUI
            if port.id not in self.given:
                raise LoopError(f"{where}: {name_of(port.node, step.graph[port.node])}: nothing came into it: a node "
                                "before it has blocked it")

    def _outcome(self, step: Step) -> Outcome:
        prompt = self.plan.prompt(step, self.name, self.serial, self.iteration, self._versions())
        prompt.tell = self._tell_progress
        try:
            return self.host.run(prompt, self.cancelled)
        except LoopError as error: # ComfyUI refuses the prompt, for example because a file has vanished
            raise LoopError(f"{self._where()}: {error}") from None

    def _end_of(self, step: Step, outcome: Outcome) -> None:
        """Raises an error that names the node, unless the outcome is ok."""
        if outcome.status == "ok":
            return
        node = step.graph.get(outcome.node)
        who = name_of(outcome.node, node) if node is not None else f"node {outcome.node}"
        is_cancelled = outcome.status == "cancelled"
        text = outcome.text or ("it was cancelled" if is_cancelled else "it failed")
        raise (Cancelled if is_cancelled else LoopError)(
            f"{self._where()}: {who + ': ' if outcome.node else ''}{text}")

    def _versions(self) -> dict[str, int]:
        """For each port whose value may change from iteration to iteration, the version of this value. Versions are
        above 0."""
        if self.plan.independent:
            return {port: self.iteration for step in self.plan.steps for port in step.takes}
        return {port: self.versions.get(port, 0) + 1 for port in self.plan.carried}

    # ---- calls from other threads

    def completed(self) -> int:
        """The number of complete iterations, including the iterations before the loop was continued."""
        return self.resumed + self.done

    def start(self) -> None:
        self.thread.start()

    def cancel(self) -> None:
        """Ends the loop: takes its waiting prompt out of the queue, or interrupts its running prompt. The values of the
        last commit stay."""
        self.cancelled.set()

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits for the loop's end, at most `seconds`. Returns whether it has ended."""
        return self.over.wait(seconds)

    def close(self, seconds: float = 30.0) -> None:
        """Ends the loop, waits at most `seconds` for its end, and drops its values. Persistent values stay in their
        files."""
        self.cancel()
        if self.thread.is_alive() and threading.current_thread() is not self.thread:
            self.over.wait(seconds)
        with self.whole, self.lock:
            if not self.closed:
                self.closed = True
                self.store.close(self.prefix is not None and self.store.generation > 0)

    def result(self) -> dict[str, Any]:
        """The values of a loop that has ended well. For any other loop, a LoopError with the loop's message."""
        if self.state != DONE:
            raise LoopError(f"loop {self.name}: {self.state}{f': {self.error}' if self.error else ''}")
        return self.values()

    def _info(self) -> list[dict[str, Any]]:
        with self.lock: # another thread may close the loop
            return self.store.info() if not self.closed else []

    def document(self) -> dict[str, Any]:
        """The loop's entry in GET /memstow/loops."""
        return {"name": self.name, "state": self.state, "iteration": self.iteration, "iterations": self.plan.iterations,
                "committed": self.completed(), "resumed_after": self.resumed,
                "workflows": [step.name for step in self.plan.steps], "workflow": self.at,
                "independent": self.plan.independent, "error": self.error, "failures": self.failures,
                "warnings": self.plan.warnings, "begun": self.begun,
                "seconds": round((self.ended or time.time()) - self.begun, 3),
                "values": self._info()}

    def document_and_values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The loop's entry, and its committed values, both after the same commit."""
        with self.whole:
            return self.document(), self.values()


class Loops:
    """All loops of this process by name."""

    def __init__(self, host: Host, open_store: Callable[..., Store]) -> None:
        self.host, self.open_store = host, open_store
        self.loops: dict[str, Loop] = {}
        self.lock = threading.Lock()
        self.numbers, self.serials = itertools.count(1), itertools.count(1)
        self.is_closing = False

    def _name(self, name: str) -> str:
        """The name for a new loop: the given name or, if it is "", a name that no loop has. LoopError if a running loop
        has the name. self.lock must be held."""
        if not name:
            name = next(text for number in self.numbers if (text := f"loop {number}") not in self.loops)
        known = self.loops.get(name)
        if known is not None and known.state not in ENDED:
            raise LoopError(f"loop {name} runs already: cancel it, or take another name")
        return name

    def start(self, make: Callable[..., Plan], name: str = "", *, use_ram: bool = True, ram_limit: Optional[int] = None,
              persist_prefix: Optional[str] = None) -> Loop:
        """Opens the store, makes the plan and begins. If one of these fails, nothing is queued and the store is
        closed."""
        with self.lock:
            if self.is_closing:
                raise LoopError("ComfyUI closes: no loop begins")
            name, serial = self._name(name), f"{next(self.serials)}.{time.time_ns():x}"
            storage = "persist_prefix" if persist_prefix else "" if use_ram else "use_ram=False"
            begin = functools.partial(self._begin, make, name, serial, persist_prefix=persist_prefix, storage=storage)
            open_store = functools.partial(self._open, use_ram=use_ram, ram_limit=ram_limit,
                                           persist_prefix=persist_prefix)
            before = [loop for loop in self.loops.values() if loop.state in ENDED and
                      (loop.name == name or persist_prefix is not None and loop.prefix == persist_prefix)]
            plan = self._try(before, begin, functools.partial(open_store, serial), persist_prefix) if before else None
            for loop in before:
                self.loops.pop(loop.name).close()
            store = open_store(name)
            try:
                loop = begin(store, plan)
            except BaseException:
                store.close(keep=bool(persist_prefix) and store.generation > 0)
                raise
            self.loops[name] = loop
            self._close_oldest()
        for warning in loop.plan.warnings:
            log.warning("memstow: loop %s: %s", name, warning)
        try:
            loop.start()
        except RuntimeError as error: # the process may be unable to make another thread
            self.drop(loop)
            raise LoopError(f"loop {name} gets no thread: {error}") from None
        return loop

    def _open(self, name: str, **options: Any) -> Store:
        try:
            return self.open_store(name, **options)
        # For example, another loop uses the prefix, or the prefix leads out of the store's folder.
        except (OSError, ValueError) as error:
            raise LoopError(getattr(error, "strerror", None) or str(error)) from None

    def _begin(self, make: Callable[..., Plan], name: str, serial: str, store: Store,
               plan: Optional[tuple[Plan, set[str]]] = None, *, persist_prefix: Optional[str], storage: str) -> Loop:
        """Makes a loop that can start. `plan`: an earlier plan, and the ids that the store had when that plan was made.
        The plan is used again if the store has the same ids now."""
        known = set(store.ids())
        if plan is None or plan[1] != known:
            plan = self._plan(make, name, serial, known, storage), known
        loop = Loop(name, serial, plan[0], store, self.host, persist_prefix)
        loop.check_inputs()
        loop.check_stored()
        return loop

    def _try(self, before: list[Loop], begin: Callable[..., Loop], open_store: Callable[[], Store],
             prefix: Optional[str]) -> tuple[Plan, set[str]]:
        """Makes the loop as a trial, and drops it again. So a loop that is refused does not take the place of a loop
        that has ended. Returns the loop's plan, and the ids in the store."""
        holder = next((loop for loop in before if prefix is not None and loop.prefix == prefix), None)
        store = holder.store if holder is not None else open_store()
        try:
            return begin(store).plan, set(store.ids())
        finally:
            if holder is None:
                store.close(keep=prefix is not None and store.generation > 0)

    def _plan(self, make: Callable[..., Plan], name: str, serial: str, known: set[str], storage: str) -> Plan:
        """Makes the plan. Raises LoopError if ComfyUI would refuse one of the plan's prompts."""
        plan = make(known=known, storage=storage)
        for step in plan.steps:
            try:
                self.host.check(plan.prompt(step, name, serial, 1, {}))
            except LoopError as error:
                raise LoopError(f"{step.name}: {error}") from None
        return plan

    def _close_oldest(self) -> None:
        ended = [loop for loop in self.loops.values() if loop.state in ENDED]
        for loop in ended[:max(0, len(ended) - MOST_ENDED)]:
            self.loops.pop(loop.name).close()

    def find(self, name: str, serial: Optional[str] = None) -> Optional[Loop]:
        """The loop with this name. If `serial` is given, the loop must have this serial, because a later loop may have
        the same name. None: there is no such loop."""
        loop = self.loops.get(name)
        return loop if loop is not None and serial in (None, loop.serial) else None

    def references(self) -> Iterator[tuple[str, Any]]:
        """The values that loops hold by reference, each with its place in words. Never waits for a lock."""
        for loop in list(self.loops.values()):
            for id, value in loop.store.references().items():
                yield f"port {id} of loop {loop.name}", value

    def remove(self, name: str) -> bool:
        """Cancels a running loop, or drops a loop that has ended. Returns whether there is a loop with this name."""
        with self.lock:
            loop = self.loops.get(name)
            if loop is None:
                return False
        if loop.state not in ENDED:
            loop.cancel()
        else:
            self.drop(loop)
        return True

    def drop(self, loop: Loop) -> None:
        """Ends a loop, waits for its end, and forgets it."""
        loop.close()
        with self.lock:
            if self.loops.get(loop.name) is loop:
                del self.loops[loop.name]

    def close(self, seconds: float = 5.0) -> None:
        """At the end of the process: cancels the loops, and drops values that are not persistent."""
        self.is_closing = True
        for loop in list(self.loops.values()):
            loop.cancel()
        until = time.monotonic() + seconds
        for loop in list(self.loops.values()):
            loop.close(max(0.0, until - time.monotonic()))
