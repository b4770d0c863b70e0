/* blocks.js — the view of the largest blocks and mappings of the host, and of the blocks on devices.
 * In: the columns of blocks. Out: a table, sorted by size, age or resident bytes, and the call stack of the chosen
 * block. */

import { element } from "./dom.js";
import { Order } from "./order.js";
import { Rows } from "./owners.js";
import { stackOf } from "./sites.js";
import { countWords, Table } from "./table.js";
import { countedText, durationText, safeText, sizeText } from "./words.js";

const KINDS = ["block", "anonymous", "file", "reserved", "brk"];
const DEVICE_KINDS = { 17: "", 18: ", pool", 19: ", managed", 20: ", array", 21: ", vmm" };
/** @param {boolean} devices whether there are blocks on devices */
export const listedWords = (devices) => (devices ? "blocks of 64 KiB and more, mappings, and blocks on devices"
    : "blocks of 64 KiB and more, and mappings");
const BLOCK_COLUMNS = [
    { key: "size", title: "Size", number: true },
    { key: "resident", title: "Resident", number: true },
    { key: "age", title: "Age", number: true },
    { key: "kind", title: "Kind", sortable: false },
    { key: "owner", title: "Owner", sortable: false },
    { key: "where", title: "Where", wide: true, sortable: false },
    { key: "address", title: "Address", number: true },
];

export class BlocksView {
    constructor(page) {
        this.page = page;
        this.key = "blocks";
        this.name = "Blocks";
        this.details = element("aside.details", { "aria-label": "The chosen block" });
    }

    isThere() {
        return this.page.bundle.count("blocks.size") > 0;
    }

    async show(host) {
        await this.page.loaded;
        if (!this.table) await this.make();
        if (this.page.state.now.view !== this.key) return;
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        const { sort, row } = this.page.state.now;
        const key = this.figures[sort.replace(/^-/, "")] ? sort.replace(/^-/, "") : "size";
        const up = sort.startsWith("-");
        const all = this.figures.size.length;
        const omitted = this.page.about.blocks_omitted;
        this.table.show(new Rows(new Order(Int32Array.from(this.figures.size.keys()), this.figures[key], up)), {
            sort: key, up, chosen: row,
            words: countWords(all, all, "block or mapping", listedWords(this.figures.device)) +
                (omitted ? `; ${countedText(omitted, "smaller one is", "smaller ones are")} left out` : "") });
        this.draw(row);
    }

    async make() {
        this.figures = Object.create(null);
        for (const key of ["address", "size", "resident", "age", "kind", "device", "thread", "site"]) {
            const column = await this.page.bundle.figures(`blocks.${key}`);
            if (column) this.figures[key] = column;
        }
        this.columns = BLOCK_COLUMNS.filter(({ key }) => key in this.figures || key === "where" ||
            (key === "owner" && this.page.ledger.siteTag));
        this.table = new Table({ label: "Largest blocks and mappings", columns: this.columns,
            cell: (i, key) => this.cell(i, key), text: (i, key) => this.text(i, key),
            onopen: (i) => this.open(i), onsort: (key) => this.sort(key) });
        this.whole = element("div.list-view", {}, element("div.list-parts", {}, this.table.whole, this.details));
    }

    sort(key) {
        const { sort } = this.page.state.now;
        this.page.state.change({ sort: sort === key || (!sort && key === "size") ? `-${key}` : key });
    }

    siteOf(i) {
        return this.figures.site[i] - 1;
    }

    lineOf(i) {
        const { ledger } = this.page;
        return this.siteOf(i) < 0 ? undefined : ledger.callerOf(ledger.nodeOfSite(this.siteOf(i)));
    }

    cell(i, key) {
        const line = key === "where" ? this.lineOf(i) : undefined;
        if (line === undefined) return this.text(i, key);
        const { ledger } = this.page;
        return element("span.where", {}, ledger.isPython(line) ? element("i.py", {}, "py") : null,
            element("span.name", {}, ledger.functionOf(line)), element("span.place", {}, ledger.placeOf(line)));
    }

    text(i, key) {
        const { ledger } = this.page;
        const value = this.figures[key]?.[i];
        if (key === "where") return this.lineOf(i) === undefined ? "(not known)" : ledger.lineText(this.lineOf(i));
        if (key === "owner") return this.siteOf(i) < 0 ? "" : ledger.ownersOf(this.siteOf(i))
            .map((id) => this.page.ownerName(id)).filter(Boolean).join(" · ");
        if (key === "address") return `0x${value.toString(16)}`;
        if (key === "age") return durationText(value / 1e6);
        if (key === "kind") return this.kindText(i, value);
        if (key.endsWith("resident") && this.isOnDevice(i)) return "–";
        return sizeText(value);
    }

    isOnDevice(i) {
        return this.figures.device?.[i] > 0;
    }

    kindText(i, kind) {
        if (this.isOnDevice(i)) return `device ${this.figures.device[i] - 1}${DEVICE_KINDS[kind] ?? ""}`;
        return (KINDS[kind >> 1] ?? "mapping") + (kind & 1 ? ", shared" : "");
    }

    open(i) {
        this.page.state.change({ row: this.page.state.now.row === i ? -1 : i }, true);
    }

    /** The columns that the details of a block repeat. */
    facts() {
        return this.columns.filter(({ key }) => key !== "where" && key !== "address");
    }

    draw(i) {
        this.details.hidden = !(i >= 0 && i < this.figures.size.length);
        if (this.details.hidden) return;
        const { ledger } = this.page;
        const site = this.siteOf(i);
        this.details.replaceChildren(
            element("h2", {}, `${sizeText(this.figures.size[i])} at ${this.text(i, "address")}`),
            element("dl", {}, this.facts().map(({ key, title }) => [element("dt", {}, title),
                element("dd", { "data-detail": key }, safeText(this.text(i, key)) || "none")])),
            ...(site < 0 ? [] : stackOf(ledger, ledger.nodeOfSite(site))));
    }
}
