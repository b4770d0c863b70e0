/* calls.js — call stacks as a tree that is unfolded on request.
 * In: a ledger, the sites that count, and the visible part of the stacks. Out: frames with their bytes and their
 * callees (or, inverted, callers). A frame is a set of places in the ledger's tree with the same text. Unfolding a
 * frame goes one step on from all its places. */

import { Sight } from "./sight.js";

const CHILDREN_MOST = 2000; // children that a frame keeps; smaller ones would be far too narrow to be seen

/** A frame in the tree. */
export class Frame {
    constructor(parent, kind, key, low, high) {
        this.parent = parent;
        this.kind = kind; // "all", "line", "model", "node", "run"
        this.key = key; // key of a line, or id of an owner
        this.low = low; // its sites are at the places low to high - 1 of the selection
        this.high = high;
        this.weight = 0;
        this.change = 0;
        this.places = []; // pairs: a node, and the position of a line in the node's segment
        this.ends = null; // in an inverted tree: used instead of `places`, until the frame is unfolded
        this.children = null; // null: not unfolded yet
        this.omitted = 0; // how many children are left out; they are the smallest
        this.below = 0; // bytes of all children, also of those that are left out
        this.row = parent ? parent.row + 1 : 0;
    }

    get isLine() {
        return this.kind === "line";
    }

    /** The frame's own bytes, without its children's. They are known when the frame is unfolded. */
    get self() {
        return this.weight - this.below;
    }
}

export class CallTree {
    /**
     * @param {import("./ledger.js").Ledger} ledger
     * @param {import("./selection.js").Selection} selection
     * @param {{kinds: string, imports: boolean, interpreter: boolean, lines: boolean, inverted: boolean, focus:
     *     number}} options
     *   kinds, imports, interpreter: options of sight.js; lines: tell lines of a function apart; focus: the key of the
     *   function at which all stacks begin, or -1
     */
    constructor(ledger, selection, options) {
        this.ledger = ledger;
        this.selection = selection;
        this.options = options;
        this.keys = options.lines ? ledger.lineKeys : ledger.functionKeys;
        this.sight = Sight.of(ledger, options);
        this.slots = new Int32Array(ledger.lineCount).fill(-1);
        this.root = new Frame(null, "all", -1, 0, selection.end);
        this.root.weight = selection.sum(0, selection.end);
        this.root.change = selection.change(0, selection.end);
        if (options.focus >= 0) this.focusOn(options.focus);
    }

    // ---- unfolding a frame: its callees

    /** Makes sure that the callees of a frame are known. @param {Frame} frame */
    unfold(frame) {
        if (frame.children) return frame.children;
        const owners = this.unfoldOwners(frame);
        if (owners) frame.children = owners;
        else if (this.options.inverted) frame.children = this.unfoldUp(frame);
        else frame.children = this.unfoldDown(frame);
        for (const child of frame.children) frame.below += child.weight;
        frame.children = this.largest(frame, frame.children);
        frame.children.sort((a, b) => b.weight - a.weight || a.key - b.key);
        return frame.children;
    }

    /** The CHILDREN_MOST largest children. Many may have the least weight that is kept: some of these are left out. */
    largest(frame, children) {
        if (children.length <= CHILDREN_MOST) return children;
        const least = leastOf(Float64Array.from(children, (child) => child.weight));
        const larger = children.filter((child) => child.weight > least);
        const equal = children.filter((child) => child.weight === least).slice(0, CHILDREN_MOST - larger.length);
        frame.omitted += children.length - CHILDREN_MOST;
        return larger.concat(equal);
    }

    /** Divides the frame by the next kind of owner in it. Null if call stacks come next. */
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

    /** Finds the frame's sites at a node and below it. Sets this.low and this.high, the range of their places in the
     * selection. */
    placesOf(node, frame) {
        const { siteStart, end } = this.ledger;
        this.low = this.selection.placeOf(siteStart[node], frame.low, frame.high);
        this.high = this.selection.placeOf(siteStart[end[node]], this.low, frame.high);
    }

    /** The child of a frame with this key. It is made if it is new. */
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
            const at = this.sight.nextIn(this.ledger.nodeSegment[node], frame.places[i + 1] + 1);
            if (at < 0) this.stepInto(frame, found, node);
            else this.addPlace(frame, found, node, at);
        }
        return this.forget(found);
    }

    /** Adds the first visible lines of the callees of a node to `found`. */
    stepInto(frame, found, top) {
        const { nodeSegment, end } = this.ledger;
        const stop = end[top];
        for (let node = top + 1; node < stop;) {
            if (!this.sight.below[node]) {
                node = end[node];
                continue;
            }
            const at = this.sight.nextIn(nodeSegment[node], 0);
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

    // ---- the inverted tree: from the allocating function outwards to its callers

    unfoldUp(frame) {
        if (!frame.isLine) return this.options.focus >= 0 ? this.focused(frame) : this.innermost(frame);
        const { ends } = frame;
        frame.ends = null; // only needed once, and there may be a million
        return this.byCaller(frame, ends);
    }

    /** The innermost visible lines of all stacks. Sites at nodes with the same visible stack are merged. */
    innermost(frame) {
        const { siteStart, nodeCount } = this.ledger;
        const { selection, sight } = this;
        const weights = new Float64Array(nodeCount);
        const changes = selection.changes ? new Float64Array(nodeCount) : weights;
        for (let node = 1; node < nodeCount; node++) {
            if (siteStart[node] === siteStart[node + 1] || !sight.innermost[node]) continue;
            const low = selection.placeOf(siteStart[node], frame.low, frame.high);
            const high = selection.placeOf(siteStart[node + 1], low, frame.high);
            weights[sight.innermost[node]] += selection.sum(low, high);
            if (changes !== weights) changes[sight.innermost[node]] += selection.change(low, high);
        }
        return this.largestEnds(frame, weights, changes);
    }

    /** Begins with the innermost lines of the stacks of all nodes. If there are too many lines, only the largest lines
     * are used. */
    largestEnds(frame, weights, changes) {
        const { words } = this.ledger;
        const byKey = new Float64Array(this.ledger.lineCount);
        for (let node = 1; node < weights.length; node++)
            if (weights[node]) byKey[this.keys[words[this.lastWord(node)]]] += weights[node];
        const lines = byKey.filter((weight) => weight > 0);
        const least = lines.length > CHILDREN_MOST ? leastOf(lines) : 0;
        const ends = new Ends(weights.length, changes !== weights);
        for (let node = 1; node < weights.length; node++) {
            if (!weights[node]) continue;
            const word = this.lastWord(node);
            if (byKey[this.keys[words[word]]] >= least) ends.add(node, word, weights[node], changes[node]);
            else frame.below += weights[node];
        }
        const children = this.byLine(frame, ends);
        frame.omitted = lines.length - children.length;
        return children;
    }

    /** The innermost visible word of a node that has a visible line. */
    lastWord(node) {
        return this.sight.last[this.ledger.nodeSegment[node]] - 1;
    }

    /** Goes from each end to the next visible line outside it, and divides the new ends by their lines. Ends that leave
     * their nodes may meet at an outer node; then they are merged. Inside a node no ends meet. */
    byCaller(frame, from) {
        const { nodeSegment, parent } = this.ledger;
        const { previous, innermost, last } = this.sight;
        const { nodes, words, weights, changes } = from;
        const met = this.met ??= new Int32Array(this.ledger.nodeCount); // by node: 1 + the end that was merged there
        const to = new Ends(from.count, changes !== weights);
        for (let i = 0; i < from.count; i++) {
            const word = previous[words[i]];
            if (word >= 0) {
                to.add(nodes[i], word, weights[i], changes[i]);
                continue;
            }
            const node = innermost[parent[nodes[i]]];
            if (met[node]) to.addTo(met[node] - 1, weights[i], changes[i]);
            else if (node) met[node] = to.add(node, last[nodeSegment[node]] - 1, weights[i], changes[i]) + 1;
        }
        for (let i = 0; i < to.count; i++) met[to.nodes[i]] = 0;
        return this.byLine(frame, to);
    }

    /** Makes the children of a frame: one for the ends at each line. */
    byLine(frame, ends) {
        const { keys, slots } = this;
        const lines = this.ledger.words;
        const found = [];
        const order = new Int32Array(ends.count); // the slots of ends
        const counts = [];
        for (let i = 0; i < ends.count; i++) {
            const key = keys[lines[ends.words[i]]];
            if (slots[key] < 0) {
                this.child(frame, found, key);
                counts.push(0);
            }
            order[i] = slots[key];
            counts[order[i]]++;
        }
        ends.divide(order, counts).forEach((part, slot) => {
            found[slot].ends = part;
            found[slot].weight = sum(part.weights, part.count);
            found[slot].change = sum(part.changes, part.count);
        });
        return this.forget(found);
    }

    // ---- the tree of one function (focus)

    /** Gives the root the bytes of all stacks that contain the function. */
    focusOn(key) {
        const child = this.focused(this.root)[0];
        this.root.weight = child ? child.weight : 0;
        this.root.change = child ? child.change : 0;
        this.focusKey = key;
    }

    /** One frame for the function: its outermost place in each stack, with all bytes that its calls allocated.
     * In an inverted tree, the frame has these places as ends. */
    focused(frame) {
        const { ledger, selection } = this;
        const { words, segmentStart, nodeSegment, parent } = ledger;
        const key = this.options.focus;
        const inside = new Uint8Array(ledger.nodeCount);
        const child = new Frame(frame, "line", key, frame.low, frame.high);
        if (this.options.inverted) child.ends = new Ends(ledger.nodeCount, selection.changes !== null);
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
                if (child.ends) child.ends.add(node, at, weight, change);
                else child.places.push(node, at - segmentStart[segment]);
            }
        }
        return child.weight ? [child] : [];
    }

    // ---- paths to a frame, for links

    /** The keys from the root down to a frame. */
    pathOf(frame) {
        const keys = [];
        for (; frame.parent; frame = frame.parent) keys.unshift(frame.key);
        return keys;
    }

    /** The frame at the end of a path, as far as the path is valid. */
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

/** The smallest of the CHILDREN_MOST largest weights. @param {Float64Array} weights is reordered */
function leastOf(weights) {
    weights.sort();
    return weights[weights.length - CHILDREN_MOST];
}

/** The sum of the first `count` numbers. @param {Float64Array} numbers @param {number} count */
function sum(numbers, count) {
    let result = 0;
    for (let i = 0; i < count; i++) result += numbers[i];
    return result;
}

/** Ends of stacks. For each: a node, a word of the node's segment, and the weight and change of the sites whose stacks
 * have this end. Those stacks may have more lines further in. */
class Ends {
    /** @param {number} most how many ends there may be @param {boolean} apart whether changes differ from weights */
    constructor(most, apart) {
        this.count = 0;
        this.nodes = new Int32Array(most);
        this.words = new Int32Array(most);
        this.weights = new Float64Array(most);
        this.changes = apart ? new Float64Array(most) : this.weights;
    }

    /** Adds an end. Returns its index. */
    add(node, word, weight, change) {
        const index = this.count++;
        this.nodes[index] = node;
        this.words[index] = word;
        this.weights[index] = weight;
        this.changes[index] = change;
        return index;
    }

    addTo(index, weight, change) {
        this.weights[index] += weight;
        if (this.changes !== this.weights) this.changes[index] += change;
    }

    /**
     * Divides the ends into parts.
     * @param {Int32Array} order the part of each end
     * @param {number[]} counts how many ends each part gets
     * @returns {Ends[]}
     */
    divide(order, counts) {
        if (counts.length === 1) return [this];
        const parts = counts.map((count) => new Ends(count, this.changes !== this.weights));
        const { nodes, words, weights, changes } = this;
        for (let i = 0; i < this.count; i++) parts[order[i]].add(nodes[i], words[i], weights[i], changes[i]);
        return parts;
    }
}
