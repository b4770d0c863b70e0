"""memstow.comfy: calls to memstow's node pack in ComfyUI, for other node packs and for programs that run workflows
themselves.

    import memstow

    memstow.comfy.free_after_run(model)   # or keep(model), stow(model): a MODEL, CLIP, VAE, CONTROL_NET, …
    try:
        executor.execute(prompt, prompt_id, extra_data, outputs)
    finally:
        memstow.comfy.run_ended()         # ComfyUI's own worker needs no such call

In: models as nodes pass them, and ends of runs. Out: calls of the node pack. It raises no exception if memstow or its
pack is not there. In that case every call does nothing and returns False, and the first call logs the reason.
docs/comfyui.md is the guide."""
from __future__ import annotations

import logging
from typing import Any, Optional, Protocol

__all__ = ["free_after_run", "keep", "run_ended", "stow"]

NO_PACK = ("memstow's node pack is not loaded here, so memstow.comfy does nothing: put it into ComfyUI's custom_nodes "
           "(docs/comfyui.md)")
log = logging.getLogger("memstow")


class Pack(Protocol):
    """The functions that the node pack provides."""

    def set_policy(self, model: Any, policy: str, priority: int) -> bool: ...
    def run_ended(self, outcome: Optional[str]) -> bool: ...


_pack: Optional[Pack] = None
_advised = False


def serve(pack: Optional[Pack]) -> None:
    """Sets the node pack that gets the calls from now on. None: no node pack gets them."""
    global _pack
    _pack = pack


def _there() -> Optional[Pack]:
    global _advised
    if _pack is None:
        import memstow
        if not memstow.active():
            memstow.advise()
        elif not _advised:
            _advised = True
            log.warning(NO_PACK)
    return _pack


def _set(model: Any, policy: str, priority: int) -> bool:
    pack = _there()
    return pack.set_policy(model, policy, priority) if pack is not None else False


def keep(model: Any, priority: int = 0) -> bool:
    """Keeps the model after a run, for later runs, like the policy node with "keep". The policy holds until another
    policy is set on the model. Call this function where nodes run. Returns whether the policy was set: it is not set if
    the value is not a model."""
    return _set(model, "keep", priority)


def stow(model: Any, priority: int = 0) -> bool:
    """Like keep(), but moves the weights out after a run. They come back on use. Returns as keep() does."""
    return _set(model, "stow", priority)


def free_after_run(model: Any, priority: int = 0) -> bool:
    """Unloads the model, and drops it from the node cache, at the end of the current run or the next one. Its memory is
    freed only if nothing else holds the model, so the caller must let go of it, too. A later load makes another
    model. Returns as keep() does."""
    return _set(model, "free", priority)


def run_ended(outcome: Optional[str] = None) -> bool:
    """Applies the policies, as ComfyUI's worker does after each run. It is for a program that drives PromptExecutor, or
    an executor of its own, without that worker. The thread that ran the nodes calls it in a finally clause. `outcome`
    is ok, failed, cancelled or out-of-memory; a result that PromptExecutor itself has recorded takes precedence. Inside
    a run the function does nothing and returns False, because the run's own end applies the policies."""
    import memstow
    if outcome is not None and outcome not in memstow.OUTCOMES:
        raise ValueError(f"outcome must be one of {', '.join(memstow.OUTCOMES)}; not {outcome!r}")
    pack = _there()
    return pack.run_ended(outcome) if pack is not None else False
