/** The end of what a command printed: so many bytes of it, beginning at a whole character. */

import { Buffer } from "node:buffer";

const PIECE_BYTES = 64 * 1024; // smaller pieces are joined, so that there are never many

export class OutputTail {
  #pieces: { text: string; bytes: number }[] = [];
  #bytes = 0;
  #truncated = false;

  /** `limit` counts bytes of UTF-8. */
  constructor(private readonly limit: number) {}

  get truncated(): boolean {
    return this.#truncated;
  }

  add(text: string): void {
    const bytes = Buffer.byteLength(text);
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.bytes + bytes <= PIECE_BYTES) {
      last.text += text;
      last.bytes += bytes;
    } else {
      this.#pieces.push({ text, bytes });
    }
    this.#bytes += bytes;
    if (this.#bytes > this.limit) this.#truncated = true;
    let first = this.#pieces[0];
    while (first !== undefined && this.#bytes - first.bytes >= this.limit) {
      this.#pieces.shift();
      this.#bytes -= first.bytes;
      first = this.#pieces[0];
    }
  }

  get text(): string {
    const whole = this.#pieces.map((piece) => piece.text).join("");
    if (this.#bytes <= this.limit) return whole;
    const bytes = Buffer.from(whole);
    let from = bytes.length - this.limit;
    while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1; // inside of a character
    return bytes.toString("utf8", from);
  }
}
