/* trace.js — the trace of decisions, grouped.
 * In: the document of decisions. Out: triggers with their effect on every owner, and the history of each owner.
 * docs/decisions.md explains the lines. A program may write lines of its own, and their members may have wrong types.
 * Such members are left out. */

const REASONS = { __proto__: null, run_ended: "a run ended", request: "somebody asked", pressure: "memory was short",
    idle: "not used for a while", rescue: "a device had no memory" };
const WHYS = {
    __proto__: null,
    policy: "its policy", retired: "the owner is gone: it left this memory", empty: "it has nothing",
    nothing_said: "no policy was set", in_use: "it is in use", recent: "it was used lately",
    cannot: "it cannot be moved", not_needed: "enough was found before", rescue: "a device had no memory",
    pressure: "memory was short", alive: "the program still holds this memory", stowed: "it is stowed",
    refused: "it could not be moved",
};
const TEXT_MEMBERS = ["kind", "policy", "action", "why", "category", "reason", "text", "because"];

function isSound([key, value]) {
    if (key === "holders") return Array.isArray(value) && value.every((holder) => typeof holder === "string");
    return typeof value === (TEXT_MEMBERS.includes(key) ? "string" : "number");
}

export function whyText(why) {
    return WHYS[why] ?? why ?? "";
}

export function reasonText(reason) {
    return REASONS[reason] ?? reason ?? "";
}

export class Trace {
    constructor(document) {
        this.document = document;
        /** @type {{line: object, owners: Map<number, object>, act: object|null}[]} */
        this.triggers = [];
        /** @type {Map<number, object[]>} */
        this.histories = new Map();
        this.byNumber = new Map();
        for (const line of document?.lines ?? [])
            this.add(Object.fromEntries(Object.entries(line).filter(isSound)), !Object.hasOwn(line, "by"));
    }

    /** Adds a line. It belongs to a trigger only if it is memstow's own and has the trigger's number. */
    add(line, isOwn) {
        if (line.owner !== undefined && line.kind !== "READ") this.remember(line);
        if (!isOwn || line.trigger === undefined) return;
        if (line.kind === "TRIGGER") this.begin(line);
        const trigger = this.byNumber.get(line.trigger);
        if (!trigger) return;
        if (line.kind === "ACT") trigger.act = line;
        if (line.owner === undefined) return;
        if (!trigger.owners.has(line.owner)) trigger.owners.set(line.owner, {});
        trigger.owners.get(line.owner)[line.kind] = line;
    }

    begin(line) {
        const trigger = { line, owners: new Map(), act: null };
        this.triggers.push(trigger);
        this.byNumber.set(line.trigger, trigger);
    }

    remember(line) {
        if (!this.histories.has(line.owner)) this.histories.set(line.owner, []);
        this.histories.get(line.owner).push(line);
    }

    historyOf(owner) {
        return this.histories.get(owner) ?? [];
    }

    /** The last line of a kind about an owner. */
    lastOf(owner, kind) {
        return this.historyOf(owner).findLast((line) => line.kind === kind);
    }

    /** The seconds since the start of the process. */
    secondsOf(line) {
        const start = this.document?.process?.start_ns;
        return start && line.t > start ? (line.t - start) / 1e9 : null;
    }
}
