/* dom.js — makes elements of the page.
 * In: names, properties, children. Out: elements. Text is only ever set as text, never as markup. */

const SAID = 2000; // milliseconds for which a button shows what it has done

/**
 * @param {string} name "div", or "div.class"
 * @param {object} [properties] attributes, on… handlers; null and false are left out
 * @param {...(Node|string|null)} children
 */
export function element(name, properties = {}, ...children) {
    const [tag, ...classes] = name.split(".");
    const made = document.createElement(tag);
    if (classes.length) made.className = classes.join(" ");
    for (const [key, value] of Object.entries(properties)) {
        if (value === null || value === false || value === undefined) continue;
        if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
        else made.setAttribute(key, value === true ? "" : String(value));
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
}

/** A group of buttons for a choice between a few values. The chosen value's button is pressed. */
export function choices(label, options, chosen, onchoose) {
    const group = element("div.choices", { role: "group", "aria-label": label });
    for (const { key, name, title } of options) {
        const button = element("button", { type: "button", title, "aria-pressed": key === chosen ? "true" : "false",
            "data-choice": key, onclick: () => onchoose(key) }, name);
        group.append(button);
    }
    return group;
}

/** A switch for on and off. */
export function toggle(name, title, on, onchange) {
    return element("button.toggle", { type: "button", title, "aria-pressed": on ? "true" : "false",
        "data-toggle": name.toLowerCase().replaceAll(" ", "-"), onclick: () => onchange(!on) }, name);
}

/** A share of the whole as a bar. It is only for the eye: the figure stands beside it as text. */
export function bar(part, whole, kind = "") {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", `bar ${kind}`);
    svg.setAttribute("viewBox", "0 0 100 6");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const [name, width] of [["rest", 100], ["part", whole > 0 ? Math.min(100, (100 * part) / whole) : 0]]) {
        const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        box.setAttribute("class", name);
        box.setAttribute("width", String(width));
        box.setAttribute("height", "6");
        svg.append(box);
    }
    return svg;
}

/** Copies text to the clipboard, and shows on the button whether that worked; `words` say what was copied. */
export async function copyText(text, button, words = "") {
    const area = element("textarea.off-screen", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done =
        await navigator.clipboard?.writeText(text).then(() => true, () => false) || document.execCommand("copy");
    area.remove();
    button.dataset.before ??= button.textContent;
    button.textContent = done ? `Copied ${words}`.trim() : "Not copied";
    clearTimeout(button.dataset.timer);
    button.dataset.timer = setTimeout(() => { button.textContent = button.dataset.before; }, SAID);
}
