"""Shared by tests of loops on a running ComfyUI: a ComfyUI with nodes that count their runs, and small workflows with
ports."""
import json

import support
from _comfy import Comfy, around_pack, link

NODES = '''
import collections, hashlib, server, torch, time
import aiohttp.web
import comfy.model_management
ran = collections.Counter()
class Any(str):
    def __ne__(self, other): return False
    __hash__ = str.__hash__
ANY = Any("*")
def node(outputs, is_output=False, optional=None, **inputs):
    def make(function):
        def run(self, **values):
            ran[function.__name__] += 1
            return function(self, **values)
        return type(function.__name__, (), {
            "RETURN_TYPES": outputs, "FUNCTION": "run", "CATEGORY": "test", "OUTPUT_NODE": is_output, "run": run,
            "INPUT_TYPES": classmethod(lambda cls: {"required": inputs, "optional": optional or {}})})
    return make
INT, STRING = ("INT", {"default": 0, "min": -2**40, "max": 2**40}), ("STRING", {"default": "", "multiline": True})
@node(("INT",), a=INT, b=INT)
def AddInts(self, a, b): return (a + b,)
@node(("STRING",), text=STRING, number=INT)
def Append(self, text, number): return (f"{text}{number},",)
@node(("LATENT",), latent=("LATENT",), number=INT)
def Mix(self, latent, number):
    generator = torch.Generator().manual_seed(number)
    return ({"samples": latent["samples"] * 0.9 + torch.randn(latent["samples"].shape, generator=generator) * 0.1},)
@node(("LATENT",), size=INT)
def NewLatent(self, size): return ({"samples": torch.zeros(1, 4, size, size)},)
@node(("IMAGE",), seed=INT, size=INT)
def NewImage(self, seed, size): return (torch.rand(1, size, size, 3, generator=torch.Generator().manual_seed(seed)),)
@node(("IMAGE",), image=("IMAGE",))
def InvertInPlace(self, image):
    image.mul_(-1).add_(1)
    return (image,)
@node(("IMAGE",), image=("IMAGE",), number=INT)
def FailAt(self, image, number):
    if number == 3: raise ValueError("as planted\\nwith a second line")
    return (image,)
@node(("INT",), number=INT, fail_at=INT)
def FailInt(self, number, fail_at):
    if number == fail_at: raise ValueError("as planted")
    return (number,)
@node(("INT",), number=INT, seconds=("FLOAT", {"default": 1.0}))
def Sleepy(self, number, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        comfy.model_management.throw_exception_if_processing_interrupted()
        time.sleep(0.01)
    return (number,)
def tensors(value):
    if isinstance(value, torch.Tensor): yield value
    elif isinstance(value, dict):
        for key in sorted(value): yield from tensors(value[key])
    elif isinstance(value, (list, tuple)):
        for part in value: yield from tensors(part)
@node((), True, value=(ANY,))
def Fingerprint(self, value):
    found = [hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest() + str(list(t.shape)) + str(t.dtype)
             for t in tensors(value)]
    return {"ui": {"digest": found or [repr(value)]}}
class Three:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_IS_LIST = ("INT",), "run", "test", (True,)
    INPUT_TYPES = classmethod(lambda cls: {"required": {"first": INT}})
    def run(self, first): return ([first, first + 1, first + 2],)
class SumList:
    RETURN_TYPES, FUNCTION, CATEGORY, INPUT_IS_LIST = ("INT",), "run", "test", True
    INPUT_TYPES = classmethod(lambda cls: {"required": {"numbers": INT}})
    def run(self, numbers): return (sum(numbers),)
NODE_CLASS_MAPPINGS = {c.__name__: c for c in (AddInts, Append, Mix, NewLatent, NewImage, InvertInPlace, FailAt,
                                               FailInt, Sleepy, Fingerprint, Three, SumList)}
@server.PromptServer.instance.routes.get("/test/ran")
async def _ran(request):
    found = dict(ran)
    if request.query.get("reset"): ran.clear()
    return aiohttp.web.json_response(found)
'''


class Loops(Comfy):
    """A ComfyUI under memstow, with the pack and the nodes above."""

    def __init__(self, *arguments, name="comfyui", under="memstow", after="", **options):
        text = around_pack(NODES, after)
        super().__init__(under=under, pack=False, name=name, before=(text,), arguments=arguments, **options)

    def failed_hooks(self):
        """The lines of failed hooks, without lines about the pack's nodes, because nodes may fail in these tests."""
        nodes = ("loops/nodes.py", "loops/images.py", "loops/describer.py")
        return [line for line in super().failed_hooks() if not any(f"tools/comfyui/{name}" in line for name in nodes)]

    def settle(self, done):
        """Waits until the worker has handled a run. Comfy.settle() waits for the run's report. This method does not,
        because the last report may already be that of a loop's run."""
        if self.has_pack():
            assert self.get("/memstow/trigger", {"wait": True, "reason": "the test waits"})

    def post(self, **body):
        """Requests a loop. Returns the status and the answer. The answer of a failed request is a text."""
        return self.request("POST", "/memstow/loops", body)

    def request(self, method, path, body=None):
        import urllib.error, urllib.request
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def begin(self, *workflows, **body):
        status, answer = self.post(workflows=list(workflows), **body)
        assert status == 200, answer
        return answer["name"]

    def loop(self, name, values=True):
        import urllib.parse
        return self.get(f"/memstow/loops?name={urllib.parse.quote(name)}{'&values=1' if values else ''}")

    def over(self, name, seconds=400, values=True):
        """The state of the loop when it has ended. Use values=False where the pack looks for what holds a model: an
        answer with values would be a holder, too."""
        support.wait_for(lambda: self.loop(name, False)["state"] in ("done", "failed", "cancelled"), seconds,
                         f"the end of {name}")
        return self.loop(name, values)

    def loop_of(self, *workflows, state="done", **body):
        """Runs a loop to its end. Returns its state then."""
        found = self.over(self.begin(*workflows, **body))
        assert found["state"] == state, found
        return found

    def ran(self, reset=True):
        return self.get(f"/test/ran{'?reset=1' if reset else ''}")

    def held_by_loop(self, **ports):
        """Asserts that the report names the loop's port as the holder of models. ports: the type of a model → the
        places that hold it, in words."""
        why = {owner["type"]: owner["why"] for owner in self.report()["owners"]}
        assert all(f"held by {places}" in why[one] for one, places in ports.items()), why

    def refused(self, *words, **body):
        """Asserts that the request is refused with these words, and that nothing was queued."""
        status, answer = self.post(**body)
        assert status == 400 and isinstance(answer, str), (status, answer, body)
        assert all(word in answer for word in words), (answer, words)
        assert not self.ran(), "nothing has run"
        assert self.get("/queue") == {"queue_running": [], "queue_pending": []}
        return answer


def node(kind, **inputs):
    return {"class_type": kind, "inputs": inputs}


def port(id, source=None):
    return node("DiscomfortPort", unique_id=id, **({"input_data": link(source)} if source else {}))


def counter(amount=1):
    """n → n + amount."""
    return {"in": port("n"), "add": node("AddInts", a=link("in"), b=amount), "out": port("n", "add")}
