/**
 * Keeps what is to be reviewed when the window is closed or loaded again.
 *
 * A review is taken up where the file is as it was known: in another text its hunks would be others'
 * work as well.
 */

import { list, record, text } from "./json";
import { digest, type Review, type Reviews } from "./reviews";

export interface Storage {
  /** Null: nothing was written yet. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

/** The texts that a file has: that of the editor, and that on disk. None: there is no file. */
export type TextsOf = (path: string) => Promise<string[]>;

/** Characters of the kept texts together; what does not fit beside what is newer is not kept. */
export const MAX_KEPT = 32_000_000;
const VERSION = 1;
const PAUSE_MILLISECONDS = 500;

export class ReviewStore {
  #timer: NodeJS.Timeout | undefined;
  #saving: Promise<void> = Promise.resolve();
  #loaded = false;
  #saved = "";

  constructor(
    private readonly reviews: Reviews,
    private readonly storage: Storage,
    private readonly textsOf: TextsOf,
  ) {}

  /** Take up what was kept. What cannot be read is nothing. */
  async load(): Promise<void> {
    try {
      const kept = record(parsed(await this.storage.read()));
      if (kept["version"] !== VERSION) return;
      // All at once, so that the list that is drawn of them does not move under the user's hand.
      const reviews = await Promise.all(list(kept["reviews"]).map((one) => this.#stillSo(one)));
      for (const review of reviews) if (review !== undefined) this.reviews.restore(review);
    } finally {
      this.#loaded = true;
    }
  }

  /** Something is to be kept; it is written a moment later. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush().catch(() => undefined), PAUSE_MILLISECONDS);
  }

  /** Write what is to be kept now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#loaded) return;
    this.#saving = this.#saving.catch(() => undefined).then(() => this.#save());
    await this.#saving;
  }

  /** A kept review, if its file has the text that it was known with. */
  async #stillSo(kept: unknown): Promise<Review | undefined> {
    const review = reviewOf(kept);
    if (review === undefined) return undefined;
    const known = list(record(kept)["known"]);
    const texts = await this.textsOf(review.path).catch(() => []);
    return texts.some((now) => known.includes(digest(now))) ? review : undefined;
  }

  async #save(): Promise<void> {
    const reviews: object[] = [];
    let room = MAX_KEPT;
    for (const review of [...this.reviews.all].reverse()) {
      const size = review.before?.length ?? 0;
      if (size > room) continue;
      room -= size;
      const texts = await this.textsOf(review.path).catch(() => []);
      reviews.unshift({ ...review, known: texts.map(digest) });
    }
    const whole = JSON.stringify({ version: VERSION, reviews });
    if (whole === this.#saved) return;
    await this.storage.write(whole);
    this.#saved = whole;
  }
}

function parsed(json: string | null): unknown {
  try {
    return JSON.parse(json ?? "null");
  } catch {
    return null;
  }
}

function reviewOf(value: unknown): Review | undefined {
  const kept = record(value);
  const before = kept["before"];
  if (text(kept["path"]) === "" || (before !== null && typeof before !== "string")) return undefined;
  return { path: text(kept["path"]), before, lineEnd: kept["lineEnd"] === "\n" || kept["lineEnd"] === "\r\n" ? kept["lineEnd"] : "", written: text(kept["written"]) };
}
