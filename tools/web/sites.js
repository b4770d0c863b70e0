/* sites.js — the view of all sites as a table.
 * In: the ledger and the state. Out: filtered rows in the chosen order, and the stack of the chosen row. */

import { copyText, element } from "./dom.js";
import { siteMarks } from "./flameview.js";
import { MEASURES } from "./ledger.js";
import { Order } from "./order.js";
import { countWords, Table } from "./table.js";
import { changeText, countChangeText, countedText, countText, sizeText } from "./words.js";

export class SitesView {
    constructor(page) {
        this.page = page;
        this.key = "sites";
        this.name = "Sites";
        this.input = element("input", { type: "search", placeholder: "Filter by function, file, module or owner",
            "aria-label": "Filter by function, file, module or owner",
            oninput: () => this.page.state.change({ find: this.input.value, site: -1 }, true) });
        this.stack = element("aside.details", { "aria-label": "The chosen site" });
        this.whole = element("div.list-view", {}, element("div.tools", {}, element("div.search", {}, this.input)));
    }

    isThere() {
        return this.page.bundle.has("tree.segment");
    }

    async show(host) {
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        await this.page.loaded;
        if (!this.table) await this.makeTable();
        if (document.activeElement !== this.input) this.input.value = this.page.state.now.find;
        this.draw();
    }

    // ---- the table and its rows

    async makeTable() {
        const { ledger } = this.page;
        const measures = MEASURES.filter(({ key }) => this.page.hasMeasure(key));
        this.columns = [];
        this.figures = Object.create(null);
        for (const { key, name } of measures)
            for (const unit of ["bytes", "blocks"]) {
                this.columns.push(
                    { key: `${key}_${unit}`, title: unit === "bytes" ? name : `${name}, blocks`, number: true });
                this.figures[`${key}_${unit}`] = await ledger.figures(key, unit);
            }
        if (this.page.bundle.has("sites.live_error")) {
            this.columns.splice(1, 0, { key: "live_error", title: "±", number: true });
            this.figures.live_error = await this.page.bundle.figures("sites.live_error");
        }
        if (ledger.siteTag) this.columns.push({ key: "owner", title: "Owner", sortable: false });
        this.columns.push({ key: "where", title: "Where", wide: true, sortable: false });
        this.table = new Table({
            label: "Sites",
            columns: this.columns,
            cell: (row, key) => this.cell(row, key),
            text: (row, key) => this.text(row, key),
            onopen: (row) => this.open(row),
            onsort: (key) => this.sort(key)
        });
        this.whole.append(element("div.list-parts", {}, this.table.whole, this.stack));
    }

    get sortKey() {
        const [key] = this.page.state.now.sort.replace(/^-/, "").split(" ");
        return this.figures[key] ? key : `${this.page.usualMeasure()}_bytes`;
    }

    sort(key) {
        const { sort } = this.page.state.now;
        const again = this.sortKey === key && !sort.startsWith("-");
        this.page.state.change({ sort: again ? `-${key}` : key });
    }

    /** The rows that match, in the chosen order. Changes are ordered by their size, without the sign. */
    rows() {
        const { ledger } = this.page;
        const { find } = this.page.state.now;
        const marks = find ? this.marks(ledger, find) : null;
        const key = this.sortKey;
        const rows = new Int32Array(ledger.siteCount);
        let count = 0;
        for (let site = 0; site < rows.length; site++) if (!marks || marks[site]) rows[count++] = site;
        const figures = key.startsWith("change") ? this.figures[key].map(Math.abs) : this.figures[key];
        return new Order(rows.subarray(0, count), figures, this.page.state.now.sort.startsWith("-"));
    }

    marks(ledger, find) {
        const marks = siteMarks(ledger, ledger.markNodes(ledger.matchLines(find)));
        const owners = this.page.matchOwners(find);
        if (!owners.size || !ledger.siteTag) return marks;
        const tags = Array.from(ledger.tags[0].keys(), (tag) => ledger.tags.some((column) => owners.has(column[tag])));
        for (let site = 0; site < marks.length; site++) if (tags[ledger.siteTag[site]]) marks[site] = 1;
        return marks;
    }

    draw() {
        const { now } = this.page.state;
        const key = JSON.stringify([now.find, now.sort]);
        if (this.drawn !== key) {
            this.rowsNow = this.rows();
            this.order = { length: this.rowsNow.rows.length, slice: (from, to) => this.rowsNow.slice(from, to) };
        }
        const scroll = this.drawn === key ? this.table.scroller.scrollTop : 0;
        this.drawn = key;
        this.table.show(this.order, { sort: this.sortKey, up: now.sort.startsWith("-"), chosen: now.site,
            words: countWords(this.order.length, this.page.ledger.siteCount, "site", "sites") });
        this.table.scroller.scrollTop = scroll;
        this.drawStack(now.site);
    }

    // ---- the content of a cell

    cell(site, key) {
        if (key !== "where") return this.text(site, key);
        const { ledger } = this.page;
        const node = ledger.nodeOfSite(site);
        const line = ledger.callerOf(node);
        if (ledger.folded?.[site]) return `… ${countedText(ledger.folded[site], "small site", "small sites")}`;
        if (line === undefined) return "(no call stack)";
        return element("span.where", {}, ledger.isPython(line) ? element("i.py", {}, "py") : null,
            element("span.name", {}, ledger.functionOf(line)), element("span.place", {}, ledger.placeOf(line)));
    }

    text(site, key) {
        const { ledger } = this.page;
        if (key === "owner") return this.ownerText(site);
        if (key === "where") {
            if (ledger.folded?.[site]) return `… ${countedText(ledger.folded[site], "small site", "small sites")}`;
            const line = ledger.callerOf(ledger.nodeOfSite(site));
            return line === undefined ? "(no call stack)" : ledger.lineText(line);
        }
        const value = this.figures[key][site];
        if (key.startsWith("change")) return key.endsWith("bytes") ? changeText(value) : countChangeText(value);
        const text = key.endsWith("blocks") ? countText(value) : sizeText(value);
        return key === "live_bytes" && ledger.inexact?.[site] ? `≈ ${text}` : text;
    }

    ownerText(site) {
        const names = this.page.ledger.ownersOf(site).map((id) => this.page.ownerName(id)).filter(Boolean);
        return names.join(" · ");
    }

    // ---- the chosen site

    open(site) {
        this.page.state.change({ site: this.page.state.now.site === site ? -1 : site }, true);
    }

    drawStack(site) {
        const { ledger } = this.page;
        this.stack.hidden = site < 0 || site >= ledger.siteCount;
        if (this.stack.hidden) return;
        this.stack.replaceChildren(element("h2", {}, this.text(site, "where")),
            element("dl", {}, this.columns.filter(({ number }) => number).map(({ key, title }) =>
                [element("dt", {}, title), element("dd", { "data-detail": key }, this.text(site, key))]),
                this.ownerText(site) ? [element("dt", {}, "Owner"), element("dd", {}, this.ownerText(site))] : null),
            ...stackOf(ledger, ledger.nodeOfSite(site)));
    }
}

/** A call stack, innermost first, with a button that copies it. */
export function stackOf(ledger, node) {
    const stack = ledger.stackOfNode(node);
    const copy = element("button", { type: "button",
        onclick: () => copyText(stack.map((line) => ledger.lineText(line)).join("\n") + "\n", copy) }, "Copy stack");
    return [element("h3", {}, "Call stack, innermost first"), element("div.actions", {}, copy),
        element("ol.stack", {}, stack.map((line) => element("li", {},
            ledger.isPython(line) ? element("i.py", {}, "py") : null,
            element("span.name", {}, ledger.functionOf(line)),
            element("span.place", {}, ledger.wholePlaceOf(line) || ledger.moduleOf(line)))))];
}
