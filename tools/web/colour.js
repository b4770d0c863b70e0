/* colour.js — colours of frames.
 * In: the kind of a frame, and whether the page is dark. Out: a fill, and the colour for text on it. Python frames have
 * warm colours, native frames cool colours, and allocators are grey. In a comparison, red frames grew and blue frames
 * shrank. */

// The opacity of frames outside of the zoom, of frames that a search does not find, and of the figure behind a name.
export const OUTER_OPACITY = 0.55;
export const UNFOUND_OPACITY = 0.45;
export const FIGURE_OPACITY = 0.8;

function hashOf(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash >>> 0;
}

export class Palette {
    /** @param {boolean} dark */
    constructor(dark) {
        this.dark = dark;
        this.text = dark ? "#f3f1ee" : "#1b1a18";
        this.quiet = dark ? "#a3a19b" : "#6b6862";
        this.back = dark ? "#171715" : "#ffffff";
        this.found = dark ? "oklch(0.46 0.2 330)" : "oklch(0.82 0.15 330)";
        this.rest = dark ? "#2b2a27" : "#eceae4";
        this.edge = dark ? "#ffffff" : "#000000";
        this.made = new Map();
    }

    /** @param {string} family "python", "native", "allocator", "unnamed", "owner", "all" @param {string} name */
    fill(family, name) {
        const key = `${family} ${name}`;
        if (!this.made.has(key)) this.made.set(key, this.make(family, hashOf(name)));
        return this.made.get(key);
    }

    make(family, hash) {
        const light = (this.dark ? 0.4 : 0.87) + ((hash >>> 8) % 5) * (this.dark ? 0.012 : -0.012);
        const part = (hash % 97) / 97;
        if (family === "python") return `oklch(${light} ${this.dark ? 0.085 : 0.095} ${50 + 50 * part})`;
        if (family === "native") return `oklch(${light} ${this.dark ? 0.075 : 0.065} ${165 + 95 * part})`;
        if (family === "owner") return `oklch(${light} ${this.dark ? 0.1 : 0.08} ${285 + 30 * part})`;
        return this.dark ? "#3d3b37" : "#dedbd3";
    }

    /** The fill for a change, from -1 (everything shrank) to 1 (everything grew). */
    fillOfChange(part) {
        const much = Math.min(1, Math.abs(part));
        if (much < 0.005) return this.dark ? "#3d3b37" : "#e6e3dc";
        const hue = part > 0 ? 25 : 255;
        const light = this.dark ? 0.3 + 0.12 * much : 0.94 - 0.13 * much;
        return `oklch(${light} ${0.02 + 0.09 * much} ${hue})`;
    }
}
