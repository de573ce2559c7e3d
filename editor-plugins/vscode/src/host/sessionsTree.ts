/** The agent's sessions in the side bar. */

import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import { told } from "../core/problems";
import type { Session } from "../core/session";
import type { SessionEntry } from "../core/sessionStore";
import type { Say } from "../shared/words";
import { warn } from "./telling";

export class SessionsTree implements vscode.TreeDataProvider<SessionEntry> {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;
  #known = "";

  constructor(
    private readonly client: () => AgentClient | undefined,
    private readonly say: Say,
  ) {}

  dispose(): void {
    this.#changed.dispose();
  }

  refresh(): void {
    this.#changed.fire();
  }

  /** Draw again if what is shown of the open sessions is another. */
  agentChanged(): void {
    const client = this.client();
    const open = (client?.open ?? []).map(({ id, name, running, asking }) => [id, name, running, asking.waits]);
    const known = JSON.stringify([open, client?.active.id, client?.view.phase]);
    if (known === this.#known) return;
    this.#known = known;
    this.refresh();
  }

  async getChildren(parent?: SessionEntry): Promise<SessionEntry[]> {
    const client = this.client();
    if (parent !== undefined || client?.view.phase !== "ready") return [];
    return entries(client).catch((error: unknown) => {
      void warn(this.say("session.listFailed", told(error)));
      return [];
    });
  }

  getTreeItem(entry: SessionEntry): vscode.TreeItem {
    const client = this.client();
    const session = client?.open.find((one) => one.id === entry.sessionId);
    const abilities = client?.abilities;
    const title = titleOf(session, entry, this.say);
    const item = new vscode.TreeItem(title);
    item.id = entry.sessionId;
    item.description = stateWords(session, session !== undefined && session === client?.active, entry, this.say);
    item.tooltip = `${title}\n${entry.cwd}\n${entry.updatedAt}`;
    item.iconPath = new vscode.ThemeIcon(iconOf(session));
    item.contextValue = [
      session === undefined ? "" : "open",
      abilities?.fork === true ? "fork" : "",
      abilities?.rename === true ? "rename" : "",
      abilities?.delete === true ? "delete" : "",
    ].join(" ");
    item.command = { command: "acpAgent.session.open", title: "", arguments: [entry] };
    return item;
  }
}

/** The sessions that are open, then those that the agent keeps. */
export async function entries(client: AgentClient): Promise<SessionEntry[]> {
  const stored = client.abilities?.list === true ? await client.store.list(client.command.cwd) : [];
  const open = client.open
    .filter((session) => !stored.some((entry) => entry.sessionId === session.id))
    .map((session) => ({ sessionId: session.id, cwd: session.cwd, title: session.name, updatedAt: "" }));
  return [...open.reverse(), ...stored];
}

/** What a session is called in a list. */
export function titleOf(session: Session | undefined, entry: SessionEntry, say: Say): string {
  return session?.header.title || entry.title || session?.name || say("session.untitled");
}

function iconOf(session: Session | undefined): string {
  if (session === undefined) return "comment";
  if (session.asking.waits) return "bell-dot";
  return session.running ? "sync~spin" : "comment-discussion";
}

/** How a session is: `shown` for the one that the chat shows. */
export function stateWords(session: Session | undefined, shown: boolean, entry: SessionEntry, say: Say): string {
  const works = session?.asking.waits === true ? say("session.asking") : session?.running === true ? say("session.running") : "";
  if (works !== "") return shown ? `${say("session.shown")} · ${works}` : works;
  if (session !== undefined) return say(shown ? "session.shown" : "session.open");
  const at = new Date(entry.updatedAt);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleString();
}
