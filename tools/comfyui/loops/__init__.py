"""Loops in ComfyUI: runs that give their values to the next run. In: the pack's runs. Out: nodes, routes, and the host
that runs the loops' prompts. docs/loops.md explains loops. The package memstow_loops, beside memstow.py, has all code
for loops that does not need ComfyUI."""
import os
from typing import Any, Mapping, Optional

from .. import log

NO_STATE = "memstow: no loops: the Python modules beside memstow.py are older than this node pack"


class Pack:
    """The functions of this pack that memstow_loops calls."""

    def __init__(self, loops: Any, host: Any) -> None:
        self.loops, self.host = loops, host

    def saved(self, name: str) -> Mapping[str, Any]:
        from .saved import read
        return read(name)

    def may_wait(self) -> str:
        return self.host.may_wait()

    def may_start(self) -> str:
        return self.host.may_start()


def folder_of(options: dict) -> Optional[str]:
    """The folder for a loop's persistent values, in ComfyUI's user folder. None if the loop has no persist_prefix: its
    values are then stored in the folder that memory is stowed to."""
    if not options.get("persist_prefix"):
        return None
    import folder_paths
    path = os.path.join(folder_paths.get_user_directory(), "memstow")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def install(runs: Any) -> None:
    from .. import beside
    beside.module("memstow_serialize") # memstow_state imports it
    functions, state = beside.module("memstow_loops"), beside.module("memstow_state")
    if functions is None or state is None:
        log.warning(NO_STATE)
        return
    from . import nodes, routes
    from .host import Host
    host = Host(runs, functions)
    loops = functions.Loops(host, lambda name, **options: state.open(name, **options, directory=folder_of(options)))
    pack = Pack(loops, host)
    host.install()
    runs.held.references = loops.references
    functions.serve(pack)
    nodes.serve(pack, functions)
    routes.install(pack, functions)
    shutdown = beside.module("memstow_shutdown")
    if shutdown is not None:
        shutdown.handler(loops.close, "ComfyUI: loops", stage="stop", seconds=10)
