/* bundle.js — the data of a page.
 * In: the blocks of data in the page's markup, compressed and encoded as letters. Out: columns of numbers and JSON
 * documents, each unpacked at its first use. Makes no requests. docs/html-data.md explains the format. */

/** The version of the data that this page reads. */
export const PAGE_VERSION = 1;

/** @param {string} letters @returns {Uint8Array} */
function bytesOf(letters) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(letters);
    const text = atob(letters);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
}

/** @param {Element} block @returns {Promise<Uint8Array>} */
async function unpack(block) {
    const packed = new Blob([bytesOf(block.textContent)]);
    const stream = packed.stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Decodes unsigned LEB128 numbers. @param {Uint8Array} bytes @param {Float64Array|Int32Array} to */
function readNumbers(bytes, to) {
    let at = 0;
    for (let i = 0; i < to.length; i++) {
        let byte = bytes[at++];
        let value = byte & 127;
        for (let scale = 128; byte > 127; scale *= 128) {
            byte = bytes[at++];
            value += (byte & 127) * scale;
        }
        to[i] = value;
    }
    return to;
}

/** Decodes numbers whose lowest bit is the sign. @param {Float64Array} numbers */
function makeSigned(numbers) {
    for (let i = 0; i < numbers.length; i++) numbers[i] = numbers[i] % 2 ? -(numbers[i] + 1) / 2 : numbers[i] / 2;
    return numbers;
}

/** Decodes a column. A value above 0 is a number plus 1. The value 0 means: the number that followed the previous
 * number when the previous number last occurred. For example, 6 3 6 0 is decoded as 5 2 5 2.
 * @param {Int32Array} numbers */
function makeFollowers(numbers) {
    let most = 0;
    for (let i = 0; i < numbers.length; i++) if (numbers[i] > most) most = numbers[i];
    const followers = new Int32Array(most + 1);
    for (let i = 0, before = 0; i < numbers.length; i++) {
        const number = numbers[i] ? numbers[i] - 1 : followers[before];
        followers[before] = number;
        numbers[i] = before = number;
    }
    return numbers;
}

/** Decodes a column. A value above 0 is a number plus 1. The value 0 means the next new number.
 * @param {Int32Array} numbers */
function makeAgain(numbers) {
    for (let i = 0, next = 0; i < numbers.length; i++) numbers[i] = numbers[i] ? numbers[i] - 1 : next++;
    return numbers;
}

export class Bundle {
    constructor(root) {
        /** @type {Map<string, Element>} */
        this.blocks = new Map();
        /** @type {Map<string, Promise>} */
        this.unpacked = new Map();
        for (const block of root.querySelectorAll("script[data-document]"))
            this.blocks.set(block.dataset.document, block);
        for (const block of root.querySelectorAll("script[data-column]"))
            this.blocks.set(`${block.dataset.group}.${block.dataset.column}`, block);
    }

    has(name) {
        return this.blocks.has(name);
    }

    /** The length of a column; 0 if there is none. */
    count(name) {
        const block = this.blocks.get(name);
        return block ? Number(block.dataset.count) : 0;
    }

    /** A JSON document; null if there is none. */
    document(name) {
        return this.once(name, async (block) => JSON.parse(new TextDecoder().decode(await unpack(block))));
    }

    /** A column of figures as Float64Array; null if there is none. */
    figures(name) {
        return this.once(name, async (block) => this.decode(block, await unpack(block)));
    }

    /** Returns a column of numbers below 2^31 as Int32Array, or null if the page has no such column. */
    indices(name) {
        return this.once(name, async (block) => {
            const numbers = readNumbers(await unpack(block), new Int32Array(Number(block.dataset.count)));
            if (block.dataset.form === "followers") return makeFollowers(numbers);
            return block.dataset.form === "again" ? makeAgain(numbers) : numbers;
        });
    }

    once(name, make) {
        const block = this.blocks.get(name);
        if (!block) return Promise.resolve(null);
        if (!this.unpacked.has(name)) this.unpacked.set(name, make(block));
        return this.unpacked.get(name);
    }

    async decode(block, bytes) {
        const { form, group, count } = block.dataset;
        const numbers = readNumbers(bytes, new Float64Array(Number(count)));
        if (form === "numbers") return numbers;
        makeSigned(numbers);
        if (!form.startsWith("over ")) return numbers;
        const base = await this.figures(`${group}.${form.slice(5)}`);
        for (let i = 0; i < numbers.length; i++) numbers[i] += base[i];
        return numbers;
    }
}
