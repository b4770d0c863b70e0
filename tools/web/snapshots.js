/* snapshots.js — what snapshots of the process know of a range of time.
 * In: the document of snapshots, or of a series of readings, and a range in seconds. Out: elements with the memory of
 * owners and places at the first and at the last snapshot in the range. */

import { element } from "./dom.js";
import { changeText, countedText, durationText, ownerText, safeText, shortPath, sizeText } from "./words.js";

const SNAPSHOT_ROWS = 12;

/** The first and the last snapshot in a range, as numbers; null if there is none. */
export function snapshotsIn(seconds, [from, to]) {
    const first = seconds.findIndex((second) => second >= from);
    const last = seconds.findLastIndex((second) => second <= to);
    return first >= 0 && first <= last ? [first, last] : null;
}

/** Adds a mark for each snapshot to the marks of the history. */
export function addSnapshots(marks, { seconds, series }) {
    if (!series) marks.push(...seconds.map((second) => ({ seconds: second, kind: "snapshot", owner: null })));
    marks.sort((a, b) => a.seconds - b.seconds);
}

/** Sums up the rows that have the same key. Returns [{name, begin, end, change}], sorted by the size of the change,
 * largest first. */
export function sumsOf(rows, [first, last]) {
    const sums = new Map();
    for (const { key, name, bytes } of rows) {
        const sum = sums.get(key) ?? { name, begin: 0, end: 0 };
        sums.set(key, { name, begin: sum.begin + bytes[first], end: sum.end + bytes[last] });
    }
    return [...sums.values()].filter(({ begin, end }) => begin || end)
        .map((row) => ({ ...row, change: row.end - row.begin }))
        .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || b.end - a.end);
}

/** "py function  file:line", as the page names lines. */
function snapshotPlace({ function: name, file, line, module, gone }) {
    if (gone) return ["(a call stack that the last file does not have any more)", ""];
    if (!name) return [module ? shortPath(safeText(module)) : "(call stack unknown)", ""];
    if (file) return [safeText(name), shortPath(safeText(file)) + (line ? `:${line}` : "")];
    return [safeText(name), module ? shortPath(safeText(module)) : ""];
}

export class Snapshots {
    /** @param {object} document */
    constructor(document) {
        this.document = document;
        this.owners = (document.owners ?? []).map((owner) => this.ownerRow(owner));
        this.sites = document.sites.map((site) => this.siteRow(site));
    }

    ownerRow({ id, kind, name, origin, on_device: isOnDevice, bytes }) {
        const words = name === null ? `owner ${id}` : safeText(ownerText({ kind, name, origin })) || "(no name)";
        const text = `${words}${isOnDevice ? ", on devices" : ""}`;
        return { key: `${id} ${isOnDevice}`, name: () => text, bytes };
    }

    siteRow(site) {
        const [name, place] = snapshotPlace(site);
        const owners = [site.model, site.node, site.on_device ? "on devices" : ""].filter(Boolean).map(safeText);
        return { key: JSON.stringify([site.python, name, place, owners]), bytes: site.bytes,
            name: () => element("span", {}, site.python ? element("i.py", {}, "py") : null,
                element("span.name.whole", {}, name), place ? ` ${place}` : "", owners.map((owner) => ` · ${owner}`)) };
    }

    get what() {
        return this.document.series ? "reading" : "snapshot";
    }

    /** What is known of a range. */
    show(range) {
        const { seconds, series } = this.document;
        const title = element("h3", {}, series ? "At the readings of the series" : "At the snapshots in this range");
        const found = snapshotsIn(seconds, range);
        if (!found) return [title, element("p", { "data-snapshots": "" }, this.noneIn(range))];
        return [title, element("p", { "data-snapshots": found.join(" ") }, this.total(found)),
            this.table("Owner", this.owners, found, 0), this.table("Where", this.sites, found, this.all(found)),
            element("p.quiet", {}, this.limits())];
    }

    noneIn([from, to]) {
        const { seconds } = this.document;
        const before = seconds.findLast((second) => second < from);
        const after = seconds.find((second) => second > to);
        const near = [before !== undefined && `the last one before after ${durationText(before)}`,
            after !== undefined && `the next one after ${durationText(after)}`].filter(Boolean);
        return `No ${this.what} was taken in this range${near.length ? `: ${near.join(", ")}` : ""}.`;
    }

    /** The live memory at a snapshot, of the host and of devices together. */
    liveAt(i) {
        return this.document.live_bytes[i] + (this.document.device_bytes?.[i] ?? 0);
    }

    all([first, last]) {
        return { begin: this.liveAt(first), end: this.liveAt(last) };
    }

    moment(i) {
        const { seconds, files } = this.document;
        return `after ${durationText(seconds[i])}${files ? ` (${safeText(files[i])})` : ""}`;
    }

    total([first, last]) {
        const count = last - first + 1;
        if (count === 1) return `One ${this.what}, ${this.moment(first)}: ${sizeText(this.liveAt(first))} live.`;
        return `${countedText(count, this.what, `${this.what}s`)}: ${sizeText(this.liveAt(first))} live ` +
            `${this.moment(first)}, ${sizeText(this.liveAt(last))} ${this.moment(last)}.`;
    }

    /** Why the rows may be less than all. */
    limits() {
        const { owners_omitted: owners, sites_omitted: sites, series, estimated } = this.document;
        const said = ["What came and went between them is in none of them."];
        if (sites) said.push(`${countedText(sites, "smaller site is", "smaller sites are")} in "all others" only.`);
        if (owners) said.push(`${countedText(owners, "smaller owner is", "smaller owners are")} left out.`);
        if (series) said.push("A series has only sites that hold something at its end, without what runs allocated " +
            "that had not ended then.");
        if (estimated) said.push("Figures of call stacks are estimates from samples.");
        return said.join(" ");
    }

    /** @param {{begin: number, end: number} | 0} all the sums over all rows; 0 if they are not known */
    table(title, rows, found, all) {
        const sums = sumsOf(rows, found);
        if (!sums.length) return null;
        const isOne = found[0] === found[1];
        const head = [title, ...(isOne ? [found[0]] : found).map((i) => `After ${durationText(
            this.document.seconds[i])}`), ...(isOne ? [] : ["Change"])];
        const shown = sums.slice(0, SNAPSHOT_ROWS);
        const rest = all && { name: () => "all others", begin: all.begin, end: all.end };
        for (const { begin, end } of rest ? shown : []) [rest.begin, rest.end] = [rest.begin - begin, rest.end - end];
        const isRest = rest && (rest.begin > 0 || rest.end > 0);
        return element("div.wrap", { tabindex: "0", role: "region", "aria-label": `${title}, at snapshots` },
            element(`table.plain.at-snapshots`, { "data-of": title }, element("thead", {}, element("tr", {},
                head.map((text, i) => element("th", { scope: "col", class: i ? "number" : null }, text)))),
                element("tbody", {}, [...shown, ...(isRest ? [rest] : [])].map((row) => this.row(row, isOne)))));
    }

    row({ name, begin, end }, isOne) {
        const change = end - begin;
        const kind = change > 0 ? "number grew" : change < 0 ? "number shrank" : "number";
        return element("tr", {}, element("th", { scope: "row" }, name()), element("td.number", {}, sizeText(begin)),
            isOne ? null : [element("td.number", {}, sizeText(end)),
                element("td", { class: kind }, change ? changeText(change) : "–")]);
    }
}
