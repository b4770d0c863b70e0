/* leaks.js — the view of leaks.
 * In: the document of leaks. Out: memory that grows from run to run, with its curve; memory that retired owners left
 * behind, with its holders; and the number of sites that only look like leaks. */

import { copyText, element } from "./dom.js";
import { blocksText, countedText, countText, ownerText, safeText, shortPath, sizeText } from "./words.js";

const LEAKS_SHOWN = 100;
const RESTS = {
    one_off : "came once: initialisation",
    plateau: "stopped growing: caches that are full",
    fluctuates: "comes and goes",
    young : "came in the last runs: too recent to tell",
    small: "grows too little to count",
    kept: "in owners whose policy is keep",
    undecided: "too few runs to tell",
    threads: "came with threads that were started"
};

export class LeaksView {
    constructor(page) {
        this.page = page;
        this.key = "leaks";
        this.name = "Leaks";
    }

    isThere() {
        return this.page.leaks !== null;
    }

    show(host) {
        const { leaks } = this.page;
        const retired = leaks.retired.filter(({ leak, same_cause: same }) => leak && !same);
        host.replaceChildren(element("div.decisions", {}, this.verdict(leaks),
            leaks.leaks.slice(0, LEAKS_SHOWN).map((finding) => this.finding(finding, true)),
            retired.slice(0, LEAKS_SHOWN).map((owner) => this.retired(owner)),
            this.more(beyond(leaks.leaks) + beyond(retired)),
            leaks.kept.length ? element("h2", {}, "Grows, as its policy says") : null,
            leaks.kept.slice(0, LEAKS_SHOWN).map((finding) => this.finding(finding, false)),
            this.more(beyond(leaks.kept)), this.rest(leaks)));
    }

    more(count) {
        return count ? element("p.quiet", {}, `… and ${countText(count)} more: --json has them.`) : null;
    }

    verdict({ found, verdict, why, advice, runs, readings, ended_in_order: inOrder, sampled }) {
        const text = found ? countedText(found, "leak", "leaks")
            : verdict === "cannot_tell" ? `Cannot tell: ${safeText(why)}` : "No leak was found";
        const of = readings.judged && !runs.judged ?
            `${countedText(readings.taken, "reading was", "readings were")} taken, ${
                countText(readings.judged)} judged.` :
            `${countedText(runs.ended, "run has", "runs have")} ended, ${countText(runs.judged)} judged.`;
        return element(`section.card.headline${found ? ".bad" : ""}`, { "aria-label": "In short" },
            element("p", {}, `${text}. ${of}`), advice ? element("p", {}, `What to do: ${safeText(advice)}.`) : null,
            inOrder ?
                element("p.quiet", {}, "The process ended in order: what leaked may have been freed at the end.") :
                null,
            sampled ? element("p.quiet", {}, "Call stacks are sampled: leaks are told by owner.") : null);
    }

    // ---- findings of memory that grows

    finding(finding, leak) {
        const owner = partText(finding);
        const title =
            `${sizeText(Math.round(finding.bytes_per_run))} a run${holderTitle(finding)}${owner ? `, ${owner}` : ""}`;
        const facts = [["Held by", finding.holders.map(holderText).join("; ")],
            ["Left", `${sizeText(finding.live_bytes)} in ${blocksText(finding.live_blocks)}`],
            ["Confidence", safeText(finding.confidence)],
            ["Grew", `${countText(finding.grew)} of ${countText(finding.judged)} ${safeText(finding.judged_by)}`],
            ["Since", finding.oldest_run && safeText(finding.oldest_run)],
            ["On", finding.on_cuda ? "CUDA devices" : ""],
            ["Owners", finding.parts.length > 1 ? ownersText(finding.parts) : ""],
            ["Call stacks", finding.stacks > 1 ? `${countText(finding.stacks)}, the one that grew most:` : ""]];
        return element(`section.card.trigger${leak ? ".leak" : ""}`, { "aria-label": title },
            element("h2", {}, title), this.curve(finding.curve ?? []), this.facts(facts), this.stack(finding.stack));
    }

    facts(facts) {
        return element("dl.facts", {}, facts.filter(([, text]) => text).map(([name, text]) =>
            [element("dt", {}, name), element("dd", {}, text)]));
    }

    /** The curve of a leak's bytes over the runs, without a scale. */
    curve(changes) {
        if (changes.length < 2) return null;
        let sum = 0;
        const points = changes.map(([at, bytes]) => [at, (sum += bytes)]);
        const [first, last] = [points[0][0], points[points.length - 1][0]];
        const most = Math.max(...points.map(([, bytes]) => bytes), 1);
        const x = (at) => (300 * (at - first)) / Math.max(last - first, 1);
        const path = points
                         .map(([ at, bytes ], i) =>
                                  `${i ? "L" : "M"}${x(at).toFixed(1)} ${(58 - (54 * bytes) / most).toFixed(1)}`)
                         .join("");
        return drawing("0 0 300 60",
            [ [ "path", { d: `${path}L300 60L0 60Z`, class: "area" } ], [ "path", { d: path, class: "line" } ] ],
            `Grew to ${sizeText(sum)} in ${countText(points.length)} steps`);
    }

    stack(frames) {
        if (!frames.length) return null;
        const text = frames.map(frameText).join("\n") + "\n";
        const copy = element("button", { type: "button", onclick: () => copyText(text, copy) }, "Copy stack");
        return element("details", {}, element("summary", {}, frameText(caller(frames))),
            element("div.actions", {}, copy),
            element("ol.stack", {},
                frames.map((frame) => element("li", {}, frame.kind === "python" ? element("i.py", {}, "py") : null,
                               element("span.name", {}, safeText(frame.function ?? "(unknown)")),
                               element("span.place", {},
                                   safeText(frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ""}` :
                                                                                      frame.module ?? ""))))));
    }

    // ---- memory of retired owners

    retired(owner) {
        const title = `${owner.kind} ${safeText(ownerText(owner))} is gone, and left ${sizeText(owner.live_bytes)}`;
        const facts = [["Held by", owner.holders.map(holderText).join("; ")],
            ["Blocks", countText(owner.live_blocks)], ["Allocated", sizeText(owner.allocated_bytes)],
            ["Origin", safeText(owner.origin ?? "")], ["Runs since", countText(owner.runs_since)]];
        return element("section.card.trigger.leak", { "aria-label": title }, element("h2", {}, title),
            this.facts(facts),
            owner.sites.map(
                (site) => [element("p", {}, `${sizeText(site.live_bytes)} in ${blocksText(site.live_blocks)}`),
                    this.stack(site.stack)]));
    }

    // ---- sites that do not leak

    rest({ not_leaks: rest }) {
        const rows = Object.entries(RESTS).filter(([key]) => rest[key]?.sites).map(([key, words]) => element("tr", {},
            element("th", { scope: "row" }, words), element("td.number", {}, countText(rest[key].sites)),
            element("td.number", {}, sizeText(rest[key].live_bytes))));
        if (rest.allocator_retained_bytes)
            rows.push(element("tr", {}, element("th", { scope: "row" }, "freed memory that the allocator keeps"),
                element("td"), element("td.number", {}, sizeText(rest.allocator_retained_bytes))));
        if (!rows.length) return null;
        return element("section.card", { "aria-labelledby": "rest" },
            element("h2", { id: "rest" }, "Not counted as leaks"),
            element("table.plain", {},
                element("thead", {},
                    element("tr", {},
                        [ "", "Sites", "Live" ].map(
                            (title, i) => element("th", { scope: "col", class: i ? "number" : null },
                                title || element("span.off-screen", {}, "Kind"))))),
                element("tbody", {}, rows)));
    }
}

/** How many findings of a list are not shown. */
function beyond(list) {
    return Math.max(0, list.length - LEAKS_SHOWN);
}

function drawing(viewBox, parts, label) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries({ viewBox, class: "curve", role: "img", "aria-label": label,
        preserveAspectRatio: "none" })) made.setAttribute(name, value);
    for (const [name, attributes] of parts) {
        const part = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
        made.append(part);
    }
    return made;
}

/** The words for the pack at fault, which stand in the title before the node that allocated. */
function holderTitle({ held_by: pack }) {
    return pack ? `, held by ${safeText(pack)}` : "";
}

function ownersText(parts) {
    return [...new Set(parts.map(partText).filter(Boolean))].join("; ");
}

function partText({ model, origin, node }) {
    return [model && ownerText({ kind: "model", name: model, origin }), node].filter(Boolean).map(safeText).join(" · ");
}

function holderText(holder) {
    return safeText(typeof holder === "string" ? holder : JSON.stringify(holder));
}

function frameText({ function: name, file, line, module, kind }) {
    const place = file ? shortPath(file) + (line ? `:${line}` : "") : shortPath(module ?? "");
    return safeText(`${kind === "python" ? "py " : ""}${name ?? "(unknown)"}${place ? `  ${place}` : ""}`);
}

const ALLOCATES = /^(operator new|std::|__gnu_cxx::)|(malloc|calloc|realloc|memalign)$/i;

/** The line that represents a stack. The rule is that of callerOf() in ledger.js, but fewer functions count as
 * allocators. */
function caller(frames) {
    return frames.find(({ kind, file }) => kind === "python" && !file?.startsWith("<frozen importlib")) ??
        frames.find((frame) => !ALLOCATES.test(frame.function ?? "")) ?? frames[0];
}
