// tools.js: functions that the parts of the tab "Memory" share. Texts of the program are only ever set as text, never
// as HTML.
import { api } from "../../scripts/api.js";
import { text } from "./messages.js";

export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
        else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
}

export async function post(path, body) {
    const answer = await api.fetchApi(path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (!answer.ok) {
        const why = answer.status === 404 ? "" : await answer.text();
        throw Object.assign(new Error(why || text("status", answer)), { status: answer.status });
    }
    return answer.json();
}
