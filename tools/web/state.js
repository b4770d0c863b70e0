/* state.js — the state of the page, which is in the fragment of its address.
 * In: changes, and addresses. Out: the state, and a call to a listener. A link with the address shows the same state
 * again. Members with their default value are left out of the address. */

const USUAL = {
    view: "overview",
    measure: "",
    unit: "bytes",
    kinds: "both",
    place: "host",
    find: "",
    only: false,
    inverted: false,
    up: false,
    owners: false,
    lines: false,
    imports: false,
    interpreter: false,
    focus: -1,
    owner: -1,
    from: "",
    to: "",
    zoom: "",
    sort: "",
    site: -1,
    row: -1,
    which: "",
};

/** The possible values of members with a fixed set of words. */
const WORDS = { unit: ["bytes", "blocks"], kinds: ["both", "python", "native"], place: ["host", "device"] };

function valueOf(key, text, usual) {
    if (typeof usual === "boolean") return text === "1";
    if (typeof usual === "number") return Number.parseInt(text, 10) || 0;
    return WORDS[key] && !WORDS[key].includes(text) ? usual : text;
}

/** @param {string} fragment @param {object} usual */
export function readState(fragment, usual) {
    const [view, words = ""] = fragment.replace(/^#/, "").split("?");
    const state = { ...usual, view: view || usual.view };
    for (const [key, text] of new URLSearchParams(words)) {
        if (Object.hasOwn(usual, key) && key !== "view") state[key] = valueOf(key, text, usual[key]);
    }
    return state;
}

export function writeState(state, usual) {
    const words = new URLSearchParams();
    for (const key of Object.keys(usual)) {
        if (key === "view" || state[key] === usual[key]) continue;
        words.set(key, typeof state[key] === "boolean" ? (state[key] ? "1" : "0") : String(state[key]));
    }
    const text = words.toString();
    return `#${state.view}${text ? `?${text}` : ""}`;
}

export class State {
    /** @param {object} usual defaults that differ from page to page @param {() => void} onchange */
    constructor(usual, onchange) {
        this.usual = { ...USUAL, ...usual };
        this.onchange = onchange;
        this.now = readState(location.hash, this.usual);
        addEventListener("hashchange", () => {
            if (location.hash === writeState(this.now, this.usual)) return;
            this.now = readState(location.hash, this.usual);
            onchange();
        });
    }

    /** Changes the state. The browser's button Back undoes the change, unless `small` is true. */
    change(changes, small = false) {
        this.now = { ...this.now, ...changes };
        const fragment = writeState(this.now, this.usual);
        if (small) history.replaceState(null, "", fragment);
        else history.pushState(null, "", fragment);
        this.onchange();
    }
}
