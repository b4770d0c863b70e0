"""memstow for ComfyUI: assigns memory to models, and keeps, stows or frees models after each run. Put this folder into
custom_nodes and start ComfyUI with `memstow run -- python main.py …`; there is nothing to configure. Without memstow,
ComfyUI works as always: nothing is hooked, and the policy node only passes its model on. docs/comfyui.md has the
rest."""
import importlib.util
import logging
import pathlib
import sys
from typing import TYPE_CHECKING

log = logging.getLogger("memstow")


def _library():
    """The path of the libmemstow.so in this process, if there is one."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return next((pathlib.Path(line.split(None, 5)[5].strip()) for line in maps if "libmemstow.so" in line),
                        None)
    except OSError:
        return None


def _module():
    """Returns the Python module memstow, and loads it if needed. Returns None if it finds none. It looks in this order:
    loaded modules; ../python; share/memstow/python and tools/python in each folder above the library; sys.path. A
    folder must have a file memstow.py. So this pack's own folder, which may also be named memstow, is never taken."""
    loaded = sys.modules.get("memstow")
    if hasattr(loaded, "ABI_MAJOR"):
        return loaded
    here, library = pathlib.Path(__file__).resolve().parent, _library()
    places = [here.parent / "python"]
    if library is not None:
        places += [folder / place for folder in library.parents for place in ("share/memstow/python", "tools/python")]
    places += [pathlib.Path(folder) for folder in sys.path]
    for place in places:
        if (place / "memstow.py").is_file():
            spec = importlib.util.spec_from_file_location("memstow", place / "memstow.py")
            if spec is None or spec.loader is None:
                continue
            module = sys.modules["memstow"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None


def _is_current(module):
    """Whether the module has what this pack needs. An older module may be beside the library."""
    return all(hasattr(module, name)
               for name in ("referrers", "shares", "outside_pools", "note_vbars", "comfy", "on_look"))


def _start():
    from . import calls, checkpoints, choices, closing, hooks, loops, points as restoring, policy_node, routes
    from . import runs as running, unload
    from .registry import Registry, Setting

    registry = Registry()
    registry.choices = choices.Choices(choices.folder())
    registry.trace = hooks.quietly(lambda kind, **values: memstow.trace({"kind": kind, "by": "comfyui", **values}))
    watch = hooks.Watch(registry)
    parts = checkpoints.Parts(registry)
    button = unload.Button(registry, parts)
    points = restoring.Points(registry)
    runs = running.Runs(registry, watch, button, points)

    @hooks.quietly
    def apply(value, policy, priority):
        node = hooks.here()
        registry.say(value, Setting(policy, priority, node.id if node is not None else None))

    hooks.install(watch)
    points.install()
    button.install()
    parts.install()
    runs.install()
    routes.install(runs)
    runs.start()
    hooks.quietly(closing.install)(runs)
    policy_node.MemstowPolicy.on_apply = apply
    memstow.comfy.serve(calls.Calls(runs))
    hooks.quietly(loops.install)(runs)
    return runs


from . import policy_node, presence, starting  # noqa: E402
from .loops import nodes as loop_nodes  # noqa: E402

if TYPE_CHECKING:
    import memstow
else:
    memstow = _module() if starting.is_preloaded() else None
state = None
# what the page is told if the library is preloaded
inside = presence.OTHER_VERSION if memstow is None else presence.NO_LEDGER
if memstow is not None and not _is_current(memstow):
    inside = presence.OTHER_VERSION
    log.warning("memstow: %s is older than this node pack, which goes on without it: take both of one version",
                memstow.__file__)
elif memstow is not None and memstow.active():
    try:
        state = _start()
        inside = presence.UNDER
        log.info("memstow: models are registered as they are loaded; see GET /memstow/owners")
    except Exception:
        from . import hooks
        hooks.undo()
        inside = presence.UNKNOWN
        log.exception("memstow: this ComfyUI is not one that the pack knows; it goes on without")
else:
    log.info("memstow: ComfyUI was not started under memstow, and runs as always; start it as: "
             "memstow run -- python main.py …")

try:
    presence.install(lambda: inside)
except Exception: # a program without ComfyUI's server
    log.debug("memstow: no routes for the page", exc_info=True)

NODE_CLASS_MAPPINGS = {**policy_node.NODE_CLASS_MAPPINGS, **loop_nodes.free_keys()}
NODE_DISPLAY_NAME_MAPPINGS: dict[str, str] = {**policy_node.NODE_DISPLAY_NAME_MAPPINGS,
                                              **loop_nodes.NODE_DISPLAY_NAME_MAPPINGS}
WEB_DIRECTORY = "./web" # the scripts of the page, and help pages of the nodes
__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS", "WEB_DIRECTORY"]
