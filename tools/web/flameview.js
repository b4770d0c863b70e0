/* flameview.js — the view of call stacks as a flame graph, with its tools.
 * In: the ledger and the state. Out: a picture for mouse and keys, and the chosen frame as text: its bytes, its place,
 * its callees. */

import { CallTree } from "./calls.js";
import { choices, copyText, element, toggle } from "./dom.js";
import { familyOf, Flame, shareOf } from "./flame.js";
import { MEASURES } from "./ledger.js";
import { Selection } from "./selection.js";
import { blocksChangeText, blocksText, changeText, countText, percentText, safeText, sizeText } from "./words.js";

const CALLS_LISTED = 12;
const KEYS = "Arrow keys move from frame to frame, Enter zooms in, Backspace out, Escape shows all.";

export class FlameView {
    constructor(page) {
        this.page = page;
        this.key = "flame";
        this.name = "Flame graph";
        this.tools = element("div.tools");
        this.crumbs = element("div.crumbs");
        this.details = element("aside.details", { "aria-label": "The chosen frame" });
        this.said = element("p.off-screen", { "aria-live": "polite" });
        this.tip = element("div.tip", { hidden: true });
        this.host = element("div.flame", { tabindex: "0", role: "application", "aria-roledescription": "flame graph",
            "aria-label": `Flame graph of call stacks. ${KEYS}`, onkeydown: (event) => this.press(event) },
            element("canvas", { "aria-hidden": "true" }), element("div.spacer"));
        this.whole = element("div.flame-view", {}, this.tools, this.crumbs,
            element("div.flame-parts", {}, this.host, this.details), this.said, this.tip);
        this.flame = new Flame(this.host, { onpick: (frame) => this.zoomTo(frame),
            onhover: (frame, event) => this.hover(frame, event) });
    }

    isThere() {
        return this.page.bundle.has("tree.segment");
    }

    async show(host) {
        if (this.whole.parentNode !== host) host.replaceChildren(this.whole);
        this.drawTools();
        await this.page.loaded;
        await this.makeTree();
        if (this.page.state.now.view !== this.key) return;
        this.drawTools();
        this.draw();
    }

    get state() {
        return this.page.state.now;
    }

    change(changes, small) {
        this.page.state.change(changes, small);
    }

    // ---- which sites are shown, and their tree

    /** Makes the tree again if the choices that it depends on have changed. */
    async makeTree() {
        const { ledger } = this.page;
        const { kinds, inverted, lines, imports, interpreter, focus } = this.state;
        const selection = await this.select();
        const key = JSON.stringify([kinds, inverted, lines, imports, interpreter, focus]);
        if (this.made === key && this.tree.selection === selection) return;
        this.tree = new CallTree(ledger, selection, { kinds, imports, interpreter, lines, inverted,
            focus: focus < ledger.lineCount ? focus : -1 });
        this.made = key;
    }

    /** Selects the sites that count, and their figures. */
    async select() {
        const { ledger } = this.page;
        const { unit, place, only, find, owners, owner, focus } = this.state;
        const byOwner = owners && !(focus >= 0 && focus < ledger.lineCount); // all calls of a function have many owners
        const key = JSON.stringify([this.page.measure(), unit, place, only && find, byOwner, owner]);
        if (this.selected === key) return this.selection;
        const figures = await ledger.figures(this.page.measure(), unit);
        this.selection =
            new Selection(ledger, figures, this.keeps(ledger, only && find ? ledger.matchLines(find) : null), byOwner);
        this.selected = key;
        return this.selection;
    }

    /** Marks the sites that count: those of the chosen memory and owner that have a marked line. Null: all sites count.
     * @returns {Uint8Array|null} */
    keeps(ledger, marks) {
        const { place, owner } = this.state;
        const { device, siteTag } = ledger;
        const sites = marks && siteMarks(ledger, ledger.markNodes(marks));
        const tags = owner > 0 && siteTag ? tagsOf(ledger, owner) : null;
        const onDevice = place === "device" ? 1 : 0;
        if (!device && !sites && !tags) return null;
        const keeps = sites ?? new Uint8Array(ledger.siteCount).fill(1);
        for (let site = 0; site < keeps.length; site++)
            if ((device && device[site] !== onDevice) || (tags && !tags[siteTag[site]])) keeps[site] = 0;
        return keeps;
    }

    // ---- the tools above the picture

    drawTools() {
        const { state } = this;
        const { ledger } = this.page;
        const had = document.activeElement?.closest?.(".tools") === this.tools ? document.activeElement : null;
        const refocus = had && (had.dataset.choice || had.dataset.toggle || had.type);
        const only = (changes) => this.change({ zoom: "", ...changes });
        const measures = MEASURES.filter(({ key }) => this.page.hasMeasure(key));
        const parts = [
            choices("Measure", measures, this.page.measure(), (measure) => only({ measure })),
            choices("Unit", [ { key: "bytes", name: "Bytes" }, { key: "blocks", name: "Blocks" } ], state.unit,
                (unit) => only({ unit })),
            choices("Frames",
                [
                    { key: "both", name: "All frames" }, { key: "python", name: "Python" },
                    { key: "native", name: "Native" }
                ],
                state.kinds, (kinds) => only({ kinds })),
            this.page.bundle.has("sites.device") ?
                choices("Memory", [ { key: "host", name: "Host" }, { key: "device", name: "Devices" } ],
                    state.place, (place) => only({ place })) :
                null,
            element("div.toggles", { role: "group", "aria-label": "Shape" },
                toggle("Inverted", "from where memory was taken, outwards to the callers", state.inverted,
                    (inverted) => only({ inverted })),
                toggle("Upwards", "the outermost call at the bottom", state.up, (up) => this.change({ up })),
                this.page.bundle.has("sites.tag") ? toggle("By owner", "model, node and run first, then call stacks",
                                                        state.owners, (owners) => only({ owners })) :
                                                    null,
                toggle("Lines", "tells the lines of a function apart", state.lines,
                    (lines) => only({ lines, focus: -1 })),
                this.page.hasPython ?
                    [
                        toggle("Imports", "shows Python's import machinery", state.imports,
                            (imports) => only({ imports })),
                        toggle("Interpreter", "shows the native code of Python itself", state.interpreter,
                            (interpreter) => only({ interpreter }))
                    ] :
                    null),
            this.searchBox(state),
        ];
        this.tools.replaceChildren(...parts.filter(Boolean));
        if (ledger && state.find) this.sayFound();
        if (refocus) this.tools.querySelector(
            `[data-choice="${refocus}"],[data-toggle="${refocus}"],[type="${refocus}"]`)?.focus();
    }

    searchBox(state) {
        if (!this.input) {
            this.input = element("input", { type: "search", placeholder: "Search functions, files, modules",
                "aria-label": "Search functions, files, modules", oninput: () => this.search(this.input.value) });
            this.found = element("output.found", { role: "status" });
        }
        if (document.activeElement !== this.input) this.input.value = state.find;
        if (!state.find) this.found.textContent = "";
        return element("div.search", {}, this.input, this.found, state.find ? toggle("Only these",
            "leaves out all other call stacks", state.only, (only) => this.change({ only, zoom: "" })) : null);
    }

    search(find) {
        this.change({ find, only: find ? this.state.only : false }, true);
    }

    /** Shows the sum of the stacks that match the search. */
    async sayFound() {
        const { ledger } = this.page;
        const { find, unit } = this.state;
        const figures = await ledger.figures(this.page.measure(), unit);
        const marks = ledger.matchLines(find);
        const nodes = ledger.markNodes(marks);
        const keeps = this.keeps(ledger, null);
        let sum = 0;
        let all = 0;
        for (let node = 0; node < ledger.nodeCount; node++)
            for (let site = ledger.siteStart[node]; site < ledger.siteStart[node + 1]; site++) {
                if (keeps && !keeps[site]) continue;
                all += Math.abs(figures[site]);
                if (nodes[node]) sum += figures[site];
            }
        if (find !== this.state.find) return;
        this.found.textContent = `${this.valueText(sum)}, ${percentText(sum, all) || "0 %"}`;
        this.found.dataset.sum = String(sum);
    }

    // ---- drawing the picture

    draw() {
        const { state, tree } = this;
        const { ledger, palette } = this.page;
        const zoom = tree.follow(state.zoom ? state.zoom.split(".").map(Number) : []);
        const marks = state.find && !state.only ? this.keyMarks(ledger.matchLines(state.find)) : null;
        this.zoom = zoom;
        if (!this.picked || !this.isIn(this.picked)) this.picked = zoom;
        this.flame.show({ tree, zoom, up: state.up, marks, palette, picked: this.picked,
            colour: (frame) => this.colourOf(frame), name: (frame) => this.nameOf(frame),
            value: (frame) => this.frameText(frame) });
        this.drawCrumbs();
        this.drawDetails(zoom === this.picked ? zoom : this.picked);
        this.whole.dataset.total = String(tree.root.change);
    }

    isIn(frame) {
        while (frame.parent) frame = frame.parent;
        return frame === this.tree.root;
    }

    keyMarks(lineMarks) {
        const marks = new Uint8Array(lineMarks.length);
        for (let line = 0; line < marks.length; line++) if (lineMarks[line]) marks[this.tree.keys[line]] = 1;
        return marks;
    }

    get isChange() {
        return this.page.measure() === "change";
    }

    colourOf(frame) {
        const { palette, ledger } = this.page;
        if (this.isChange) return palette.fillOfChange(frame.weight ? frame.change / frame.weight : 0);
        return palette.fill(...familyOf(ledger, frame));
    }

    nameOf(frame) {
        const { ledger } = this.page;
        if (frame.kind === "all") return this.tree.options.focus >= 0 ? "all calls of the function" : "all";
        if (!frame.isLine) return `${frame.kind} ${this.page.ownerName(frame.key) ?? "none"}`;
        return (ledger.isPython(frame.key) ? "py " : "") + ledger.shortNameOf(frame.key) +
            (this.state.lines && ledger.lineNumber[frame.key] ? `:${ledger.lineNumber[frame.key]}` : "");
    }

    valueText(value) {
        if (this.isChange) return this.state.unit === "bytes" ? changeText(value) : blocksChangeText(value);
        return this.state.unit === "bytes" ? sizeText(value) : blocksText(value);
    }

    frameText(frame) {
        return this.isChange ? this.valueText(frame.change)
            : `${this.valueText(frame.weight)}, ${shareOf(this.tree, frame)}`;
    }

    // ---- moving from frame to frame

    zoomTo(frame) {
        this.picked = frame;
        this.change({ zoom: this.tree.pathOf(frame).join(".") });
    }

    pick(frame) {
        this.picked = frame;
        this.draw();
        this.flame.reveal(frame);
        this.said.textContent = `${this.nameOf(frame)}, ${this.frameText(frame)}`;
    }

    press(event) {
        const frame = this.picked;
        if (!frame || !this.tree || event.ctrlKey || event.altKey || event.metaKey) return;
        const inwards = this.state.up ? "ArrowUp" : "ArrowDown";
        const outwards = this.state.up ? "ArrowDown" : "ArrowUp";
        const moves = {
            [inwards]: () => this.tree.unfold(frame)[0],
            [outwards]: () => frame.parent,
            ArrowLeft: () => this.beside(frame, -1),
            ArrowRight: () => this.beside(frame, 1),
            Home: () => this.tree.root,
        };
        if (event.key === "Enter") this.zoomTo(frame);
        else if (event.key === "Backspace") this.zoomTo(this.zoom.parent ?? this.tree.root);
        else if (event.key === "Escape") this.zoomTo(this.tree.root);
        else if (moves[event.key]) this.pick(moves[event.key]() ?? frame);
        else return;
        event.preventDefault();
    }

    beside(frame, step) {
        const among = frame.parent ? this.tree.unfold(frame.parent) : [frame];
        return among[among.indexOf(frame) + step];
    }

    hover(frame, event) {
        this.tip.hidden = !frame;
        if (!frame) return;
        const { ledger } = this.page;
        const place = frame.isLine ? ledger.wholePlaceOf(frame.key) || ledger.moduleOf(frame.key) : "";
        this.tip.replaceChildren(element("b", {}, this.nameOf(frame)), element("span", {}, this.frameText(frame)),
            place ? element("span.place", {}, place) : "");
        const { offsetWidth: width, offsetHeight: height } = this.tip;
        this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
        this.tip.style.top =
            `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
    }

    // ---- the chosen frame as text

    drawCrumbs() {
        const { state } = this;
        const parts = [];
        if (this.tree.options.focus >= 0)
            parts.push(element("button", {
                type: "button",
                title: "shows all call stacks again",
                onclick : () => this.change({ focus: -1, zoom: "" })
            },
                `Only calls of ${this.page.ledger.functionOf(state.focus)} ✕`));
        if (state.owner > 0)
            parts.push(element("button", {
                type: "button",
                title: "shows what all owners hold again",
                onclick : () => this.change({ owner: -1, zoom: "" })
            },
                `Only what ${this.page.ownerName(state.owner)} holds ✕`));
        if (this.zoom.parent) parts.push(element("button", { type: "button", "data-zoom": "out",
            onclick: () => this.zoomTo(this.tree.root) }, "Zoom out ✕"));
        this.crumbs.replaceChildren(...parts);
        this.crumbs.hidden = !parts.length;
    }

    drawDetails(frame) {
        const { ledger } = this.page;
        const calls = this.tree.unfold(frame);
        const rows = [["Total", this.frameText(frame), "total"]];
        if (!this.isChange && !this.state.inverted)
            rows.push([ "By itself", this.valueText(Math.max(0, frame.self)), "self" ]);
        if (frame.isLine) {
            const place = ledger.wholePlaceOf(frame.key);
            if (place) rows.push(["At", place, "place"]);
            if (ledger.moduleOf(frame.key)) rows.push(["In", ledger.moduleOf(frame.key), "module"]);
        }
        this.details.replaceChildren(element("h2", {}, this.nameOf(frame)),
            element("dl", {}, rows.map(([name, text, key]) =>
                [element("dt", {}, name), element("dd", { "data-detail": key }, text)])),
            this.actions(frame), this.callsOf(frame, calls));
        this.details.dataset.weight = String(frame.change);
    }

    actions(frame) {
        const copy =
            element("button", { type: "button", onclick: () => copyText(this.stackText(frame), copy) }, "Copy stack");
        return element("div.actions", {},
            frame === this.zoom ? null :
                                  element("button", { type: "button", onclick: () => this.zoomTo(frame) }, "Zoom in"),
            frame.isLine && this.state.focus !== frame.key ? element("button", {
                type: "button",
                title: "puts all calls of this function together",
                onclick : () => this.change({ focus: frame.key, zoom: "" })
            },
                                                                 "All calls of it") :
                                                             null,
            frame.parent ? copy : null);
    }

    callsOf(frame, calls) {
        if (!calls.length)
            return element(
                "p.quiet", {}, this.state.inverted ? "Nothing calls it." : "It calls nothing that holds memory.");
        const listed =
            calls.slice(0, CALLS_LISTED)
                .map((child) => element("li", {},
                         element("button.row", { type: "button", onclick: () => this.pick(child) },
                             element("span.name", {}, this.nameOf(child)),
                             element("b", {}, this.valueText(this.isChange ? child.change : child.weight)))));
        const left = calls.length + frame.omitted - CALLS_LISTED;
        const more = left > 0 ? element("p.quiet", {}, `and ${countText(left)} more`) : null;
        const title = frame.isLine ? (this.state.inverted ? "Called by" : "Calls") : "Holds";
        return element("section", {}, element("h3", {}, title), element("ol.calls", {}, listed), more);
    }

    /** The stack of a frame as text, innermost first, whether or not the picture is inverted. */
    stackText(frame) {
        const lines = [];
        for (let at = frame; at.parent; at = at.parent)
            lines.push(at.isLine ? this.page.ledger.lineText(at.key) : this.nameOf(at));
        if (this.state.inverted) lines.reverse();
        return safeText(`${this.frameText(frame)}`) + "\n" + lines.map((line) => `  ${line}`).join("\n") + "\n";
    }
}

/** Turns marks of nodes into marks of sites. */
export function siteMarks(ledger, nodes) {
    const sites = new Uint8Array(ledger.siteCount);
    for (let node = 0; node < nodes.length; node++)
        for (let site = ledger.siteStart[node]; site < ledger.siteStart[node + 1]; site++) sites[site] = nodes[node];
    return sites;
}

/** Marks the tags that name this owner. */
function tagsOf(ledger, owner) {
    return Uint8Array.from(
        ledger.tags[0].keys(), (tag) => (ledger.tags.some((column) => column[tag] === owner) ? 1 : 0));
}
