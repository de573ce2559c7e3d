/** A diff as the few lines that a card shows. */

import type { DiffLine } from "../shared/view";
import { hunksBetween, lineCount, splitLines } from "./hunks";

export interface DiffPreview {
  added: number;
  removed: number;
  lines: DiffLine[];
  /** Lines were left out. */
  cut: boolean;
}

const CONTEXT = 2;
const MAX_LINES = 120;
const MAX_COLUMNS = 400;
const COMPARED_CHARACTERS = 400_000;

export function diffPreview(before: string, after: string): DiffPreview {
  if (before.length + after.length > COMPARED_CHARACTERS) {
    return { added: lineCount(after), removed: lineCount(before), lines: [], cut: true };
  }
  const old = splitLines(before);
  const hunks = hunksBetween(before, after);
  const lines: DiffLine[] = [];
  let shownTo = 0; // old lines before this one were dealt with
  for (const hunk of hunks) {
    const from = Math.max(shownTo, hunk.oldStart - CONTEXT);
    if (from > shownTo) lines.push({ sign: "…", text: "" });
    for (const line of old.slice(from, hunk.oldStart)) lines.push(lineOf(" ", line));
    for (const line of hunk.oldLines) lines.push(lineOf("-", line));
    for (const line of hunk.newLines) lines.push(lineOf("+", line));
    const end = hunk.oldStart + hunk.oldLines.length;
    const next = hunks[hunks.indexOf(hunk) + 1]?.oldStart ?? old.length;
    shownTo = Math.min(end + CONTEXT, next, old.length);
    for (const line of old.slice(end, shownTo)) lines.push(lineOf(" ", line));
    if (lines.length > MAX_LINES) break;
  }
  if (hunks.length > 0 && shownTo < old.length && lines.length <= MAX_LINES) lines.push({ sign: "…", text: "" });
  return {
    added: hunks.reduce((sum, hunk) => sum + hunk.newLines.length, 0),
    removed: hunks.reduce((sum, hunk) => sum + hunk.oldLines.length, 0),
    lines: lines.slice(0, MAX_LINES),
    cut: lines.length > MAX_LINES,
  };
}

function lineOf(sign: DiffLine["sign"], line: string): DiffLine {
  return { sign, text: line.replace(/\n$/u, "").slice(0, MAX_COLUMNS) };
}
