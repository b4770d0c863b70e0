/* range.js — what memory the process had in a range of time, as far as the file and other snapshots know.
 * In: curves, marks, owners at marks, blocks with their ages, and a range in seconds. Out: figures at both ends, and a
 * card of the overview that shows them. A figure that the file does not have is null. */

import { element } from "./dom.js";
import { changeText, countedText, countText, durationText, safeText, sizeText } from "./words.js";

const RANGE_MARKS = 50;
const RANGE_OWNERS = 20;
const RANGE_PLACES = 10;

/** Returns the range of time in the page's state as [from, to] in seconds, or null if the state has no range. */
export function rangeOf({ from, to }, end) {
    if (from === "" || to === "") return null;
    const [low, high] = [Number(from), Number(to)].sort((a, b) => a - b).map((one) => Math.min(Math.max(one, 0), end));
    return high > low ? [low, high] : null;
}

/** Seconds for an address. */
export function rangeText(seconds) {
    return String(Number(seconds.toFixed(6)));
}

/** The number of the last point that is no later than this second; -1 if all are later. */
export function pointAt(seconds, second) {
    let low = -1;
    for (let high = seconds.length; high - low > 1;) {
        const middle = (low + high) >> 1;
        if (seconds[middle] <= second) low = middle;
        else high = middle;
    }
    return low;
}

/** Returns a curve's figures for a range of time: the bytes at the range's two ends, the most bytes, and the time
 * when the curve had the most bytes. Before the first point the curve has 0 bytes. */
export function curveIn(seconds, bytes, [from, to]) {
    const first = pointAt(seconds, from);
    const last = pointAt(seconds, to);
    let [most, at] = [first < 0 ? 0 : bytes[first], from];
    for (let i = first + 1; i <= last; i++)
        if (bytes[i] > most) [most, at] = [bytes[i], seconds[i]];
    return { begin: first < 0 ? 0 : bytes[first], end: last < 0 ? 0 : bytes[last], most, at };
}

export function marksIn(marks, [from, to]) {
    return marks.filter(({ seconds }) => seconds >= from && seconds <= to);
}

/** Returns how many bytes an owner had at the two ends of a range: {begin, end}. `seconds` and `bytes` are those of the
 * owner's marks. `came` is the time when the owner came; null: it is not known. `now` is the owner's last figure.
 * - Before the owner came, it has 0 bytes.
 * - Between its coming and its first mark, its bytes are not known: null. If `came` is null, this holds for all the
 *   time before the first mark.
 * - From its first mark on, it has the bytes of the last mark so far.
 * - At the end of a range that reaches the end of the curve (the parameter `end`), it has `now`. */
export function ownerIn({ seconds, bytes, came, now }, [from, to], end) {
    const at = (second) => {
        const point = pointAt(seconds, second);
        if (point >= 0) return bytes[point];
        return came !== null && second < came ? 0 : null;
    };
    return { begin: at(from), end: to >= end ? now : at(to) };
}

/** Sums up, by place, the blocks that were allocated in the range. Returns [[place, {bytes, blocks}]], the most
 * bytes first. */
export function bornIn({ sizes, ages, placeOf }, [from, to], end) {
    const places = new Map();
    for (let i = 0; i < sizes.length; i++) {
        const born = end - ages[i] / 1e6;
        if (born < from || born > to) continue;
        const place = placeOf(i);
        const sum = places.get(place) ?? { bytes: 0, blocks: 0 };
        places.set(place, { bytes: sum.bytes + sizes[i], blocks: sum.blocks + 1 });
    }
    return [...places].sort(([, a], [, b]) => b.bytes - a.bytes);
}

const grewClass = (change) => (change > 0 ? "grew" : change < 0 ? "shrank" : null);

function rangeHead(titles) {
    return element("thead", {}, element("tr", {}, titles.map((title, i) => element("th", { scope: "col",
        class: i ? "number" : null }, title || element("span.off-screen", {}, "What")))));
}

export class RangeCard {
    constructor(page, curves, end) {
        this.page = page;
        this.curves = curves;
        this.end = end;
        this.element = element("div.range", { hidden: true, role: "group", "aria-label": "The chosen range" });
    }

    /** @param {[number, number] | null} range @param {() => void} onclear */
    show(range, onclear) {
        this.element.hidden = !range;
        if (!range) return this.element.replaceChildren();
        const title = `From ${durationText(range[0])} to ${durationText(range[1])}`;
        const born = element("div");
        this.element.replaceChildren(element("div", {}, element("div.above", {}, element("h3", {}, title),
            element("button", { type: "button", onclick: onclear }, "Whole time")), this.figures(range),
            this.marks(range), this.owners(range), this.page.snapshots?.show(range), born, this.unknown()));
        this.page.whenLoaded(() => this.born(born, range));
    }

    // ---- curves

    figures(range) {
        const { history } = this.page.report;
        const rows = this.curves.map(([name, { seconds, bytes }]) => [name, seconds, bytes]);
        if (history.mapped_bytes?.some(Boolean)) rows.splice(1, 0, ["Heap", history.seconds, history.host_bytes],
            ["Mapped", history.seconds, history.mapped_bytes]);
        return element("div.wrap", { tabindex: "0", role: "region", "aria-label": "Memory in this range" },
            element("table.plain", {}, rangeHead(["", "At its begin", "At its end", "Change", "At most", "After"]),
                element("tbody", {}, rows.map(([name, seconds, bytes]) =>
                    this.figureRow(name, curveIn(seconds, bytes, range))))));
    }

    figureRow(name, { begin, end, most, at }) {
        const cell = (key, text, kind) => element("td.number", { "data-range": key, class: kind && `number ${kind}` },
            text);
        return element("tr", { "data-curve": name }, element("th", { scope: "row" }, name),
            cell("begin", sizeText(begin)), cell("end", sizeText(end)),
            cell("change", changeText(end - begin), grewClass(end - begin)), cell("most", sizeText(most)),
            element("td.number", {}, durationText(at)));
    }

    // ---- marks

    marks(range) {
        const marks = marksIn(this.page.report.history.marks, range);
        if (!marks.length) return element("p.quiet", {}, "No run began or ended, and nothing moved.");
        const words = ({ bytes, rss_bytes: rss }) => [bytes && sizeText(bytes), rss && `RSS ${sizeText(rss)}`]
            .filter(Boolean).join(", ");
        return [element("h3", {}, "What happened"), element("ul.notes.events", {}, marks.slice(0, RANGE_MARKS).map(
            (mark) => element("li", {}, `After ${durationText(mark.seconds)}: `, this.curves[0][1].markWords(mark),
                words(mark) ? ` (${words(mark)})` : "")), marks.length > RANGE_MARKS
            ? element("li", {}, `${countText(marks.length - RANGE_MARKS)} more`) : null)];
    }

    // ---- owners

    owners(range) {
        const rows = this.ownerRows(range);
        if (!rows.length) return null;
        const text = (bytes) => (bytes === null ? "not known" : sizeText(bytes));
        const row = ({ name, begin, end, change }) => element("tr", {}, element("th", { scope: "row" }, name),
            element("td.number", {}, text(begin)), element("td.number", {}, text(end)),
            element("td.number", { class: `number ${grewClass(change) ?? ""}` },
                change === null ? "not known" : changeText(change)));
        return [element("h3", {}, "Owners, at the last run or move before"),
            element("div.wrap", { tabindex: "0", role: "region", "aria-label": "Owners in this range" },
                element("table.plain.owners-then", {}, rangeHead(["Owner", "At its begin", "At its end", "Change"]),
                    element("tbody", {}, rows.slice(0, RANGE_OWNERS).map(row))))];
    }

    ownerRows(range) {
        const { history } = this.page.report;
        const named = (history.owners ?? []).flatMap((of) => [["live_bytes", ""], ["cuda_bytes", ", on devices"]].map(
            ([key, place]) => ({ name: `${this.page.ownerName(of.owner) ?? "(no name)"}${place}`,
                ...ownerIn(this.ownerCurve(of, key), range, this.end) })));
        return named.filter(({ begin, end }) => begin || end).map((row) => ({ ...row,
            change: row.begin === null || row.end === null ? null : row.end - row.begin }))
            .sort((a, b) => Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0) || (b.end ?? 0) - (a.end ?? 0));
    }

    ownerCurve(of, key) {
        const last = this.page.owners?.owners.find(({ id }) => id === of.owner);
        const came = this.page.report.history.marks.find(({ kind, owner }) => kind === "came" && owner === of.owner);
        return { seconds: of.seconds, bytes: of[key], came: came?.seconds ?? null, now: last?.[key] ?? null };
    }

    // ---- blocks

    /** Shows the blocks that were allocated in the range and still exist, added up by owner and place. */
    async born(host, range) {
        const { bundle, ledger } = this.page;
        const columns = ["size", "age", "site"].map((key) => bundle.figures(`blocks.${key}`));
        const [sizes, ages, sites] = await Promise.all(columns);
        if (!sizes || !ages || !host.isConnected) return;
        const placeOf = (i) => (sites[i] ? this.placeOf(ledger, sites[i] - 1) : "(not known)");
        const places = bornIn({ sizes, ages, placeOf }, range, this.page.report.process.elapsed_seconds ?? this.end);
        const sum = places.reduce((all, [, { bytes }]) => all + bytes, 0);
        const blocks = places.reduce((all, [, one]) => all + one.blocks, 0);
        const row = ([place, one]) => element("tr", {}, element("th.name.whole", { scope: "row" }, place),
            element("td.number", {}, sizeText(one.bytes)), element("td.number", {}, countText(one.blocks)));
        host.replaceChildren(element("h3", {}, "Large blocks that began then, and were still there at the last moment"),
            element("p.born", { "data-bytes": sum, "data-blocks": blocks }, blocks
                ? `${sizeText(sum)} in ${countedText(blocks, "block or mapping", "blocks and mappings")}` : "None."),
            blocks ? element("div.wrap", { tabindex: "0", role: "region", "aria-label": "Places of these blocks" },
                element("table.plain", {}, rangeHead(["Where", "Bytes", "Blocks"]),
                    element("tbody", {}, places.slice(0, RANGE_PLACES).map(row)))) : "");
    }

    placeOf(ledger, site) {
        const line = ledger.callerOf(ledger.nodeOfSite(site));
        const owners = ledger.ownersOf(site).map((id) => this.page.ownerName(id)).filter(Boolean);
        return [line === undefined ? "(not known)" : ledger.lineText(line), ...owners].join(" · ");
    }

    // ---- what one file cannot know

    unknown() {
        const within = this.page.report.history.within_bytes;
        const omitted = this.page.about.blocks_omitted;
        const said = [`A figure of the curve may be off by ${sizeText(within)}.`,
            "Blocks under 64 KiB have no time, and what was freed before the last moment is not in the file" +
            (omitted ? "; smaller ones of the large blocks are left out." : "."),
            this.page.snapshots
                ? "So which call stacks held memory is known of the snapshots, of the last moment, and of the peak."
                : "So which call stacks held memory at a moment is known only of the last moment, and of the peak. " +
                    "Snapshots taken at both moments show it: memstow diff --html FIRST SECOND, or here, with " +
                    "memstow report --html FIRST SECOND."];
        return element("p.quiet.unknown", {}, safeText(said.join(" ")));
    }
}
