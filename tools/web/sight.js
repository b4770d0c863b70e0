/* sight.js — the visible part of call stacks: all frames, or frames of some kinds.
 * In: a ledger, and kinds of lines. Out: the visible lines of each segment, and for each node whether a line at or
 * below it is visible. The result is computed once for each choice of kinds. */

import { LINE_IMPORT, LINE_INTERPRETER, LINE_PYTHON } from "./ledger.js";

export class Sight {
    /**
     * @param {import("./ledger.js").Ledger} ledger
     *  @param {{kinds: string, imports: boolean, interpreter: boolean}} options
     *    kinds: "both", "python" or "native"; imports: whether to show Python's import machinery; interpreter: whether
     *    to show Python's native code
     */
    constructor(ledger, options) {
        this.ledger = ledger;
        this.markLines(options);
        this.markSegments();
        this.markNodes();
    }

    /** Returns the Sight for these options. The first call with these options makes it. */
    static of(ledger, { kinds, imports, interpreter }) {
        const key = `${kinds} ${imports} ${interpreter}`;
        ledger.sights ??= new Map();
        if (!ledger.sights.has(key)) ledger.sights.set(key, new Sight(ledger, { kinds, imports, interpreter }));
        return ledger.sights.get(key);
    }

    markLines({ kinds, imports, interpreter }) {
        const { lineKind } = this.ledger;
        const hidden = (imports ? 0 : LINE_IMPORT) | (interpreter ? 0 : LINE_INTERPRETER);
        this.visible = new Uint8Array(lineKind.length);
        for (let line = 0; line < lineKind.length; line++) {
            const python = (lineKind[line] & LINE_PYTHON) !== 0;
            if (lineKind[line] & hidden) continue;
            this.visible[line] = kinds === "both" || python === (kinds === "python") ? 1 : 0;
        }
    }

    /** Sets this.next and this.last. For each word: the next visible word of its segment, which may be the word itself;
     * -1: none. For each segment: its last visible word plus 1; 0: none. */
    markSegments() {
        const { words, segmentStart } = this.ledger;
        this.next = new Int32Array(words.length);
        this.last = new Int32Array(segmentStart.length - 1);
        for (let segment = 0; segment < this.last.length; segment++) {
            let next = -1;
            for (let at = segmentStart[segment + 1] - 1; at >= segmentStart[segment]; at--) {
                if (this.visible[words[at]]) {
                    if (next < 0) this.last[segment] = at + 1;
                    next = at;
                }
                this.next[at] = next;
            }
        }
    }

    /** For each word, the visible word before it in its segment, or -1 if there is none. Computed at the first call. */
    get previous() {
        return this.before ??= this.findPrevious();
    }

    findPrevious() {
        const { words, segmentStart } = this.ledger;
        const result = new Int32Array(words.length);
        for (let segment = 0; segment < segmentStart.length - 1; segment++) {
            let before = -1;
            for (let at = segmentStart[segment]; at < segmentStart[segment + 1]; at++) {
                result[at] = before;
                if (this.visible[words[at]]) before = at;
            }
        }
        return result;
    }

    /** Notes two facts of each node: whether it or a node below has a visible line, and the node with the innermost
     * visible line of its stack (0: none). */
    markNodes() {
        const { nodeSegment, parent } = this.ledger;
        const count = nodeSegment.length;
        this.below = new Uint8Array(count);
        this.innermost = new Int32Array(count);
        for (let node = 1; node < count; node++)
            this.innermost[node] = this.last[nodeSegment[node]] ? node : this.innermost[parent[node]];
        for (let node = count - 1; node > 0; node--) {
            if (this.last[nodeSegment[node]]) this.below[node] = 1;
            if (this.below[node]) this.below[parent[node]] = 1;
        }
    }

    /** The first visible word of a segment at this position or behind it; -1: none. */
    nextIn(segment, position) {
        const { segmentStart } = this.ledger;
        const at = segmentStart[segment] + position;
        return at < segmentStart[segment + 1] ? this.next[at] : -1;
    }
}
