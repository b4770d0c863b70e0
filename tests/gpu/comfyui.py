# needs: torch safetensors
# timeout: 900
"""A real ComfyUI on the GPU, with both backends of PyTorch. A small diffusion model in the shape of Wan leaves the
device after a run, and the output of the next run is the same to the bit."""
import json, os, sys

import _gpu, support

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))


def has_cuda():
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return support.run(support.PYTHON, "-c", code, status=None).returncode == 0


def watch(comfy):
    """Makes comfy.get fail if the server has ended. Otherwise nothing would end the wait for its answer."""
    ask = comfy.get

    def get(*words, **options):
        assert comfy.server.poll() is None, f"ComfyUI ended:\n{comfy.log()[-3000:]}"
        return ask(*words, **options)
    comfy.get = get


def stowed_on_device(comfy):
    owners = json.loads(support.memstow("owners", comfy.pid(), "--json").stdout)["owners"]
    return sum(owner["device_stowed_bytes"] for owner in owners)


def check(comfy, workflow):
    """Checks for two seeds that the output is the same before the model leaves the device and after it is back."""
    expected = [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)]
    again = [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)]
    assert again == expected, "the output differs from run to run without memstow's doing"
    comfy.run(workflow("stow", 3))
    out = stowed_on_device(comfy)
    refusals = {line["because"] for line in comfy.lines("REFUSED")}
    if not out and any("comfy-aimdo" in because for because in refusals):
        support.skip("this ComfyUI has comfy-aimdo, beside which nothing moves")
    assert out >= 0.4 * comfy.weights, (out, comfy.weights, refusals) # their precision may be halved
    assert [comfy.digest(comfy.run(workflow("keep", seed))) for seed in (1, 2)] == expected, "the output changed"
    assert stowed_on_device(comfy) == 0
    comfy.check_trace()
    return out


def outside():
    if "COMFYUI" not in os.environ:
        support.skip("no ComfyUI: name its folder with --comfyui")
    if not has_cuda():
        support.skip("PyTorch has no CUDA here")
    import _comfy
    command = support.comfyui_command

    def without_cpu(*arguments, **options):
        return [word for word in command(*arguments, **options) if word != "--cpu"]
    support.comfyui_command = without_cpu

    def workflow(word, seed):
        return {"unet": _comfy.unet(), "policy": _comfy.policy("unet", word), **_comfy.sample("policy", seed)}
    for name, arguments in (("cudaMallocAsync", ()), ("native", ("--disable-cuda-malloc",))):
        with _comfy.Comfy("memstow", env={"MEMSTOW_CUDA_MOVES": "2M"}, ffn=65536, name=name,
                          arguments=arguments) as comfy:
            watch(comfy)
            print(f"{name}: {check(comfy, workflow)} bytes left the device")


if __name__ == "__main__":
    _gpu.main(__file__, outside)
