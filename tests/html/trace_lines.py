# needs: deb:nodejs
"""A program may write lines of the trace with members of any type (memstow_trace). The page leaves out members of a
wrong type, and shows the rest. A program's line is no part of a trigger, even if it says so."""
import json, shutil

import support

# Older versions of Node want to be told that files are modules.
COPY = support.HERE / "web"
shutil.copytree(support.ROOT / "tools/web", COPY)
(COPY / "package.json").write_text('{"type": "module"}')

NO_TEXT = {"toString": 1, "valueOf": 1}
LINES = [
    {"kind": "TRIGGER", "trigger": 1, "reason": "request", "text": NO_TEXT},
    {"kind": "DECISION", "trigger": 1, "owner": 7, "policy": NO_TEXT, "action": "free", "why": "policy"},
    {"kind": "CATEGORY", "trigger": 1, "owner": 7, "category": ["freed"], "before_bytes": "many"},
    {"kind": "REMAINING", "trigger": 1, "owner": 7, "bytes": {}, "why": NO_TEXT},
    {"kind": "ACT", "trigger": 1, "kept": 2, "took_ns": "long", "before_bytes": None},
    {"kind": "HELD", "by": "program", "owner": 7, "holders": "cache"},
    {"kind": "HELD", "by": "program", "owner": 7, "holders": [NO_TEXT]},
    {"kind": "ACT", "by": "program", "trigger": 1, "kept": 9},
    {"kind": "TRIGGER", "by": "program", "trigger": 2, "reason": "request"},
    {"kind": "constructor", "by": "program", "owner": 7},
    {"kind": "TRIGGER", "trigger": "one"},
    {"kind": "SET", "owner": 7, "policy": 1},
    {"kind": NO_TEXT, "owner": 7},
    {"kind": "REMAINING", "trigger": 1, "owner": 8, "bytes": 5, "why": "constructor"},
    {"kind": "HELD", "by": "program", "owner": 8, "holders": ["node cache: node 4"]},
]

support.run("node", "--input-type=module", "-e", f"""
import assert from "node:assert/strict";
const load = (name) => import({json.dumps(COPY.as_uri())} + "/" + name);
const {{ Trace }} = await load("trace.js");
const {{ OwnersView }} = await load("owners.js");
const {{ DecisionsView }} = await load("decisions.js");

// A test double of the browser's elements: it only collects their text.
globalThis.document = {{ createElement: () => ({{ text: "", setAttribute() {{}}, addEventListener() {{}},
    append(...children) {{ for (const child of children) this.text += child.text ?? child; }} }}) }};

const trace = new Trace({{ process: {{ start_ns: 5 }}, lines: {json.dumps(LINES)} }});
const page = {{ trace, ownerName: (id) => `owner ${{id}}` }};
const owners = Object.assign(Object.create(OwnersView.prototype), {{ page }});
const text = (id, key) => owners.text({{ id, live_bytes: 1 }}, key);
assert.deepEqual([text(7, "why"), text(7, "held")], ["", ""]);
assert.deepEqual([text(8, "why"), text(8, "held")], ["constructor", "node cache: node 4"]);
const history = trace.historyOf(7).map((line) => owners.event(line).text);
assert.equal(history.length, 8);
assert.ok(!String(history).includes("undefined"), String(history));
assert.ok(history[0].startsWith("free: its policy"), history[0]);
assert.ok(history[3].startsWith("held by an unknown holder") && history[5] === "constructor", String(history));
assert.deepEqual(trace.triggers.map(({{ line, act }}) => [line.trigger, act.kept]), [[1, 2]]);
const decisions = Object.assign(Object.create(DecisionsView.prototype), {{ page }});
const shown = decisions.trigger(trace.triggers[0]).text;
assert.ok(shown.includes("Trigger 1: somebody asked") && shown.includes("2 kept. 0 B were given back: 0 B before, 0 B"),
          shown);
assert.ok(!shown.includes("NaN"), shown);
""")
