/* owners.js — the view of owners: models, nodes, runs and others.
 * In: the document of owners, the history of the report, and the trace. Out: a table with the memory of each owner, the
 * reason why it is there, and its holders; for the chosen owner, curves of its memory and the events of its history. */

import { element } from "./dom.js";
import { Order } from "./order.js";
import { countWords, Table } from "./table.js";
import { Timeline } from "./timeline.js";
import { reasonText, whyText } from "./trace.js";
import { blocksText, countedText, countText, durationText, ownerText, safeText, sizeText } from "./words.js";

const OWNER_COLUMNS = [
    { key: "kind", title: "Kind", sortable: false },
    { key: "live_bytes", title: "Live", number: true },
    { key: "live_blocks", title: "Blocks", number: true },
    { key: "cuda_bytes", title: "On devices", number: true },
    { key: "stowed_bytes", title: "Stowed", number: true },
    { key: "peak_bytes", title: "At peak", number: true },
    { key: "policy", title: "Policy", sortable: false },
    { key: "state", title: "State", sortable: false },
    { key: "name", title: "Name", wide: true, sortable: false },
    { key: "why", title: "Why it is there", sortable: false },
    { key: "held", title: "Held by", sortable: false },
];
const HISTORY_SHOWN = 100;

export class OwnersView {
    constructor(page) {
        this.page = page;
        this.key = "owners";
        this.name = "Owners";
        this.input = element("input", { type: "search", placeholder: "Filter by name, kind, policy or state",
            "aria-label": "Filter by name, kind, policy or state",
            oninput: () => this.page.state.change({ find: this.input.value, row: -1 }, true) });
        this.details = element("aside.details", { "aria-label": "The chosen owner" });
    }

    isThere() {
        return Boolean(this.page.owners?.owners.length);
    }

    show(host) {
        if (!this.table) this.make();
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        const { find, sort, row } = this.page.state.now;
        if (document.activeElement !== this.input) this.input.value = find;
        const key = this.figures[sort.replace(/^-/, "")] ? sort.replace(/^-/, "") : "live_bytes";
        const up = sort.startsWith("-");
        const rows = Int32Array.from(this.rows.keys()).filter((i) => this.matches(i, find.toLowerCase()));
        this.table.show(new Rows(new Order(rows, this.figures[key], up)), { sort: key, up, chosen: row,
            words: countWords(rows.length, this.rows.length, "owner", "owners") + this.omitted() });
        this.draw(row);
    }

    make() {
        const peaks = new Map((this.page.report?.owners ?? []).map(({ id, peak_bytes }) => [id, peak_bytes]));
        this.rows = this.page.owners.owners.map((owner) => ({ ...owner, peak_bytes: peaks.get(owner.id) ?? 0 }));
        this.figures = Object.create(null);
        const some = (key) => this.rows.some((row) => this.text(row, key));
        const optional = { cuda_bytes: (row) => row.cuda_bytes, stowed_bytes: (row) => row.stowed_bytes,
            why: (row) => this.text(row, "why"), held: (row) => this.text(row, "held") };
        this.columns = OWNER_COLUMNS.filter(({ key }) => (optional[key] ? this.rows.some(optional[key]) : some(key)));
        for (const { key, number } of this.columns)
            if (number) this.figures[key] = Float64Array.from(this.rows, (row) => row[key]);
        this.table = new Table({
            label: "Owners",
            columns: this.columns,
            cell: (i, key) => this.text(this.rows[i], key),
            onopen: (i) => this.open(i),
            onsort: (key) => this.sort(key)
        });
        this.whole = element("div.list-view", {}, element("div.tools", {}, element("div.search", {}, this.input)),
            element("div.list-parts", {}, this.table.whole, this.details));
    }

    omitted() {
        const { owners_omitted: count } = this.page.about;
        return count ? `; ${countedText(count, "more is", "more are")} left out` : "";
    }

    sort(key) {
        const { sort } = this.page.state.now;
        this.page.state.change({ sort: sort === key || (!sort && key === "live_bytes") ? `-${key}` : key });
    }

    matches(i, find) {
        const row = this.rows[i];
        return !find || ["name", "origin", "kind", "policy", "state"].some((key) =>
            String(row[key] ?? "").toLowerCase().includes(find));
    }

    text(owner, key) {
        const { trace } = this.page;
        if (key === "why") return owner.live_bytes || owner.cuda_bytes
            ? safeText(whyText(trace.lastOf(owner.id, "REMAINING")?.why)) : "";
        if (key === "held") return safeText((trace.lastOf(owner.id, "HELD")?.holders ?? []).join("; "));
        if (key.endsWith("_bytes")) return owner[key] ? sizeText(owner[key]) : "–";
        if (key.endsWith("_blocks")) return owner[key] ? countText(owner[key]) : "–";
        if (key === "state" && owner.moving)
            return `${owner.state}, ${owner.moving === "out" ? "stowing" : "restoring"}`;
        if (key === "state" && owner.outcome) return `${owner.state}, ${safeText(owner.outcome)}`;
        return safeText(owner[key] ?? "") || (key === "name" ? "(no name)" : "");
    }

    open(i) {
        this.page.state.change({ row: this.page.state.now.row === i ? -1 : i }, true);
    }

    draw(i) {
        const owner = this.rows[i];
        this.details.hidden = !owner;
        if (!owner) return;
        const facts = [["Id", owner.id], ["From", safeText(owner.origin ?? "")], ["Priority", owner.priority],
            ["Live", `${sizeText(owner.live_bytes)} in ${blocksText(owner.live_blocks)}`],
            ["On devices", owner.cuda_bytes ? sizeText(owner.cuda_bytes) : ""],
            ["Stowed", owner.stowed_bytes ? sizeText(owner.stowed_bytes) : ""],
            ["Why it is there", this.text(owner, "why")], ["Held by", this.text(owner, "held")]];
        const stacks = () => this.page.state.change({ view: "flame", owner: owner.id, zoom: "", row: -1, find: "" });
        this.details.replaceChildren(element("h2", {}, `${owner.kind} ${safeText(ownerText(owner))}`),
            element("dl", {}, facts.filter(([, text]) => text !== "" && text !== null).map(([name, text]) =>
                [element("dt", {}, name), element("dd", {}, String(text))])),
            element("div.actions", {}, element("button", { type: "button", onclick: stacks }, "Its call stacks")),
            ...this.curves(owner), ...this.history(owner));
    }

    /** The curves of the owner's memory. They have a point for each mark of a run or requested move, and a last point
     * for the file's last figures. If the file has no such marks, there are no curves. */
    curves(owner) {
        const { history, process } = this.page.report ?? {};
        const known = history?.owners?.find((one) => one.owner === owner.id);
        if (!known) return [];
        const end = Math.max(process.elapsed_seconds ?? 0, known.seconds.at(-1));
        const marks = history.marks.filter((mark) => mark.owner === owner.id);
        const curve = (key) => ({ seconds: [...known.seconds, end], bytes: [...known[key], owner[key]], marks, end,
            wordsOf: () => "" });
        const named = [["Live memory", curve("live_bytes")], ["Memory on devices", curve("cuda_bytes")]];
        return named.filter(([, { bytes }]) => bytes.some(Boolean)).map(([name, one]) =>
            element("div", {}, element("h3", {}, `${name}, at runs and moves`),
                new Timeline(`${name} of ${safeText(ownerText(owner))}`, one).element));
    }

    history(owner) {
        const lines = this.page.trace.historyOf(owner.id).filter(({ kind }) => kind !== "COLLECTED");
        if (!lines.length) return [];
        return [element("h3", {}, "Its history, the last first"), element("ol.stack", {},
            lines.slice(-HISTORY_SHOWN).reverse().map((line) => this.event(line)))];
    }

    event(line) {
        const { trace } = this.page;
        const after = trace.secondsOf(line);
        const trigger = trace.byNumber.get(line.trigger);
        const words = {
            __proto__: null,
            SET: `policy ${line.policy ?? "unknown"}`,
            DECISION : `${line.action ?? "unknown"}: ${whyText(line.why)}`,
            CATEGORY : `${line.category ?? "unknown"}: ${sizeText(line.before_bytes ?? 0)} before, ${
                sizeText(line.after_bytes ?? 0)} after`,
            REMAINING : `${sizeText(line.bytes ?? 0)} left: ${whyText(line.why)}`,
            HELD : `held by ${(line.holders ?? []).join("; ") || "an unknown holder"}`,
            REFUSED : `${sizeText(line.bytes ?? 0)} could not be moved: ${line.because ?? "unknown"}`
        }[line.kind] ??
            line.kind ?? "";
        const when = [after !== null && `${durationText(after)} after the start`,
            trigger && `trigger ${line.trigger}, ${reasonText(trigger.line.reason)}`].filter(Boolean).join(" · ");
        return element("li", {}, element("span", {}, safeText(words)), element("span.place", {}, when));
    }
}

/** An order in the form that a table takes. */
export class Rows {
    constructor(order) {
        this.order = order;
        this.length = order.rows.length;
    }

    slice(from, to) {
        return this.order.slice(from, to);
    }
}
