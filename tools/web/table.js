/* table.js — a table of many rows.
 * In: columns, sorted rows, and a function for the content of each cell. Out: the visible rows as elements, at most a
 * screen of them. */

import { copyText, element } from "./dom.js";
import { countedText, countText } from "./words.js";

const ROW_HEIGHT = 30;
const ROWS_MOST = 500000; // browsers limit the height of an element
const COPIED_MOST = 10000;

export class Table {
    /**
     * @param {object} options
     * @param {string} options.label
     * @param {{key: string, title: string, number?: boolean, wide?: boolean, sortable?: boolean}[]} options.columns
     * @param {(row: number, key: string) => string | Node} options.cell
     * @param {(row: number, key: string) => string} [options.text] text of a cell, for copies
     * @param {(row: number) => void} [options.onopen] a row was chosen
     * @param {(key: string) => void} [options.onsort]
     */
    constructor(options) {
        this.options = options;
        this.body = element("tbody");
        this.head = element("tr", { role: "row" });
        this.count = element("p.count", { role: "status" });
        this.grid = element("table.rows", { role: "table", "aria-label": options.label },
            element("thead", { role: "rowgroup" }, this.head), this.body);
        this.body.setAttribute("role", "rowgroup");
        this.scroller = element("div.scroller", { tabindex: "0", role: "region", "aria-label": options.label,
            onscroll: () => this.draw() }, this.grid);
        this.copy = element("button", { type: "button", onclick: () => this.copyRows() }, "Copy as text");
        this.whole = element("div.table", {}, element("div.above", {}, this.count, this.copy), this.scroller);
        new ResizeObserver(() => this.draw()).observe(this.scroller);
    }

    /** @param {{length: number, slice: (from: number, to: number) => ArrayLike<number>}} order of rows
     *  @param {{sort: string, up: boolean, chosen: number, words: string}} look */
    show(order, look) {
        this.order = order;
        this.look = look;
        this.length = Math.min(order.length, ROWS_MOST);
        this.drawHead();
        this.count.textContent = look.words;
        this.grid.setAttribute("aria-rowcount", String(order.length + 1));
        this.scroller.scrollTop = 0;
        this.draw();
    }

    /** The columns in their order. Where the window is narrow, the wide column comes first, because the others do not
     * fit beside it. */
    columns() {
        const { columns } = this.options;
        return this.isNarrow() ? [...columns].sort((a, b) => Boolean(b.wide) - Boolean(a.wide)) : columns;
    }

    isNarrow() {
        return matchMedia("(max-width: 900px)").matches;
    }

    drawHead() {
        const { onsort } = this.options;
        this.narrow = this.isNarrow();
        this.head.replaceChildren(...this.columns().map((column) => {
            const sorted = column.key === this.look.sort ? (this.look.up ? "ascending" : "descending") : null;
            const title = column.sortable === false || !onsort ? column.title
                : element("button", { type: "button", onclick: () => onsort(column.key) }, column.title);
            return element("th", { role: "columnheader", scope: "col", "aria-sort": sorted,
                class: this.classOf(column) }, title);
        }));
    }

    classOf({ number, wide }) {
        return [number && "number", wide && "wide"].filter(Boolean).join(" ") || null;
    }

    draw() {
        if (!this.order) return;
        if (this.narrow !== this.isNarrow()) this.drawHead();
        const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - 4);
        const seen = Math.ceil((this.scroller.clientHeight || 600) / ROW_HEIGHT) + 8;
        const end = Math.min(this.length, first + seen);
        const rows = Array.from(this.order.slice(first, end), (row, i) => this.row(row, first + i));
        this.body.replaceChildren(this.gap(first), ...rows, this.gap(this.length - end));
    }

    gap(rows) {
        const cell = element("td", { colspan: String(this.options.columns.length) });
        cell.style.height = `${rows * ROW_HEIGHT}px`;
        return element("tr.gap", { "aria-hidden": "true" }, cell);
    }

    row(row, rank) {
        const { cell, onopen } = this.options;
        const chosen = row === this.look.chosen;
        const cells = this.columns().map((column) => element("td", { role: "cell", class: this.classOf(column) },
            column.wide && onopen ? this.opener(cell(row, column.key), row, chosen) : cell(row, column.key)));
        return element("tr", { role: "row", "aria-rowindex": String(rank + 2), "data-row": String(row),
            class: chosen ? "chosen" : null, onclick: onopen ? () => onopen(row) : null }, cells);
    }

    opener(content, row, chosen) {
        return element("button.open", { type: "button", "aria-expanded": chosen ? "true" : "false" }, content);
    }

    /** Copies the rows as text, but no more than the first COPIED_MOST. The button says how many these are. */
    copyRows() {
        const { columns, text, cell } = this.options;
        const say = text ?? cell;
        const rows = Array.from(this.order.slice(0, Math.min(this.length, COPIED_MOST)));
        const lines = rows.map((row) => columns.map(({ key }) => say(row, key)).join("\t"));
        const all = this.order.length;
        const words = lines.length < all ? `the first ${countText(lines.length)} of ${countText(all)} rows`
            : countedText(all, "row", "rows");
        copyText([columns.map(({ title }) => title).join("\t"), ...lines].join("\n") + "\n", this.copy, words);
    }
}

/** "123 of 456 sites" */
export function countWords(shown, all, one, many) {
    return (shown === all ? "" : `${countText(shown)} of `) + countedText(all, one, many);
}
