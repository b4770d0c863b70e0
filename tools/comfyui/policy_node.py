"""The node MemstowPolicy: takes a model of any type, sets its policy, and returns it. Without memstow it only returns
the model."""
from typing import Any, Callable, Optional

NODE = "MemstowPolicy"


class AnyType(str):
    """A type that matches every other type."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


ANY = AnyType("*")


class MemstowPolicy:
    """What becomes of a model when a run has ended: it is kept, stowed (moved out to disk, back on use), or freed."""
    RETURN_TYPES = (ANY,)
    RETURN_NAMES = ("model",)
    FUNCTION = "apply"
    CATEGORY = "memstow"
    DESCRIPTION = __doc__
    on_apply: Optional[Callable[[Any, str, int], None]] = None

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {"required": {
            "model": (ANY, {"tooltip": "MODEL, CLIP, VAE, CONTROL_NET…"}),
            "policy": (["keep", "stow", "free"], {"default": "keep"}),
            "priority": ("INT", {"default": 0, "min": -1000, "max": 1000,
                                 "tooltip": "when memory is short, models of lower priority go first"}),
        }}

    @classmethod
    def VALIDATE_INPUTS(cls, input_types: dict) -> bool:
        return True # models of any type: said here, too, because some versions of ComfyUI compare types in another way

    def apply(self, model: Any, policy: str, priority: int = 0) -> tuple:
        if MemstowPolicy.on_apply is not None:
            MemstowPolicy.on_apply(model, policy, priority)
        return (model,)


NODE_CLASS_MAPPINGS = {NODE: MemstowPolicy}
NODE_DISPLAY_NAME_MAPPINGS: dict[str, str] = {NODE: "Memory policy (memstow)"}
