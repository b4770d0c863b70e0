"""Many runs of a real ComfyUI under memstow, each of which loads a UNET, frees it, and keeps a CLIP: by how much they
grow it. ComfyUI keeps a history of prompts, 28 KB for each of these: it is cleared after each run, as a client may."""
import support
from _comfy import MB, Comfy, link, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")


def workflow(seed):
    """The text stays the same: its encoding, and the picture, are not what is in question."""
    found = mixed(seed)
    found["text"]["inputs"]["text"] = "a text"
    del found["image"], found["image_digest"]
    found["vae_digest"] = {"class_type": "Digest", "inputs": {"value": link("vae")}}
    return found


def runs(comfy, seeds):
    for seed in seeds:
        comfy.run(workflow(seed))
        assert comfy.status_of("/history", b'{"clear": true}') == 200


def held(comfy):
    """The ledger's live bytes; RSS; what of it memstow itself has, and what glibc keeps although it was freed."""
    support.memstow("snapshot", comfy.pid(), "-o", "now.mst")
    report = support.report("now.mst", "--top=1")
    parts = report["residency"]
    return report["totals"]["live_bytes"], parts["rss_bytes"], parts["memstow_bytes"], parts["retained_bytes"]


def folded(comfy):
    """How many dead call stacks the ledger has counted at outer ones, to make room."""
    return support.report(comfy.pid(), "--top=1")["lost"].get("folded", 0)


def warm_up(comfy, least):
    """At least so many runs, in which caches of libraries are filled; and until memstow gives what it keeps of earlier
    runs to later ones. It does so when 32,768 call sites were made for runs: some 1,500 of these workflow's a run, 65
    KB, are twenty runs."""
    runs(comfy, range(1))
    before, count = folded(comfy), 1
    while count < least or folded(comfy) == before:
        assert count < 60, "memstow's tables have what 60 runs left, and still it gives none of it to later ones"
        runs(comfy, range(count, count + 5))
        count += 5
    print(f"measured after {count} runs, in which {folded(comfy) - before} call stacks of earlier ones made room")


def measure(first, count, with_retained, windows=1):
    """Warms up, and measures `count` runs, all of RSS together, `windows` times in a row, of which the least counts:
    now and then Python takes one more arena, of 1 MiB, which is no growth unless it comes each time. Of what memstow
    has, the trace of decisions is a ring of 1 MiB that fills once, by 4 KB a run. What glibc keeps goes up and down by
    a megabyte in a few runs: whether it counts is `with_retained`."""
    with Comfy("memstow", ffn=4096) as comfy:
        warm_up(comfy, first)
        owner, grown = comfy.owners()["CLIP"]["id"], []
        for window in range(1, windows + 1):
            before = held(comfy)
            runs(comfy, range(1000 * window, 1000 * window + count))
            ledger, rss, own, retained = (now - then for now, then in zip(held(comfy), before))
            print(f"{count} runs: grown by {ledger} bytes of the ledger, {rss} of RSS ({own} of that is memstow's "
                  f"own, {retained} "
                  "freed memory)")
            grown.append((ledger, rss if with_retained else rss - retained))
        assert min(ledger for ledger, _ in grown) < MB and min(counted for _, counted in grown) < MB, grown
        assert set(comfy.owners()) == {"CLIP", "VAE"} and comfy.owners()["CLIP"]["id"] == owner
        # An arena that Python took in the scope of a model is that model's.
        models = [o for o in support.report(comfy.pid())["owners"] if o["kind"] == "model" and o["live_bytes"] > 2 * MB]
        assert len(models) <= 2, models
