"""If the program registers its owners, watch shows the growth of a process by model, node, run and call stack. The
growth of an owner does not contain memory that other owners allocate meanwhile."""
import pathlib, re, signal, subprocess

from support import MEMSTOW, PYTHON, ROOT, start, wait_for

pathlib.Path("app.py").write_text(f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(ROOT / "tools/python")!r})
import memstow
unet, vae, sampler = memstow.owner("UNET"), memstow.owner("VAE"), memstow.owner("KSampler", kind="node")
asked, kept = [], []
def again(*_):
    asked.append(1)
    if len(asked) == 2:
        os._exit(0)
def remember(size):
    kept.append(bytearray(size))
def aside():
    while True:
        remember(3000)
        time.sleep(0.1)
signal.signal(signal.SIGTERM, again)
kept.append(vae)
threading.Thread(target=aside, daemon=True).start()
with memstow.run("third"), memstow.scope(unet), memstow.scope(sampler):
    open("ready", "w").close()
    while True:
        remember(15000)
        time.sleep(0.1)
""")
process = start(MEMSTOW, "watch", "--quiet", "--grace=5s", "--end", "--", PYTHON, "app.py", stderr=subprocess.PIPE,
                text=True)
wait_for(lambda: pathlib.Path("ready").exists(), 60)
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=90)[1]
rows = re.findall(r"^ +(\S+) KiB/s, (.*)\n((?: {8,}.*\n)*)", text, re.M)
(much, owners, stack), (little, others, aside) = rows[:2]
assert owners == "model UNET, node KSampler, run third" and others == "run third", rows
assert "py remember  app.py:12\n" in stack, text
assert "py aside  app.py:" in aside, text
assert 75 < float(much) < 200 and 15 < float(little) < 40, rows # a quiet machine shows 150 and 30
assert "VAE" not in text, text
