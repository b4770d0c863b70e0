"""The growth of a real ComfyUI under memstow over many runs. Each run loads a UNET, frees it, and keeps a CLIP.
ComfyUI's history of prompts (28 KB a prompt) is cleared after each run, as a client may do."""
import support
from _comfy import MB, Comfy, link, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")


def workflow(seed):
    """The mixed workflow, but with the same text in each run and without decoding a picture, because the test is about
    neither."""
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
    """Returns four figures in bytes: the live bytes of the ledger, RSS, memstow's own part of RSS, and the freed memory
    in RSS that glibc keeps."""
    support.memstow("snapshot", comfy.pid(), "-o", "now.mst")
    report = support.report("now.mst", "--top=1")
    parts = report["residency"]
    return report["totals"]["live_bytes"], parts["rss_bytes"], parts["memstow_bytes"], parts["retained_bytes"]


def folded(comfy):
    """How many call stacks without live blocks the ledger has folded to make room."""
    return support.report(comfy.pid(), "--top=1")["lost"].get("folded", 0)


def warm_up(comfy, least):
    """Makes at least this many runs, in which libraries fill their caches. Goes on until memstow gives the ids of
    earlier runs' call sites to later runs. It does so when there are 32,768 call sites of runs. One run of this
    workflow makes some 1,500 call sites (65 KB), so about twenty runs are needed."""
    runs(comfy, range(1))
    before, count = folded(comfy), 1
    while count < least or folded(comfy) == before:
        assert count < 60, "memstow's tables have what 60 runs left, and still it gives none of it to later ones"
        runs(comfy, range(count, count + 5))
        count += 5
    print(f"measured after {count} runs, in which {folded(comfy) - before} call stacks of earlier ones made room")


def measure(first, count, with_retained, windows=1):
    """Warms up. Then measures the growth of `count` runs, `windows` times in a row, and asserts that the least growth
    is below 1 MiB. Python now and then takes one more arena of 1 MiB, which is no growth unless it happens each time.
    The growth includes memstow's trace of decisions, a ring of 1 MiB: each run adds 4 KB to it until it is full. glibc
    keeps freed memory, whose amount changes by a megabyte within a few runs. `with_retained` says whether this memory
    counts."""
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
        # Up to two models may still have memory: an arena that Python took in a model's scope counts as that model's.
        models = [o for o in support.report(comfy.pid())["owners"] if o["kind"] == "model" and o["live_bytes"] > 2 * MB]
        assert len(models) <= 2, models
