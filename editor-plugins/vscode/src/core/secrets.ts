/**
 * Keeping secrets out of what is logged.
 *
 * Three ways, as none of them finds all: by where a value stands on the wire, by the name beside it, and
 * by what it looks like or is known to be.
 */

import { isRecord, list, record, text, type Json } from "./json";

const HIDDEN = "•••";
const NAME = /pass(?:word|wd|phrase)|secret|token(?!s|i)|api[-_]?key|credential|authorization|private[-_]?key|\bpin\b/iu;
/** A name and, after a colon or a sign of equality, its value, in JSON within JSON as well. */
const NAMED = /((?:passw|passphrase|secret|token(?!s|i)|api[-_]?key|credential|authorization|private[-_]?key)[\w-]{0,40}\\{0,4}["']?\s{0,3}[:=]\s{0,3}\\{0,4}["']?)([^\s"'\\,;&}]{4,})/giu;
const LOOKS = [
  /\b(?:sk|pk|rk)-[\w-]{16,}/gu,
  /\bgh[oprsu]_\w{20,}/gu,
  /\bgithub_pat_\w{20,}/gu,
  /\bglpat-[\w-]{16,}/gu,
  /\bxox[abeprs]-[\w-]{10,}/gu,
  /\bAIza[\w-]{30,}/gu,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/gu,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/gu,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*/gu,
];
const BEARER = /\b((?:Bearer|Basic)\s+)[\w.~+/=-]{8,}/giu;
const MAX_ASKED = 1_000;
const LEAST_KNOWN = 6; // characters; shorter values stand for other things as well
const PLACES = ["\"env\"", "\"headers\"", "\"elicitation/create\"", "\"authenticate\""];

export class Secrets {
  /** The longest first, so that none is hidden in part only. */
  #known: string[] = [];
  /** id of a question of the agent's → the fields of its form that are secret */
  readonly #asked = new Map<string, Set<string>>();

  /** A value that is to be hidden wherever it stands. */
  learn(value: string): void {
    if (value.length < LEAST_KNOWN) return;
    const forms = [value, JSON.stringify(value).slice(1, -1)];
    this.#known = [...new Set([...this.#known, ...forms])].sort((a, b) => b.length - a.length);
  }

  /** The values of an environment whose names say that they are secret. */
  learnEnvironment(env: Readonly<Record<string, string | undefined>>): void {
    for (const [name, value] of Object.entries(env)) if (isSecretName(name)) this.learn(value ?? "");
  }

  /** A line of the wire without what stands where secrets do. */
  message(direction: "in" | "out", line: string): string {
    const answer = direction === "out" && this.#asked.size > 0 && line.includes("\"action\"");
    if (!answer && !PLACES.some((place) => line.includes(place))) return line;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return HIDDEN; // it has something in it that is to be hidden, and nobody can tell where
    }
    if (!isRecord(message)) return HIDDEN;
    const { method, params, result } = message;
    if (direction === "in" && method === "elicitation/create") this.#asks(message["id"], record(params));
    if (answer) this.#answered(message["id"], record(result));
    if (direction === "out" && method === "authenticate") message["params"] = { methodId: record(params)["methodId"], "…": HIDDEN };
    return JSON.stringify(message, (key, value: unknown) => hiddenIn(key, value));
  }

  /** A text without what is known to be secret, or looks or is named like it. */
  text(given: string): string {
    let shown = given;
    for (const value of this.#known) shown = shown.replaceAll(value, HIDDEN);
    for (const look of LOOKS) shown = shown.replace(look, HIDDEN);
    return shown.replace(BEARER, `$1${HIDDEN}`).replace(NAMED, `$1${HIDDEN}`);
  }

  #asks(id: unknown, params: Json): void {
    const properties = Object.entries(record(record(params["requestedSchema"])["properties"]));
    const secret = properties.filter(([name, field]) => {
      const { format, title, writeOnly } = record(field);
      return format === "password" || writeOnly === true || isSecretName(name) || isSecretName(text(title));
    });
    if (this.#asked.size >= MAX_ASKED) this.#asked.clear();
    this.#asked.set(JSON.stringify(id), new Set(secret.map(([name]) => name)));
  }

  /** What was answered is never logged; what of it is secret is not logged later either. */
  #answered(id: unknown, result: Json): void {
    const secret = this.#asked.get(JSON.stringify(id));
    if (secret === undefined) return;
    this.#asked.delete(JSON.stringify(id));
    if (!isRecord(result["content"])) return;
    const { content } = result as { content: Json };
    for (const name of secret) this.learn(text(content[name]));
    result["content"] = Object.fromEntries(Object.keys(content).map((name) => [name, HIDDEN]));
  }
}

function isSecretName(name: string): boolean {
  return NAME.test(name.replace(/(?<=[a-z])(?=[A-Z])/gu, " ")) || NAME.test(name);
}

/** The values of variables and headers are hidden, in both forms in which they are written. */
function hiddenIn(key: string, value: unknown): unknown {
  if (key !== "env" && key !== "headers") return value;
  if (isRecord(value)) return Object.fromEntries(Object.keys(value).map((name) => [name, HIDDEN]));
  if (!Array.isArray(value)) return typeof value === "string" ? HIDDEN : value;
  return list(value).map((one) => (isRecord(one) ? { ...one, value: HIDDEN } : HIDDEN));
}
