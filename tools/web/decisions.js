/* decisions.js — the view of triggers.
 * In: one trace or several, with names of owners. Out: triggers, the last trigger first, each with its owners and what
 * was done with them. */

import { element } from "./dom.js";
import { reasonText, whyText } from "./trace.js";
import { countedText, countText, durationText, safeText, sizeText } from "./words.js";

const SHOWN = 50;

export class DecisionsView {
    constructor(page) {
        this.page = page;
        this.key = "decisions";
        this.name = "Decisions";
        this.shown = new Map(); // by part
    }

    isThere() {
        return this.page.trace.triggers.length > 0;
    }

    /** The traces: {trace, nameOf, title, words, said}. The names of a trace's triggers begin with `said`, so that they
     * differ from those of another trace. */
    parts() {
        this.made ??= [{ trace: this.page.trace, nameOf: (id) => this.page.ownerName(id), said: "" }];
        return this.made;
    }

    show(host) {
        host.replaceChildren(element("div.decisions", {}, this.parts().map((part) => this.triggers(part, host))));
    }

    triggers(part, host) {
        const all = part.trace.triggers;
        const shown = this.shown.get(part) ?? SHOWN;
        const more = () => { this.shown.set(part, shown * 4); this.show(host); };
        return [part.title ? element("h2", {}, part.title) : null,
            part.words ? element("p.quiet", {}, part.words) : null,
            this.faults(part.trace.document.faults ?? [], part),
            all.slice(-shown).reverse().map((trigger) => this.trigger(trigger, part)),
            all.length > shown ? element("button", { type: "button", onclick: more },
                `Show ${countedText(all.length - shown, "earlier trigger", "earlier triggers")}`) : null];
    }

    faults(faults, { said }) {
        if (!faults.length) return null;
        const title = countedText(faults.length, "fault", "faults");
        return element("section.card.bad", { "aria-label": `${said}${title}` }, element("h2", {}, title),
            element(
                "ul.notes", {}, faults.map(({ text, line }) => element("li", {}, `Line ${line}: ${safeText(text)}`))));
    }

    trigger({ line, owners, act }, part = this.parts()[0]) {
        const after = part.trace.secondsOf(line);
        const title = `Trigger ${line.trigger}: ${reasonText(line.reason)}`;
        const facts = [line.text && safeText(line.text), after !== null && `${durationText(after)} after the start`];
        return element("section.card.trigger", { "aria-label": `${part.said}${title}` }, element("h2", {}, title),
            element("p.quiet", {}, facts.filter(Boolean).join(" · ")), this.table(owners, `${part.said}${title}`, part),
            this.summary(act));
    }

    table(owners, title, { nameOf }) {
        if (!owners.size) return null;
        const head = ["Owner", "Policy", "What became of it", "Before", "After", "Why"].map((title, i) =>
            element("th", { scope: "col", class: i === 3 || i === 4 ? "number" : null }, title));
        return element("div.wrap", { tabindex: "0", role: "region", "aria-label": `Owners of ${title}` },
            element("table.plain", {}, element("thead", {}, element("tr", {}, head)),
                element("tbody", {}, [...owners ].map(([ owner, lines ]) => this.row(nameOf(owner), lines)))));
    }

    row(name, { DECISION: decision = {}, CATEGORY: category, REMAINING: remaining }) {
        const before = category?.before_bytes ?? decision.bytes ?? 0;
        const done = category?.category ?? decision.action ?? "";
        return element("tr", {}, element("th", { scope: "row" }, name),
            element("td", {}, safeText(decision.policy ?? "")),
            element("td", {}, element(`span.tag.tag-${/^[a-z]+$/.test(done) ? done : "none"}`, {}, safeText(done))),
            element("td.number", {}, sizeText(before + (category?.device_before_bytes ?? decision.device_bytes ?? 0))),
            element("td.number", {},
                category ? sizeText((category.after_bytes ?? 0) + (category.device_after_bytes ?? 0)) : ""),
            element("td", {}, safeText(whyText(remaining?.why ?? decision.why))));
    }

    summary(act) {
        if (!act)
            return element("p.quiet", {}, "The trigger was not finished: it still runs, or the process ended.");
        const parts = [["kept", act.kept], ["stowed", act.stowed], ["freed", act.freed], ["blocked", act.blocked]]
            .filter(([, count]) => count).map(([name, count]) => `${countText(count)} ${name}`);
        const took = act.took_ns ? ` in ${durationText(act.took_ns / 1e9)}` : "";
        return element("p", {}, `${parts.join(", ") || "Nothing to do"}. ` +
            `${sizeText(act.given_bytes ?? 0)} were given back${took}: ${sizeText(act.before_bytes ?? 0)} before, ` +
            `${sizeText(act.after_bytes ?? 0)} after.`);
    }
}
