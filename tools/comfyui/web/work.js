// work.js: shows long work in a line of the tab, with its progress, until the work is done or cancelled. In: the words
// for the work, and a function that cancels it. Out: the line.
import { text } from "./messages.js";
import { element } from "./tools.js";

export class Work {
    constructor(words, cancel) {
        this.isCancelled = false;
        this.bar = element("progress", { max: 1, "aria-label": words });
        this.seconds = element("span", { class: "memstow-number", "aria-hidden": "true" });
        const label = text("cancelOf", { work: words });
        const button = element("button", { type: "button", "aria-label": label, onclick: async () => {
            // The button is disabled until cancel() answers. If cancel() answers false, nothing could be cancelled yet,
            // and the button is enabled again.
            button.disabled = this.isCancelled = true;
            button.disabled = this.isCancelled = await cancel().catch(() => false);
        } }, text("cancel"));
        this.line = element("div", { class: "memstow-work-line" }, element("span", {}, words), this.bar, this.seconds,
            button);
        const begun = performance.now();
        this.timer = setInterval(() => {
            this.seconds.textContent = `${Math.round((performance.now() - begun) / 1000)} s`;
        }, 1000);
    }

    // Shows how much of the work is done, from 0 to 1. It is called for moves only: no other work knows its progress.
    at(part) {
        this.bar.value = Math.min(Math.max(part, 0), 1);
    }

    end() {
        clearInterval(this.timer);
        this.line.remove();
    }
}
