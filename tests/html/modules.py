# needs: deb:nodejs
"""The page's modules by themselves. Each can be imported: every name that it imports exists, and it uses every import.
Rows come in order, however many are requested. Numbers and hidden characters are written correctly."""
import json, re, shutil

import support

WEB = support.ROOT / "tools/web"
modules = sorted(WEB.glob("*.js"))
assert len(modules) > 15
for module in modules:
    text = module.read_text()
    assert re.match(rf"/\* {module.name} — .*?\*/\n", text, re.S), f"{module.name} does not open with what it is"
    assert max(map(len, text.split("\n"))) <= 120, module.name
    body = re.sub(r"^import [^;]*;", "", text, flags=re.M)
    for names in re.findall(r"^import \{([^}]*)\}", text, re.M):
        for name in names.replace("\n", " ").split(","):
            assert re.search(rf"\b{name.strip()}\b", body), f"{module.name} takes {name.strip()}, and does not use it"

# Older versions of Node want to be told that files are modules.
COPY = support.HERE / "web"
shutil.copytree(WEB, COPY)
(COPY / "package.json").write_text('{"type": "module"}')

support.run("node", "--input-type=module", "-e", f"""
globalThis.addEventListener = () => {{}};
for (const file of {json.dumps([(COPY / module.name).as_uri() for module in modules])}) await import(file);
""")

support.run("node", "--input-type=module", "-e", f"""
import assert from "node:assert/strict";
const {{ Order }} = await import({json.dumps((COPY / "order.js").as_uri())});
let state = 7;
const any = (below) => (state = (state * 48271) % 2147483647) % below;
for (const [count, kinds] of [[0, 1], [1, 1], [5, 3], [1999, 10], [50000, 1], [50000, 3], [50000, 40000],
                              [50000, 2 ** 30]])
    for (const up of [false, true]) {{
        const figures = Float64Array.from({{ length: count }}, () => any(kinds) - kinds / 2);
        const rows = Int32Array.from({{ length: count }}, (_, i) => i);
        const sorted = Array.from(figures).sort((a, b) => (up ? a - b : b - a));
        const order = new Order(rows, figures, up);
        for (const from of [0, 40, count >> 1, count - 30, 10, -5]) {{
            const seen = Array.from(order.slice(from, from + 60), (row) => figures[row]);
            const expected = sorted.slice(Math.max(from, 0), Math.max(from + 60, 0));
            assert.deepEqual(seen, expected, `${{count}} ${{kinds}} ${{from}}`);
        }}
        assert.deepEqual(Array.from(order.slice(0, count), (row) => figures[row]), sorted);
        assert.equal(new Set(order.rows).size, count);
    }}
// A file may have any number of marks.
const {{ Timeline }} = await import({json.dumps((COPY / "timeline.js").as_uri())});
const timeline = Object.create(Timeline.prototype);
const marks = Array.from({{ length: 500000 }}, (_, i) => ({{ seconds: i % 5 }}));
timeline.curve = {{ seconds: [0, 1, 2, 3, 4], marks }};
assert.deepEqual([timeline.markFrom(2, 1), timeline.markFrom(2, -1), timeline.markFrom(4, 1), timeline.markFrom(0, -1)],
                 [3, 1, 4, 0]);
const words = await import({json.dumps((COPY / "words.js").as_uri())});
assert.equal(words.sizeText(0), "0 B");
assert.equal(words.ownerText({{ kind: "model", name: "UNET", origin: "wan.st" }}), "UNET (wan.st)");
assert.equal(words.ownerText({{ kind: "node", name: "KSampler", origin: "node 3" }}), "KSampler");
assert.equal(words.sizeText(1023), "1,023 B");
assert.equal(words.sizeText(1024), "1.0 KiB");
assert.equal(words.sizeText(1048575), "1.0 MiB");
assert.equal(words.changeText(-3 * 2 ** 30), "−3.0 GiB");
assert.equal(words.changeText(5), "+5 B");
assert.equal(words.percentText(1, 100000), "< 0.1 %");
assert.equal(words.percentText(1, 0), "");
assert.equal(words.durationText(0.0123), "12 ms");
assert.equal(words.durationText(200), "3 min 20 s");
assert.equal(words.durationText(90061), "1 d 1 h");
assert.equal(words.safeText("a\\u0000\\u202eb\\u007f\\u009b"), "a␀⟨U+202E⟩b␡⟨U+009B⟩");
assert.equal(words.shortPath("/x/torch/__init__.py"), "torch/__init__.py");
const {{ readState, writeState }} = await import({json.dumps((COPY / "state.js").as_uri())});
const usual = {{ view: "a", unit: "bytes", find: "", only: false, focus: -1 }};
const state1 = {{ ...usual, view: "flame", find: "a b&c=#?%", only: true, focus: 7 }};
assert.deepEqual(readState(writeState(state1, usual), usual), state1);
assert.equal(writeState(usual, usual), "#a");
assert.deepEqual(readState("#b?unit=zzz&only=1&__proto__=x&focus=x", usual),
                 {{ ...usual, view: "b", only: true, focus: 0 }});
""")
