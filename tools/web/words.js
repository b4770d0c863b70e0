/* words.js — values as text for people.
 * In: numbers, and text from elsewhere. Out: short text that hides nothing: a character that is invisible, or that
 * changes the direction of text, is shown as a mark. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const whole = new Intl.NumberFormat("en-US");

/** 12.3 MiB */
export function sizeText(bytes) {
    const sign = bytes < 0 ? "−" : "";
    let value = Math.abs(bytes);
    let unit = 0;
    for (; value >= 1023.95 && unit < UNITS.length - 1; unit++) value /= 1024;
    return `${sign}${unit ? value.toFixed(1) : whole.format(value)} ${UNITS[unit]}`;
}

/** 12,345 */
export function countText(count) {
    return (count < 0 ? "−" : "") + whole.format(Math.abs(count));
}

/** 1 site, 12,345 sites */
export function countedText(count, one, many) {
    return `${countText(count)} ${Math.abs(count) === 1 ? one : many}`;
}

/** 1 block, 12,345 blocks */
export function blocksText(count) {
    return countedText(count, "block", "blocks");
}

/** +12.3 MiB */
export function changeText(bytes) {
    return (bytes > 0 ? "+" : "") + sizeText(bytes);
}

export function countChangeText(count) {
    return (count > 0 ? "+" : "") + countText(count);
}

/** +1 block, −12,345 blocks */
export function blocksChangeText(count) {
    return (count > 0 ? "+" : "") + blocksText(count);
}

/** 12.3 % of the whole; "" if the whole is 0 */
export function percentText(part, all) {
    if (!all) return "";
    const percent = (100 * part) / all;
    if (percent > 0 && percent < 0.05) return "< 0.1 %";
    return `${percent.toFixed(1).replace("-", "−")} %`;
}

/** 12.3 s, 3 min 20 s, 2 h 5 min, 3 d 4 h */
export function durationText(seconds) {
    if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
    const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = parts.findIndex(([, length]) => seconds >= length);
    const [name, length] = parts[first];
    const rest = parts[first + 1];
    const text = `${Math.floor(seconds / length)} ${name}`;
    return rest ? `${text} ${Math.floor((seconds % length) / rest[1])} ${rest[0]}` : text;
}

/** 2026-11-21 11:28:08, in the reader's time zone */
export function whenText(seconds) {
    if (!seconds) return "not known";
    const at = new Date(seconds * 1000);
    const two = (number) => String(number).padStart(2, "0");
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// Control characters, marks of writing direction, and characters without width.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function markOf(character) {
    const code = character.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    if (code === 127) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** Text from elsewhere, in which invisible characters are shown as marks. */
export function safeText(text) {
    return String(text).replace(HIDDEN, markOf);
}

/** The name of an owner. The names of models and custom owners are followed by their origin, as in the command's
 * texts. */
export function ownerText({ kind, name, origin }) {
    return origin && (kind === "model" || kind === "custom") ? `${name} (${origin})` : name;
}

/** The last name of a path. If the last name begins with "__", as in torch/__init__.py, the last two names. */
export function shortPath(path) {
    const names = path.split("/");
    const last = names[names.length - 1];
    return last.startsWith("__") && names.length > 1 ? `${names[names.length - 2]}/${last}` : last;
}
