#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Policies of three models from separate loaders, in a real ComfyUI on the test double. A model that is to be freed
goes, with the cached outputs that reach it, and nothing else goes. A policy stays over cached runs until it is changed
or its node is removed. A kept model is found again after another workflow."""
from _comfy import Comfy, checkpoint, link, mixed, policy, sample, unet

comfy = Comfy()


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


def reads(owner):
    """How the policy of an owner was found at the last trigger: (rule, policy)."""
    last = [line for line in comfy.lines("READ") if line["owner"] == owner][-1]
    return last["rule"], last["policy"]


with comfy:
    comfy.run(mixed(1))
    first = comfy.owners()
    assert set(first) == {"CLIP", "VAE"}, first
    assert [o["type"] for o in comfy.report()["freed"]] == ["MODEL"], comfy.report()
    assert first["CLIP"]["rule"] == "patcher" and first["VAE"]["policy"] is None and first["VAE"]["is_loaded"]
    assert first["CLIP"]["origin"] == "tiny.safetensors" and first["CLIP"]["live_bytes"] > 2e8

    # the next run loads the freed models and no others; nodes that do not depend on them were cached
    done = comfy.run(mixed(2))
    assert cached(done) == {"clip", "clip_policy", "vae", "words", "latent"}, cached(done)
    assert {t: o["id"] for t, o in comfy.owners().items()} == {t: o["id"] for t, o in first.items()}

    # In ten cached runs no node is executed, and the policy stays.
    for _ in range(10):
        done = comfy.run(mixed(2))
        assert "text" in cached(done) and "unet" not in cached(done)
        assert comfy.owners()["CLIP"]["policy"] == "keep"
    assert reads(first["CLIP"]["id"]) == ("patcher", "keep") and reads(first["VAE"]["id"]) == ("default", "keep")

    # a policy is changed, removed, and set for one run
    comfy.run(mixed(2, clip_policy="stow"))
    assert comfy.owners()["CLIP"]["policy"] == "stow" and comfy.owners()["CLIP"]["stowed_bytes"] > 2e8
    comfy.run(mixed(2, clip_policy=None))
    assert comfy.owners()["CLIP"]["policy"] is None and comfy.owners()["CLIP"]["id"] == first["CLIP"]["id"]
    comfy.run(mixed(2, clip_policy=None), extra={"memstow": {"CLIP": "free"}})
    assert set(comfy.owners()) == {"VAE"}, comfy.owners()
    assert comfy.report()["freed"][0]["rule"] == "extra_data of this run"
    assert reads(first["CLIP"]["id"]) == ("run", "free")

    # a kept model outlives another workflow, and the next workflow that needs it finds it
    comfy.run(mixed(3, unet_policy="keep"))
    kept = comfy.owners()
    done = comfy.run({"other": unet("other.safetensors"), **sample("other", 4)})
    assert {kept["MODEL"]["id"], kept["CLIP"]["id"]} <= {o["id"] for o in comfy.get("/memstow/owners")["owners"]}
    done = comfy.run(mixed(5, unet_policy="keep"))
    assert {"unet", "unet_policy", "clip", "clip_policy"} <= cached(done), cached(done)
    assert comfy.owners()["MODEL"]["id"] == kept["MODEL"]["id"]

    # If a LoRA comes behind the policy node, ComfyUI loads a clone of the patcher that has the policy. The policy
    # counts for the clone, too.
    lora = {"unet": unet(), "unet_policy": policy("unet", "free", 3),
            "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {
                "model": link("unet_policy"), "lora_name": "tiny.safetensors", "strength_model": 0.5}}}
    comfy.run({**lora, **sample("lora", 6)})
    assert reads(kept["MODEL"]["id"]) == ("parent", "free") and "MODEL" not in comfy.owners(), comfy.owners()
    behind = {"unet": unet(), "lora": {**lora["lora"], "inputs": {**lora["lora"]["inputs"], "model": link("unet")}},
              "unet_policy": policy("lora", "keep"), **sample("unet_policy", 7)}
    comfy.run(behind)
    assert reads(comfy.owners()["MODEL"]["id"]) == ("patcher", "keep")
    assert len([o for o in comfy.get("/memstow/owners")["owners"] if o["type"] == "MODEL"]) == 1

    # UNET and VAE of one checkpoint: the UNET is freed. The VAE stays, and is still the same owner when the loader runs
    # again.
    comfy.run(checkpoint(mixed(8)))
    owners = comfy.owners()
    assert set(owners) == {"CLIP", "VAE"} and comfy.report()["freed"], owners
    done = comfy.run(checkpoint(mixed(9)))
    assert comfy.owners() == owners and "ckpt" not in cached(done), comfy.owners()
    comfy.run(checkpoint(mixed(10, vae_policy="free")))
    assert set(comfy.owners()) == {"CLIP"} and len(comfy.report()["freed"]) == 2
    # LoadThree makes three models at once, and the pack cannot make it load one of them alone. So a model with the
    # policy free is stowed instead of freed as long as another one of the three stays.
    three = {"all": {"class_type": "LoadThree", "inputs": {"name": "tiny.safetensors"}}, "p": policy("all", "free"),
             **sample("p", 11), "vae_digest": {"class_type": "Digest", "inputs": {"value": link("all", 2)}}}
    comfy.run(three)
    model = comfy.owners()["MODEL"]
    assert (model["policy"] == "free" and model["stowed_bytes"]
            and "its loader made" in comfy.report()["notes"][0]), model
    assert not [line for line in comfy.lines("LOST")], comfy.lines("LOST")
