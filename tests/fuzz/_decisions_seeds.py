"""Seeds for the check of decisions: the trace without a fault, whole and in parts, and lines of odd kinds."""
import json, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from _decisions import LINES

lines = [json.dumps(line) for line in LINES]
lost = ['{"kind":"LOST","owner":3,"phase":"after","stack":["a","b"]}', '{"kind":"NEW"}', "{}", "no JSON"]
for name, part in (("clean", lines), ("lost", lines[10:] + lost), ("backwards", lines[::-1]), ("twice", lines[:32] * 2),
                   ("begun", lines[:14])):
    pathlib.Path(name).write_text("\n".join(part))
