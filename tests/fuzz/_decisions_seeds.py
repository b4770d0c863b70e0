"""Seeds for the check of decisions: a whole trace without a fault, parts of this trace, and unusual lines."""
import json, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from _decisions import LINES

lines = [json.dumps(line) for line in LINES]
lost = ['{"kind":"LOST","owner":3,"phase":"after","stack":["a","b"]}', '{"kind":"NEW"}', "{}", "no JSON"]
flags = [
    json.dumps({
        "kind": "SET", "by": "comfyui", "owner": 1, "patcher": 101, "inner": 201, "policy": "free", "flag": "f",
        "value": True
    }),
    json.dumps({
        "kind": "READ", "by": "comfyui", "owner": 1, "patcher": 111, "parents": [101], "inner": 201, "rule": "flag",
        "policy": "free", "flag": "f", "on_patcher": True, "on_inner": None, "from": 101
    })
]
for name, part in (("clean", lines), ("flags", flags + lines), ("lost", lines[10:] + lost), ("backwards", lines[::-1]),
                   ("twice", lines[:32] * 2), ("begun", lines[:14])):
    pathlib.Path(name).write_text("\n".join(part))
