/** What goes over the wire as lines for people: shortened, without secrets, and not too many of them. */

import { Secrets } from "./secrets";
import type { WireLog } from "./settings";

const SHORT_CHARACTERS = 400;
const FULL_CHARACTERS = 200_000;
const BEYOND = 2_000; // characters behind the cut that are looked at, so that no secret is seen in part
const LINES_A_SECOND = 500;

export class WireLines {
  readonly secrets = new Secrets();
  #second = 0;
  #lines = 0;
  #left = 0;
  /** The beginning of a line of the error output whose end is to come. */
  #begun = "";

  constructor(
    private readonly how: () => WireLog,
    private readonly write: (line: string) => void,
    private readonly now: () => number = Date.now,
  ) {}

  line(direction: "in" | "out", line: string): void {
    const how = this.how();
    const logged = how !== "off" && this.#room();
    // A question, and its answer, are looked at even where they are not logged: what was answered may be.
    if (!logged && !line.includes(direction === "in" ? "elicitation/create" : "\"action\"")) return;
    const whole = this.secrets.message(direction, line);
    if (!logged) return;
    this.write(`${direction === "in" ? "←" : "→"} ${this.#shown(whole, how === "short" ? SHORT_CHARACTERS : FULL_CHARACTERS)}`);
  }

  /** What the agent wrote to its error output. */
  stderr(text: string): void {
    const lines = (this.#begun + text).split("\n");
    this.#begun = lines.pop() ?? "";
    if (this.#begun.length > FULL_CHARACTERS) lines.push(this.#begun.slice(0, FULL_CHARACTERS));
    if (this.#begun.length > FULL_CHARACTERS) this.#begun = "";
    for (const line of lines) if (line.trim() !== "" && this.#room()) this.write(`! ${this.#shown(line, FULL_CHARACTERS)}`);
  }

  /** The error output has ended. */
  end(): void {
    this.stderr("\n");
  }

  #shown(line: string, limit: number): string {
    const shown = this.secrets.text(line.slice(0, limit + BEYOND));
    return line.length > limit ? `${shown.slice(0, limit)} … (${line.length})` : shown;
  }

  /** Lines beyond so many a second are only counted: a flood must not fill the editor. */
  #room(): boolean {
    const second = Math.trunc(this.now() / 1000);
    if (second !== this.#second) {
      if (this.#left > 0) this.write(`… ${this.#left} more lines`);
      this.#second = second;
      this.#lines = 0;
      this.#left = 0;
    }
    this.#lines += 1;
    if (this.#lines > LINES_A_SECOND) this.#left += 1;
    return this.#lines <= LINES_A_SECOND;
  }
}
