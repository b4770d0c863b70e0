"""ComfyUI's modules and the node pack in this process, on the CPU, for tests that need access to objects. A test that
imports this file runs under the double, or under memstow. load() returns the pack's state, which tests call `runs`, or
None if the pack found no memstow."""
import asyncio, gc, importlib.util, os, sys

import support


def load(freeze=True):
    """freeze: garbage collections skip the objects that exist after loading, because a collection of all objects takes
    a quarter of a second. A search for the holders of a model does not see the skipped objects."""
    import _quick # it imports PyTorch
    sys.argv[1:] = []
    sys.path.insert(0, str(support.COMFYUI))
    _quick.prepare()
    from comfy.cli_args import args
    web = support.HERE / "web"
    web.mkdir(exist_ok=True)
    (web / "index.html").write_text("<html></html>")
    args.cpu, args.front_end_root = True, str(web)
    args.base_directory = str(support.HERE)
    # Like main.py, this imports ComfyUI's package utils first. Later nodes.py puts a folder that has another package
    # utils into sys.path.
    import utils.extra_config # noqa: F401
    import execution, nodes, server # noqa: F401
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    server.PromptServer(loop)
    if freeze:
        gc.freeze()
    return pack()


def pack():
    folder = support.ROOT / "tools/comfyui"
    spec = importlib.util.spec_from_file_location("memstow_pack", folder / "__init__.py")
    module = sys.modules["memstow_pack"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import nodes
    nodes.NODE_CLASS_MAPPINGS.update(module.NODE_CLASS_MAPPINGS)
    return module.state


def node(class_type, outputs, function, is_output=False, **inputs):
    """Registers a node class."""
    import nodes
    nodes.NODE_CLASS_MAPPINGS[class_type] = type(class_type, (), {
        "RETURN_TYPES": outputs, "FUNCTION": "run", "CATEGORY": "test", "OUTPUT_NODE": is_output,
        "INPUT_TYPES": classmethod(lambda cls: {"required": inputs}), "run": function})


class Queue:
    """An executor and a queue, as main.py's worker has them."""

    def __init__(self, cache_type=None, **arguments):
        import execution
        import server
        self.server = server.PromptServer.instance
        self.queue = execution.PromptQueue(self.server)
        self.executor = execution.PromptExecutor(self.server, cache_type=cache_type or execution.CacheType.CLASSIC,
                                                 cache_args={"ram": 0, "lru": 0, **arguments})
        self.count = 0

    def run(self, prompt, outputs, extra=None):
        """Does what the worker does with one prompt. Returns the nodes that were cached."""
        self.count += 1
        self.executor.execute(prompt, f"prompt {self.count}", extra or {}, outputs)
        flags = self.queue.get_flags()
        assert not flags, flags
        return set(dict(self.executor.status_messages)["execution_cached"]["nodes"])


def under_memstow(file):
    """Runs the test again under memstow, unless it runs under memstow already."""
    import _double
    if "libmemstow" in os.environ.get("LD_PRELOAD", ""):
        return
    support.track(support.PYTHON, file, env={**os.environ, "PYTHONPATH": _double.python_path()}, timeout=280)
    sys.exit()


def under_double(file):
    """Runs the test again with the double of memstow preloaded, unless the double is in this process already."""
    import _double
    if "libdouble" in os.environ.get("LD_PRELOAD", ""):
        return
    support.run(support.PYTHON, file, env=_double.environment(), timeout=280)
    sys.exit()
