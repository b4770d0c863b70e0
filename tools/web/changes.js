/* changes.js — the view of owners in a comparison: models, nodes and runs with their memory in A and in B.
 * In: figures and tags of sites, and the names of owners. Out: a table of what each owner has in both, on the host and
 * on devices, and its change; a way from the chosen owner to its call stacks. */

import { element } from "./dom.js";
import { Order } from "./order.js";
import { Rows } from "./owners.js";
import { countWords, Table } from "./table.js";
import { changeText, countChangeText, sizeText } from "./words.js";

const OWNER_KINDS = ["model", "node", "run"];
const CHANGE_COLUMNS = [
    { key: "kind", title: "Kind", sortable: false },
    { key: "change", title: "Change", number: true, say: changeText },
    { key: "before", title: "A", number: true, say: sizeText },
    { key: "after", title: "B", number: true, say: sizeText },
    { key: "blocks", title: "Blocks", number: true, say: countChangeText },
    { key: "deviceChange", title: "Change on devices", number: true, say: changeText },
    { key: "deviceBefore", title: "A on devices", number: true, say: sizeText },
    { key: "deviceAfter", title: "B on devices", number: true, say: sizeText },
    { key: "name", title: "Name", wide: true, sortable: false },
];

export class ChangesView {
    constructor(page) {
        this.page = page;
        this.key = "owners";
        this.name = "Owners";
        this.input = element("input", { type: "search", placeholder: "Filter by name or kind",
            "aria-label": "Filter by name or kind",
            oninput: () => this.page.state.change({ find: this.input.value, row: -1 }, true) });
        this.details = element("aside.details", { "aria-label": "The chosen owner" });
    }

    isThere() {
        return this.page.diff !== null && this.page.bundle.has("sites.tag") && this.page.ownerNames.size > 0;
    }

    async show(host) {
        await this.page.loaded;
        if (!this.table) await this.make();
        if (this.page.state.now.view !== this.key) return;
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        const { find, sort, row } = this.page.state.now;
        if (document.activeElement !== this.input) this.input.value = find;
        const key = this.figures[sort.replace(/^-/, "")] ? sort.replace(/^-/, "") : "change";
        const up = sort.startsWith("-");
        const rows = Int32Array.from(this.rows.keys()).filter((i) => this.matches(i, find.toLowerCase()));
        this.table.show(new Rows(new Order(rows, this.figures[key], up)), { sort: key, up, chosen: row,
            words: countWords(rows.length, this.rows.length, "owner", "owners") });
        this.draw(row);
    }

    async make() {
        this.rows = await this.sums();
        const isOnDevices = this.rows.some(({ deviceBefore, deviceAfter }) => deviceBefore || deviceAfter);
        this.columns = CHANGE_COLUMNS.filter(({ key }) => isOnDevices || !key.startsWith("device"));
        this.figures = Object.create(null);
        for (const { key, number } of this.columns) // changes are ordered by their size, without the sign
            if (number) this.figures[key] = Float64Array.from(this.rows, (row) => Math.abs(row[key]));
        this.table = new Table({ label: "Owners in A and B", columns: this.columns,
            cell: (i, key) => this.text(this.rows[i], key), onopen: (i) => this.open(i),
            onsort: (key) => this.sort(key) });
        this.whole = element("div.list-view", {}, element("div.tools", {}, element("div.search", {}, this.input)),
            element("div.list-parts", {}, this.table.whole, this.details));
    }

    /** What each owner has on both sides. An owner has one id on the host, and another one on devices. Ids with the
     * same kind and name belong to one owner. */
    async sums() {
        const { ledger } = this.page;
        const [before, after, blocksBefore, blocksAfter] = await Promise.all(["before_bytes", "after_bytes",
            "before_blocks", "after_blocks"].map((name) => this.page.bundle.figures(`sites.${name}`)));
        const owners = new Map();
        for (let site = 0; site < ledger.siteCount; site++)
            OWNER_KINDS.forEach((kind, i) => {
                const id = ledger.tags[i]?.[ledger.siteTag[site]];
                if (!id) return;
                const one = ownerOf(owners, kind, id, this.page.ownerName(id));
                const isOnDevice = ledger.device?.[site];
                one[isOnDevice ? "deviceBefore" : "before"] += before[site];
                one[isOnDevice ? "deviceAfter" : "after"] += after[site];
                one[isOnDevice ? "deviceId" : "id"] = id;
                if (!isOnDevice) one.blocks += blocksAfter[site] - blocksBefore[site];
            });
        return [...owners.values()].map((one) => ({ ...one, change: one.after - one.before,
            deviceChange: one.deviceAfter - one.deviceBefore }));
    }

    sort(key) {
        const { sort } = this.page.state.now;
        this.page.state.change({ sort: sort === key || (!sort && key === "change") ? `-${key}` : key });
    }

    matches(i, find) {
        return !find || [this.rows[i].name, this.rows[i].kind].some((text) => text.toLowerCase().includes(find));
    }

    text(owner, key) {
        const { say } = CHANGE_COLUMNS.find((column) => column.key === key);
        return say ? (owner[key] ? say(owner[key]) : "–") : owner[key];
    }

    open(i) {
        this.page.state.change({ row: this.page.state.now.row === i ? -1 : i }, true);
    }

    draw(i) {
        const owner = this.rows[i];
        this.details.hidden = !owner;
        if (!owner) return;
        const stacks = (id, place) =>
            this.page.state.change({ view: "flame", owner: id, place, zoom: "", row: -1, find: "" });
        const button = (id, place, words) =>
            id ? element("button", { type: "button", onclick: () => stacks(id, place) }, words) : null;
        this.details.replaceChildren(element("h2", {}, `${owner.kind} ${owner.name}`),
            element("dl", {}, this.columns.filter(({ number }) => number).map(({ key, title }) =>
                [element("dt", {}, title), element("dd", { "data-detail": key }, this.text(owner, key))])),
            element("div.actions", {}, button(owner.id, "host", "Its call stacks"),
                button(owner.deviceId, "device", "Its call stacks on devices")));
    }
}

/** The sums of the owner with this kind and name. */
function ownerOf(owners, kind, id, name) {
    const key = `${kind} ${name}`;
    if (!owners.has(key))
        owners.set(key, { kind, name, id: 0, deviceId: 0, before: 0, after: 0, blocks: 0, deviceBefore: 0,
            deviceAfter: 0 });
    return owners.get(key);
}
