/* order.js — sorts rows only as far as needed.
 * In: a figure for each row. Out: the rows from one rank to another, the largest first (or last). Only the part that is
 * asked for is partitioned and sorted: one screen of a million rows costs a few passes. */

const SORTED_AT_ONCE = 2000;

export class Order {
    /**
     * @param {Int32Array} rows the order keeps this array and reorders it
     * @param {Float64Array} figures by row
     * @param {boolean} up the smallest first
     */
    constructor(rows, figures, up) {
        this.rows = rows;
        this.keys = new Float64Array(rows.length); // smaller keys come first
        for (let i = 0; i < rows.length; i++) this.keys[i] = up ? figures[rows[i]] : -figures[rows[i]];
        // Bounds are ascending ranks. Two neighbouring bounds enclose a part of `rows`. A part has exactly the rows
        // that belong at its ranks, but these rows need not be in order yet.
        this.bounds = [0, rows.length];
        this.sorted = new Set(); // the parts that are sorted, by their lower bound
    }

    /** The rows of these ranks. */
    slice(from, to) {
        const first = Math.max(from, 0);
        const end = Math.min(to, this.rows.length);
        this.settle(first, end);
        return this.rows.subarray(first, end);
    }

    settle(from, to) {
        for (let i = 0; i + 1 < this.bounds.length;) {
            const low = this.bounds[i];
            const high = this.bounds[i + 1];
            if (high <= from || this.sorted.has(low)) i++;
            else if (low >= to) return;
            else if (high - low > SORTED_AT_ONCE && !this.isLevel(low, high))
                this.bounds.splice(i + 1, 0, this.part(low, high));
            else this.sort(low, high);
        }
    }

    /** Whether all keys from low up to high are equal. If they are, their rows keep their order. */
    isLevel(low, high) {
        for (let i = low + 1; i < high; i++) if (this.keys[i] !== this.keys[low]) return false;
        return true;
    }

    sort(low, high) {
        const { rows, keys } = this;
        if (high - low <= SORTED_AT_ONCE) {
            const part = Array.from(rows.subarray(low, high), (row, i) => [keys[low + i], row]);
            part.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
            part.forEach(([key, row], i) => { keys[low + i] = key; rows[low + i] = row; });
        }
        this.sorted.add(low);
    }

    /** Moves the rows that come first to the front of the range. Returns the beginning of the other rows, which is
     * always inside of the range. */
    part(low, high) {
        const { rows, keys } = this;
        const pivot = middleOf(keys[low + ((high - low) >> 2)], keys[(low + high) >> 1], keys[high - 1]);
        let left = low;
        let right = high - 1;
        for (;;) {
            while (keys[left] < pivot) left++;
            while (keys[right] > pivot) right--;
            if (left >= right) break;
            const row = rows[left];
            const key = keys[left];
            rows[left] = rows[right];
            keys[left++] = keys[right];
            rows[right] = row;
            keys[right--] = key;
        }
        return Math.min(Math.max(left, low + 1), high - 1);
    }
}

function middleOf(a, b, c) {
    return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
