/* overview.js — the first view: how much memory there is, where it is, and what to look at.
 * In: the report's document, and later the ledger. Out: a few figures, bars and lists with links to the other views. */

import { bar, element } from "./dom.js";
import { RangeCard, rangeOf, rangeText } from "./range.js";
import { markWords, Timeline } from "./timeline.js";
import {
    blocksText,
    changeText,
    countedText,
    countText,
    durationText,
    percentText,
    safeText,
    sizeText,
    whenText
} from "./words.js";

const LISTED = 8;
const POINTS_LEAST = 4;
export const HOST = "Live memory"; // the curve that needs no heading of its own

export class Overview {
    constructor(page) {
        this.page = page;
        this.key = "overview";
        this.name = "Overview";
        this.heavy = element("div.card-body", {}, element("p.quiet", {}, "Unpacking call stacks …"));
    }

    isThere() {
        return this.page.report !== null;
    }

    /** @param {HTMLElement} host */
    show(host) {
        if (!this.whole) this.make(this.page.report);
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        this.showRange();
    }

    make(report) {
        this.timelines = [];
        this.whole = element("div.overview", {}, this.headline(report),
            this.history(report),
            element("div.column", {}, this.totals(report.totals), this.devices(report), this.notes(report)),
            element("div.column", {}, this.residency(report.residency)), this.largest());
        this.page.whenLoaded(() => this.fillLargest());
    }

    // ---- the sentence about what to look at

    headline(report) {
        const advice = report.residency?.advice;
        const { totals } = report;
        const sentences = [`${sizeText(totals.live_bytes)} are live in ${blocksText(totals.live_blocks)}.`];
        if (totals.cuda.live_bytes) sentences.push(`${sizeText(totals.cuda.live_bytes)} more are on CUDA devices.`);
        if (totals.peak_bytes > 1.05 * totals.live_bytes)
            sentences.push(`At its peak the process held ${sizeText(totals.peak_bytes)}.`);
        if (advice) sentences.push(safeText(advice));
        const { where, next } = this.page.about;
        return element("section.card.headline", { "aria-label": "In short" },
            where ? element("p", { "data-lead": "where" }, `${safeText(where)}.`) : null,
            element("p", {}, sentences.join(" ")), next ? this.next(safeText(next)) : null);
    }

    /** The line on what to do next. In a sentence "memstow …: what it shows", the command is marked as code. */
    next(sentence) {
        const [ , command, rest ] = /^(memstow [^:]*)(.*)$/s.exec(sentence) ?? [ "", "", sentence ];
        return element("p", { "data-lead": "next" }, "Next: ", command ? element("code", {}, command) : null,
            `${rest}.`);
    }

    // ---- memory over time; curves with too few points are left out

    history({ history, process }) {
        const curves = this.curves(history, process.elapsed_seconds ?? 0);
        if (!curves.length) return null;
        this.timelines = curves.map(([name, curve]) => new Timeline(name, curve, (range) => this.chooseRange(range)));
        this.range = new RangeCard(this.page, curves, curves[0][1].end);
        return element("section.card.wide", { "aria-labelledby": "history" },
            element("h2", { id: "history" }, "Over time"), curves.map(([name], i) => [
                name === HOST ? null : element("h3", {}, name), this.timelines[i].element]),
            element("p.quiet.how", {}, "Draw over the curve, or press Shift and an arrow key, to choose a range."),
            this.range.element);
    }

    // ---- a range of time

    chooseRange(range) {
        const [from, to] = range?.map(rangeText) ?? ["", ""];
        this.page.state.change({ from, to }, true);
    }

    /** Shows the range that the page's address has. */
    showRange() {
        if (!this.timelines.length) return;
        const range = rangeOf(this.page.state.now, this.range.end);
        for (const timeline of this.timelines) timeline.setRange(range);
        this.range.show(range, () => this.chooseRange(null));
    }

    /** Returns pairs of a name and a curve. Heap and mappings have one curve together; each device has a curve. */
    curves(history, elapsed) {
        const { seconds, host_bytes, mapped_bytes, devices, marks } = history ?? { seconds: [], devices: [] };
        const end = [seconds, ...devices.map((device) => device.seconds)].reduce(
            (last, times) => Math.max(last, times[times.length - 1] ?? 0), elapsed);
        const list = [[HOST, { seconds, bytes: seconds.map((_, i) => host_bytes[i] + mapped_bytes[i]), marks,
            end, markWords, wordsOf: (i) => this.pointWords(history, i) }]];
        for (const { device, seconds: times, bytes } of devices)
            list.push([`CUDA device ${device}`, { seconds: times, bytes, marks, end, markWords, wordsOf: () => "" }]);
        return list.filter(([, curve]) => curve.seconds.length >= POINTS_LEAST);
    }

    pointWords({ host_bytes, mapped_bytes, runs, nodes }, i) {
        const owner = (kind, id) => id && `${kind} ${this.page.ownerName(id)}`;
        return [`${sizeText(host_bytes[i])} of it heap`, mapped_bytes[i] && `${sizeText(mapped_bytes[i])} mapped`,
            owner("run", runs[i]), owner("node", nodes[i])].filter(Boolean).join(", ");
    }

    // ---- totals of heap, mappings and devices

    totals(totals) {
        const rows = [["Host heap", totals.host], ["Mapped", totals.mapped]];
        const all = element("tr.sum", {}, element("th", { scope: "row" }, "Total"), ...this.figures(totals));
        const cuda = totals.cuda.peak_bytes ? [["CUDA devices", totals.cuda]] : [];
        const row = ([name, figures]) =>
            element("tr", {}, element("th", { scope: "row" }, name), ...this.figures(figures));
        const head = ["", "Live", "Blocks", "Peak", "Allocated"].map((title) =>
            element("th", { scope: "col" }, title || element("span.off-screen", {}, "Memory")));
        return element("section.card", { "aria-labelledby": "totals" }, element("h2", { id: "totals" }, "Memory"),
            element("table.figures", {}, element("thead", {}, element("tr", {}, head)),
                element("tbody", {}, rows.map(row), all, cuda.map(row))));
    }

    figures({ live_bytes, live_blocks, peak_bytes, allocated_bytes }) {
        const cell = (key, text) => element("td", { "data-figure": key }, text);
        return [cell("live_bytes", sizeText(live_bytes)), cell("live_blocks", countText(live_blocks)),
            cell("peak_bytes", sizeText(peak_bytes)), cell("allocated_bytes", sizeText(allocated_bytes))];
    }

    // ---- the resident memory by use

    residency(residency) {
        if (!residency) return null;
        const parts = [
            ["live", "Live blocks", residency.live_bytes],
            ["overhead", "Added by the allocator", residency.overhead_bytes],
            ["retained", "Freed, kept by the allocator", residency.retained_bytes],
            ["anonymous", "Anonymous mappings", residency.mapped_anonymous_bytes],
            ["data", "Data of program and libraries", residency.program_data_bytes],
            ["file", "Mapped files", residency.mapped_file_bytes],
            ["stack", "Thread stacks", residency.stack_bytes],
            ["stowed", "Stowed, and used again", residency.stowed_resident_bytes],
            ["device", "Moved out of devices", residency.device_stowed_bytes],
            ["buffer", "memstow's buffers for devices", residency.device_buffer_bytes],
            ["own", "memstow's own", residency.memstow_bytes],
            ["rest", "Rest", residency.rest_bytes],
        ].filter(([, , bytes]) => bytes > 0);
        const rss = residency.rss_bytes;
        return element("section.card", { "aria-labelledby": "residency" },
            element("h2", { id: "residency" }, "Where the resident memory is ", element("b", {}, sizeText(rss))),
            this.stackedBar(parts, rss), this.legend(parts, rss));
    }

    stackedBar(parts, whole) {
        const strip = element("div.strip", { "aria-hidden": "true" });
        for (const [kind, , bytes] of parts) {
            const part = element(`div.strip-${kind}`);
            part.style.flexGrow = String(bytes / whole);
            strip.append(part);
        }
        return strip;
    }

    legend(parts, whole) {
        return element("ul.legend", {}, parts.map(([kind, name, bytes]) => element("li", {},
            element(`i.strip-${kind}`, { "aria-hidden": "true" }), element("span", {}, name),
            element("b", { "data-part": kind, "data-bytes": bytes }, sizeText(bytes)),
            element("em", {}, percentText(bytes, whole)))));
    }

    // ---- memory of each device

    devices(report) {
        const devices = report.cuda?.devices ?? [];
        if (!devices.length) return null;
        return element("section.card", { "aria-labelledby": "devices" },
            element("h2", { id: "devices" }, "CUDA devices"),
            element("div.devices", {}, devices.map((device) => this.device(device))));
    }

    device(device) {
        const number = device.ordinal ?? device.device;
        const total = device.total_bytes || device.peak_bytes;
        return element("div.device", {}, element("h3", {}, `${number}: ${safeText(device.name ?? "device")}`),
            bar(device.live_bytes, total), element("p", {}, `${sizeText(device.live_bytes)} live`,
                total ? ` of ${sizeText(total)}` : "", `, ${sizeText(device.peak_bytes)} at most`));
    }

    // ---- notes on missing figures

    notes(report) {
        const { about } = this.page;
        const notes = [...report.process.notes, ...report.lost.reasons].map(safeText);
        if (about.match) notes.push(`Only call stacks with "${safeText(about.match)}" are in this page.`);
        if (about.sites_folded)
            notes.push(`${countedText(about.sites_folded, "small site is", "small sites are")} merged into the ` +
                "nearest outer call stack. All sums are exact.");
        if (about.owners_omitted)
            notes.push(`${countedText(about.owners_omitted, "owner is", "owners are")} left out, those that are gone ` +
                'and hold nothing first: the flame graph has their memory as "(left out)".');
        if (report.estimates) notes.push("Figures of call stacks are estimates from samples; totals are exact.");
        if (!notes.length) return null;
        return element("section.card", { "aria-labelledby": "notes" }, element("h2", { id: "notes" }, "To know"),
            element("ul.notes", {}, notes.map((note) => element("li", {}, note))));
    }

    // ---- the call sites with most memory

    largest() {
        return element("section.card.wide", { "aria-labelledby": "largest" },
            element("h2", { id: "largest" },
            this.page.usualMeasure() === "change" ? "What changed most" : "What holds most"), this.heavy);
    }

    async fillLargest() {
        const { ledger } = this.page;
        const measure = this.page.usualMeasure();
        const figures = await ledger.figures(measure, "bytes");
        const total = figures.reduce((sum, value) => sum + Math.abs(value), 0);
        const callers = new Map();
        figures.forEach((value, site) => { if (value) this.addCaller(callers, site, value, total); });
        const rows = [...callers.entries()].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, LISTED);
        this.heavy.replaceChildren(rows.length ? element("ol.ranking", {}, rows.map(([line, bytes]) =>
            this.rank(ledger, line, bytes, total))) : element("p.quiet", {}, "Nothing."));
        this.heavy.dataset.ready = "yes";
    }

    /** Adds a site under the line that represents its stack. Sites that are too small for the list are skipped. */
    addCaller(callers, site, bytes, total) {
        const { ledger } = this.page;
        if (Math.abs(bytes) < total / 20000) return;
        const line = ledger.callerOf(ledger.nodeOfSite(site));
        if (line !== undefined) callers.set(line, (callers.get(line) ?? 0) + bytes);
    }

    rank(ledger, line, bytes, total) {
        const open = () =>
            this.page.state.change({ view: "flame", find: ledger.functionOf(line), zoom: "", focus: -1 });
        return element("li", {},
            element("button.row", { type: "button", onclick: open },
                element("b", {}, this.page.usualMeasure() === "change" ? changeText(bytes) : sizeText(bytes)),
                element("em", {}, percentText(Math.abs(bytes), total)),
                element("span.where", {}, ledger.isPython(line) ? element("i.py", {}, "py") : null,
                    element("span.name", {}, ledger.functionOf(line)),
                    element("span.place", {}, ledger.placeOf(line)))),
            bar(Math.abs(bytes), total,
                this.page.usualMeasure() !== "change" ? "" :
                    bytes > 0                         ? "grew" :
                                                        "shrank"));
    }
}

/** How the process ended, in words like those of the text report. */
function stateText({ state, exit_status: status, signal }) {
    return { running: "still running", exited: "exited", abrupt_exit: "ended by _exit", execed: "replaced itself",
        raw_exit: `exited with ${status}, by a system call that memstow does not see`, killed: `killed by ${signal}`,
        ended_unseen: "ended unseen, by a raw exit or a signal", unknown: "in an unknown state" }[state] ?? state;
}

/** Facts about the process, in a few words under the title. */
export function processLines(process) {
    const lines = [`pid ${process.pid}, ${stateText(process)}, tracked for ${durationText(process.elapsed_seconds)}`];
    if (process.start_time) lines.push(`started ${whenText(process.start_time)}`);
    if (process.stacks === "sample") lines.push("call stacks are sampled");
    return lines;
}
