"""The executor's caches: finds the cached outputs that reach a model, takes them out, and puts outputs of kept models
back. An output reaches a model if a chain of references leads from the output to the model. In: the executor's CacheSet
and the ids of live objects. Works with all cache classes that ComfyUI has had so far. Caches of an unknown class are
named, and not touched. Runs on the worker thread, between two runs."""
import collections
import functools
import gc
import logging
import sys
import time
import types
from typing import Any, Iterable, Iterator

from .registry import patchers_in

log = logging.getLogger("memstow")

KNOWN = {"BasicCache", "HierarchicalCache", "LRUCache", "DependencyAwareCache", "RAMPressureCache", "NullCache"}
MOST_OBJECTS = 200_000 # of each cached output at most so many objects are searched for a model
# most bytes and most objects that an output may hold besides models, if it is to be kept together with its model
MOST_BESIDE, MOST_OBJECTS_BESIDE = 32 << 20, 10_000
# Modules whose objects lead to everything in the process, so no path is followed through these objects.
MACHINERY = ("server", "execution", "comfy_execution", "asyncio", "logging", "threading", "aiohttp", "comfy.cmd")
PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), types.ModuleType, types.CodeType,
         types.FrameType, types.BuiltinFunctionType, type)


def is_known(cache: Any) -> bool:
    return type(cache).__name__ in KNOWN and ("comfy" in type(cache).__module__)


def nested(cache: Any) -> Iterator[Any]:
    """The cache, and the caches of subgraphs inside it."""
    yield cache
    for inner in list(getattr(cache, "subcaches", {}).values()):
        yield from nested(inner)


def every(cache_set: Any) -> list:
    return [inner for cache in getattr(cache_set, "all", []) for inner in nested(cache)]


def unknown_classes(cache_set: Any) -> list[str]:
    return sorted({f"{type(c).__module__}.{type(c).__qualname__}" for c in every(cache_set) if not is_known(c)})


def _below(thing: Any) -> Iterable[Any]:
    """The objects that an object refers to, without those that cannot lead to a model."""
    import torch
    if isinstance(thing, PLAIN) or isinstance(thing, (torch.Tensor, torch.nn.Module)):
        return ()
    if type(thing).__module__.split(".")[0] in MACHINERY or type(thing).__module__.startswith(MACHINERY):
        return () if not isinstance(thing, tuple) else thing # a CacheEntry is a tuple of module execution
    if isinstance(thing, types.FunctionType): # without its globals, which lead to its whole module
        return [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    return gc.get_referents(thing)


def _reached(root: Any) -> Iterator[Any]:
    """All objects that can be reached from `root` and may lead to a model. The search ends when it has met MOST_OBJECTS
    objects."""
    queue, seen = collections.deque([root]), {id(root)}
    while queue and len(seen) < MOST_OBJECTS:
        thing = queue.popleft()
        yield thing
        # Plain objects are not put into `seen`. Otherwise the hundreds of thousands of words of a tokenizer would make
        # `seen` take megabytes.
        for other in _below(thing):
            if not isinstance(other, PLAIN) and id(other) not in seen:
                seen.add(id(other))
                queue.append(other)


def reaches(root: Any, targets: set) -> bool:
    """Whether one of the objects with these ids can be reached from `root`."""
    return any(id(thing) in targets for thing in _reached(root))


def _remove(cache: Any, key: Any) -> None:
    cache.cache.pop(key, None)
    for beside in ("used_generation", "timestamps", "children"):
        getattr(cache, beside, {}).pop(key, None)


def evict(cache_set: Any, targets: set) -> list[str]:
    """Takes out of the caches every output and every node object that reaches an object whose id is in `targets`.
    Returns the class of the node for each thing that was taken out."""
    removed = []
    for cache in every(cache_set):
        for key, entry in list(getattr(cache, "cache", {}).items()):
            if reaches(entry, targets):
                _remove(cache, key)
                removed.append(class_of(key))
    return removed


def keys_of(cache_set: Any, node_ids: Iterable[str]) -> list:
    """The keys of these nodes in the cache of outputs, as pairs: the key of the node's output, and the key of the
    subgraph that the node expanded into. The nodes are of the last prompt, or of its subgraphs."""
    keys = getattr(getattr(cache_set, "outputs", None), "cache_key_set", None)
    if keys is None or not is_known(cache_set.outputs):
        return []
    return [(keys.get_data_key(node_id), keys.get_subcache_key(node_id)) for node_id in node_ids]


def forget(cache_set: Any, keys: Iterable[tuple]) -> None:
    """Removes the outputs with these keys from the cache, and the outputs in the subgraphs of their nodes. `keys` come
    from keys_of()."""
    cache: Any = getattr(cache_set, "outputs", None)
    if not hasattr(cache, "cache") or not is_known(cache):
        return
    for key, subgraph in keys:
        for child in getattr(cache, "children", {}).get(key, []):
            _remove(cache, child)
        _remove(cache, key)
        cache.subcaches.pop(subgraph, None)


def class_of(key: Any) -> str:
    """The class of the node with this cache key. The key is a pair (id, class), or a signature whose first item has the
    class."""
    if isinstance(key, tuple) and len(key) == 2:
        return str(key[1])
    try:
        signature = dict(key)
        return str(dict(signature[0])[0])
    except (TypeError, ValueError, KeyError):
        return "node"


def reaching(roots: Iterable[tuple], targets: dict[int, set]) -> dict[int, list]:
    """For each set of targets: the keys of the roots that reach at least one target of the set. `roots`: pairs of a key
    and an object. The result has the same keys as `targets`. One pass over the roots searches for all sets."""
    keys_of: dict[int, list[int]] = {}
    for number, ids in targets.items():
        for one in ids:
            keys_of.setdefault(one, []).append(number)
    found: dict[int, list] = {number: [] for number in targets}
    for key, root in roots if targets else ():
        for number in {number for thing in _reached(root) for number in keys_of.get(id(thing), ())}:
            found[number].append(key)
    return found


def holding(cache_set: Any, targets: dict[int, set]) -> dict[int, list[str]]:
    """For each set of targets: the classes of the nodes whose cached outputs reach at least one target of the set. The
    result has the same keys as `targets`."""
    entries = (pair for cache in every(cache_set) for pair in list(getattr(cache, "cache", {}).items()))
    return {number: list(map(class_of, keys)) for number, keys in reaching(entries, targets).items()}


def output_of(cache_set: Any, node_id: str) -> list:
    """The cached outputs of a node of the last prompt: a list of values for each output; [] if there are none."""
    cache = cache_set.outputs
    try:
        entry = cache.cache.get(cache.cache_key_set.get_data_key(node_id))
    except AttributeError: # no prompt has run, or the cache has no table
        return []
    return _outputs_in(entry)


def _outputs_in(entry: Any) -> list:
    """The outputs in a cache entry: a list of values for each output. Up to ComfyUI 0.3.67 the entry itself is this
    list."""
    return (entry if isinstance(entry, list) else getattr(entry, "outputs", None)) or []


def _is_model(value: Any) -> bool:
    return any(True for _ in patchers_in(value))


def _is_little(values: list) -> bool:
    """Whether these values hold so little data besides models that it costs little to keep them together with a
    model."""
    import torch
    queue, seen, size = collections.deque(values), set(), 0
    while queue:
        thing = queue.popleft()
        if id(thing) in seen or _is_model(thing):
            continue
        seen.add(id(thing))
        size += thing.untyped_storage().nbytes() if isinstance(thing, torch.Tensor) else sys.getsizeof(thing, 0)
        if size > MOST_BESIDE or len(seen) > MOST_OBJECTS_BESIDE:
            return False
        queue.extend(_below(thing))
    return True


def _leads_to(entry: Any, targets: set) -> bool:
    """Whether a model in a cached output reaches a target, and the output holds little data besides models. False if
    the search runs code of an object in the output, and this code raises an exception."""
    values = [value for output in _outputs_in(entry) for value in output]
    try:
        models = [value for value in values if _is_model(value)]
        return any(reaches(value, targets) for value in models) and _is_little([v for v in values if not _is_model(v)])
    except Exception as error:
        log.debug("a cached output cannot be looked at: %s: %s", type(error).__name__, error)
        return False


def _places(cache: Any, of_this_prompt: bool, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Each entry in a cache of outputs, with its place: the keys of the subgraphs around it, then its own key. With
    `of_this_prompt`, only entries that the last prompt uses."""
    keys = getattr(cache, "cache_key_set", None)
    used = set(keys.get_used_keys()) if of_this_prompt and keys is not None else None
    for key, entry in list(getattr(cache, "cache", {}).items()):
        if used is None or key in used:
            yield (*path, key), entry
    for key, inner in list(getattr(cache, "subcaches", {}).items()):
        yield from _places(inner, of_this_prompt, (*path, key))


def of_models(cache_set: Any, targets: set, of_this_prompt: bool = False) -> dict:
    """The cached outputs, by place, that lead to one of the targets and hold little data besides models. With
    `of_this_prompt`, only outputs of nodes of the last prompt."""
    cache = getattr(cache_set, "outputs", None)
    if cache is None or not is_known(cache):
        return {}
    return {place: entry for place, entry in _places(cache, of_this_prompt) if _leads_to(entry, targets)}


def _subcache(cache: Any, key: Any) -> Any:
    """The cache of a subgraph. A cache that was dropped is made anew, with the keys of a prompt without nodes."""
    found = cache.subcaches.get(key)
    if found is None:
        from comfy_execution.caching import BasicCache
        found = cache.subcaches[key] = BasicCache(cache.key_class)
        found.cache_key_set, found.initialized = cache.key_class(None, [], None), True
    return found


def put_back(cache_set: Any, entries: dict) -> None:
    """Puts dropped outputs back into the caches. Outputs that are still in the caches stay as they are."""
    outputs: Any = getattr(cache_set, "outputs", None)
    if getattr(outputs, "cache", None) is None or not is_known(outputs):
        return
    for (*path, key), entry in entries.items():
        cache = functools.reduce(_subcache, path, outputs)
        if key not in cache.cache:
            cache.cache[key] = entry
            if hasattr(cache, "used_generation"):
                cache.used_generation[key] = cache.generation + 1 # counts as used by the prompt that is about to begin
            if hasattr(cache, "timestamps"):
                cache.timestamps[key] = time.time()
