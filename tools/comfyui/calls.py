"""The node pack's part of memstow.comfy. In: policies that other packs set on models, and ends of runs that ComfyUI's
worker does not notice. Out: settings in the registry, and the work after a run. Never lets an exception of its own
out."""
from typing import Any, Optional

from . import log
from .hooks import quietly
from .registry import Setting
from .runs import Runs


class Calls:
    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def set_policy(self, model: Any, policy: str, priority: int) -> bool:
        """Sets a policy on the models in a value. The setting does not come from a policy node, so it stays when a
        policy node is removed. Returns whether the value has a model."""
        is_set = quietly(self.runs.registry.say)(model, Setting(policy, priority))
        if is_set is False:
            log.warning("memstow: memstow.comfy cannot set %s on a %s: it is no model", policy, type(model).__name__)
        return bool(is_set)

    def run_ended(self, outcome: Optional[str]) -> bool:
        return bool(quietly(self.runs.follow_up)(outcome))
