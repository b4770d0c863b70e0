/* ledger.js — sites and their call stacks, from the page's data.
 * In: columns. Out: the lines, the tree of call stacks, and figures of sites.
 * - A line is a frame: function, file, module, line number and kind.
 * - A segment is a sequence of lines. The numbers of these lines are its words.
 * - Each node of the tree has one segment. The nodes are in the order of a walk from the outermost frames inwards.
 * - The sites are in the order of their nodes. So all sites at and below a node are neighbours, and the sum of a node
 *   is the difference of two running sums. */

import { safeText, shortPath } from "./words.js";

export const LINE_PYTHON = 1;
export const LINE_IMPORT = 2;
export const LINE_ALLOCATOR = 4;
export const LINE_UNNAMED = 8;
export const LINE_INTERPRETER = 16;

/** The possible measures of a page, in their order. */
export const MEASURES = [
    { key: "live", name: "Live", title: "what is held now, or was at the end" },
    { key: "peak", name: "At peak", title: "what was held at the peak, or as near to it as is known" },
    { key: "allocated", name: "Churn", title: "all that was ever allocated" },
    { key: "change", name: "Change", title: "what grew or shrank from A to B" },
    { key: "before", name: "A", title: "what the first of the two holds" },
    { key: "after", name: "B", title: "what the second of the two holds" },
];

/** Finds the parent and the end of each node. A node's end is the number after the last node below the node.
 * `children`: how many children each node has. */
function linkNodes(children) {
    const count = children.length;
    const parent = new Int32Array(count).fill(-1);
    const end = new Int32Array(count);
    const left = Int32Array.from(children);
    let open = -1; // the innermost node that still lacks children
    for (let node = 0; node < count; node++) {
        parent[node] = open;
        if (open >= 0) left[open]--;
        open = node;
        while (open >= 0 && left[open] === 0) {
            end[open] = node + 1;
            open = parent[open];
        }
    }
    return { parent, end };
}

/** Sums up the sizes of groups. Returns where each group begins and, as the last number, where the last group ends. */
function starts(counts) {
    const first = new Int32Array(counts.length + 1);
    for (let i = 0; i < counts.length; i++) first[i + 1] = first[i] + counts[i];
    return first;
}

export class Ledger {
    /** @param {import("./bundle.js").Bundle} bundle */
    static async load(bundle) {
        const ledger = new Ledger();
        ledger.bundle = bundle;
        ledger.changes = Object.create(null); // promises of figures, by unit
        const names = ["segments.length", "segments.lines", "tree.segment", "tree.children", "tree.sites"];
        const lines = ["function", "file", "module", "line", "kind"].map((name) => bundle.indices(`lines.${name}`));
        const texts = bundle.document("texts");
        const [lengths, words, segment, children, sites] = await Promise.all(names.map((name) => bundle.indices(name)));
        [ledger.lineFunction, ledger.lineFile, ledger.lineModule, ledger.lineNumber, ledger.lineKind] =
            await Promise.all(lines);
        ledger.texts = (await texts).texts;
        ledger.words = words;
        ledger.segmentStart = starts(lengths);
        ledger.nodeSegment = segment;
        Object.assign(ledger, linkNodes(children));
        ledger.siteStart = starts(sites);
        await ledger.loadSites();
        return ledger;
    }

    async loadSites() {
        const { bundle } = this;
        this.siteCount = bundle.count("sites.live_bytes") || bundle.count("sites.before_bytes");
        this.folded = await bundle.indices("sites.folded");
        this.device = await bundle.indices("sites.device");
        this.inexact = await bundle.indices("sites.inexact");
        this.siteTag = await bundle.indices("sites.tag");
        this.tags = await Promise.all(["model", "node", "run"].map((kind) => bundle.indices(`tags.${kind}`)));
        this.measures = MEASURES.filter(({ key }) => bundle.has(`sites.${key}_bytes`) || this.compares(key));
    }

    /** Whether this is the measure of the change from A to B, in a page that compares A with B. */
    compares(key) {
        return key === "change" && this.bundle.has("sites.before_bytes");
    }

    /** Figures of all sites. @returns {Promise<Float64Array>} */
    async figures(measure, unit) {
        if (!this.compares(measure)) return this.bundle.figures(`sites.${measure}_${unit}`);
        return this.changes[unit] ??= this.changesOf(unit);
    }

    async changesOf(unit) {
        const before = await this.bundle.figures(`sites.before_${unit}`);
        const after = await this.bundle.figures(`sites.after_${unit}`);
        return after.map((value, i) => value - before[i]);
    }

    get nodeCount() {
        return this.nodeSegment.length;
    }

    get lineCount() {
        return this.lineKind.length;
    }

    /** The node of a site. */
    nodeOfSite(site) {
        let low = 0;
        let high = this.nodeCount;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (this.siteStart[middle] <= site) low = middle;
            else high = middle;
        }
        return low;
    }

    /** The lines of a stack, the innermost first. */
    stackOfNode(node) {
        const lines = [];
        for (; node > 0; node = this.parent[node]) {
            const segment = this.nodeSegment[node];
            for (let at = this.segmentStart[segment + 1]; at-- > this.segmentStart[segment];)
                lines.push(this.words[at]);
        }
        return lines;
    }

    functionOf(line) {
        return safeText(this.texts[this.lineFunction[line]]);
    }

    /** The name of a function. A module's own code has the same name in every module, so its file is added. */
    shortNameOf(line) {
        const name = this.functionOf(line);
        return name === "<module>" ? `${name} ${shortPath(this.fileOf(line))}` : name;
    }

    fileOf(line) {
        return safeText(this.texts[this.lineFile[line]]);
    }

    moduleOf(line) {
        return safeText(this.texts[this.lineModule[line]]);
    }

    isPython(line) {
        return (this.lineKind[line] & LINE_PYTHON) !== 0;
    }

    /** The place of a line in short: "file:line", or the module. */
    placeOf(line) {
        const file = this.fileOf(line);
        if (file) return shortPath(file) + (this.lineNumber[line] ? `:${this.lineNumber[line]}` : "");
        return this.lineKind[line] & LINE_UNNAMED ? "" : shortPath(this.moduleOf(line));
    }

    /** The place of a line in full: "path:line", or "". */
    wholePlaceOf(line) {
        const file = this.fileOf(line);
        return file + (file && this.lineNumber[line] ? `:${this.lineNumber[line]}` : "");
    }

    /** Returns a line as the text report has it, such as "py function  file:line". */
    lineText(line) {
        const place = this.placeOf(line);
        return (this.isPython(line) ? "py " : "") + this.functionOf(line) + (place ? `  ${place}` : "");
    }

    /** The line that represents a stack: the innermost Python line outside of the import machinery; else the innermost
     * line that is not an allocator's; else the innermost line. */
    callerOf(node) {
        const stack = this.stackOfNode(node);
        const mine = (line) => (this.lineKind[line] & (LINE_PYTHON | LINE_IMPORT)) === LINE_PYTHON;
        const found = stack.find(mine) ?? stack.find((line) => !(this.lineKind[line] & LINE_ALLOCATOR));
        return found ?? stack[0];
    }

    /** Ids of the owners of a site: model, node, run. */
    ownersOf(site) {
        const tag = this.siteTag ? this.siteTag[site] : 0;
        return this.tags.map((column) => (column ? column[tag] : 0));
    }

    /** A key for each line. No two lines have the same key. */
    get lineKeys() {
        return this.ownKeys ??= Int32Array.from(this.lineKind.keys());
    }

    /** A key for each line. All lines of a function have the same key: the lowest number of a line of this function. */
    get functionKeys() {
        return this.sameKeys ??= this.findFunctions();
    }

    findFunctions() {
        const places = new Map(); // by function and file
        const functions = new Map(); // by function, file, module and kind
        const keys = new Int32Array(this.lineCount);
        for (let line = 0; line < keys.length; line++) {
            const name = this.lineFunction[line] * this.texts.length + this.lineFile[line];
            if (!places.has(name)) places.set(name, places.size);
            const whole = (places.get(name) * this.texts.length + this.lineModule[line]) * 64 + this.lineKind[line];
            if (!functions.has(whole)) functions.set(whole, line);
            keys[line] = functions.get(whole);
        }
        return keys;
    }

    /** Marks the lines with the text in their function, file or module. @returns {Uint8Array} */
    matchLines(text) {
        const wanted = text.toLowerCase();
        this.lowTexts ??= this.texts.map((one) => one.toLowerCase());
        const textMatches = new Uint8Array(this.texts.length);
        for (let i = 0; i < textMatches.length; i++) textMatches[i] = this.lowTexts[i].includes(wanted) ? 1 : 0;
        const marks = new Uint8Array(this.lineCount);
        for (let line = 0; line < marks.length; line++)
            marks[line] = textMatches[this.lineFunction[line]] | textMatches[this.lineFile[line]] |
                textMatches[this.lineModule[line]];
        return marks;
    }

    /** Marks the nodes whose stack has a marked line. @param {Uint8Array} marks */
    markNodes(marks) {
        const segments = this.markSegments(marks);
        const nodes = new Uint8Array(this.nodeCount);
        for (let node = 1; node < nodes.length; node++)
            nodes[node] = nodes[this.parent[node]] | segments[this.nodeSegment[node]];
        return nodes;
    }

    markSegments(marks) {
        const { segmentStart, words } = this;
        const segments = new Uint8Array(segmentStart.length - 1);
        for (let i = 0; i < segments.length; i++)
            for (let at = segmentStart[i]; at < segmentStart[i + 1]; at++) segments[i] |= marks[words[at]];
        return segments;
    }
}
