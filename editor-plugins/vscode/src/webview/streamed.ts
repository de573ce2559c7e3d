/**
 * A message that grows: what is finished is rendered once, only its end again and again.
 *
 * A block is finished when an empty line follows it outside of a code block and the next line begins at
 * the margin with no list mark, so that no list is cut in two.
 */

import { h } from "./dom";
import { rendered } from "./markdown";

const MAX_TAIL = 20_000; // characters; of a longer end, such as of a huge code block, the last are drawn meanwhile, as plain text
const STILL_MILLISECONDS = 400; // after which a long end is drawn as a whole, as nothing more may come

export class StreamedMarkdown {
  readonly element = h("div", { class: "markdown" });
  readonly #tail = h("div", { class: "tail" });
  #text = "";
  #settled = 0;
  /** How far the lines were looked at, and whether a code block was open there. */
  #scanned = 0;
  #fence = "";
  #frame = 0;
  #still: number | undefined;

  /** `finish` is given all that is drawn, before it is. */
  constructor(text: string, private readonly finish: (drawn: DocumentFragment) => void = () => undefined) {
    this.#text = text;
    this.element.append(this.#tail);
    this.#draw(true);
  }

  get text(): string {
    return this.#text;
  }

  append(piece: string): void {
    this.#text += piece;
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw(false);
    });
  }

  /** Replace the text; what is only longer goes on as before. */
  set(text: string): void {
    if (text.startsWith(this.#text)) {
      if (text.length > this.#text.length) this.append(text.slice(this.#text.length));
      return;
    }
    this.#text = text;
    this.#settled = 0;
    this.#scanned = 0;
    this.#fence = "";
    this.element.replaceChildren(this.#tail);
    this.#draw(true);
  }

  #draw(whole: boolean): void {
    window.clearTimeout(this.#still);
    const to = this.#boundary();
    if (to > this.#settled) {
      this.#tail.before(this.#rendered(this.#text.slice(this.#settled, to)));
      this.#settled = to;
    }
    const rest = this.#text.slice(this.#settled);
    if (whole || rest.length <= MAX_TAIL) {
      this.#tail.replaceChildren(this.#rendered(rest));
    } else {
      this.#tail.replaceChildren(h("pre", {}, rest.slice(-MAX_TAIL)));
      this.#still = window.setTimeout(() => this.#draw(true), STILL_MILLISECONDS);
    }
  }

  #rendered(markdown: string): DocumentFragment {
    const drawn = rendered(markdown);
    this.finish(drawn);
    return drawn;
  }

  /** The last place up to which nothing that may come can change the rendering. */
  #boundary(): number {
    let boundary = this.#settled;
    let at = this.#scanned;
    for (;;) {
      const end = this.#text.indexOf("\n", at);
      if (end < 0) break;
      const line = this.#text.slice(at, end);
      const fence = /^ {0,3}(`{3,}|~{3,})/u.exec(line)?.[1] ?? "";
      if (this.#fence === "") this.#fence = fence;
      else if (fence !== "" && fence.startsWith(this.#fence) && line.trim() === fence) this.#fence = "";
      const next = this.#text.slice(end + 1, end + 4);
      if (next === "") break; // what follows an empty line decides
      if (this.#fence === "" && line.trim() === "" && /^[^\s\-*+\d>|]/u.test(next)) boundary = end + 1;
      at = end + 1;
      this.#scanned = at;
    }
    return boundary;
  }
}
