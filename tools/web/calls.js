/* calls.js — call stacks as a tree that is unfolded on request.
 * In: a ledger, the sites that count, and the visible part of the stacks. Out: frames with their bytes and their
 * callees (or, inverted, callers). A frame is a set of places in the ledger's tree with the same text. Unfolding a
 * frame goes one step on from all its places. */

import { Sight } from "./sight.js";

const CHILDREN_MOST = 2000; // the most children that a frame keeps; all others would be too narrow to see

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
        this.ends = null; // in an inverted tree: Ends, used instead of `places`, until the frame is unfolded
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

    /** The CHILDREN_MOST largest children. If too many have the smallest weight that is kept, some of them are left
     * out. */
    largest(frame, children) {
        if (children.length <= CHILDREN_MOST) return children;
        const least = leastOf(Float64Array.from(children, (child) => child.weight));
        const larger = children.filter((child) => child.weight > least);
        const equal = children.filter((child) => child.weight === least).slice(0, CHILDREN_MOST - larger.length);
        frame.omitted += children.length - CHILDREN_MOST;
        return larger.concat(equal);
    }

    /** Divides the frame by the next kind of owner in it. Returns null if call stacks come next. */
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

    /** Returns the child that the frame has for this key. Makes the child if it is new. */
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
        frame.ends = null; // only needed once, and there may be a million nodes in it
        return this.byCaller(frame, ends);
    }

    /** Returns frames for the innermost visible lines of all stacks. Merges sites whose visible stacks are equal. */
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
        const nodes = new Nodes(nodeCount, changes !== weights);
        for (let node = 1; node < nodeCount; node++)
            if (weights[node]) nodes.add(node, weights[node], changes[node]);
        return this.largestEnds(frame, this.bySegment(nodes, (segment) => sight.last[segment] - 1));
    }

    /** Makes a child of the frame for each innermost line of a stack. If there are too many lines, only those with the
     * largest weights get a child. */
    largestEnds(frame, ends) {
        const { words, lineCount } = this.ledger;
        const byKey = new Float64Array(lineCount);
        for (const { word, weight } of ends) byKey[this.keys[words[word]]] += weight;
        const lines = byKey.filter((weight) => weight > 0);
        const least = lines.length > CHILDREN_MOST ? leastOf(lines) : 0;
        const isLarge = ({ word }) => byKey[this.keys[words[word]]] >= least;
        for (const end of ends)
            if (!isLarge(end)) frame.below += end.weight;
        const children = this.byLine(frame, ends.filter(isLarge));
        frame.omitted = lines.length - children.length;
        return children;
    }

    /** Divides nodes by their segments. @param {(segment: number) => number} wordOf the word where the ends are */
    bySegment(nodes, wordOf) {
        const { nodeSegment, segmentStart } = this.ledger;
        const slots = this.segmentSlots ??= new Int32Array(segmentStart.length - 1); // by segment: 1 + its slot
        const segments = [];
        const counts = [];
        for (let i = 0; i < nodes.count; i++) {
            const segment = nodeSegment[nodes.nodes[i]];
            if (!slots[segment]) {
                segments.push(segment);
                counts.push(0);
                slots[segment] = segments.length;
            }
            counts[slots[segment] - 1]++;
        }
        const sorted = nodes.sorted((node) => slots[nodeSegment[node]] - 1, counts);
        let low = 0;
        return segments.map((segment, slot) => {
            slots[segment] = 0;
            const high = low + counts[slot];
            const ends = new Ends(sorted, low, high, wordOf(segment));
            low = high;
            return ends;
        });
    }

    /** Moves each end to the next visible line further out in its stack, and divides the ends by their new lines.
     * - If that line is in the same segment, the end stays in its node.
     * - Otherwise the end moves to an outer node. Ends that come to the same outer node are merged. */
    byCaller(frame, from) {
        const { previous, last } = this.sight;
        const stay = from.filter(({ word }) => previous[word] >= 0);
        const leave = from.filter(({ word }) => previous[word] < 0);
        const to = stay.map((ends) => ends.at(previous[ends.word]));
        if (!leave.length) return this.byLine(frame, to);
        return this.byLine(frame, to.concat(this.bySegment(this.outside(leave), (segment) => last[segment] - 1)));
    }

    /** Goes from each node of these ends to the nearest outer node that has a visible line. Where several nodes meet,
     * their weights are added. */
    outside(ends) {
        const { parent, nodeCount } = this.ledger;
        const { innermost } = this.sight;
        const met = this.met ??= new Int32Array(nodeCount); // by node: 1 + its index in the result
        const result = new Nodes(ends.reduce((sum, { low, high }) => sum + high - low, 0), ends[0].nodes.apart);
        for (const { nodes: { nodes, weights, changes }, low, high } of ends)
            for (let i = low; i < high; i++) {
                const node = innermost[parent[nodes[i]]];
                if (met[node]) result.addTo(met[node] - 1, weights[i], changes[i]);
                else if (node) met[node] = result.add(node, weights[i], changes[i]) + 1;
            }
        for (let i = 0; i < result.count; i++) met[result.nodes[i]] = 0;
        return result;
    }

    /** Makes one child of the frame for each line. The child has all ends that are at this line. */
    byLine(frame, ends) {
        const { words } = this.ledger;
        const found = [];
        for (const end of ends) {
            const child = this.child(frame, found, this.keys[words[end.word]]);
            (child.ends ??= []).push(end);
            child.weight += end.weight;
            child.change += end.change;
        }
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

    /** Makes one frame for the function. It has the function's outermost place in each stack, and all bytes that calls
     * of the function allocated. In an inverted tree, the frame has these places as ends. */
    focused(frame) {
        const { ledger, selection } = this;
        const { words, segmentStart, nodeSegment, parent } = ledger;
        const key = this.options.focus;
        const inside = new Uint8Array(ledger.nodeCount);
        const child = new Frame(frame, "line", key, frame.low, frame.high);
        const nodes = this.options.inverted ? new Nodes(ledger.nodeCount, selection.changes !== null) : null;
        const places = new Map(); // by segment: the word of the function
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
                if (!nodes) child.places.push(node, at - segmentStart[segment]);
                else {
                    nodes.add(node, weight, change);
                    places.set(segment, at);
                }
            }
        }
        if (nodes) child.ends = this.bySegment(nodes, (segment) => places.get(segment));
        return child.weight ? [child] : [];
    }

    // ---- paths to a frame, for links

    /** The keys from the root down to a frame. */
    pathOf(frame) {
        const keys = [];
        for (; frame.parent; frame = frame.parent) keys.unshift(frame.key);
        return keys;
    }

    /** Follows a path of keys from the root. Returns the last frame of the path that exists. */
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

/** Nodes of the ledger's tree. Each has the weight and change of those sites of a frame whose stacks end at the node or
 * further in. */
class Nodes {
    /** @param {number} most how many nodes there may be @param {boolean} apart whether changes differ from weights */
    constructor(most, apart) {
        this.count = 0;
        this.apart = apart;
        this.nodes = new Int32Array(most);
        this.weights = new Float64Array(most);
        this.changes = apart ? new Float64Array(most) : this.weights;
    }

    /** Adds a node. Returns its index. */
    add(node, weight, change) {
        const index = this.count++;
        this.put(index, node, weight, change);
        return index;
    }

    put(index, node, weight, change) {
        this.nodes[index] = node;
        this.weights[index] = weight;
        this.changes[index] = change;
    }

    addTo(index, weight, change) {
        this.weights[index] += weight;
        if (this.apart) this.changes[index] += change;
    }

    /**
     * The same nodes, sorted by part.
     * @param {(node: number) => number} partOf
     * @param {number[]} counts how many nodes each part has
     */
    sorted(partOf, counts) {
        if (counts.length < 2) return this;
        const result = new Nodes(this.count, this.apart);
        result.count = this.count;
        const next = new Int32Array(counts.length);
        for (let part = 1; part < counts.length; part++) next[part] = next[part - 1] + counts[part - 1];
        for (let i = 0; i < this.count; i++)
            result.put(next[partOf(this.nodes[i])]++, this.nodes[i], this.weights[i], this.changes[i]);
        return result;
    }
}

/** Places in call stacks: one word of a segment, in each of many nodes that have this segment. A step to another word
 * of the segment is the same for all these nodes, so it is taken once for all of them. */
class Ends {
    /** @param {Nodes} nodes @param {number} low the ends are at the nodes low to high - 1 */
    constructor(nodes, low, high, word) {
        this.nodes = nodes;
        this.low = low;
        this.high = high;
        this.word = word;
        this.weight = sum(nodes.weights, low, high);
        this.change = nodes.apart ? sum(nodes.changes, low, high) : this.weight;
    }

    /** The same stacks, at another word. */
    at(word) {
        return Object.assign(Object.create(Ends.prototype), this, { word });
    }
}

/** The sum of numbers[low] to numbers[high - 1]. @param {Float64Array} numbers */
function sum(numbers, low, high) {
    let result = 0;
    for (let i = low; i < high; i++) result += numbers[i];
    return result;
}
