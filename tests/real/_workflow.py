"""Workflows for a running ComfyUI, and the files that they need in its folder. If this module is run as a program, it
writes these files."""
import pathlib, shutil, sys

import support


def prepare(folder):
    """Writes a small diffusion model, and the node that makes its conditioning, into ComfyUI's folder."""
    import safetensors.torch
    from _tiny_model import tiny_wan
    safetensors.torch.save_file(tiny_wan(), folder / "models/diffusion_models/tiny.safetensors")
    shutil.copy(pathlib.Path(__file__).with_name("_tinywan.py"), folder / "custom_nodes/tinywan.py")


def sampling(seed, size=64, steps=2):
    return {
        "model": {"class_type": "UNETLoader", "inputs": {"unet_name": "tiny.safetensors", "weight_dtype": "default"}},
        "words": {"class_type": "RandomConditioning", "inputs": {"seed": 1}},
        "latent": {"class_type": "EmptyHunyuanLatentVideo",
                   "inputs": {"width": size, "height": size, "length": 1, "batch_size": 1}},
        "sample": {"class_type": "KSampler",
                   "inputs": {"model": ["model", 0], "positive": ["words", 0], "negative": ["words", 0],
                              "latent_image": ["latent", 0], "seed": seed, "steps": steps, "cfg": 1.0,
                              "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}},
        "save": {"class_type": "SaveLatent", "inputs": {"samples": ["sample", 0], "filename_prefix": "tiny"}},
    }


def run(port, workflow, seconds=60):
    """Queues the workflow and waits for its end."""
    prompt = support.http(port, "/prompt", {"prompt": workflow})
    assert prompt and not prompt.get("node_errors"), prompt
    done = support.wait_for(lambda: (support.http(port, "/history") or {}).get(prompt["prompt_id"]), seconds,
                            "the workflow")
    assert done["status"]["status_str"] == "success", done["status"]


if __name__ == "__main__":
    prepare(pathlib.Path(sys.argv[1]))
