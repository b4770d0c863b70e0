// curve.js: the resident memory of the last runs as a picture, with marks. In: figures of runs, the oldest first. Out:
// an SVG, and the same figures as a table for people who do not see the picture.
import { outcomeOf, size, text } from "./messages.js";
import { element } from "./tools.js";

const LEAST_WIDTH = 100, HEIGHT = 90, LEFT = 4, TOP = 14, BOTTOM = 14;
const LEAST = 2 ** 20; // bytes: a run that gave back less gets no mark

function shape(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
}

function marksOf(run) {
    const gave = run.given_bytes >= LEAST ? text("gaveBack", { size: size(run.given_bytes) }) : "";
    return [run.outcome !== "ok" ? outcomeOf(run) : "", gave].filter(Boolean).join(", ");
}

// Three points for each run: resident memory before it, at its peak, and after it.
function points(runs, x, y) {
    return runs.flatMap((run, i) => [[x(i), y(run.before_bytes)], [x(i + 0.5), y(run.peak_bytes)],
        [x(i + 0.9), y(run.after_bytes)]]);
}

function markShapes(runs, x, y, highest) {
    const shapes = [];
    runs.forEach((run, i) => {
        const at = x(i + 0.5), top = y(run.peak_bytes), end = y(run.after_bytes), right = x(i + 0.9);
        const mark = (made, words) => shapes.push(
            shape("g", {}, shape("title", {}, text("markOfRun", { run: run.run, mark: words })), made));
        if (run.outcome !== "ok")
            mark(shape("path", { class: "memstow-bad", d: `M${at - 4} ${top - 4}l8 8m0 -8l-8 8` }), outcomeOf(run));
        else if (run.peak_bytes === highest)
            mark(shape("circle", { class: "memstow-top", cx: at, cy: top, r: 3 }),
                text("highest", { size: size(highest) }));
        if (run.given_bytes >= LEAST)
            mark(shape("path", { class: "memstow-gave", d: `M${right - 4} ${end - 7}h8l-4 6z` }),
                text("gaveBack", { size: size(run.given_bytes) }));
    });
    return shapes;
}

function picture(runs, highest, words, width) {
    const scale = (HEIGHT - TOP - BOTTOM) / Math.max(highest, 1), step = (width - 2 * LEFT) / runs.length;
    const x = (place) => LEFT + place * step, y = (bytes) => HEIGHT - BOTTOM - bytes * scale;
    const line = points(runs, x, y).map(([across, down]) => `${across.toFixed(1)},${down.toFixed(1)}`).join(" ");
    const end = (i, anchor, place) => shape("text", { x: place, y: HEIGHT - 3, "text-anchor": anchor },
        text("runNumber", runs[i]));
    return shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": words },
        shape("line", { class: "memstow-grid", x1: LEFT, x2: width - LEFT, y1: y(0), y2: y(0) }),
        shape("line", { class: "memstow-grid", x1: LEFT, x2: width - LEFT, y1: y(highest), y2: y(highest),
            "stroke-dasharray": "2 3" }),
        shape("text", { x: LEFT, y: TOP - 4 }, size(highest)),
        shape("polyline", { class: "memstow-line-of", points: line }), ...markShapes(runs, x, y, highest),
        end(0, "start", LEFT), ...(runs.length > 1 ? [end(runs.length - 1, "end", width - LEFT)] : []));
}

function table(runs) {
    const rows = runs.map((run) => element("tr", {},
        element("th", { scope: "row" }, text(marksOf(run) ? "runMarked" : "runNumber",
            { run: run.run, marks: marksOf(run) })),
        ...Object.entries({ before: run.before_bytes, atMost: run.peak_bytes, after: run.after_bytes }).map(
            ([key, bytes]) => element("td", { "data-label": text(key) }, size(bytes)))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...["run", "before", "atMost", "after"].map(
        (key) => element("th", { scope: "col" }, text(key))))), element("tbody", {}, ...rows));
}

function wordsOf(runs, highest) {
    return text(runs.length === 1 ? "curveOfOne" : "curveOfMany", {
        count: runs.length, before: size(runs[0].before_bytes), most: size(highest),
        after: size(runs[runs.length - 1].after_bytes) });
}

// The picture, and a table that the user can open. Both are made anew when another run has ended, but an open table
// stays open.
export class Curve {
    constructor() {
        this.shown = "";
        this.runs = [];
        this.picture = element("div", { class: "memstow-picture" });
        this.words = element("p", { class: "memstow-line" });
        this.table = element("div", {});
        this.section = element("section", { class: "memstow-curve", "aria-label": text("lastRuns"), hidden: true },
            element("h3", {}, text("lastRuns")), this.picture, this.words,
            element("details", {}, element("summary", {}, text("asTable")), this.table));
        // draws anew for each width, so that letters keep their size
        new ResizeObserver(() => this.draw()).observe(this.picture);
    }

    show(runs) {
        const now = JSON.stringify(runs);
        if (now === this.shown) return;
        this.shown = now;
        this.section.hidden = !runs.length;
        if (!runs.length) return;
        this.runs = runs;
        this.table.replaceChildren(table(runs));
        this.draw();
    }

    draw() {
        if (!this.runs.length) return;
        const highest = Math.max(...this.runs.map((run) => run.peak_bytes)), words = wordsOf(this.runs, highest);
        this.words.textContent = words;
        this.picture.replaceChildren(picture(this.runs, highest, words,
            Math.max(this.picture.clientWidth, LEAST_WIDTH)));
    }
}
