/** The sessions that the agent keeps. */

import { list, oneLine, record, text } from "./json";

export interface SessionEntry {
  sessionId: string;
  cwd: string;
  title: string;
  /** ISO 8601, or empty. */
  updatedAt: string;
}

const MAX_PAGES = 20;
const MAX_SESSIONS = 2_000;

export class SessionStore {
  constructor(private readonly request: (method: string, params: object) => Promise<unknown>) {}

  /** The sessions of a folder, as the agent orders them. */
  async list(cwd: string): Promise<SessionEntry[]> {
    const found = new Map<string, SessionEntry>();
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const response = record(await this.request("session/list", cursor === undefined ? { cwd } : { cwd, cursor }));
      for (const value of list(response["sessions"])) {
        const entry = entryOf(value, cwd);
        if (entry.sessionId !== "") found.set(entry.sessionId, entry);
      }
      const next = text(response["nextCursor"]);
      if (next === "" || next === cursor || found.size >= MAX_SESSIONS) break;
      cursor = next;
    }
    return [...found.values()].slice(0, MAX_SESSIONS);
  }
}

function entryOf(value: unknown, cwd: string): SessionEntry {
  const given = record(value);
  return {
    sessionId: text(given["sessionId"]),
    cwd: text(given["cwd"], cwd),
    title: oneLine(text(given["title"]), 200),
    updatedAt: text(given["updatedAt"]).slice(0, 40),
  };
}
