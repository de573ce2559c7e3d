/**
 * What the agent changed and nobody has accepted yet.
 *
 * Of each file the text is kept that it had before. What differs from it now is what is to be reviewed:
 * accepting a hunk puts it into the kept text, rejecting one puts the kept lines back into the file.
 */

import { createHash } from "node:crypto";
import * as path from "node:path";

import { hunksBetween, withHunk, type Hunk } from "./hunks";
import { lineEndOf } from "./textFile";

export interface Review {
  readonly path: string;
  /** With "\n" for every line end. Null: there was no such file. */
  before: string | null;
  /** The line end that it had; empty where it had not one for all lines. */
  readonly lineEnd: ReturnType<typeof lineEndOf>;
  /** The digest of what the agent wrote last. */
  written: string;
}

export class Reviews {
  readonly #reviews = new Map<string, Review>();
  /** What was written through the editor and not told by the agent yet: the digests by path. */
  readonly #untold = new Map<string, string>();
  /** The hunks that were found last, as they are asked for again and again. */
  #found: { before: string; now: string; hunks: Hunk[] } | undefined;

  constructor(private readonly changed: (path: string) => void) {}

  /** The oldest first. */
  get all(): readonly Review[] {
    return [...this.#reviews.values()];
  }

  get(path: string): Review | undefined {
    return this.#reviews.get(path);
  }

  /** The agent changed a file through the editor. */
  wrote(path: string, before: string | null, after: string): void {
    this.#untold.set(path, digest(after));
    this.#add(path, before, after);
  }

  /**
   * The agent told a change, of the whole file or of a part of it; `now` is the file's text. One that came
   * through the editor is known already; one that it made itself is to be reviewed as well.
   */
  told(path: string, before: string | null, after: string, now: string): void {
    const untold = this.#untold.get(path);
    this.#untold.delete(path);
    if (before === after || (untold !== undefined && [digest(now), digest(after)].includes(untold))) return;
    const whole = lineEnds(now) === lineEnds(after) ? before : withoutPart(lineEnds(now), before, after);
    if (whole !== undefined) this.#add(path, whole, now);
  }

  /** One that was kept from an earlier time. */
  restore(review: Review): void {
    if (this.#reviews.has(review.path)) return;
    this.#reviews.set(review.path, review);
    this.changed(review.path);
  }

  /** The hunks between what was and what is. */
  hunks(path: string, now: string): Hunk[] {
    const review = this.#reviews.get(path);
    if (review === undefined) return [];
    const before = review.before ?? "";
    if (this.#found?.before !== before || this.#found.now !== now) {
      this.#found = { before, now, hunks: hunksBetween(before, now) };
    }
    return this.#found.hunks;
  }

  /** Whether the file has become something else than what the agent wrote. */
  changedSince(path: string, now: string): boolean {
    const review = this.#reviews.get(path);
    return review !== undefined && review.written !== digest(now);
  }

  acceptHunk(path: string, hunk: Hunk, now: string): void {
    const review = this.#reviews.get(path);
    if (review === undefined) return;
    review.before = withHunk(review.before ?? "", hunk);
    this.check(path, now);
  }

  /** A hunk was put back, which made `now` of `was`: that alone is no change of the user's. */
  rejectedHunk(path: string, was: string, now: string): void {
    const review = this.#reviews.get(path);
    if (review?.written === digest(was)) review.written = digest(now);
    this.check(path, now);
  }

  /** The file is as it should be, or there is none any more. */
  accept(path: string): void {
    this.#untold.delete(path);
    if (this.#reviews.delete(path)) this.changed(path);
  }

  /** A file that is as it was needs no review any more. */
  check(path: string, now: string): void {
    const review = this.#reviews.get(path);
    if (review === undefined) return;
    if (review.before !== null && review.before === lineEnds(now)) this.#reviews.delete(path);
    this.changed(path);
  }

  /** A file or a folder has another name. */
  renamed(from: string, to: string): void {
    for (const review of this.all) {
      const within = path.relative(from, review.path);
      if (within.startsWith("..") || path.isAbsolute(within)) continue;
      this.#reviews.delete(review.path);
      this.#reviews.set(path.join(to, within), { ...review, path: path.join(to, within) });
      this.changed(review.path);
    }
  }

  /** A file or a folder was deleted. */
  deleted(file: string): void {
    for (const review of this.all) {
      const within = path.relative(file, review.path);
      if (!within.startsWith("..") && !path.isAbsolute(within)) this.accept(review.path);
    }
  }

  /** The text before the first change that was not accepted is the one that counts. */
  #add(path: string, before: string | null, after: string): void {
    const known = this.#reviews.get(path);
    if (known !== undefined) {
      known.written = digest(after);
    } else {
      this.#reviews.set(path, {
        path, before: before === null ? null : lineEnds(before), lineEnd: lineEndOf(before ?? ""), written: digest(after),
      });
    }
    this.check(path, after);
  }
}

/** Stands for a text, whatever its line ends. */
export function digest(text: string): string {
  return createHash("sha256").update(lineEnds(text)).digest("base64");
}

export function lineEnds(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/gu, "\n") : text;
}

/** What a text was before a part of it was changed; undefined where that part is not found, or found twice. */
function withoutPart(now: string, before: string | null, after: string): string | undefined {
  const part = lineEnds(after);
  const at = now.indexOf(part);
  if (before === null || part === "" || at < 0 || now.includes(part, at + 1)) return undefined;
  return now.slice(0, at) + lineEnds(before) + now.slice(at + part.length);
}
