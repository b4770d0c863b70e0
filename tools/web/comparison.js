/* comparison.js — the first view of a comparison: the growth from A to B.
 * In: the documents of the comparison and of both curves, and later the ledger. Out: both totals side by side, memory
 * over time in A and in B, and the largest changes. */

import { element } from "./dom.js";
import { HOST, Overview } from "./overview.js";
import { Timeline } from "./timeline.js";
import {
    blocksChangeText,
    changeText,
    countChangeText,
    countedText,
    countText,
    percentText,
    safeText,
    sizeText
} from "./words.js";

const TOTALS = [
    ["Live", "live_bytes", sizeText, changeText], ["Blocks", "live_blocks", countText, countChangeText],
    ["Peak", "peak_bytes", sizeText, changeText], ["Allocated", "allocated_bytes", sizeText, changeText],
    ["On CUDA devices", "cuda_live_bytes", sizeText, changeText],
];

export class Comparison extends Overview {
    isThere() {
        return this.page.diff !== null;
    }

    show(host) {
        const { diff } = this.page;
        host.replaceChildren(
            element("div.overview", {}, this.growth(diff), this.sides(diff), this.bothCurves(this.page.curves),
                this.lacks(), this.largest()));
        this.page.whenLoaded(() => this.fillLargest());
    }

    growth(diff) {
        const what = diff.measure === "peak" ? "The peak" : "Live memory";
        const share = percentText(Math.abs(diff.growth_bytes), diff.a.live_bytes);
        const changed = diff.growth_bytes > 0 ? "grew" : "shrank";
        const text = diff.growth_bytes ?
            `${what} ${changed} by ${sizeText(Math.abs(diff.growth_bytes))}${
                share && diff.measure !== "peak" ? `, ${share},` : ""} ` +
                `from A to B: ${changeText(diff.growth_bytes)} in ${blocksChangeText(diff.growth_blocks)}.` :
            `${what} is the same in A and B${
                diff.growth_blocks ? `: 0 B in ${blocksChangeText(diff.growth_blocks)}` : ""}.`;
        const over = diff.over ? ` That is over the limit of ${safeText(diff.over)}` +
            `${diff.over_name ? `, at ${safeText(diff.over_name)}` : ""}.` : "";
        return element(`section.card.headline${diff.over ? ".bad" : ""}`, { "aria-label": "In short" },
            element("p", {}, text + over));
    }

    sides(diff) {
        const rows = TOTALS.filter(([, key]) => diff.a[key] || diff.b[key]);
        const head = ["", "A", "B", "Change"].map((title) =>
            element("th", { scope: "col" }, title || element("span.off-screen", {}, "Memory")));
        return element("section.card.wide", { "aria-labelledby": "totals" },
            element("h2", { id: "totals" }, "A and B"),
            element("dl.sides", {},
                [ "a", "b" ].map(
                    (side) => [element("dt", {}, side.toUpperCase()),
                        element("dd", {},
                            `${safeText(diff[side].argument)}: ${safeText(diff[side].name)}, pid ${diff[side].pid}`)])),
            element("table.figures", {}, element("thead", {}, element("tr", {}, head)),
                element("tbody", {},
                    rows.map(([ name, key, say, sayChange ]) => this.side(name, key, say, sayChange, diff)))));
    }

    side(name, key, say, sayChange, { a, b }) {
        const change = b[key] - a[key];
        return element("tr", {}, element("th", { scope: "row" }, name),
            element("td", { "data-figure": `a_${key}` }, say(a[key])),
            element("td", { "data-figure": `b_${key}` }, say(b[key])),
            element("td", { "data-figure": `change_${key}`, class: change > 0 ? "grew" : change < 0 ? "shrank" : null },
                change ? sayChange(change) : "–"));
    }

    // ---- memory over time

    /** The curves of A and B, one below the other. Curves with too few points are left out. */
    bothCurves({ a, b }) {
        const sides = [["A", a], ["B", b]].map(([side, { history }]) => [side, new Map(this.curves(history, 0))]);
        const names = new Set(sides.flatMap(([, curves]) => [...curves.keys()]));
        if (!names.size) return null;
        return element("section.card.wide", { "aria-labelledby": "history" },
            element("h2", { id: "history" }, "Over time"),
            [...names].map((name) => this.curvesOf(name, sides.filter(([, curves]) => curves.has(name)))));
    }

    /** The curves of both sides for one kind of memory. They have the same scale of bytes, but not of time. */
    curvesOf(name, sides) {
        const scale = sides.flatMap(([, curves]) => curves.get(name).bytes).reduce((a, b) => Math.max(a, b), 1);
        return sides.map(([side, curves]) => [element("h3", {}, name === HOST ? side : `${side}, ${name}`),
            new Timeline(`${side}, ${name}`, { ...curves.get(name), scale }).element]);
    }

    /** Leaves out the names of runs and nodes, because an owner of A and an owner of B may have the same number. */
    pointWords({ host_bytes, mapped_bytes }, i) {
        return super.pointWords({ host_bytes, mapped_bytes, runs: [], nodes: [] }, i);
    }

    lacks() {
        const { sites_folded: folded } = this.page.about;
        return folded ? element("section.card.wide", { "aria-label": "To know" }, element("p.quiet", {},
            `${countedText(folded, "site that changed least is", "sites that changed least are")} ` +
                "merged into the nearest outer call stack. All sums are exact.")) : null;
    }
}
