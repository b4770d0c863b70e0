"""The nodes of loops: ports, the nodes that replace ports while a loop runs, and nodes that start a loop and read its
values. In: values. Out: values. Without memstow, a port only passes its value on, and the nodes that need a loop say
how to start ComfyUI under memstow. Never waits for a loop."""
import json
from typing import Any, Optional

from .. import log
from ..policy_node import ANY
from .describer import DiscomfortImageDescriber
from .images import DiscomfortFolderImageLoader

CATEGORY = "memstow/loops"
START = "loops need memstow: start ComfyUI as: memstow run -- python main.py …"
_pack: Any = None
_functions: Any = None


def serve(pack: Any, functions: Any) -> None:
    """Makes the nodes use this pack's loops from now on."""
    global _pack, _functions
    _pack, _functions = pack, functions


def loops() -> Any:
    if _pack is None:
        raise RuntimeError(START)
    return _pack.loops


def loop_of(name: str, serial: Optional[str] = None) -> Any:
    """The loop with this name. The nodes MemstowLoopLoad and MemstowLoopSave also give the serial, which only the
    prompts of the loop itself have."""
    found = loops().find(name, serial)
    if found is None:
        raise ValueError(f"there is no loop {name!r}"
                         f"{': GET /memstow/loops lists them' if serial is None else ' with this serial any more'}")
    return found


class DiscomfortPort:
    """A place where a loop's values enter or leave a workflow. As an INPUT, nothing is connected to its input; as an
    OUTPUT, nothing is connected to its output. With both connected it is a wire. An INPUT and an OUTPUT with the
    same unique_id are one variable, whose value goes from run to run."""
    RETURN_TYPES = (ANY,)
    RETURN_NAMES = ("output",)
    FUNCTION = "pass_on"
    CATEGORY = CATEGORY
    DESCRIPTION = __doc__
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {"required": {"unique_id": ("STRING", {"default": "", "tooltip": "the variable's name"})},
                "optional": {"input_data": (ANY, {"forceInput": True}),
                             "tags": ("STRING",
                                      {"default": "",
                                       "tooltip": "words with commas between, for those who read them"})}}

    @classmethod
    def VALIDATE_INPUTS(cls, input_types: dict) -> bool:
        return True

    def pass_on(self, unique_id: str, tags: str = "", **values: Any) -> tuple:
        if "input_data" not in values:
            raise ValueError(
                f"port {unique_id} is an INPUT: a loop gives it its value. Nothing is connected to it, and "
                "no loop runs this workflow")
        return (values["input_data"],)


class MemstowLoopLoad:
    """Gives a loop's value to one of the loop's runs. The loop puts this node in place of an INPUT port."""
    RETURN_TYPES = (ANY,)
    FUNCTION = "load"
    CATEGORY = CATEGORY
    DESCRIPTION = __doc__
    OUTPUT_IS_LIST = (True,)

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {"required": {"loop": ("STRING", {}), "serial": ("STRING", {}), "port": ("STRING", {}),
                             "generation": ("INT", {"max": 2**62})}}

    def load(self, loop: str, serial: str, port: str, generation: int) -> tuple:
        return (loop_of(loop, serial).load(port),)


class MemstowLoopSave:
    """Takes a value from one of a loop's runs. The loop puts this node in place of an OUTPUT port."""
    RETURN_TYPES = (ANY,)
    FUNCTION = "save"
    CATEGORY = CATEGORY
    DESCRIPTION = __doc__
    OUTPUT_NODE = True
    INPUT_IS_LIST = True
    OUTPUT_IS_LIST = (True,)

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {
            "required": {
                "value": (ANY, {}), "loop": ("STRING", {}), "serial": ("STRING", {}), "port": ("STRING", {}),
                "iteration": ("INT", {"max": 2**62})
            }
        }

    @classmethod
    def VALIDATE_INPUTS(cls, input_types: dict) -> bool:
        return True

    def save(self, value: list, loop: list, serial: list, port: list, iteration: list) -> tuple:
        loop_of(loop[0], serial[0]).save(port[0], value)
        return (value,)


class DiscomfortLoopExecutor:
    """Starts a loop of workflows and returns its name at once: the loop's runs wait in the queue like all others. The
    log and GET /memstow/loops tell how far the loop is."""
    RETURN_TYPES = ("STRING",)
    RETURN_NAMES = ("loop",)
    FUNCTION = "start"
    CATEGORY = CATEGORY
    DESCRIPTION = __doc__
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        text = {"multiline": True, "default": ""}
        return {"required": {
                    "workflow_paths": (
                        "STRING",
                        {**text,
                         "tooltip": "names of saved workflows, one a line; or one workflow as JSON, or a list"}),
                    "max_iterations": ("INT", {"default": 1, "min": 1, "max": 1_000_000}),
                    "initial_inputs": (
                        "STRING",
                        {**text, "tooltip": 'values of INPUT ports: {"seed": 1}, or a line "seed: 1" for each'})},
                "optional": {
                    "condition": ("STRING",
                                  {**text, "tooltip": 'stops the loop: {"port": "score", "op": ">", "value": 0.9}'}),
                    "when": ("STRING",
                             {**text,
                              "tooltip": "for each workflow null, or a condition under which it runs: [null, {…}]"}),
                    "storage": (["memory", "disk"], {"default": "memory"}),
                    "ram_limit_mb": ("INT",
                                     {"default": 0, "min": 0, "max": 2**31, "tooltip":
                                      "most megabytes of values in memory; the others go to disk; 0: no limit"}),
                    "persist_prefix": ("STRING",
                                       {"default": "", "tooltip": "keeps the state in files, and goes on from them"}),
                    "independent": ("BOOLEAN",
                                    {"default": False,
                                     "tooltip": "a batch: inputs are lists, an iteration is an element"}),
                    "name": ("STRING", {"default": ""})}}

    @classmethod
    def IS_CHANGED(cls, **_inputs: Any) -> float:
        return float("nan") # each run of the node starts a loop

    def start(self, workflow_paths: str, max_iterations: int, initial_inputs: str, condition: str = "", when: str = "",
              storage: str = "memory", ram_limit_mb: int = 0, persist_prefix: str = "", independent: bool = False,
              name: str = "") -> dict:
        loops()
        loop = _functions.start_loop(
            workflows_in(workflow_paths), inputs_in(initial_inputs), max_iterations, json_in(condition, "condition"),
            json_in(when, "when"), storage == "memory", ram_limit_mb << 20 or None, persist_prefix or None, independent,
            name=name)
        return {"ui": {"loop": [loop.name]}, "result": (loop.name,)}


class DiscomfortLoopResult:
    """The last committed value of a loop's variable, for a workflow that is not part of the loop."""
    RETURN_TYPES = (ANY,)
    RETURN_NAMES = ("value",)
    FUNCTION = "read"
    CATEGORY = CATEGORY
    DESCRIPTION = __doc__
    OUTPUT_IS_LIST = (True,)

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {"required": {"loop": ("STRING", {"default": ""}), "unique_id": ("STRING", {"default": ""})}}

    @classmethod
    def IS_CHANGED(cls, loop: Any = None, unique_id: Any = None) -> Any:
        try:
            found = loop_of(loop)
            return f"{found.serial} {found.store.generation}"
        except (RuntimeError, ValueError): # no such loop, or a linked input: its value is not known yet
            return float("nan")

    def read(self, loop: str, unique_id: str) -> tuple:
        values = loop_of(loop).committed_values(unique_id)
        if values is None:
            raise ValueError(f"loop {loop} has no committed value of {unique_id!r}")
        return (values,)


def json_in(text: str, what: str) -> Any:
    """The value of a JSON text; None for an empty text."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from None


def workflows_in(text: str) -> list:
    if text.lstrip().startswith(("{", "[")):
        found = json_in(text, "workflow_paths")
        return found if isinstance(found, list) else [found]
    return [line.strip() for line in text.splitlines() if line.strip()]


def inputs_in(text: str) -> dict:
    """Parses {"seed": 1, …}, or lines like "seed: 1". In a line, a value that is not JSON is a text."""
    if text.lstrip().startswith("{"):
        return json_in(text, "initial_inputs")
    found = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise ValueError(f'initial_inputs: {line.strip()!r} is not a line like "seed: 1"')
        try:
            found[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            found[name.strip()] = value.strip()
    return found


NODES = {kind.__name__: kind for kind in (
    DiscomfortPort, DiscomfortLoopExecutor, DiscomfortLoopResult, DiscomfortFolderImageLoader, DiscomfortImageDescriber,
    MemstowLoopLoad, MemstowLoopSave)}
NODE_DISPLAY_NAME_MAPPINGS: dict[str, str] = {
    "DiscomfortPort": "Port (memstow loops)",
    "DiscomfortLoopExecutor": "Loop (memstow loops)",
    "DiscomfortLoopResult": "Loop result (memstow loops)",
    "DiscomfortFolderImageLoader": "Folder of images (memstow loops)",
    "DiscomfortImageDescriber": "Describe image (memstow loops)",
    "MemstowLoopLoad": "Value into a loop's run (internal)",
    "MemstowLoopSave": "Value out of a loop's run (internal)"}


def free_keys() -> dict:
    """The nodes whose keys are not taken by another pack."""
    import sys
    table = getattr(sys.modules.get("nodes"), "NODE_CLASS_MAPPINGS", {})
    taken = [key for key in NODES if key in table and table[key].__module__ != NODES[key].__module__]
    for key in taken:
        log.warning("memstow: the node %s is %s's: this pack leaves it to it", key, table[key].__module__)
    return {key: kind for key, kind in NODES.items() if key not in taken}
