/* calls.js — call stacks as a tree that is unfolded where somebody looks.
 * In: a ledger, which sites count, and what of the stacks is shown. Out: frames with what they hold, and what each
 * calls (or, inverted, who calls it). A frame is a set of places in the ledger's tree that read the same: it is unfolded
 * by one step from all of them. */

import { LINE_IMPORT, LINE_INTERPRETER, LINE_PYTHON } from "./ledger.js";

const CHILDREN_MOST = 20000;

/** A frame in the tree. */
export class Frame {
    constructor(parent, kind, key, low, high) {
        this.parent = parent;
        this.kind = kind; // "all", "line", "model", "node", "run"
        this.key = key; // of a line, or the id of an owner
        this.low = low; // its sites are between these places
        this.high = high;
        this.weight = 0;
        this.change = 0;
        this.places = []; // node, position of a line in its segment, and so on
        this.shares = null; // inverted: weight and change of each place
        this.children = null; // null: not unfolded yet
        this.row = parent ? parent.row + 1 : 0;
    }

    get isLine() {
        return this.kind === "line";
    }

    /** What it holds itself: only known once it is unfolded. */
    get self() {
        return this.weight - this.children.reduce((sum, child) => sum + child.weight, 0);
    }
}

export class CallTree {
    /**
     * @param {import("./ledger.js").Ledger} ledger
     * @param {import("./selection.js").Selection} selection
     * @param {{kinds: string, imports: boolean, interpreter: boolean, lines: boolean, inverted: boolean, focus: number}} options
     *   kinds: "both", "python", "native"; imports, interpreter: show Python's import machinery, and its native code;
     *   lines: tell lines of a function apart; focus: the key of the function that all begins at, or -1
     */
    constructor(ledger, selection, options) {
        this.ledger = ledger;
        this.selection = selection;
        this.options = options;
        this.keys = keysOfLines(ledger, options.lines);
        this.findVisible();
        this.slots = new Int32Array(ledger.lineCount).fill(-1);
        this.root = new Frame(null, "all", -1, 0, selection.end);
        this.root.weight = selection.sum(0, selection.end);
        this.root.change = selection.change(0, selection.end);
        if (options.focus >= 0) this.focusOn(options.focus);
    }

    // ---- what is shown of stacks

    isVisible(line) {
        const kind = this.ledger.lineKind[line];
        if (!this.options.imports && kind & LINE_IMPORT) return false;
        if (!this.options.interpreter && kind & LINE_INTERPRETER) return false;
        if (this.options.kinds === "both") return true;
        return ((kind & LINE_PYTHON) !== 0) === (this.options.kinds === "python");
    }

    /** For each word the next visible one of its segment, and the one before; for nodes whether there is any below. */
    findVisible() {
        const { ledger } = this;
        const { words, segmentStart, nodeSegment, parent } = ledger;
        const visible = Uint8Array.from({ length: ledger.lineCount }, (_, line) => (this.isVisible(line) ? 1 : 0));
        this.next = new Int32Array(words.length + 1);
        this.last = new Int32Array(segmentStart.length - 1);
        for (let segment = 0; segment < this.last.length; segment++) {
            let next = -1;
            for (let at = segmentStart[segment + 1]; at-- > segmentStart[segment];) {
                if (visible[words[at]]) {
                    if (next < 0) this.last[segment] = at + 1;
                    next = at;
                }
                this.next[at] = next;
            }
        }
        this.visible = visible;
        this.hasVisible = new Uint8Array(nodeSegment.length);
        for (let node = nodeSegment.length; node-- > 1;) {
            if (this.last[nodeSegment[node]]) this.hasVisible[node] = 1;
            if (this.hasVisible[node]) this.hasVisible[parent[node]] = 1;
        }
    }

    /** The first visible word of a segment from a position on, or -1. */
    nextIn(segment, position) {
        const at = this.ledger.segmentStart[segment] + position;
        return at < this.ledger.segmentStart[segment + 1] ? this.next[at] : -1;
    }

    // ---- unfolding

    /** Makes sure that a frame knows what it calls. @param {Frame} frame */
    unfold(frame) {
        if (frame.children) return frame.children;
        const owners = this.unfoldOwners(frame);
        if (owners) frame.children = owners;
        else if (this.options.inverted) frame.children = this.unfoldUp(frame);
        else frame.children = this.unfoldDown(frame);
        frame.children.sort((a, b) => b.weight - a.weight || a.key - b.key);
        if (frame.children.length > CHILDREN_MOST) frame.children.length = CHILDREN_MOST;
        return frame.children;
    }

    /** Groups by the next kind of owner that anything in the frame has; null where stacks come next. */
    unfoldOwners(frame) {
        const kinds = ["all", "model", "node", "run"];
        const { order } = this.selection;
        if (!order || !kinds.includes(frame.kind) || this.options.focus >= 0) return null;
        for (let level = kinds.indexOf(frame.kind); level < 3; level++) {
            const groups = this.groupsOf(frame, level);
            if (groups.length > 1 || (groups.length && groups[0].key)) return groups;
        }
        return null;
    }

    groupsOf(frame, level) {
        const { tags, first } = this.selection.order;
        const column = this.ledger.tags[level];
        const groups = [];
        for (let rank = 0; rank < tags.length; rank++) {
            const low = Math.max(first[rank], frame.low);
            const high = Math.min(first[rank + 1], frame.high);
            if (low >= high || !this.selection.sum(low, high)) continue;
            const owner = column[tags[rank]];
            let group = groups[groups.length - 1];
            if (!group || group.key !== owner)
                groups.push(group = new Frame(frame, ["model", "node", "run"][level], owner, low, high));
            group.high = high;
        }
        for (const group of groups) {
            group.weight = this.selection.sum(group.low, group.high);
            group.change = this.selection.change(group.low, group.high);
        }
        return groups;
    }

    /** The places of the sites below a node that are the frame's. */
    placesOf(node, frame) {
        const { siteStart, end } = this.ledger;
        this.low = this.selection.placeOf(siteStart[node], frame.low, frame.high);
        this.high = this.selection.placeOf(siteStart[end[node]], this.low, frame.high);
    }

    /** The child of a frame with a key; made where there is none yet. */
    child(frame, found, key) {
        let slot = this.slots[key];
        if (slot < 0) {
            slot = this.slots[key] = found.length;
            found.push(new Frame(frame, "line", key, frame.low, frame.high));
        }
        return found[slot];
    }

    forget(found) {
        for (const child of found) this.slots[child.key] = -1;
        return found;
    }

    unfoldDown(frame) {
        const found = [];
        if (!frame.isLine && this.options.focus < 0) this.stepInto(frame, found, 0);
        else if (!frame.isLine) return this.focused(frame);
        for (let i = 0; i < frame.places.length; i += 2) {
            const node = frame.places[i];
            const at = this.nextIn(this.ledger.nodeSegment[node], frame.places[i + 1] + 1);
            if (at < 0) this.stepInto(frame, found, node);
            else this.addPlace(frame, found, node, at);
        }
        return this.forget(found);
    }

    /** The first visible lines in what a node calls. */
    stepInto(frame, found, top) {
        const { nodeSegment, end } = this.ledger;
        const stop = end[top];
        for (let node = top + 1; node < stop;) {
            if (!this.hasVisible[node]) {
                node = end[node];
                continue;
            }
            const at = this.nextIn(nodeSegment[node], 0);
            const held = at >= 0 ? this.addPlace(frame, found, node, at) : this.holds(frame, node);
            node = at >= 0 || !held ? end[node] : node + 1;
        }
    }

    holds(frame, node) {
        this.placesOf(node, frame);
        return this.selection.sum(this.low, this.high) > 0;
    }

    addPlace(frame, found, node, at) {
        this.placesOf(node, frame);
        const weight = this.selection.sum(this.low, this.high);
        if (!weight) return;
        const child = this.child(frame, found, this.keys[this.ledger.words[at]]);
        child.weight += weight;
        child.change += this.selection.change(this.low, this.high);
        child.places.push(node, at - this.ledger.segmentStart[this.ledger.nodeSegment[node]]);
    }

    // ---- inverted: from where memory was taken, outwards

    unfoldUp(frame) {
        if (!frame.isLine) return this.options.focus >= 0 ? this.focused(frame) : this.innermost(frame);
        const step = new Step(this, frame);
        for (let i = 0; i < frame.places.length; i += 2)
            step.outwards(frame.places[i], frame.places[i + 1], frame.shares[i], frame.shares[i + 1]);
        return step.finish();
    }

    /** The innermost visible lines of all stacks. */
    innermost(frame) {
        const { siteStart, nodeCount } = this.ledger;
        const step = new Step(this, frame);
        for (let node = 1; node < nodeCount; node++) {
            if (siteStart[node] === siteStart[node + 1]) continue;
            const low = this.selection.placeOf(siteStart[node], frame.low, frame.high);
            const high = this.selection.placeOf(siteStart[node + 1], low, frame.high);
            const weight = this.selection.sum(low, high);
            if (weight) step.from(node, weight, this.selection.change(low, high));
        }
        return step.finish();
    }

    // ---- all calls of one function

    /** The root holds what the stacks with the function hold. */
    focusOn(key) {
        const child = this.focused(this.root)[0];
        this.root.weight = child ? child.weight : 0;
        this.root.change = child ? child.change : 0;
        this.focusKey = key;
    }

    /** One frame: the outermost places of the function; inverted, the innermost ones, with what is below them. */
    focused(frame) {
        const { ledger, selection } = this;
        const { words, segmentStart, nodeSegment, parent } = ledger;
        const key = this.options.focus;
        const inside = new Uint8Array(ledger.nodeCount);
        const child = new Frame(frame, "line", key, frame.low, frame.high);
        child.shares = this.options.inverted ? [] : null;
        for (let node = 1; node < ledger.nodeCount; node++) {
            inside[node] = inside[parent[node]];
            const segment = nodeSegment[node];
            for (let at = segmentStart[segment]; at < segmentStart[segment + 1] && !inside[node]; at++) {
                if (this.keys[words[at]] !== key) continue;
                inside[node] = 1;
                this.placesOf(node, frame);
                const weight = selection.sum(this.low, this.high);
                if (!weight) continue;
                const change = selection.change(this.low, this.high);
                child.weight += weight;
                child.change += change;
                child.places.push(node, at - segmentStart[segment]);
                if (child.shares) child.shares.push(weight, change);
            }
        }
        return child.weight ? [child] : [];
    }

    // ---- paths, for links

    /** Keys from the root down to a frame. */
    pathOf(frame) {
        const keys = [];
        for (; frame.parent; frame = frame.parent) keys.unshift(frame.key);
        return keys;
    }

    /** The frame that a path leads to, as far as it goes. */
    follow(keys) {
        let frame = this.root;
        for (const key of keys) {
            const next = this.unfold(frame).find((child) => child.key === key);
            if (!next) break;
            frame = next;
        }
        return frame;
    }
}

/** Lines that read the same: with `lines`, each for itself; else the first line of the same function. */
function keysOfLines(ledger, lines) {
    const keys = new Int32Array(ledger.lineCount);
    const first = new Map();
    for (let line = 0; line < keys.length; line++) {
        const name = `${ledger.lineFunction[line]} ${ledger.lineFile[line]} ${ledger.lineModule[line]} ${ledger.lineKind[line]}`;
        if (lines || !first.has(name)) first.set(name, line);
        keys[line] = first.get(name);
    }
    return keys;
}

/** One step outwards of many places: those that meet become one. */
class Step {
    constructor(tree, frame) {
        this.tree = tree;
        this.frame = frame;
        this.found = [];
        this.met = new Map();
    }

    /** From the end of a node's stack. */
    from(node, weight, change) {
        const { ledger, last } = this.tree;
        while (node > 0 && !last[ledger.nodeSegment[node]]) node = ledger.parent[node];
        if (node > 0) this.add(node, last[ledger.nodeSegment[node]] - 1, weight, change);
    }

    /** From a line to the visible one outside of it. */
    outwards(node, position, weight, change) {
        const { ledger, visible } = this.tree;
        const start = ledger.segmentStart[ledger.nodeSegment[node]];
        for (let at = start + position; at-- > start;) {
            if (!visible[ledger.words[at]]) continue;
            this.add(node, at, weight, change);
            return;
        }
        this.from(ledger.parent[node], weight, change);
    }

    add(node, at, weight, change) {
        const { ledger, keys } = this.tree;
        const position = at - ledger.segmentStart[ledger.nodeSegment[node]];
        const child = this.tree.child(this.frame, this.found, keys[ledger.words[at]]);
        child.weight += weight;
        child.change += change;
        const place = node * 4096 + position;
        const known = this.met.get(place);
        if (known !== undefined && position < 4096) {
            child.shares[known] += weight;
            child.shares[known + 1] += change;
            return;
        }
        child.shares ??= [];
        this.met.set(place, child.shares.length);
        child.places.push(node, position);
        child.shares.push(weight, change);
    }

    finish() {
        return this.tree.forget(this.found);
    }
}
