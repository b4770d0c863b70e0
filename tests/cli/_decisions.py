"""A trace of decisions without a fault: the lines that memstow and a program with models write in two runs. A test that
changes one line gets a trace with one fault."""
from _ledger import MIB, Ledger

MODEL, CUSTOM = 1, 4
UNET, CLIP, VAE, OLD, CACHE, IDLE = range(1, 7)

LINES = [
    # Policies are set. A line of memstow names the owner. A line of ComfyUI names a patcher and its inner model, or
    # only an inner model. The VAE gets no policy.
    dict(kind="SET", owner=UNET, owner_kind="model", name="unet.safetensors", keys=[101, 201], policy="free",
         priority=0),
    dict(kind="SET", by="comfyui", owner=UNET, patcher=101, inner=201, policy="free"),
    dict(kind="SET", owner=CLIP, owner_kind="model", name="clip.safetensors", keys=[102, 202], policy="keep",
         priority=5),
    dict(kind="SET", by="comfyui", owner=CLIP, patcher=102, inner=202, policy="keep"),
    dict(kind="SET", by="comfyui", owner=CACHE, inner=205, policy="free"),
    dict(kind="SET", owner=CACHE, owner_kind="custom", name="feature cache", keys=[0, 0], policy="stow", priority=0),
    # The first run. It uses a clone of the UNET's patcher; the policy is found at the clone's parent. The cache is
    # stowed instead of freed.
    dict(kind="READ", by="comfyui", owner=UNET, patcher=111, parents=[999, 101], inner=201, rule="parent",
         policy="free"),
    dict(kind="READ", by="comfyui", owner=CLIP, patcher=102, parents=[], inner=202, rule="patcher", policy="keep"),
    dict(kind="READ", by="comfyui", owner=VAE, patcher=103, parents=[], inner=203, rule="default", policy="keep"),
    dict(kind="READ", by="comfyui", owner=CACHE, patcher=105, parents=[], inner=205, rule="inner", policy="free",
         instead="stow", because="unknown cache class"),
    dict(kind="TRIGGER", trigger=1, reason="run_ended", text="ok", needed=0, owners=6, before_bytes=1200 * MIB,
         began_ns=11 * 10**9 + 1),
    dict(kind="DECISION", trigger=1, owner=UNET, policy="free", action="free", why="policy", bytes=512 * MIB),
    dict(kind="DECISION", trigger=1, owner=CACHE, policy="stow", action="stow", why="policy", bytes=128 * MIB),
    dict(kind="DECISION", trigger=1, owner=CLIP, policy="keep", action="keep", why="policy", bytes=256 * MIB),
    dict(kind="DECISION", trigger=1, owner=VAE, policy="keep", action="keep", why="nothing_said", bytes=256 * MIB),
    dict(kind="DECISION", trigger=1, owner=OLD, policy="free", action="keep", why="retired", bytes=48 * MIB),
    dict(kind="DECISION", trigger=1, owner=IDLE, policy="keep", action="keep", why="empty", bytes=0),
    dict(kind="CATEGORY", trigger=1, owner=UNET, category="freed", before_bytes=512 * MIB, after_bytes=MIB,
         stowed_bytes=0),
    dict(kind="CATEGORY", trigger=1, owner=CACHE, category="stowed", before_bytes=128 * MIB, after_bytes=128 * MIB,
         stowed_bytes=127 * MIB),
    dict(kind="CATEGORY", trigger=1, owner=CLIP, category="kept", before_bytes=256 * MIB, after_bytes=256 * MIB,
         stowed_bytes=0),
    dict(kind="CATEGORY", trigger=1, owner=VAE, category="kept", before_bytes=256 * MIB, after_bytes=256 * MIB,
         stowed_bytes=0),
    dict(kind="CATEGORY", trigger=1, owner=OLD, category="blocked", before_bytes=48 * MIB, after_bytes=48 * MIB,
         stowed_bytes=0),
    dict(kind="REMAINING", trigger=1, owner=UNET, bytes=MIB, stowed_bytes=0, why="alive"),
    dict(kind="REMAINING", trigger=1, owner=CACHE, bytes=128 * MIB, stowed_bytes=127 * MIB, why="stowed"),
    dict(kind="REMAINING", trigger=1, owner=CLIP, bytes=256 * MIB, stowed_bytes=0, why="policy"),
    dict(kind="REMAINING", trigger=1, owner=VAE, bytes=256 * MIB, stowed_bytes=0, why="nothing_said"),
    dict(kind="REMAINING", trigger=1, owner=OLD, bytes=48 * MIB, stowed_bytes=0, why="retired"),
    dict(kind="ACT", trigger=1, kept=2, stowed=1, freed=1, blocked=1, models_before=5, models_after=4,
         before_bytes=1200 * MIB, after_bytes=689 * MIB, moved_bytes=127 * MIB, released_bytes=65536,
         given_bytes=638 * MIB, took_ns=1234567890),
    dict(kind="HELD", by="comfyui", owner=OLD, holders=["node cache: node 4", "list in module planted_nodes: KEEP"]),
    # The second run. The policy of the CLIP is removed, and then set on the inner model only.
    dict(kind="SET", by="comfyui", owner=CLIP, patcher=102, inner=202, policy="none"),
    dict(kind="SET", by="comfyui", owner=CLIP, inner=202, policy="free"),
    dict(kind="SET", owner=CLIP, owner_kind="model", name="clip.safetensors", keys=[102, 202], policy="free",
         priority=5),
    dict(kind="TRIGGER", trigger=2, reason="pressure", text="too much memory is in use", needed=MIB, owners=1,
         before_bytes=256 * MIB),
    dict(kind="READ", by="comfyui", owner=CLIP, patcher=102, parents=[], inner=202, rule="inner", policy="free"),
    dict(kind="DECISION", trigger=2, owner=CLIP, policy="free", action="keep", why="in_use", bytes=256 * MIB),
    dict(kind="CATEGORY", trigger=2, owner=CLIP, category="blocked", before_bytes=256 * MIB, after_bytes=256 * MIB,
         stowed_bytes=0),
    dict(kind="REMAINING", trigger=2, owner=CLIP, bytes=256 * MIB, stowed_bytes=0, why="in_use"),
    dict(kind="ACT", trigger=2, kept=0, stowed=0, freed=0, blocked=1, models_before=1, models_after=1,
         before_bytes=256 * MIB, after_bytes=256 * MIB, moved_bytes=0, released_bytes=0, given_bytes=0, took_ns=1000),
]


def clean(lines=LINES, first=1):
    """The ledger with these lines. `first` is the number of the first line."""
    ledger = Ledger()
    for name in ("unet.safetensors", "clip.safetensors", "vae.safetensors", "an old model", "feature cache", "idle"):
        ledger.owner(CUSTOM if name == "feature cache" else MODEL, name)
    for number, line in enumerate(lines):
        ledger.line(number + first, **line)
    return ledger
