"""memstow.comfy: what other node packs, and programs that run workflows themselves, ask of memstow's node pack in
ComfyUI.

    import memstow

    memstow.comfy.free_after_run(model)   # or keep(model), stow(model): a MODEL, CLIP, VAE, CONTROL_NET, …
    try:
        executor.execute(prompt, prompt_id, extra_data, outputs)
    finally:
        memstow.comfy.run_ended()         # ComfyUI's own worker needs no such call

In: models as nodes pass them, and ends of runs. Out: calls of the node pack. Never: an exception where memstow or its
pack is not there. Then every call does nothing and returns False, and the first one says why, once. docs/comfyui.md is
the prose."""
from __future__ import annotations

import logging
from typing import Any, Optional, Protocol

__all__ = ["free_after_run", "keep", "run_ended", "stow"]

NO_PACK = ("memstow's node pack is not loaded here, so memstow.comfy does nothing: put it into ComfyUI's custom_nodes "
           "(docs/comfyui.md)")
log = logging.getLogger("memstow")


class Pack(Protocol):
    """What the node pack answers."""

    def set_policy(self, model: Any, policy: str, priority: int) -> bool: ...
    def run_ended(self, outcome: Optional[str]) -> bool: ...


_pack: Optional[Pack] = None
_advised = False


def serve(pack: Optional[Pack]) -> None:
    """The node pack answers from now on; None: nobody does."""
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
    """The model stays when a run has ended, and is found again by later runs: as the policy node with "keep". It holds
    until something else is said of the model. Call it where nodes run. Returns whether it was set: not for what is no
    model."""
    return _set(model, "keep", priority)


def stow(model: Any, priority: int = 0) -> bool:
    """As keep(), but its weights are moved out when a run has ended, and come back when they are used."""
    return _set(model, "stow", priority)


def free_after_run(model: Any, priority: int = 0) -> bool:
    """The model is unloaded, and dropped from the node cache, when the run that is on has ended, or the next one. It is
    gone then as far as nobody else holds it: the caller lets go of it, too. What is loaded again later is another
    model."""
    return _set(model, "free", priority)


def run_ended(outcome: Optional[str] = None) -> bool:
    """Applies the policies, as ComfyUI's worker has it done after each run: for the finally of a program that drives
    PromptExecutor, or an executor of its own, without that worker. The thread that ran the nodes calls it. `outcome` is
    ok, failed, cancelled or out-of-memory; what PromptExecutor itself has recorded counts before it. Returns False, and
    does nothing, inside of a run: it is not over, and its own end applies them."""
    import memstow
    if outcome is not None and outcome not in memstow.OUTCOMES:
        raise ValueError(f"outcome must be one of {', '.join(memstow.OUTCOMES)}; not {outcome!r}")
    pack = _there()
    return pack.run_ended(outcome) if pack is not None else False
