/* selection.js — the sites that count, and their figures.
 * In: figures of sites, and marks of the sites that count. Out: sums over neighbouring sites, in constant time. If
 * sites are grouped by owner, they have another order: group by group, and inside a group in the order of the tree. A
 * place is the index of a site in this order. */

export class Selection {
    /**
     * @param {import("./ledger.js").Ledger} ledger
     * @param {Float64Array} figures of all sites
     * @param {Uint8Array | null} keeps the sites that count; null: all count
     * @param {boolean} byOwner
     */
    constructor(ledger, figures, keeps, byOwner) {
        this.ledger = ledger;
        this.order = byOwner && ledger.siteTag ? ownerOrder(ledger) : null;
        this.fill(figures, keeps);
    }

    /** If any figure is negative, all figures are changes. For changes there are two sums: one of the absolute values,
     * for the widths of frames, and one of the changes themselves. */
    fill(figures, keeps) {
        const sites = this.order?.sites;
        const changes = hasNegative(figures) ? new Float64Array(figures.length + 1) : null;
        const sums = new Float64Array(figures.length + 1);
        for (let i = 0, sum = 0, change = 0; i < figures.length; i++) {
            const site = sites ? sites[i] : i;
            const value = !keeps || keeps[site] ? figures[site] : 0;
            sum += value < 0 ? -value : value;
            change += value;
            sums[i + 1] = sum;
            if (changes) changes[i + 1] = change;
        }
        this.sums = sums;
        this.changes = changes;
    }

    get end() {
        return this.sums.length - 1;
    }

    /** The sum from place `low` up to `high`. */
    sum(low, high) {
        return this.sums[high] - this.sums[low];
    }

    change(low, high) {
        return this.changes ? this.changes[high] - this.changes[low] : this.sum(low, high);
    }

    /** The first place from `low` to `high` - 1 whose site has a number of at least `site`; `high` if there is none. */
    placeOf(site, low, high) {
        if (!this.order) return site < low ? low : site > high ? high : site;
        const { sites } = this.order;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (sites[middle] < site) low = middle + 1;
            else high = middle;
        }
        return low;
    }
}

function hasNegative(figures) {
    for (let i = 0; i < figures.length; i++) if (figures[i] < 0) return true;
    return false;
}

/** Returns the sites sorted by model, node and run, and the groups of sites. All sites with the same model, node and
 * run are one group, even if the numbers of their tags differ. Inside a group the sites are in the order of the tree,
 * which placeOf() needs. `tags` has one tag of each group. */
function ownerOrder(ledger) {
    const [models, nodes, runs] = ledger.tags;
    const compare = (a, b) => models[a] - models[b] || nodes[a] - nodes[b] || runs[a] - runs[b];
    const tags = [];
    const rank = new Int32Array(models.length);
    for (const tag of Array.from(models.keys()).sort(compare)) {
        if (!tags.length || compare(tags[tags.length - 1], tag)) tags.push(tag);
        rank[tag] = tags.length - 1;
    }
    const first = new Int32Array(tags.length + 1);
    for (const tag of ledger.siteTag) first[rank[tag] + 1]++;
    for (let i = 0; i < tags.length; i++) first[i + 1] += first[i];
    const sites = new Int32Array(ledger.siteTag.length);
    const next = Int32Array.from(first);
    for (let site = 0; site < sites.length; site++) sites[next[rank[ledger.siteTag[site]]]++] = site;
    return { sites, tags, first };
}
