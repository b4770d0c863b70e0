"""--fail-over=owner:… sets a limit for each owner, and --fail-over=site:… sets one for each call site. These limits do
not depend on the total."""
import json
from _ledger import MIB, Ledger
from support import memstow

# The UNET grew by 3 MiB while the VAE shrank by 3 MiB. A node grew by 1 MiB in all: half of it at each of two call
# sites.
for name, unet, vae, node in (("a", 10, 20, 0), ("b", 13, 17, 1)):
    ledger = Ledger()
    if name == "b": # ids differ from file to file
        ledger.owner(1, "CLIP")
    owners = [ledger.owner(1, "UNET", "wan"), ledger.owner(1, "VAE", "wan"), ledger.owner(2, "KSampler")]
    frames = [ledger.python(f"work{i}", "/app/train.py", 10 + i) for i in range(4)]
    for frame, tag, size in ((0, dict(model=owners[0]), unet * MIB), (1, dict(model=owners[1]), vae * MIB),
                             (2, dict(node=owners[2]), node * MIB // 2), (3, dict(node=owners[2]), node * MIB // 2)):
        if size:
            ledger.count(ledger.site(tag=ledger.tag(**tag), stack=ledger.node([frames[frame]])), alloc=(size, 2))
    ledger.save(name)

for limits, status, name in (("owner:3MiB", 0, None), ("owner:2.9MiB", 1, "UNET"), ("owner:30%", 1, "KSampler"),
                             ("owner:50x", 0, None), ("site:3MiB", 0, None), ("site:1MiB", 1, "work0"),
                             ("site:0x", 1, "work2"), ("2MiB", 0, None), ("0.5MiB,owner:1K", 1, None)):
    done = memstow("diff", "a", "b", f"--fail-over={limits}", "--json", status=status)
    document = json.loads(done.stdout)
    if name:
        assert name in done.stderr and f": over the limit of {limits}\n" in done.stderr, (limits, done.stderr)
        assert name in document["over_name"] and document["over"] == limits, (limits, document["over_name"])
    else:
        assert document["over_name"] is None and document["over"] == ("0.5MiB" if status else None), limits
done = memstow("diff", "a", "b", "--fail-over=owner:2MiB", "--by=module", status=1)
assert done.stderr == "memstow: UNET (wan) grew by 3.0 MiB and 0 blocks: over the limit of owner:2MiB\n", done.stderr
done = memstow("diff", "a", "b", "--fail-over=site:2MiB", "--by=model", status=1)
assert done.stderr == ("memstow: work0  train.py:10 grew by 3.0 MiB and 0 blocks: over the limit of "
                       "site:2MiB\n"), done.stderr
memstow("diff", "a", "b", "--fail-over=owner:", status=2)
memstow("diff", "a", "b", "--fail-over=thread:1K", status=2)
