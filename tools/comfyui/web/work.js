// work.js: work that takes long, with its progress, until it is done or cancelled. In: the words for it, and how it is
// cancelled. Out: a line of the tab.
import { element } from "./tools.js";

export class Work {
    constructor(words, cancel) {
        this.isCancelled = false;
        this.bar = element("progress", { max: 1, "aria-label": words });
        this.seconds = element("span", { class: "memstow-number", "aria-hidden": "true" });
        const button = element("button", { type: "button", "aria-label": `Cancel: ${words}`, onclick: async () => {
            button.disabled = this.isCancelled = true; // unless there is nothing to cancel, or not yet
            button.disabled = this.isCancelled = await cancel().catch(() => false);
        } }, "Cancel");
        this.line = element("div", { class: "memstow-work-line" }, element("span", {}, words), this.bar, this.seconds,
            button);
        const begun = performance.now();
        this.timer = setInterval(() => {
            this.seconds.textContent = `${Math.round((performance.now() - begun) / 1000)} s`;
        }, 1000);
    }

    // How much of it is done, from 0 to 1, where that is known.
    at(part) {
        this.bar.value = Math.min(Math.max(part, 0), 1);
    }

    end() {
        clearInterval(this.timer);
        this.line.remove();
    }
}
