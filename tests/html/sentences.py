# needs: deb:nodejs
"""Sentences and figures of the page, in Node over a double of the document that keeps elements and draws nothing. A
count of one has the singular, and the parts of the resident memory add up to the whole."""
import json, shutil

import support

COPY = support.HERE / "web" # older versions of Node want to be told that files are modules
shutil.copytree(support.ROOT / "tools/web", COPY)
(COPY / "package.json").write_text('{"type": "module"}')

support.run("node", "--input-type=module", "-e", f"""
import assert from "node:assert/strict";
class Double {{
    attributes = {{}}; dataset = {{}}; style = {{}}; children = [];
    append(...children) {{ this.children.push(...children); }}
    setAttribute(name, value) {{ this.attributes[name] = value; }}
    addEventListener() {{}}
    get textContent() {{ return this.children.map((one) => one.textContent ?? String(one)).join(""); }}
    all(name) {{
        return [this, ...this.children.flatMap((one) => one.all?.(name) ?? [])].filter((one) => name in one.attributes);
    }}
}}
globalThis.document = {{ createElement: () => new Double(), createElementNS: () => new Double() }};
const module = (name) => import({json.dumps(COPY.as_uri())} + `/${{name}}.js`);
const has = (shown, text) => assert.ok(shown.textContent.includes(text), `${{text}} is not in: ${{shown.textContent}}`);

const words = await module("words");
assert.equal(words.countedText(1, "site", "sites"), "1 site");
assert.equal(words.countedText(1200, "site", "sites"), "1,200 sites");
assert.equal(words.blocksChangeText(1), "+1 block");
assert.equal(words.blocksChangeText(-1), "−1 block");
assert.equal(words.blocksChangeText(0), "0 blocks");

// Resident memory: each part of the document counts once. The headers of blocks are a part of memstow's memory.
const {{ Overview }} = await module("overview");
const parts = {{ live_bytes: 1000, overhead_bytes: 200, retained_bytes: 300, mapped_anonymous_bytes: 400,
    program_data_bytes: 500, mapped_file_bytes: 600, stowed_resident_bytes: 700, device_stowed_bytes: 800,
    device_buffer_bytes: 900, stack_bytes: 110, memstow_bytes: 120, rest_bytes: 130 }};
const rss_bytes = Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);
const legend = new Overview({{}}).residency({{ ...parts, rss_bytes, memstow_header_bytes: 50 }}).all("data-bytes");
const shown = legend.map((one) => Number(one.attributes["data-bytes"]));
assert.deepEqual(shown.sort(), Object.values(parts).sort());

// How the process ended, in the words of the text report.
const {{ processLines }} = await module("overview");
const ends = {{ running: "still running", exited: "exited", abrupt_exit: "ended by _exit", execed: "replaced itself",
    killed: "killed by SIGKILL", raw_exit: "exited with 3, by a system call that memstow does not see",
    ended_unseen: "ended unseen, by a raw exit or a signal", unknown: "in an unknown state" }};
for (const [state, said] of Object.entries(ends)) {{
    const [line] = processLines({{ pid: 7, state, exit_status: 3, signal: "SIGKILL", elapsed_seconds: 1 }});
    assert.ok(line.startsWith(`pid 7, ${{said}}, tracked for `), line);
}}

// One run, one block, one site.
const {{ LeaksView }} = await module("leaks");
const verdict = {{ found: 0, verdict: "none", readings: {{}}, advice: null }};
const leaks = new LeaksView({{}});
has(leaks.verdict({{ ...verdict, runs: {{ ended: 1, judged: 0 }} }}), "1 run has ended, 0 judged.");
has(leaks.verdict({{ ...verdict, runs: {{ ended: 9, judged: 5 }} }}), "9 runs have ended, 5 judged.");
const {{ Comparison }} = await module("comparison");
const sides = {{ a: {{ live_bytes: 4096 }}, b: {{ live_bytes: 4096 }} }};
const comparison = new Comparison({{ about: {{ sites_folded: 1 }} }});
const grew = (bytes, blocks) => comparison.growth({{ ...sides, growth_bytes: bytes, growth_blocks: blocks }});
has(grew(1024, 1), "Live memory grew by 1.0 KiB, 25.0 %, from A to B: +1.0 KiB in +1 block.");
has(grew(0, 3), "Live memory is the same in A and B: 0 B in +3 blocks.");
has(grew(0, 0), "Live memory is the same in A and B.");
has(comparison.lacks(), "1 site that changed least is merged");

const {{ DecisionsView }} = await module("decisions");
const decisions = new DecisionsView({{ trace: {{ triggers: Array.from({{ length: 51 }}), document: {{}} }} }});
decisions.trigger = () => new Double();
decisions.show({{ replaceChildren: (one) => has(one, "Show 1 earlier trigger") }});
const {{ BlocksView }} = await module("blocks");
const host = {{}};
const now = {{ view: "blocks", sort: "", row: -1 }};
const blocks = new BlocksView({{ about: {{ blocks_omitted: 1 }}, state: {{ now }} }});
Object.assign(blocks, {{ figures: {{ size: [5] }}, whole: {{ parentNode: host }}, draw: () => {{}},
    table: {{ show: (_, {{ words: said }}) => {{ blocks.said = said; }} }} }});
await blocks.show(host);
assert.equal(blocks.said, "1 block or mapping; 1 smaller one is left out");

// A moment of the curve: the run that goes on, and its mark.
const {{ Timeline }} = await module("timeline");
globalThis.ResizeObserver = class {{ observe() {{}} }};
const marks = [{{ kind: "run_began", owner: 1, name: "a", seconds: 0 }},
    {{ kind: "run_ended", owner: 1, name: "a", seconds: 0, detail: "failed" }}];
const line = new Timeline("x", {{ seconds: [0], bytes: [5], end: 1, marks, wordsOf: () => "run a" }});
assert.equal(line.moment(0), "After 0 ms: 5 B, run a, run a began, run a ended (failed)");

// A check may fail by its blocks, while the bytes shrink.
const {{ Verdict }} = await module("verdict");
const over = {{ verdict: "over", kind: "total", over: "100x" }};
const check = (bytes, blocks) => new Verdict({{}}).result({{ result: "fail", runs: 1, measure: "live",
    findings: [{{ ...over, growth_bytes: bytes, growth_blocks: blocks }}] }});
has(check(2048, 1), "All memory grew by 2.0 KiB and 1 block: over the limit of 100x.");
has(check(-2048, 101), "All memory changed by −2.0 KiB and +101 blocks: over the limit of 100x.");

// The lists of findings say how many are not shown.
const grows = (count) => Array.from({{ length: count }}, () => null);
leaks.finding = leaks.retired = leaks.rest = leaks.verdict = () => new Double();
const show = (document) => {{
    leaks.page = {{ leaks: {{ leaks: [], retired: [], kept: [], ...document }} }};
    let view;
    leaks.show({{ replaceChildren: (one) => {{ view = one; }} }});
    return view;
}};
has(show({{ leaks: grows(102) }}), "… and 2 more: --json has them.");
const gone = grows(40).map(() => ({{ leak: true, same_cause: false }}));
assert.ok(!show({{ leaks: grows(80), retired: gone }}).textContent.includes("more"), "80 and 40 are all shown");
""")
