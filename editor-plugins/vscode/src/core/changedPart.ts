/** The one part of a text that is to be replaced to make another one of it. */

export interface ChangedPart {
  /** Where the part begins and ends in the text, in UTF-16 units. */
  start: number;
  end: number;
  /** What comes in its place. */
  text: string;
}

/** Null: the texts are the same. No character of two units is cut through. */
export function changedPart(now: string, wanted: string): ChangedPart | null {
  if (now === wanted) return null;
  const shorter = Math.min(now.length, wanted.length);
  let start = 0;
  while (start < shorter && now.charCodeAt(start) === wanted.charCodeAt(start)) start += 1;
  if (isHigh(now, start - 1)) start -= 1;
  let same = 0;
  while (same < shorter - start && now.charCodeAt(now.length - 1 - same) === wanted.charCodeAt(wanted.length - 1 - same)) same += 1;
  if (isLow(now, now.length - same)) same -= 1;
  return { start, end: now.length - same, text: wanted.slice(start, wanted.length - same) };
}

function isHigh(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function isLow(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
