/** A text file that no editor has open: its bytes as text, and a text as its bytes. */

import { Buffer } from "node:buffer";

/** What a file is beside its text, and stays when it gets another one. */
export interface TextForm {
  /** It begins with a byte order mark. */
  mark: boolean;
  /** Every line of it ends in "\r\n". */
  crlf: boolean;
}

const MARK = "\uFEFF";
const PLAIN: TextForm = { mark: false, crlf: false };

/** The text of UTF-8 without its mark, and its form; null for bytes that are no UTF-8. */
export function decoded(bytes: Uint8Array): { text: string; form: TextForm } | null {
  try {
    const whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const mark = whole.startsWith(MARK);
    return { text: mark ? whole.slice(1) : whole, form: { mark, crlf: lineEndOf(whole) === "\r\n" } };
  } catch {
    return null;
  }
}

/** A text as the bytes of a file of that form; without a form the file is new. */
export function encoded(text: string, form: TextForm = PLAIN): Uint8Array {
  const lines = form.crlf ? text.replace(/\r?\n/gu, "\r\n") : text;
  return Buffer.from(form.mark && !lines.startsWith(MARK) ? MARK + lines : lines, "utf8");
}

/** The line end of every line of a text; empty where there is none, or not one for all. */
export function lineEndOf(text: string): "\n" | "\r\n" | "" {
  if (!text.includes("\r")) return text.includes("\n") ? "\n" : "";
  return /(?:^|[^\r])\n|\r(?!\n)/u.test(text) ? "" : "\r\n";
}

/** Some lines of a text as they stand there: `limit` of them from `line`, which counts from 1. */
export function linesOf(text: string, line: number | null, limit: number | null): string {
  if (line === null && limit === null) return text;
  const lines = text.match(/[^\n]*\n|[^\n]+$/gu) ?? [];
  const from = Math.max(0, (line ?? 1) - 1);
  return lines.slice(from, limit === null ? undefined : from + limit).join("");
}
