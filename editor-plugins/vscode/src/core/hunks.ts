/** The differences of two texts as hunks of lines, and texts with one hunk taken over or back. */

import { diffArrays } from "diff";

/** Lines `oldLines` at `oldStart` of the old text became `newLines` at `newStart`; both from 0. */
export interface Hunk {
  oldStart: number;
  oldLines: string[];
  newStart: number;
  newLines: string[];
}

const LIMIT_MILLISECONDS = 400;

/** Lines with their ends; every end is "\n". */
export function splitLines(text: string): string[] {
  return text.replace(/\r\n?/gu, "\n").match(/[^\n]*\n|[^\n]+$/gu) ?? [];
}

/** How many lines `splitLines` gives, where the ends are not "\r" alone; for texts that are too long to split. */
export function lineCount(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return text === "" || text.endsWith("\n") ? count : count + 1;
}

export function hunksBetween(before: string, now: string): Hunk[] {
  const old = splitLines(before);
  const lines = splitLines(now);
  // Most of a file is the same before the change and after it: that need not be compared cleverly.
  const part = whole(old, lines);
  const changes = diffArrays(part.oldLines, part.newLines, { timeout: LIMIT_MILLISECONDS }) as
    | { added: boolean; removed: boolean; value: string[] }[]
    | undefined;
  return changes === undefined ? [part] : gathered(changes, part.oldStart);
}

/** The hunks of changes that begin at a line, the same one in both texts. */
function gathered(changes: { added: boolean; removed: boolean; value: string[] }[], from: number): Hunk[] {
  const hunks: Hunk[] = [];
  let oldAt = from;
  let newAt = from;
  let open: Hunk | undefined;
  for (const change of changes) {
    if (!change.added && !change.removed) {
      open = undefined;
      oldAt += change.value.length;
      newAt += change.value.length;
      continue;
    }
    if (open === undefined) {
      open = { oldStart: oldAt, oldLines: [], newStart: newAt, newLines: [] };
      hunks.push(open);
    }
    if (change.removed) {
      open.oldLines = open.oldLines.concat(change.value);
      oldAt += change.value.length;
    } else {
      open.newLines = open.newLines.concat(change.value);
      newAt += change.value.length;
    }
  }
  return hunks;
}

/** One hunk from the first line that differs to the last. */
function whole(old: string[], lines: string[]): Hunk {
  let start = 0;
  while (start < old.length && start < lines.length && old[start] === lines[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < lines.length - start && old.at(-1 - end) === lines.at(-1 - end)) end += 1;
  return {
    oldStart: start,
    oldLines: old.slice(start, old.length - end),
    newStart: start,
    newLines: lines.slice(start, lines.length - end),
  };
}

/** The old text with the hunk in it. */
export function withHunk(before: string, hunk: Hunk): string {
  return replaced(before, hunk.oldStart, hunk.oldLines.length, hunk.newLines);
}

/** The new text without the hunk. */
export function withoutHunk(now: string, hunk: Hunk): string {
  return replaced(now, hunk.newStart, hunk.newLines.length, hunk.oldLines);
}

/** A text with others in the place of `count` of its lines. */
function replaced(text: string, start: number, count: number, others: readonly string[]): string {
  const lines = splitLines(text);
  return [lines.slice(0, start), others, lines.slice(start + count)].map((part) => part.join("")).join("");
}
