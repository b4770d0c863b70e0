/* timeline.js — memory over time as a curve.
 * In: points and marks. The value of a point holds until the next point. Out: the curve on a canvas that is as wide as
 * its host element, and a line of words about the moment or range that was chosen with the mouse or the keys. */

import { element } from "./dom.js";
import { curveIn, marksIn, pointAt } from "./range.js";
import { changeText, countedText, durationText, safeText, sizeText } from "./words.js";

const CURVE_HEIGHT = 168;
const CURVE_HEAD = 24; // pixels above the curve, for the names of marks
const CURVE_FOOT = 20; // pixels below the curve, for the times
const DRAG_LEAST = 4; // pixels: a shorter way of the pointer is a click
const CURVE_FONT = "12px system-ui, sans-serif";
const MARK_NAME_MOST = 28; // characters of an owner's name in the picture
const MARK_WORDS = { run_began: "", run_ended: "ended", came: "came", retired: "retired", trigger: "trigger",
    kept: "kept", stowed: "stowed", freed: "freed", blocked: "blocked", restored: "restored",
    out_of_memory: "out of memory", peak: "peak", snapshot: "snapshot" };
/* The kinds of marks that are drawn. If there is no room for all names, kinds at the beginning of this list get
 * their names first. */
const MARKS_NAMED = ["out_of_memory", "peak", "run_began", "stowed", "freed", "restored", "came", "snapshot"];

/** @param {number} most characters of a name */
function markText({ kind, owner, name, detail }, most = Infinity) {
    const run = kind.startsWith("run_") ? "run" : "";
    const of = owner ? shortened(safeText(name || "an unknown owner"), most) : "";
    const how = kind === "run_ended" && detail && detail !== "ok" ? `(${detail})` : "";
    return [run, of, MARK_WORDS[kind] ?? kind, how].filter(Boolean).join(" ");
}

function shortened(text, most) {
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** The words for a mark in a sentence. The picture, which has less room, leaves out the word "began". */
export function markWords(mark) {
    return markText(mark) + (mark.kind === "run_began" ? " began" : "");
}

export class Timeline {
    /**
     * @param {string} name of the memory
     * @param {{seconds: number[], bytes: number[], marks: object[], end: number, wordsOf: function(number): string,
     *     scale: ?number}} curve `wordsOf(i)` gives more words about point i. `scale`: the bytes at the upper edge of
     *     the picture; null or undefined: the most bytes of the curve
     * @param {((range: [number, number] | null) => void) | null} onrange called when the user has chosen a range of
     *     seconds. null: the user cannot choose a range
     */
    constructor(name, curve, onrange = null) {
        this.curve = curve;
        this.onrange = onrange;
        this.range = null;
        this.anchor = null; // the beginning of the range that is being chosen, in seconds
        this.most = curve.bytes.reduce((most, bytes) => Math.max(most, bytes), 1);
        this.scale = curve.scale ?? this.most;
        this.chosen = -1;
        this.canvas = element("canvas", { "aria-hidden": "true" });
        this.words = element("p.quiet.moment", {}, this.summary());
        this.host = element("div.timeline", { tabindex: "0", role: "slider", "aria-label": `${name} over time`,
            "aria-valuemin": "0", "aria-valuemax": String(curve.end), "aria-valuenow": String(curve.end),
            "aria-valuetext": this.summary(), onkeydown: (event) => this.key(event),
            onkeyup: (event) => this.keyUp(event), onblur: () => this.extended(),
            onpointerdown: (event) => this.dragBegins(event), onpointermove: (event) => this.drag(event),
            onpointerup: () => this.dragEnds(true), onpointercancel: () => this.dragEnds(false),
            onmousemove: (event) => this.choose(this.pointAt(event.offsetX)), onmouseleave: () => this.choose(-1) },
            this.canvas);
        this.element = element("div", {}, this.host, this.words);
        new ResizeObserver(() => this.draw()).observe(this.host);
    }

    summary() {
        if (this.range) return this.rangeWords();
        const { seconds, bytes } = this.curve;
        const at = bytes.indexOf(this.most);
        return `${sizeText(this.most)} at most, after ${durationText(seconds[at] ?? 0)}; ` +
            `${sizeText(bytes[bytes.length - 1])} at the end, after ${durationText(this.curve.end)}.`;
    }

    // ---- the chosen range

    rangeWords() {
        const { seconds, bytes, marks } = this.curve;
        const { begin, end, most, at } = curveIn(seconds, bytes, this.range);
        const count = marksIn(marks, this.range).length;
        return `From ${durationText(this.range[0])} to ${durationText(this.range[1])}: ${sizeText(begin)} at its ` +
            `begin, ${sizeText(end)} at its end, ${changeText(end - begin)}; ${sizeText(most)} at most, after ` +
            `${durationText(at)}; ${countedText(count, "mark", "marks")}.`;
    }

    /** Shows a range of seconds; null: none. */
    setRange(range) {
        this.range = range;
        this.say(this.chosen);
        this.draw();
    }

    secondAt(x) { return Math.min(Math.max(x / this.width, 0), 1) * this.curve.end; }

    dragBegins(event) {
        if (!this.onrange || event.button) return;
        this.dragFrom = event.offsetX;
        this.host.setPointerCapture?.(event.pointerId);
    }

    drag(event) {
        if (this.dragFrom === undefined) return;
        if (Math.abs(event.offsetX - this.dragFrom) < DRAG_LEAST && !this.isDragged) return;
        this.isDragged = true;
        const ends = [this.secondAt(this.dragFrom), this.secondAt(event.offsetX)].sort((a, b) => a - b);
        this.setRange(ends[1] > ends[0] ? ends : null);
    }

    dragEnds(isChosen) {
        const { isDragged } = this;
        this.dragFrom = undefined;
        this.isDragged = false;
        if (isDragged && isChosen) this.onrange(this.range);
    }

    /** Sets the range: one end is the time at which the user began to choose, the other the time of point `to`. */
    extend(from, to) {
        const { seconds } = this.curve;
        this.anchor ??= seconds[from];
        const ends = [this.anchor, seconds[to]].sort((a, b) => a - b);
        this.setRange(ends[1] > ends[0] ? ends : null);
    }

    /** Calls onrange only when Shift is released. Calls at each repeat of a held key would leave the views too little
     * time. */
    keyUp(event) {
        if (event.key === "Shift") this.extended();
    }

    extended() {
        if (this.anchor === null) return;
        this.anchor = null;
        this.cursor = this.chosen;
        this.onrange(this.range);
        this.choose(-1);
    }

    clearRange() {
        this.anchor = null;
        if (this.range) this.onrange?.(null);
    }

    // ---- the chosen point

    pointAt(x) { return this.pointOf((x / this.width) * this.curve.end); }

    pointOf(second) { return Math.max(pointAt(this.curve.seconds, second), 0); }

    key(event) {
        const last = this.curve.seconds.length - 1;
        const from = this.chosen < 0 ? this.cursor ?? last : this.chosen;
        const to = { ArrowLeft: Math.max(from - 1, 0), ArrowRight: Math.min(from + 1, last), Home: 0, End: last,
            PageUp: this.markFrom(from, -1), PageDown: this.markFrom(from, 1), Escape: -1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        if (event.shiftKey && this.onrange && to >= 0) this.extend(from, to);
        else if (to < 0) this.clearRange();
        this.choose(to);
    }

    /** The point of the next mark in a direction; the last or first point of the curve if there is no such mark. */
    markFrom(from, direction) {
        const { seconds, marks } = this.curve;
        const points = marks.map((mark) => this.pointOf(mark.seconds));
        const beyond = points.filter((point) => (point - from) * direction > 0);
        if (!beyond.length) return direction > 0 ? seconds.length - 1 : 0;
        return beyond.reduce((a, b) => ((b - a) * direction < 0 ? b : a));
    }

    choose(point) {
        if (point === this.chosen) return;
        this.chosen = point;
        this.say(point);
        this.draw();
    }

    say(point) {
        const text = point < 0 || this.anchor !== null || this.isDragged ? this.summary() : this.moment(point);
        this.words.textContent = text;
        this.host.setAttribute("aria-valuetext", text);
        this.host.setAttribute("aria-valuenow", String(point < 0 ? this.curve.end : this.curve.seconds[point]));
    }

    moment(point) {
        const { seconds, bytes, marks, wordsOf } = this.curve;
        const from = seconds[point];
        const to = seconds[point + 1] ?? Infinity;
        const here = marks.filter((mark) => mark.seconds >= from && mark.seconds < to).map(markWords);
        return [`After ${durationText(from)}: ${sizeText(bytes[point])}`, wordsOf(point), ...here].filter(Boolean)
            .join(", ");
    }

    // ---- drawing the curve and its marks

    x(second) { return this.curve.end > 0 ? (second / this.curve.end) * this.width : 0; }

    y(bytes) { return CURVE_HEAD + (1 - bytes / this.scale) * (CURVE_HEIGHT - CURVE_HEAD - CURVE_FOOT); }

    draw() {
        this.width = this.host.clientWidth;
        if (!this.width) return;
        const scale = devicePixelRatio || 1;
        this.canvas.width = Math.round(this.width * scale);
        this.canvas.height = Math.round(CURVE_HEIGHT * scale);
        const pen = this.canvas.getContext("2d");
        pen.setTransform(scale, 0, 0, scale, 0, 0);
        pen.font = CURVE_FONT;
        pen.textBaseline = "middle";
        const style = getComputedStyle(this.host); // the style sheet puts the canvas's colours into these properties
        this.colours = { area: style.fill, line: style.stroke, rule: style.floodColor, text: style.color,
            mark: style.caretColor, back: style.backgroundColor };
        if (this.range) this.drawRange(pen);
        this.drawArea(pen);
        this.drawScale(pen);
        this.drawMarks(pen);
        if (this.chosen >= 0) this.drawChosen(pen);
        this.host.dataset.drawn = "yes";
    }

    drawArea(pen) {
        const { seconds, bytes } = this.curve;
        pen.beginPath();
        pen.moveTo(0, this.y(0));
        let height = this.y(0);
        seconds.forEach((second, i) => {
            const x = this.x(second);
            pen.lineTo(x, height);
            height = this.y(bytes[i]);
            pen.lineTo(x, height);
        });
        pen.lineTo(this.width, height);
        pen.strokeStyle = this.colours.line;
        pen.lineWidth = 1.5;
        pen.stroke();
        pen.lineTo(this.width, this.y(0));
        pen.fillStyle = this.colours.area;
        pen.fill();
    }

    drawRange(pen) {
        const [from, to] = this.range.map((second) => Math.round(this.x(second)));
        const height = CURVE_HEIGHT - CURVE_HEAD - CURVE_FOOT;
        pen.fillStyle = this.colours.area;
        pen.fillRect(from, CURVE_HEAD, Math.max(to - from, 1), height);
        pen.fillStyle = this.colours.line;
        for (const x of [from, to]) pen.fillRect(Math.min(x, this.width - 1), CURVE_HEAD, 1, height);
    }

    drawScale(pen) {
        pen.fillStyle = this.colours.rule;
        for (const part of [0, 0.5, 1]) pen.fillRect(0, Math.round(this.y(this.scale * part)), this.width, 1);
        pen.fillStyle = this.colours.text;
        pen.textAlign = "left";
        pen.strokeStyle = this.colours.back;
        pen.lineWidth = 3;
        pen.strokeText(sizeText(this.scale), 4, this.y(this.scale) + 11);
        pen.fillText(sizeText(this.scale), 4, this.y(this.scale) + 11);
        pen.fillText("0 s", 0, CURVE_HEIGHT - 9);
        pen.textAlign = "right";
        pen.fillText(durationText(this.curve.end), this.width, CURVE_HEIGHT - 9);
    }

    /** Draws a tick for each mark of a kind in MARKS_NAMED, and its name where there is room for it. */
    drawMarks(pen) {
        const taken = [];
        pen.textAlign = "left";
        const rank = ({ kind }) => MARKS_NAMED.indexOf(kind);
        const named = this.curve.marks.filter((mark) => rank(mark) >= 0).sort((a, b) => rank(a) - rank(b));
        for (const mark of named) {
            const x = this.x(mark.seconds);
            pen.fillStyle = this.colours.mark;
            pen.fillRect(Math.min(Math.round(x), this.width - 1), CURVE_HEAD - 6, 1, 6);
            const text = markText(mark, MARK_NAME_MOST);
            const length = pen.measureText(text).width;
            const from = Math.max(0, Math.min(x - length / 2, this.width - length));
            if (taken.some(([a, b]) => from < b + 10 && from + length > a - 10)) continue;
            taken.push([from, from + length]);
            pen.fillStyle = this.colours.text;
            pen.fillText(text, from, CURVE_HEAD - 14);
        }
    }

    drawChosen(pen) {
        const { seconds, bytes } = this.curve;
        const x = this.x(seconds[this.chosen]);
        pen.fillStyle = this.colours.mark;
        pen.fillRect(Math.min(Math.round(x), this.width - 1), CURVE_HEAD, 1, CURVE_HEIGHT - CURVE_HEAD - CURVE_FOOT);
        pen.beginPath();
        pen.arc(x, this.y(bytes[this.chosen]), 3.5, 0, 2 * Math.PI);
        pen.fill();
    }
}
