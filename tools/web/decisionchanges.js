/* decisionchanges.js — the view of triggers in a comparison.
 * In: a trace for each side. If both traces are of one process, each has only what the other trace does not have.
 * Out: the triggers of each side, with their owners and what was done with these owners. If there are no triggers, a
 * line that says so. */

import { DecisionsView } from "./decisions.js";
import { Trace } from "./trace.js";
import { countedText, countText, ownerText, safeText } from "./words.js";

export class DecisionChangesView extends DecisionsView {
    isThere() {
        return this.page.diff !== null && this.parts().length > 0;
    }

    /** The parts of the view. If both sides are of one process: what only B has, and then what only A has, if there is
     * anything. If they are of two processes: all of A, and then all of B. */
    parts() {
        const { same_process: isSame } = this.page.about;
        const sides = (isSame ? ["b", "a"] : ["a", "b"]).filter((side) => this.page.traces[side]);
        this.made ??= sides.map((side) => this.part(side, isSame))
            .filter(({ side, trace }) => !isSame || side === "b" || trace.triggers.length);
        return this.made;
    }

    part(side, isSame) {
        const document = this.page.traces[side];
        const trace = new Trace(document);
        const names = new Map(document.owners.map((owner) => [owner.id, safeText(ownerText(owner)) || "(no name)"]));
        const [here, there] = side === "b" ? ["B", "A"] : ["A", "B"];
        return { side, trace, nameOf: (id) => names.get(id) ?? `owner ${id}`, said: `${here}, `,
            title: isSame ? `In ${here}, not in ${there}` : `${here}: ${safeText(this.page.diff[side].argument)}`,
            words: [isSame && this.howKnown(document, here, there), document.triggers_omitted && `The first ${
                countText(document.triggers_omitted)} of them are left out.`].filter(Boolean).join(" ") };
    }

    /** The sentences on what `here` has after the last line of `there`, if both sides are of one process. */
    howKnown({ triggers: all, triggers_after: more, after_line: after, lines_before: before }, here, there) {
        const said = [more ? `${countText(more)} of ${countedText(all, "trigger", "triggers")} in ${here} began or ` +
            `went on after the last line that ${there} has.`
            : `${there} has all triggers of ${here} (${countText(all)}).`];
        if (before > after) said.push(`${countedText(before - after, "line", "lines")} between them are not in the ` +
            `trace of ${here} any more: it keeps the last ones.`);
        return said.join(" ");
    }
}
