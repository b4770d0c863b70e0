"""A ComfyUI with the node pack, for the tests of this room. It starts ComfyUI under the test double, under memstow, or
under neither, with small models; it queues workflows, and calls the pack's routes."""
import json, os, pathlib, shutil, signal, sys, time, urllib.error, urllib.request

import support

sys.path.insert(0, str(support.ROOT / "tests/real"))
import _double, _models # noqa: E402

HERE = pathlib.Path(__file__).parent
MB = 2**20
AGAIN = "memstow: starting ComfyUI again, under memstow" # what prestartup_script.py says


def prepare(folder, ffn=8192):
    """Puts small models and the nodes of the tests into ComfyUI's folder. Returns the bytes of the UNET's weights."""
    size = _models.put(folder / "models", ffn)
    shutil.copy(HERE / "_test_nodes.py", folder / "custom_nodes/test_nodes.py")
    return size


def install_pack(folder):
    os.symlink(support.ROOT / "tools/comfyui", folder / "custom_nodes/memstow")


def around_pack(before, after):
    """The text of a pack that runs `before`, loads memstow's pack, and runs `after`. ComfyUI itself loads packs in the
    order of the folder, which a test cannot choose."""
    return f'''{before}
import importlib.util, sys
spec = importlib.util.spec_from_file_location("memstow_pack", "{support.ROOT}/tools/comfyui/__init__.py")
module = sys.modules["memstow_pack"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
NODE_CLASS_MAPPINGS = {{**globals().get("NODE_CLASS_MAPPINGS", {{}}), **module.NODE_CLASS_MAPPINGS}}
{after}'''


def has_real(*names):
    """Whether the library of this build has these functions."""
    symbols = support.run("nm", "-D", "--defined-only", support.LIBRARY).stdout if support.LIBRARY.exists() else ""
    return all(f" memstow_{name}\n" in symbols for name in names)


def need_real(*names):
    """Skips the test unless the library of this build has these functions, and the command can check a trace."""
    if not has_real(*names):
        support.skip(f"the library of this build has not got all of {', '.join(names)} yet")
    if support.run(support.MEMSTOW, "decisions", "--help", status=None).returncode:
        support.skip("the command of this build cannot check a trace yet")


def install_other_pack(folder, what):
    """Installs a pack. `what` is a folder with the pack, or a dictionary: the name of each file → its text."""
    if not isinstance(what, dict):
        return os.symlink(what, folder)
    folder.mkdir()
    for name, text in what.items():
        (folder / name).write_text(text)


class Comfy:
    """A running ComfyUI. under: "double", "memstow" or None. packs: other packs by name, see install_other_pack. quick:
    _quick_main.py starts ComfyUI; a search for holders then misses objects to which only ComfyUI's modules refer."""

    def __init__(self, under="double", env=None, arguments=(), ffn=8192, pack=True, name="comfyui", before=(),
                 options=(), preexec_fn=None, packs=None, quick=True):
        self.port, self.folder = support.free_port(), (support.HERE / name)
        command = support.comfyui_command(self.port, self.folder, *arguments, quick=quick)
        self.weights = prepare(self.folder, ffn)
        for number, text in enumerate(before):
            (self.folder / f"custom_nodes/{'aaa' if number == 0 else 'zzz'}_other.py").write_text(text)
        for pack_name, what in (packs or {}).items():
            install_other_pack(self.folder / "custom_nodes" / pack_name, what)
        if pack:
            install_pack(self.folder)
        environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
        environment.update({"PYTHONPATH": str(support.ROOT / "tests"), **(env or {})})
        if under == "double":
            environment["LD_PRELOAD"] = str(_double.library())
        elif under == "memstow":
            command = [support.MEMSTOW, "run", "--quiet", "-o", f"{name}.mst", *options, "--", *command]
        self.command, self.environment = command, environment
        self.log_file = support.HERE / f"{name}.log"
        with open(self.log_file, "w") as log:
            self.server = support.start(*command, stdout=log, stderr=log, env=environment, preexec_fn=preexec_fn)
        try:
            support.wait_for(lambda: self.server.poll() is not None or self.get("/system_stats"), 300,
                             "ComfyUI answering")
        except BaseException:
            self.kill()
            raise
        if self.server.poll() is not None:
            raise AssertionError(f"ComfyUI ended:\n{self.log()[-3000:]}")

    def log(self):
        return "\n".join(line[:300] for line in self.log_file.read_text(errors="replace").split("\n"))

    def get(self, path, document=None, timeout=70):
        return support.http(self.port, path, document, timeout)

    def status_of(self, path, body=None, headers=None, method="POST"):
        """The HTTP status of a request."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body,
                                         {"Content-Type": "application/json", **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def queue(self, workflow, extra=None):
        answer = self.get("/prompt", {"prompt": workflow, "extra_data": extra or {}})
        assert answer and not answer.get("node_errors"), (answer, self.log()[-3000:])
        return answer["prompt_id"]

    def wait(self, prompt_id, seconds=240):
        return support.wait_for(lambda: (self.get(f"/history/{prompt_id}") or {}).get(prompt_id), seconds,
                                "the workflow")

    def run(self, workflow, status="success", extra=None, seconds=240):
        """Runs a workflow, and waits until the pack, if it is there, has handled the end of the run. Returns the
        workflow's entry in ComfyUI's history."""
        done = self.wait(self.queue(workflow, extra), seconds)
        assert done["status"]["status_str"] == status, str(done["status"])[:3000]
        self.settle(done)
        return done

    def has_pack(self):
        return self.get("/memstow/report") is not None or "memstow: models are registered" in self.log()

    def settle(self, done):
        """Waits until the worker thread has handled the end of this run."""
        if not self.has_pack():
            return
        prompt_id = done["prompt"][1]
        support.wait_for(lambda: (self.get("/memstow/report") or {}).get("prompt") == prompt_id, 120,
                         "the end of the run")

    def digest(self, done, node="digest"):
        return done["outputs"][node]["digest"][0]

    def free(self, **flags):
        """Posts flags to /free, as ComfyUI's buttons do. Returns when the worker thread has done what the flags say."""
        assert self.status_of("/free", json.dumps(flags).encode()) == 200
        self.settled()

    def settled(self):
        """Waits until the worker thread has taken the flags."""
        time.sleep(0.3)
        if self.has_pack():
            assert self.get("/memstow/trigger", {"wait": True, "reason": "the test waits"})["done"]
        else:
            time.sleep(1)

    def owners(self):
        return {o["type"]: o for o in self.get("/memstow/owners")["owners"]}

    def lines(self, kind=None):
        lines = (self.get("/memstow/decisions") or {"lines": []})["lines"]
        return [line for line in lines if kind in (None, line.get("kind"))]

    def report(self):
        return self.get("/memstow/report")

    def rss(self):
        return int(pathlib.Path(f"/proc/{self.pid()}/statm").read_text().split()[1]) * 4096

    def tidy_rss(self):
        """RSS after a garbage collection, and after the C library has returned its free pages."""
        assert self.get("/test/tidy")
        return self.rss()

    def pid(self):
        children = pathlib.Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split()
        is_memstow = "memstow" in os.path.basename(os.readlink(f"/proc/{self.server.pid}/exe"))
        return int(children[0]) if is_memstow and children else self.server.pid

    def check_trace(self):
        """Asserts that the trace has none of the known faults."""
        support.memstow("decisions", self.pid(), "--check")

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        """Ends ComfyUI. Shows its log if the test fails. Fails if a hook of the pack has failed."""
        if isinstance(error, Exception):
            print(self.log()[-6000:])
        self.stop()
        assert error or not self.failed_hooks(), f"a hook failed:\n{self.log()[-6000:]}"
        assert error or "memstow.comfy.run_ended()" not in self.log(), "ComfyUI's own worker was not seen"

    def failed_hooks(self):
        """The lines of the log in which a traceback names a file of the pack."""
        return [line for line in self.log().splitlines() if "tools/comfyui/" in line]

    def stop(self):
        self.server.terminate()
        try:
            self.server.wait(30)
        except BaseException:
            self.kill()
            raise

    def kill(self):
        """Ends ComfyUI itself: if only memstow were killed, ComfyUI would go on."""
        os.kill(self.pid(), signal.SIGKILL)
        self.server.wait(30)


def link(node, output=0):
    return [node, output]


def sample(model, seed=1, prefix=""):
    """A KSampler on the model, and a digest of its output."""
    return {
        f"{prefix}words": {"class_type": "RandomConditioning", "inputs": {"seed": 1}},
        f"{prefix}latent": {"class_type": "EmptyHunyuanLatentVideo",
                            "inputs": {"width": 64, "height": 64, "length": 1, "batch_size": 1}},
        f"{prefix}sample": {"class_type": "KSampler", "inputs": {
            "model": link(model), "positive": link(f"{prefix}words"), "negative": link(f"{prefix}words"),
            "latent_image": link(f"{prefix}latent"), "seed": seed, "steps": 1, "cfg": 1.0, "sampler_name": "euler",
            "scheduler": "simple", "denoise": 1.0}},
        f"{prefix}digest": {"class_type": "Digest", "inputs": {"value": link(f"{prefix}sample")}},
    }


def policy(of, word, priority=0):
    return {"class_type": "MemstowPolicy", "inputs": {"model": link(of), "policy": word, "priority": priority}}


def unet(name="tiny.safetensors"):
    return {"class_type": "UNETLoader", "inputs": {"unet_name": name, "weight_dtype": "default"}}


def checkpoint(workflow):
    """The workflow with UNET and VAE from one checkpoint."""
    for node in workflow.values():
        for key, value in node["inputs"].items():
            if value in (link("unet"), link("vae")):
                node["inputs"][key] = link("ckpt", 0 if value == link("unet") else 2)
    workflow = {name: node for name, node in workflow.items() if name not in ("unet", "vae")}
    return {**workflow, "ckpt": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "tiny.safetensors"}}}


def mixed(seed=1, unet_policy="free", clip_policy="keep", vae_policy=None):
    """A workflow with a UNET, a CLIP and a VAE. Each has a loader of its own, and may have a policy."""
    clip, vae, model = ("clip", "vae", "unet")
    workflow = {"unet": unet(),
                "clip": {"class_type": "CLIPLoader",
                         "inputs": {"clip_name": "tiny.safetensors", "type": "stable_diffusion"}},
                "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "tiny.safetensors"}}}
    if unet_policy:
        workflow["unet_policy"], model = policy("unet", unet_policy), "unet_policy"
    if clip_policy:
        workflow["clip_policy"], clip = policy("clip", clip_policy), "clip_policy"
    if vae_policy:
        workflow["vae_policy"], vae = policy("vae", vae_policy), "vae_policy"
    workflow.update(sample(model, seed))
    workflow["text"] = {"class_type": "CLIPTextEncode", "inputs": {"clip": link(clip), "text": f"words {seed}"}}
    workflow["text_digest"] = {"class_type": "Digest", "inputs": {"value": link("text")}}
    workflow["image"] = {"class_type": "VAEDecode", "inputs": {"samples": link("sample"), "vae": link(vae)}}
    workflow["image_digest"] = {"class_type": "Digest", "inputs": {"value": link("image")}}
    return workflow


def held(is_held, seed):
    """Returns the workflow of mixed() with the policy free for the UNET, and with one more node. If `is_held`, this
    node keeps the UNET. Otherwise it lets go of all UNETs that were kept."""
    workflow = mixed(seed, unet_policy="free")
    inputs = {"latent": link("sample"), "seed": seed, **({"model": link("unet_policy")} if is_held else {})}
    workflow["hold"] = {"class_type": "Hold" if is_held else "LetGo", "inputs": inputs}
    workflow["digest"]["inputs"]["value"] = link("hold")
    return workflow
