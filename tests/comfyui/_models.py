"""Small models for a ComfyUI: put(folder, ffn) copies them into a folder. They are made once, in build/test-models,
because each test that makes them would import PyTorch for it. Their folder is named by a hash of the code and the
figures that make them."""
import hashlib, os, pathlib, shutil, tempfile

import support

REAL = support.ROOT / "tests/real"
MOST = 8192 # larger models stay in the folder of their test


def unet_file(path, ffn):
    import safetensors.torch
    from _tiny_model import tiny_wan
    import torch
    torch.manual_seed(7)
    weights = tiny_wan(ffn)
    safetensors.torch.save_file(weights, path)
    return weights


def vae_dim():
    """The dimension of a small VAE. Older versions of ComfyUI know one size only."""
    return 8 if '["decoder.head.0.gamma"].shape' in (support.COMFYUI / "comfy/sd.py").read_text() else 96


def make(folder, ffn):
    import safetensors.torch
    import torch
    for name in ("diffusion_models", "vae", "text_encoders", "loras", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    unet = unet_file(folder / "diffusion_models/tiny.safetensors", ffn)
    unet_file(folder / "diffusion_models/other.safetensors", 4096)
    dim = vae_dim()
    vae = {
        "decoder.middle.0.residual.0.gamma": torch.ones(4 * dim, 1, 1, 1),
        "decoder.head.0.gamma": torch.ones(dim, 1, 1, 1),
        # only newer versions of ComfyUI need these
        "encoder.conv1.weight": torch.zeros(dim, 3, 3, 3, 3), "decoder.head.2.weight": torch.zeros(3, dim, 3, 3, 3)
    }
    safetensors.torch.save_file({**{f"model.diffusion_model.{k}": v for k, v in unet.items()},
                                 **{f"vae.{k}": v for k, v in vae.items()}}, folder / "checkpoints/tiny.safetensors")
    # ComfyUI looks at a few keys of the VAE and the text encoder. It makes the other weights itself.
    safetensors.torch.save_file(vae, folder / "vae/tiny.safetensors")
    safetensors.torch.save_file({"text_model.encoder.layers.0.mlp.fc1.weight": torch.zeros(3072, 768)},
                                folder / "text_encoders/tiny.safetensors")
    safetensors.torch.save_file({"diffusion_model.blocks.0.ffn.0.lora_up.weight": torch.ones(ffn, 4) * 0.01,
                                 "diffusion_model.blocks.0.ffn.0.lora_down.weight": torch.ones(4, 128) * 0.01},
                                folder / "loras/tiny.safetensors")


def kept(ffn):
    """The folder in build/test-models with models of this size."""
    of = pathlib.Path(__file__).read_bytes() + (REAL / "_tiny_model.py").read_bytes() + b"%d %d" % (ffn, vae_dim())
    folder = support.ROOT / "build/test-models" / hashlib.sha256(of).hexdigest()[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            make(pathlib.Path(fresh, "models"), ffn)
            try:
                os.rename(f"{fresh}/models", folder)
            except OSError: # another test was faster
                assert folder.is_dir(), folder
    return folder


def put(folder, ffn):
    """Puts models into the folder. Returns the bytes of the UNET's weights."""
    if ffn > MOST:
        make(folder, ffn)
    else:
        shutil.copytree(kept(ffn), folder, dirs_exist_ok=True)
    with open(folder / "diffusion_models/tiny.safetensors", "rb") as file: # the header's size, the header, the weights
        return os.fstat(file.fileno()).st_size - 8 - int.from_bytes(file.read(8), "little")
