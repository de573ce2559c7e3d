/** Reading values that came from outside, of which nothing is known. */

export type Json = Record<string, unknown>;

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value if it is an object, else an empty one. */
export function record(value: unknown): Json {
  return isRecord(value) ? value : {};
}

/** The value if it is a list, else an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function text(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

export function finite(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** A value as JSON of at most `limit` characters, for people to read. */
export function shown(value: unknown, limit: number): string {
  const json = value === undefined ? "" : JSON.stringify(value, null, 2);
  return json.length > limit ? `${json.slice(0, limit)} …` : json;
}

/** One line of at most `limit` characters. Of a very long value no more is looked at than can matter. */
export function oneLine(value: string, limit: number): string {
  const line = value.slice(0, limit * 8).replace(/\s+/gu, " ").trim();
  return line.length > limit || value.length > limit * 8 ? `${line.slice(0, limit)} …` : line;
}

/** A text for the editor's notifications, which would make a link of `[…](…)`, also one that runs a command. */
export function unlinked(value: string): string {
  return value.replace(/\]\(/gu, "]\u200B(");
}
