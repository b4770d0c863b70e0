// absent.js: what the tab "Memory" shows where there are no figures: the reason, and the one thing to do. In: the word
// of the server for the reason. Out: elements for the page, and a restart of ComfyUI if the user presses the button.
import { app } from "../../scripts/app.js";
import { api } from "../../scripts/api.js";
import { text } from "./messages.js";
import { element, post } from "./tools.js";

// in a clone; PyPI does not have memstow yet
const INSTALL = "./quickstart && python -m pip install build/wheel/memstow-*.whl";
const REASONS = { "other-version": "otherVersion", "unknown-comfyui": "unknownComfyui", "no-ledger": "noLedger",
    "forbidden": "forbidden", "other-system": "otherSystem" }; // word → key of the text

// The reason why the server has no figures, as a word, or "" if the server does not give a reason.
export async function whyAbsent() {
    const answer = await api.fetchApi("/memstow/presence").catch(() => null);
    return answer?.ok ? (await answer.json()).state : "";
}

// Turns on the setting that starts ComfyUI under memstow, restarts ComfyUI, and waits until it is there again.
async function restart(status) {
    await app.extensionManager.setting.set("memstow.start", true);
    const isThere = new Promise((resolve) => api.addEventListener("reconnected", resolve, { once: true }));
    await post("/memstow/restart", {});
    status.textContent = text("restarts");
    await isThere;
    status.textContent = "";
    if (await whyAbsent() !== "under") throw new Error(text("stillNot"));
}

// `button` makes a button of a name and a function.
export function absent(state, button) {
    if (state === "not-installed")
        return [element("p", {}, text("notInstalled")), element("p", {}, text("install")),
            element("pre", { class: "memstow-type", tabindex: 0, "aria-label": text("command") }, INSTALL),
            element("p", {}, text("thenRestart"))];
    if (state !== "ready") return [element("p", {}, text(REASONS[state] ?? "notUnder"))];
    const status = element("p", { role: "status" });
    return [element("p", {}, text("canRestart")), button(text("restart"), () => restart(status)), status];
}
