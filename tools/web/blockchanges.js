/* blockchanges.js — the view of large blocks and mappings in a comparison.
 * In: the columns of blocks, with their sizes in A and in B, and the document that says what was compared. Out: tables,
 * and the call stack of the chosen block. If A and B are of one process, there is one table of what came, went and
 * stayed. Otherwise there is a table for each side, which does not say what came or went. */

import { BlocksView, listedWords } from "./blocks.js";
import { choices, element } from "./dom.js";
import { Order } from "./order.js";
import { Rows } from "./owners.js";
import { countWords, Table } from "./table.js";
import { changeText, countedText, countText, safeText, sizeText } from "./words.js";

const [ONLY_A, ONLY_B, BOTH, UNCLEAR] = [0, 1, 2, 3]; // the column `place`
const BLOCK_CHANGE_COLUMNS = [
    { key: "change", title: "Change", number: true },
    { key: "size", title: "Size", number: true },
    { key: "age", title: "Age", number: true },
    { key: "place", title: "A to B", sortable: false },
    { key: "kind", title: "Kind", sortable: false },
    { key: "owner", title: "Owner", sortable: false },
    { key: "where", title: "Where", wide: true, sortable: false },
    { key: "address", title: "Address", number: true },
];
const BLOCK_CHANGE_DETAILS = [
    { key: "place", title: "A to B" },
    { key: "before_size", title: "In A" },
    { key: "after_size", title: "In B" },
    { key: "before_resident", title: "Resident in A" },
    { key: "after_resident", title: "Resident in B" },
    { key: "age", title: "Age" },
    { key: "kind", title: "Kind" },
    { key: "owner", title: "Owner" },
];
const BLOCK_CHANGE_READ = ["address", "before_size", "after_size", "before_resident", "after_resident", "age", "kind",
    "device", "place", "site"];
const SIDE_COLUMNS = ["size", "age", "kind", "where"]; // the columns where each side has a table of its own
const WORDS_LATER = { came: "came", went: "went", stayed: "stayed", unclear: "not clear" };
const WORDS_EARLIER = { came: "only in B", went: "only in A", stayed: "in both", unclear: "not clear" };

function capital(text) {
    return text[0].toUpperCase() + text.slice(1);
}

export class BlockChangesView extends BlocksView {
    isThere() {
        return this.page.diff !== null && this.page.bundle.count("blocks.after_size") > 0;
    }

    async show(host) {
        await this.page.loaded;
        if (!this.whole) await this.make();
        if (this.page.state.now.view !== this.key) return;
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        const { row } = this.page.state.now;
        if (this.page.about.same_process) this.showChanges();
        else this.tables.forEach((table, side) => this.showSide(table, side));
        this.draw(row);
    }

    async make() {
        this.compared = await this.page.bundle.document("blocks");
        await this.readFigures();
        this.columns = BLOCK_CHANGE_COLUMNS.filter(({ key }) => key !== "owner" || this.page.ledger.siteTag);
        this.whole = element("div.list-view");
        if (this.page.about.same_process) this.makeChanges();
        else this.makeSides();
    }

    async readFigures() {
        const figures = this.figures = Object.create(null);
        for (const key of BLOCK_CHANGE_READ) {
            const column = await this.page.bundle.figures(`blocks.${key}`);
            if (column) figures[key] = column;
        }
        const { before_size: before, after_size: after } = figures;
        figures.size = after.map((size, i) => size || before[i]); // a block that is in A and B has its size in B
        figures.change = after.map((size, i) => size - before[i]);
        this.ranks = { ...figures, change: figures.change.map(Math.abs) }; // without the sign
    }

    makeTable(label, columns) {
        return new Table({ label, columns, cell: (i, key) => this.cell(i, key), text: (i, key) => this.text(i, key),
            onopen: (i) => this.open(i), onsort: (key) => this.sort(key) });
    }

    // ---- one process: what came, went and stayed

    makeChanges() {
        this.table = this.makeTable("Large blocks and mappings from A to B", this.columns);
        this.tools = element("div.tools");
        this.whole.append(this.tools, element("p.quiet.how", {}, this.howKnown()),
            element("div.list-parts", {}, this.table.whole, this.details));
    }

    get words() {
        return this.page.about.b_is_later ? WORDS_LATER : WORDS_EARLIER;
    }

    /** How much came, went and stayed. */
    sumsText({ only_a: a, only_b: b, both }) {
        const { came, went, stayed } = this.words;
        const of = ({ blocks }, bytes) => `${sizeText(bytes)} in ${countText(blocks)}`;
        return `${came}: ${of(b, b.after_bytes)}; ${went}: ${of(a, a.before_bytes)}; ` +
            `${stayed}: ${of(both, both.after_bytes)}.`;
    }

    /** The sums, and how they are known. */
    howKnown() {
        const { on_devices: onDevices } = this.compared;
        const { b_is_later: later } = this.page.about;
        const [first, second] = later ? ["A", "B"] : ["B", "A"];
        const said = [capital(this.sumsText(this.compared)),
            ...(this.figures.device ? [`On devices ${this.sumsText(onDevices)}`] : []),
            "Both files are of one process. A block is the same in both if its address and the time of its " +
            `allocation are the same. ${later ? "It came if it was allocated after A was taken, and went if B does " +
                "not have it at this address any more." : "B was taken before A."}`,
            `What was allocated and freed between ${first} and ${second} is in neither of them; ` +
                "blocks under 64 KiB are in the sums of Sites and Owners only."];
        if (this.compared.not_live)
            said.push(`${countedText(this.compared.not_live, "mapping", "mappings")} of files and of reserved ` +
                "addresses: listed, but no part of these sums.");
        for (const { blocks, before_bytes: before, after_bytes: after } of [this.compared.unclear, onDevices.unclear])
            if (blocks) said.push(`${countedText(blocks, "block of", "blocks of")} ${second} ` +
                `(${sizeText(before + after)}) ${blocks === 1 ? "is" : "are"} older than ${first}, but not in it at ` +
                `this address: a mapping was cut or moved, or ${first} has no record of it. So it is not clear ` +
                "whether that came.");
        return said.concat(this.ofPeaks()).join(" ");
    }

    ofPeaks() {
        return this.page.diff.measure === "peak" ? ["These are the blocks that are live, not those of the peak."] : [];
    }

    placeKey(i) {
        return ["went", "came", "stayed", "unclear"][this.figures.place[i]];
    }

    showChanges() {
        const { now } = this.page.state;
        const which = Object.hasOwn(this.words, now.which) ? now.which : "";
        const { key, up } = this.sorted("change");
        const all = this.figures.size.length;
        const rows = Int32Array.from(this.figures.size.keys()).filter((i) => !which || this.placeKey(i) === which);
        this.drawTools(which);
        this.table.show(new Rows(new Order(rows, this.ranks[key], up)), { sort: key, up, chosen: now.row,
            words: countWords(rows.length, all, "block or mapping", listedWords(this.figures.device)) +
                this.omitted() });
    }

    drawTools(which) {
        const counts = { went: ONLY_A, came: ONLY_B, stayed: BOTH, unclear: UNCLEAR };
        const options = Object.keys(this.words).filter((key) => this.figures.place.includes(counts[key]))
            .map((key) => ({ key, name: capital(this.words[key]), title: `only those: ${this.words[key]}` }));
        const all = { key: "", name: "All", title: "all blocks and mappings" };
        this.tools.replaceChildren(choices("Which blocks", [all, ...options], which,
            (key) => this.page.state.change({ which: key, row: -1 })));
    }

    // ---- two processes: each with its own blocks

    makeSides() {
        const { diff } = this.page;
        const columns = this.columns.filter(({ key }) => SIDE_COLUMNS.includes(key));
        this.tables = ["A", "B"].map((side) => this.makeTable(`Large blocks and mappings of ${side}`, columns));
        this.whole.append(element("p.quiet.how", {}, "A and B are of two processes, so no block of A is a block of " +
            "B, and nothing is said about what came or went. These are the blocks and mappings of each. Sites and " +
            `Owners compare their sums. ${this.ofPeaks().join("")}`),
            element("div.list-parts", {}, element("div.pair", {}, this.tables.map((table, i) =>
                element("div.pair-part", {}, element("h2", {}, i ? "B: " : "A: ",
                    safeText(diff[i ? "b" : "a"].argument)), table.whole))), this.details));
    }

    showSide(table, side) {
        const { key, up } = this.sorted("size", SIDE_COLUMNS);
        const rows = Int32Array.from(this.figures.size.keys()).filter((i) => this.figures.place[i] === side);
        table.show(new Rows(new Order(rows, this.ranks[key], up)), { sort: key, up, chosen: this.page.state.now.row,
            words: countedText(rows.length, "block or mapping", "blocks and mappings") +
                (side ? this.omitted() : "") });
    }

    // ---- both

    omitted() {
        const { blocks_omitted: count } = this.page.about;
        return count ? `; ${countedText(count, "that matters less is", "that matter less are")} left out` : "";
    }

    /** The column by which the tables are sorted. */
    sorted(usual, keys = Object.keys(this.figures)) {
        const { sort } = this.page.state.now;
        const key = sort.replace(/^-/, "");
        this.usual = usual;
        return { key: keys.includes(key) && this.figures[key] ? key : usual, up: sort.startsWith("-") };
    }

    sort(key) {
        const { sort } = this.page.state.now;
        this.page.state.change({ sort: sort === key || (!sort && key === this.usual) ? `-${key}` : key });
    }

    cell(i, key) {
        const change = this.figures.change[i];
        if (key !== "change" || !change) return super.cell(i, key);
        return element(change > 0 ? "span.grew" : "span.shrank", {}, this.text(i, key));
    }

    text(i, key) {
        const { place, [key]: column } = this.figures;
        if (key === "place") return this.words[this.placeKey(i)];
        if (key === "change") return column[i] ? changeText(column[i]) : "–";
        const missing = key.startsWith("before_") ? place[i] === ONLY_B : key.startsWith("after_") &&
            place[i] === ONLY_A;
        return missing || (place[i] === UNCLEAR && /^(before|after)_/.test(key) && !column[i]) ? "–"
            : super.text(i, key);
    }

    facts() {
        return BLOCK_CHANGE_DETAILS.filter(({ key }) => (key === "owner" ? this.page.ledger.siteTag
            : key in this.figures) && (key !== "place" || this.page.about.same_process));
    }
}
