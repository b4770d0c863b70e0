"""The pack's hooks in ComfyUI. They see models that are made, nodes that run, and weights that are loaded and patched.
They make identities, owners and scopes. A hook lets none of its own exceptions out. It calls the function that it
replaced, which is ComfyUI's or another pack's."""
import contextvars
import functools
import os
import sys
import types
import weakref
from typing import Any, Callable, Optional

from . import log, memstow
from .choices import key_of
from .meter import Meter
from .registry import Registry

MODEL_WORDS = ("MODEL", "CLIP", "VAE", "CONTROL_NET", "CONTROLNET", "GLIGEN")
MAKERS = {"CLIP.__init__": "CLIP", "VAE.__init__": "VAE", "ControlNet.__init__": "CONTROLNET"}
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_here: contextvars.ContextVar = contextvars.ContextVar("memstow_node", default=None)
_complained: set = set()
_wrapped: list = []


def here() -> Optional["Node"]:
    """The node that runs in this context; None outside of nodes."""
    return _here.get()


def quietly(function: Callable) -> Callable:
    """Wraps a function: its exceptions are logged, once for each function, and do not reach ComfyUI."""
    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error: # memstow must never end a prompt
            if function.__qualname__ not in _complained:
                _complained.add(function.__qualname__)
                log.warning("%s: %s: %s", function.__qualname__, type(error).__name__, error, exc_info=True)
            return None
    return guarded


def wrap(holder: Any, name: str, make: Callable[[Callable], Callable]) -> None:
    """If holder has an attribute `name`, replaces it by make(holder.name)."""
    before = getattr(holder, name, None)
    if before is None:
        return
    after = make(before)
    functools.update_wrapper(after, before)
    setattr(holder, name, after)
    _wrapped.append((holder, name, before))


def undo() -> None:
    """Removes all hooks, after the installation of one hook has failed. It restores the functions that the hooks
    replaced, so call it before other code wraps the hooks."""
    while _wrapped:
        setattr(*_wrapped.pop())


def resident() -> int:
    """The resident set of this process in bytes; 0 if it cannot be read."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


class QuietScope:
    """The scope of an owner around code of ComfyUI that loads weights of the owner's model. The code runs even if the
    scope cannot be entered."""

    def __init__(self, owner: Any) -> None:
        self.scope, self.entered = owner.loading(), False

    def __enter__(self) -> None:
        self.entered = quietly(self._enter)() is True

    def _enter(self) -> bool:
        self.scope.__enter__()
        return True

    def __exit__(self, *exception: Any) -> None:
        if self.entered:
            quietly(self.scope.__exit__)(*exception)


class Node:
    """A running node: its scopes, and the models that were made in it."""

    def __init__(self, watch: "Watch", node_id: str, class_type: str) -> None:
        self.watch, self.id, self.class_type = watch, node_id, class_type
        self.new: list = []
        self.touched: list = []
        self.files: list[str] = [] # paths of the files that the node read models from
        self.owner: Optional[memstow.Owner] = None
        self.provisional: Optional[memstow.Owner] = None
        self.before = resident()
        self.live_before: Optional[int] = None
        self.peak = 0
        watch.meter.enter(self)

    def enter(self) -> None:
        self.owner = memstow.owner(self.class_type, "node", f"node {self.id}",
                                   keys=(hash(self.class_type), hash(("node", self.id))))
        self.watch.meter.names[self.owner.id] = f"{self.class_type} #{self.id}"
        self.owner.scope().__enter__()
        if loads_models(self.class_type):
            # Weights exist before their patcher does. Until there is a patcher, the weights belong to this provisional
            # owner.
            self.provisional = memstow.owner(f"loading {self.class_type}", "model", f"node {self.id}")
            self.watch.meter.names[self.provisional.id] = self.provisional.name
            self.provisional.loading().__enter__()

    def leave(self) -> None:
        try:
            if self.provisional is not None:
                self.provisional.loading().__exit__()
        finally:
            if self.owner is not None:
                self.owner.scope().__exit__()
        self.watch.settle(self)
        self.watch.measure(self)


@functools.lru_cache(maxsize=4096)
def _loads(class_def: Any) -> bool:
    types = getattr(class_def, "RETURN_TYPES", ())
    return any(isinstance(kind, str) and not kind.endswith("_OUTPUT")
               and any(word in kind.upper() for word in MODEL_WORDS) for kind in types)


def class_named(class_type: str) -> Any:
    import nodes
    return nodes.NODE_CLASS_MAPPINGS.get(class_type)


def loads_models(class_type: str) -> bool:
    """Whether a node of this class has models among its outputs."""
    class_def = class_named(class_type)
    return class_def is not None and class_type != "MemstowPolicy" and _loads(class_def)


def kind_of_orphan(class_type: str) -> str:
    """The kind of a model without a patcher: CONTROLNET or MODEL. The types of its loader's outputs tell the kind."""
    types = getattr(class_named(class_type), "RETURN_TYPES", ())
    return "CONTROLNET" if any("CONTROL" in str(kind).upper() for kind in types) else "MODEL"


class Watch:
    """The state that all hooks share: the registry, and the running prompt."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.meter = Meter()
        self.prompt: dict = {}
        self.running = False
        self.nodes: list[dict] = [] # of this run: class, id, resident set and live bytes before and after each node
        self.peak = 0
        self.orphans: list[Node] = [] # loaders of this run whose models have no known patcher

    # ---- models: noted, and their memory assigned

    @quietly
    def appeared(self, patcher: Any) -> None:
        """Notes that a patcher was made, for a new or a known inner model (the torch module inside it)."""
        import torch
        model = getattr(patcher, "model", None)
        if not isinstance(model, torch.nn.Module):
            return
        node: Optional[Node] = _here.get()
        files = node.files if node is not None else []
        kind = "" if self.registry.find(model) else kind_of(model, patcher)
        identity, is_new = self.registry.add(model, patcher, kind,
                                             names(files) or (node.class_type if node is not None else ""))
        if is_new:
            self.registry.loaded_from(identity, key_of(kind, files))
        if node is None:
            if is_new:
                self.assign(identity)
        elif is_new:
            node.new.append(identity)
            # The last file stays in the list, because the next model may come from the same file, as in a checkpoint.
            # All other files were for this model only.
            del files[:-1]
        elif identity not in node.touched:
            node.touched.append(identity)

    @quietly
    def assign(self, identity: Any) -> None:
        """Assigns the memory of the model's weights to its owner. Weights that are assigned already are left out."""
        model = identity.model()
        if model is None:
            return
        identity.changed = False
        weights = set(memstow.ranges(model))
        for patcher in list(identity.patchers):
            weights.update(memstow.ranges([w for w in map(weight_of, list(patcher.backup.values())) if w is not None]))
            weights.update(memstow.ranges(list(tensors_of_patches(patcher))))
        fresh = weights - identity.assigned
        identity.assigned = frozenset(weights)
        if fresh:
            try:
                identity.owner.assign(list(fresh))
            except memstow.Error as error:
                log.debug("%s: %s", identity, error)

    @quietly
    def settle(self, node: Node) -> None:
        """When a node has ended, assigns memory to the models that the node loaded. A single model gets all memory that
        the loader left. If there are several models, each gets its weights; the rest stays with the loader's
        provisional owner."""
        for identity in (*node.new, *node.touched):
            self.assign(identity)
        # for models in a checkpoint, checkpoints.py sets the siblings
        for identity in (i for i in node.new if i.checkpoint is None):
            identity.siblings = [weakref.ref(other) for other in node.new if other is not identity]
        self.registry.note_flags(node.id)
        if node.provisional is None:
            return
        heirs = node.new or node.touched
        if len(heirs) == 1:
            heirs[0].owner.adopt(node.provisional)
        elif heirs or not node.provisional.figures().live_bytes:
            node.provisional.retire()
        else:
            self.orphans.append(node)

    @quietly
    def measure(self, node: Node) -> None:
        """Measures a node, after all models that it loaded have their owner."""
        after, live = resident(), self.meter.leave(node)
        self.peak = max(self.peak, after)
        self.nodes.append({"node": node.id, "class": node.class_type, "rss_before": node.before, "rss_after": after,
                           "before_bytes": node.live_before, "peak_bytes": node.peak, "after_bytes": live})

    @quietly
    def adopt_orphans(self, outputs_of: Callable[[str], list]) -> None:
        """Finds models without a patcher, for example upscalers, in the outputs of their loaders, and gives them
        owners. `outputs_of`: a node's outputs, by its id."""
        from .registry import patchers_in
        orphans, self.orphans = self.orphans, []
        for node in orphans:
            models = {id(model): model for output in outputs_of(node.id) for value in output
                      for _patcher, model in patchers_in(value)}
            for model in models.values():
                kind = kind_of_orphan(node.class_type)
                identity, is_new = self.registry.add(model, None, kind, names(node.files) or node.class_type)
                if is_new:
                    self.registry.loaded_from(identity, key_of(kind, node.files))
                self.assign(identity)
            if len(models) == 1:
                identity.owner.adopt(node.provisional)
            elif node.provisional is not None:
                node.provisional.retire()

    # ---- nodes that begin and end

    def class_of(self, node_id: str) -> str:
        """The class of a node in the running prompt, or in a subgraph that a node of the prompt expanded into."""
        if node_id in self.prompt:
            return str(self.prompt[node_id].get("class_type", "node"))
        try:
            from comfy_execution.progress import get_progress_state
            return str(get_progress_state().dynprompt.get_node(node_id)["class_type"])
        except Exception: # only a name is lost
            return "node"

    @quietly
    def node_begins(self, context: Any) -> None:
        ids = getattr(context, "context", None)
        if not self.running or ids is None:
            return
        node = Node(self, str(ids.node_id), self.class_of(str(ids.node_id)))
        context._memstow_node = (node, _here.set(node))
        node.enter()

    @quietly
    def node_ends(self, context: Any) -> None:
        node, token = context.__dict__.pop("_memstow_node", (None, None))
        if node is None:
            return
        _here.reset(token)
        node.leave()


def names(files: list[str]) -> str:
    return "+".join(map(os.path.basename, files))


def weight_of(kept: Any) -> Any:
    """The tensor in an entry of a patcher's backup."""
    import torch
    weight = getattr(kept, "weight", kept)
    return weight if isinstance(weight, torch.Tensor) else None


def tensors_of_patches(patcher: Any) -> Any:
    """The tensors of the LoRAs and other patches of a patcher."""
    import torch
    queue: list[Any] = [getattr(patcher, "patches", None)]
    seen = 0
    while queue and seen < 100_000:
        thing, seen = queue.pop(), seen + 1
        if isinstance(thing, torch.Tensor):
            yield thing
        elif isinstance(thing, dict):
            queue.extend(thing.values())
        elif isinstance(thing, (list, tuple, set)):
            queue.extend(thing)
        elif hasattr(thing, "weights"): # comfy.weight_adapter
            queue.append(thing.weights)


def kind_of(model: Any, patcher: Any) -> str:
    """The kind of a model: MODEL, CLIP, VAE, CONTROLNET or OTHER. A BaseModel is a MODEL. For any other model, the code
    that makes the patcher tells the kind. If this code is not known, the name of the inner model's class tells it."""
    import comfy.model_base
    if isinstance(model, comfy.model_base.BaseModel):
        return "MODEL"
    frame: Optional[types.FrameType] = sys._getframe(1)
    for _depth in range(8): # only names of code are read: reading a frame's variables would keep the variables alive
        frame = frame.f_back if frame is not None else None
        name = getattr(frame.f_code, "co_qualname", "") if frame is not None else ""
        if name in MAKERS:
            return MAKERS[name]
    where = f"{type(model).__module__}.{type(model).__qualname__}".lower()
    for word, kind in (("controlnet", "CONTROLNET"), ("cldm", "CONTROLNET"), ("vae", "VAE"), ("autoencoder", "VAE"),
                       ("clip_vision", "OTHER"), ("clip", "CLIP"), ("text_encoder", "CLIP")):
        if word in where:
            return kind
    return "OTHER"


def install(watch: Watch) -> None:
    import comfy.model_patcher
    import comfy.utils
    import comfy_execution.utils

    patcher_class = comfy.model_patcher.ModelPatcher

    def made(before: Callable) -> Callable:
        def __init__(self: Any, *arguments: Any, **options: Any) -> None:
            before(self, *arguments, **options)
            watch.appeared(self)
        return __init__

    wrap(patcher_class, "__init__", made)

    def moved(before: Callable, is_use: bool = True) -> Callable:
        def method(self: Any, *arguments: Any, **options: Any) -> Any:
            identity = watch.registry.find(getattr(self, "model", None))
            if identity is None:
                return before(self, *arguments, **options)
            identity.changed = True
            if identity.stowed and is_use:
                quietly(bring_back)(identity)
            with QuietScope(identity.owner): # patched weights, and copies of the original weights, belong to the model
                return before(self, *arguments, **options)
        return method

    for name in ("load", "partially_load"):
        wrap(patcher_class, name, moved)
    wrap(patcher_class, "unpatch_model", functools.partial(moved, is_use=False))

    def read(before: Callable) -> Callable:
        def load_torch_file(ckpt: Any, *arguments: Any, **options: Any) -> Any:
            node = _here.get()
            if node is not None and (path := str(ckpt)) not in node.files:
                node.files.append(path)
            return before(ckpt, *arguments, **options)
        return load_torch_file

    wrap(comfy.utils, "load_torch_file", read)

    context_class = comfy_execution.utils.CurrentNodeContext

    def begins(before: Callable) -> Callable:
        def __enter__(self: Any) -> Any:
            entered = before(self)
            watch.node_begins(self)
            return entered
        return __enter__

    def ends(before: Callable) -> Callable:
        def __exit__(self: Any, *exception: Any) -> Any:
            watch.node_ends(self)
            return before(self, *exception)
        return __exit__

    wrap(context_class, "__enter__", begins)
    wrap(context_class, "__exit__", ends)


def bring_back(identity: Any) -> None:
    """Brings a whole stowed model back before its use, because that is faster than page by page. Nothing writes to the
    model until it is back, so the model is declared idle meanwhile. For idle owners, memstow can read the file past the
    page cache (docs/moving.md)."""
    identity.stowed = False
    identity.set_idle(True)
    try:
        memstow.restore(identity.owner)
    finally:
        identity.set_idle(False)
    if memstow.figures(identity.owner).device_stowed_bytes: # a rescue took memory out again in the meantime
        memstow.restore(identity.owner)
