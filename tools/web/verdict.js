/* verdict.js — the view of a check: whether a program holds more than its baseline.
 * In: the document of the check. Out: the result as a sentence, and the compared figures, the figures over a limit
 * first. */

import { element } from "./dom.js";
import {
    blocksChangeText,
    blocksText,
    changeText,
    countChangeText,
    countedText,
    percentText,
    safeText,
    sizeText
} from "./words.js";

const RESULTS = { pass: "Passed", warning: "Passed with a warning", fail: "Failed" };
const VERDICTS = { over: ["over", "blocked"], warning: ["warning", "warning"], fine: ["fine", "none"] };

export class Verdict {
    constructor(page) {
        this.page = page;
        this.key = "check";
        this.name = "Check";
    }

    isThere() {
        return this.page.check !== null;
    }

    show(host) {
        const { check } = this.page;
        const order = { over: 0, warning: 1, fine: 2 };
        const findings = [...check.findings].sort((a, b) => order[a.verdict] - order[b.verdict]);
        host.replaceChildren(element("div.decisions", {}, this.result(check),
            element("section.card", { "aria-labelledby": "compared" },
                element("h2", { id: "compared" }, "What was compared"), this.table(findings))));
    }

    result(check) {
        const over = check.findings.find(({ verdict }) => verdict === "over");
        const limit = over ? ` ${over.kind === "total" ? "All memory" : safeText(over.name)} ${
                                 growthText(over)}: over the limit of ${safeText(over.over)}.` :
                             "";
        const against = check.baseline ? `the baseline ${safeText(check.baseline)}` : "the first runs";
        const runs =
            `${countedText(check.runs, "run was", "runs were")} compared with ${against}, ` +
            `by ${check.measure === "peak" ? "the peak" : "what is live at the end"}.`;
        return element(`section.card.headline${check.result === "fail" ? ".bad" : ""}`, { "aria-label": "In short" },
            element("p", { "data-result": check.result }, `${RESULTS[check.result] ?? check.result}.${limit} ${runs}`),
            check.cuda_left_out ?
                element("p.quiet", {}, "The baseline has no figures of CUDA devices: they were left out.") :
                null,
            check.origins_left_out ?
                element("p.quiet", {}, "Call sites of models of one name count as one: the baseline lacks the files.") :
                null,
            element("p.quiet", {}, "The other views show one process of the last run: the process that held most."));
    }

    table(findings) {
        const head = [ "", "What", "Before", "Now", "Grew by", "Blocks", "Limit" ].map(
            (title, i) => element("th", { scope: "col", class: i > 1 && i < 6 ? "number" : null },
                title || element("span.off-screen", {}, "Verdict")));
        return element("div.wrap", { tabindex: "0", role: "region", "aria-label": "Figures that were compared" },
            element("table.plain", {}, element("thead", {}, element("tr", {}, head)),
                element("tbody", {}, findings.map((finding) => this.row(finding)))));
    }

    row({
        verdict,
        suppressed_bytes: suppressed,
        name,
        place,
        file,
        line,
        before,
        now,
        growth_bytes,
        growth_blocks,
        over,
        new: isNew
    }) {
        const [words, tag] = VERDICTS[verdict] ?? [verdict, "none"];
        const source = file ? ` ${file}${line ? `:${line}` : ""}` : "";
        const share = percentText(growth_bytes, before.high_bytes);
        return element("tr", { "data-verdict": verdict },
            element("td", {}, element(`span.tag.tag-${tag}`, {}, suppressed ? "suppressed" : words)),
            element("th", { scope: "row" }, element("span.name.whole", {}, safeText(name)),
                place === "cuda" ? " on CUDA devices" : null, element("span.place", {}, safeText(source))),
            element("td.number", {}, isNew ? "new" : sizeText(before.high_bytes)),
            element("td.number", {}, sizeText(now.low_bytes)),
            element("td.number",
                { class: `number ${
                      growth_bytes > 0     ? "grew" :
                          growth_bytes < 0 ? "shrank" :
                                             ""}`,
                    title: share },
                growth_bytes ? changeText(growth_bytes) : "–"),
            element("td.number", {}, growth_blocks ? countChangeText(growth_blocks) : "–"),
            element("td", {}, over ? safeText(over) : ""));
    }
}

/** How a figure changed, in the same words as the text of the command. */
function growthText({ growth_bytes: bytes, growth_blocks: blocks }) {
    return bytes >= 0 && blocks >= 0 ? `grew by ${sizeText(bytes)} and ${blocksText(blocks)}`
        : `changed by ${changeText(bytes)} and ${blocksChangeText(blocks)}`;
}
