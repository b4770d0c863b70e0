"""--fail-over=site:… with sampled stacks. Growth that is smaller than its error passes the limit, even if a damaged
file makes the error enormous."""
from _ledger import Ledger
from support import memstow


def save(name, size, blocks, sample):
    ledger = Ledger(stacks=3, sample_bytes=sample)
    ledger.unsampled()
    frame = ledger.python("work", "/app/train.py", 10)
    if size:
        ledger.count(ledger.site(stack=ledger.node([frame])), alloc=(size, blocks))
    ledger.save(name)


for before, after, blocks, sample, status in (
        (1 << 58, 0, 1 << 50, 1 << 40, 0), (1 << 20, 40 << 20, 1 << 10, 64 << 10, 1)):
    save("a", before, blocks, sample)
    save("b", after, blocks, sample)
    memstow("diff", "a", "b", "--fail-over=site:1", status=status)
