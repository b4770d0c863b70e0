/* flame.js — draws a call tree.
 * In: a tree, the frame that fills the width, marked frames. Out: boxes on a canvas of the visible size. Frames of
 * about a pixel are not unfolded, and far narrower frames are not drawn. Work that takes too long is continued in the
 * next time slice. */

import { FIGURE_OPACITY, OUTER_OPACITY, UNFOUND_OPACITY } from "./colour.js";
import { LINE_ALLOCATOR, LINE_UNNAMED } from "./ledger.js";
import { percentText } from "./words.js";

const ROW = 20;
const UNFOLD_FROM = 1.2; // pixels: frames narrower than this are not unfolded
const MOMENT = 24; // milliseconds of work in one time slice
const FONT = "12px system-ui, sans-serif";

export class Flame {
    /** @param {HTMLElement} host the element that scrolls @param {{onpick, onhover}} handlers */
    constructor(host, handlers) {
        this.host = host;
        this.handlers = handlers;
        this.canvas = host.querySelector("canvas");
        this.spacer = host.querySelector(".spacer");
        this.context = this.canvas.getContext("2d");
        this.rows = [];
        this.widths = new Map();
        this.hovered = null;
        this.frameRequest = 0;
        host.addEventListener("scroll", () => this.draw());
        this.canvas.addEventListener("mousemove", (event) => this.hover(event));
        this.canvas.addEventListener("mouseleave", () => this.leave());
        this.canvas.addEventListener("click", (event) => this.click(event));
        new ResizeObserver(() => this.resize()).observe(host);
    }

    /** @param {{tree, zoom, up, marks, colour, name, value}} picture */
    show(picture) {
        const turned = this.picture && (this.picture.up !== picture.up || this.picture.tree !== picture.tree);
        this.picture = picture;
        this.hovered = null;
        this.resize();
        if (turned || !this.shown) this.host.scrollTop = picture.up ? this.host.scrollHeight : 0;
        this.shown = true;
    }

    resize() {
        const { clientWidth: width, clientHeight: height } = this.host;
        if (!this.picture || !width || !height) return;
        const scale = devicePixelRatio || 1;
        this.canvas.width = Math.round(width * scale);
        this.canvas.height = Math.round(height * scale);
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.width = width;
        this.height = height;
        this.context.setTransform(scale, 0, 0, scale, 0, 0);
        this.layOut();
    }

    // ---- placing the boxes of frames

    /** Places boxes row by row. At the end of its time slice it unfolds no more frames, and is called again later. */
    layOut() {
        const deadline = performance.now() + MOMENT;
        const { tree, zoom } = this.picture;
        this.rows = [];
        for (let frame = zoom; frame; frame = frame.parent) this.addBox(frame, 0, this.width);
        let level = [{ frame: zoom, x0: 0, x1: this.width }];
        this.unfinished = false;
        while (level.length) {
            const next = [];
            for (const box of level) this.layOutBelow(tree, box, next, deadline);
            level = next;
        }
        this.afterLayout();
    }

    layOutBelow(tree, { frame, x0, x1 }, next, deadline) {
        if (x1 - x0 < UNFOLD_FROM) return;
        if (!frame.children && performance.now() > deadline) {
            this.unfinished = true;
            return;
        }
        const scale = frame.weight > 0 ? (x1 - x0) / frame.weight : 0;
        let x = x0;
        for (const child of tree.unfold(frame)) {
            const width = child.weight * scale;
            if (width < 0.3) break;
            next.push(this.addBox(child, x, x + width));
            x += width;
        }
    }

    addBox(frame, x0, x1) {
        const box = { frame, x0, x1 };
        (this.rows[frame.row] ??= []).push(box);
        return box;
    }

    afterLayout() {
        const height = Math.max(this.rows.length * ROW, this.height);
        const fromEnd = this.host.scrollHeight - this.host.scrollTop;
        this.spacer.style.height = `${height - this.height}px`;
        if (this.picture.up && this.total !== height) this.host.scrollTop = this.host.scrollHeight - fromEnd;
        this.total = height;
        this.draw();
        cancelAnimationFrame(this.frameRequest);
        if (this.unfinished) this.frameRequest = requestAnimationFrame(() => this.layOut());
        this.host.dataset.finished = this.unfinished ? "no" : "yes";
    }

    top(row) {
        return (this.picture.up ? this.total - (row + 1) * ROW : row * ROW) - this.host.scrollTop;
    }

    // ---- drawing the boxes

    draw() {
        if (!this.picture || !this.width) return;
        const { context } = this;
        context.fillStyle = this.picture.palette.back;
        context.fillRect(0, 0, this.width, this.height);
        context.font = FONT;
        context.textBaseline = "middle";
        this.rows.forEach((boxes, row) => {
            const top = this.top(row);
            if (top < -ROW || top > this.height) return;
            for (const box of boxes) this.drawBox(box, top);
        });
    }

    drawBox({ frame, x0, x1 }, top) {
        const { context, picture } = this;
        const width = Math.max(x1 - x0 - (x1 - x0 > 3 ? 1 : 0), 0.4);
        const isFound = picture.marks && frame.isLine && picture.marks[frame.key];
        context.globalAlpha = this.opacity(frame, isFound);
        context.fillStyle = isFound ? picture.palette.found : picture.colour(frame);
        context.fillRect(x0, top, width, ROW - 1);
        context.globalAlpha = 1;
        if (frame === this.hovered || frame === picture.picked) this.drawEdge(x0, top, width);
        if (width > 24) this.drawText(frame, x0 + 5, top + ROW / 2, width - 9);
    }

    opacity(frame, isFound) {
        if (frame.row < this.picture.zoom.row) return OUTER_OPACITY;
        return this.picture.marks && !isFound ? UNFOUND_OPACITY : 1;
    }

    drawEdge(x, top, width) {
        this.context.strokeStyle = this.picture.palette.edge;
        this.context.lineWidth = 1.5;
        this.context.strokeRect(x + 0.75, top + 0.75, Math.max(width - 1.5, 0.5), ROW - 2.5);
    }

    drawText(frame, x, y, room) {
        const { context, picture } = this;
        const name = this.fit(picture.name(frame), room);
        if (!name) return;
        context.fillStyle = picture.palette.text;
        context.fillText(name, x, y);
        const used = this.widthOf(name) + 10;
        const value = picture.value(frame);
        if (room - used < this.widthOf(value)) return;
        context.globalAlpha = FIGURE_OPACITY;
        context.fillText(value, x + used, y);
        context.globalAlpha = 1;
    }

    widthOf(text) {
        let width = 0;
        for (const character of text) width += this.widthOfCharacter(character);
        return width;
    }

    widthOfCharacter(character) {
        if (!this.widths.has(character)) this.widths.set(character, this.context.measureText(character).width);
        return this.widths.get(character);
    }

    /** As much of a text as fits into `room` pixels. */
    fit(text, room) {
        let width = 0;
        let kept = 0;
        const end = this.widthOfCharacter("…");
        for (let i = 0; i < text.length; i++) {
            width += this.widthOfCharacter(text[i]);
            if (width + end <= room) kept = i + 1;
            if (width > room) return kept > 1 ? `${text.slice(0, kept)}…` : "";
        }
        return text;
    }

    // ---- the frame under the mouse

    frameAt(event) {
        const box = this.canvas.getBoundingClientRect();
        const x = event.clientX - box.left;
        const y = event.clientY - box.top + this.host.scrollTop;
        const row = Math.floor((this.picture.up ? this.total - y : y) / ROW);
        return (this.rows[row] ?? []).find(({ x0, x1 }) => x >= x0 && x < x1)?.frame ?? null;
    }

    hover(event) {
        const frame = this.picture && this.frameAt(event);
        this.canvas.style.cursor = frame ? "pointer" : "default";
        if (frame !== this.hovered) {
            this.hovered = frame;
            this.draw();
        }
        this.handlers.onhover(frame, event);
    }

    leave() {
        this.hovered = null;
        this.draw();
        this.handlers.onhover(null);
    }

    click(event) {
        const frame = this.frameAt(event);
        if (frame) this.handlers.onpick(frame);
    }

    /** Scrolls to the row of a frame. */
    reveal(frame) {
        const top = this.top(frame.row);
        if (top < 0) this.host.scrollTop += top - ROW;
        else if (top > this.height - 2 * ROW) this.host.scrollTop += top - this.height + 2 * ROW;
    }
}

/** The family of a frame, which decides its colours. */
export function familyOf(ledger, frame) {
    if (frame.kind === "all") return ["all", ""];
    if (!frame.isLine) return ["owner", frame.kind + frame.key];
    const kind = ledger.lineKind[frame.key];
    if (ledger.isPython(frame.key)) return ["python", ledger.fileOf(frame.key)];
    if (kind & LINE_ALLOCATOR) return ["allocator", ""];
    return [kind & LINE_UNNAMED && !ledger.moduleOf(frame.key) ? "unnamed" : "native", ledger.moduleOf(frame.key)];
}

/** "12.3 %" of the whole tree. */
export function shareOf(tree, frame) {
    return percentText(frame.weight, tree.root.weight);
}
