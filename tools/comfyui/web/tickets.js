// tickets.js: waits for the end of a request that the server has queued. In: the server's ticket, and the end by
// ComfyUI's web socket. Out: the result. If the web socket says nothing, the server is asked once in five seconds.
import { api } from "../../scripts/api.js";
import { text } from "./messages.js";

const POLL_MS = 5_000, MOST = 64;
const ends = new Map();    // by ticket: an end that nobody waited for, mostly because it came before the ticket
const waiting = new Map(); // by ticket: the function that takes the end

function noteEnd(end) {
    const take = waiting.get(end.ticket);
    if (take) return take(end);
    ends.set(end.ticket, end);
    if (ends.size > MOST) ends.delete(ends.keys().next().value);
}

// The end of the request by the web socket; null: none came in time.
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

// The member of a request by which the server knows whom to tell of its end.
export function teller() {
    return api.clientId ? { client: api.clientId } : {};
}

export function listenToEnds() {
    api.addEventListener("memstow.ticket", (event) => noteEnd(event.detail));
    api.addEventListener("reconnected", () => ends.clear()); // another ComfyUI counts its tickets anew
}
