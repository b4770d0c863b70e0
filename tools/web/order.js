/* order.js — rows in order, as far as somebody looks.
 * In: a figure for each row. Out: the rows from one rank to another, the largest first (or last). A million rows are
 * parted where that is needed and nowhere else: a screen of them costs a few passes. */

export class Order {
    /**
     * @param {Int32Array} rows taken over
     * @param {Float64Array} figures by row
     * @param {boolean} up the smallest first
     */
    constructor(rows, figures, up) {
        this.rows = rows;
        this.figures = figures;
        this.sign = up ? 1 : -1;
        this.bounds = [0, rows.length]; // what is between two of them is in place as a whole
        this.sorted = new Set(); // bounds behind which a part begins that is in order
    }

    /** Rows of these ranks. */
    slice(from, to) {
        this.settle(Math.max(from, 0), Math.min(to, this.rows.length));
        return this.rows.subarray(Math.max(from, 0), Math.min(to, this.rows.length));
    }

    compare(a, b) {
        return this.sign * (this.figures[a] - this.figures[b]) || a - b;
    }

    settle(from, to) {
        for (let i = 0; i + 1 < this.bounds.length;) {
            const low = this.bounds[i];
            const high = this.bounds[i + 1];
            if (high <= from || this.sorted.has(low)) i++;
            else if (low >= to) return;
            else if (high - low > 2000) this.bounds.splice(i + 1, 0, this.part(low, high));
            else this.sort(low, high);
        }
    }

    sort(low, high) {
        this.rows.subarray(low, high).sort((a, b) => this.compare(a, b));
        this.sorted.add(low);
    }

    /** Puts what comes first in front; returns where the rest begins, which is neither end. */
    part(low, high) {
        const { rows } = this;
        const pivot = this.median(rows[low + ((high - low) >> 2)], rows[(low + high) >> 1], rows[high - 1]);
        let left = low;
        let right = high - 1;
        for (;;) {
            while (this.compare(rows[left], pivot) < 0) left++;
            while (this.compare(rows[right], pivot) > 0) right--;
            if (left >= right) break;
            const row = rows[left];
            rows[left++] = rows[right];
            rows[right--] = row;
        }
        return Math.min(Math.max(left, low + 1), high - 1);
    }

    median(a, b, c) {
        if (this.compare(a, b) > 0) [a, b] = [b, a];
        if (this.compare(b, c) > 0) [b, c] = [c, b];
        return this.compare(a, b) > 0 ? a : b;
    }
}
