// tickets.js: waits until a request that the server has queued is done. In: the server's ticket, and the end of this
// ticket: a message on ComfyUI's web socket, which says that the request is done. Out: the result. While no end comes,
// the server is asked every five seconds.
import { api } from "../../scripts/api.js";
import { text } from "./messages.js";

const POLL_MS = 5_000, MOST = 64;
// ticket → its end, if the end came before anybody waited for it. Mostly such an end comes even before the ticket.
const ends = new Map();
const waiting = new Map(); // by ticket: the function that takes the end

function noteEnd(end) {
    const take = waiting.get(end.ticket);
    if (take) return take(end);
    ends.set(end.ticket, end);
    if (ends.size > MOST) ends.delete(ends.keys().next().value);
}

// Waits for the end of the request on the web socket. Gives null if no end comes in time.
function nextEnd(number) {
    return new Promise((resolve) => {
        const take = (end) => {
            clearTimeout(timer);
            waiting.delete(number);
            resolve(end);
        };
        const timer = setTimeout(() => take(null), POLL_MS);
        waiting.set(number, take);
    });
}

async function askedEnd(number) {
    const answer = await api.fetchApi(`/memstow/ticket?id=${number}`);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
}

// Waits until the request with this ticket is done. ComfyUI serves it when the current run has ended.
export async function ended(ticket) {
    const number = ticket.ticket;
    while (!ticket.done) ticket = ends.get(number) ?? await nextEnd(number) ?? await askedEnd(number);
    ends.delete(number);
    if (ticket.given_bytes < 0) throw new Error(ticket.text || text("itFailed"));
    return ticket;
}

// The member of a request that names this client, so that the server tells this client when the request is done.
export function teller() {
    return api.clientId ? { client: api.clientId } : {};
}

export function listenToEnds() {
    api.addEventListener("memstow.ticket", (event) => noteEnd(event.detail));
    api.addEventListener("reconnected", () => ends.clear()); // another ComfyUI counts its tickets anew
}
