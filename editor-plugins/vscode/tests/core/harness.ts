/** A client without an editor: files on disk, everything that is told kept. */

import { mkdtempSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { onTestFinished } from "vitest";

import { AgentClient } from "../../src/core/client";
import type { AgentCommand } from "../../src/core/agentProcess";
import type { Asked } from "../../src/core/asking";
import type { ClientHost } from "../../src/core/clientHost";
import { Roots } from "../../src/core/roots";
import type { Session } from "../../src/core/session";
import type { Item, ToolItem } from "../../src/shared/view";
import { speaker } from "../../src/shared/words";

export const say = speaker("en");

export interface Told {
  asked: [Session, Asked][];
  phases: string[];
  written: Map<string, string>;
  log: string[];
}

/** A client that is stopped when the test is over. */
export function use(command: AgentCommand, options: Partial<ClientHost> = {}): { client: AgentClient; told: Told } {
  const made = clientOf(command, options);
  onTestFinished(() => made.client.stop());
  return made;
}

/** The path of a file that is not there yet, in a folder of its own. */
export function fresh(name: string): string {
  return join(mkdtempSync(join(tmpdir(), "acp-vscode-")), name);
}

export function badAgent(how: string, ...rest: string[]): AgentCommand {
  const script = fileURLToPath(new URL("../agents/agent.mjs", import.meta.url));
  return { name: how, command: process.execPath, args: [script, how, ...rest], env: {}, cwd: process.cwd() };
}

/** An agent of `hostile.mjs`; one that counts its lives gets a file for it. */
export function hostile(how: string, ...rest: string[]): AgentCommand {
  const script = fileURLToPath(new URL("../agents/hostile.mjs", import.meta.url));
  return { name: how, command: process.execPath, args: [script, how, ...rest], env: {}, cwd: process.cwd() };
}

export function clientOf(command: AgentCommand, options: Partial<ClientHost> = {}): { client: AgentClient; told: Told } {
  const told: Told = { asked: [], phases: [], written: new Map(), log: [] };
  const host: ClientHost = {
    files: {
      read: async ({ path }) => ({ content: await readFile(path, "utf8") }),
      write: async ({ path, content }) => {
        told.written.set(path, content);
        await writeFile(path, content);
      },
    },
    terminals: null,
    roots: new Roots([command.cwd]),
    folders: [command.cwd],
    say,
    version: "0",
    startSeconds: 20,
    restartDelay: 20,
    changed: () => undefined,
    agentChanged: () => {
      const phase = client.view.phase;
      if (told.phases.at(-1) !== phase) told.phases.push(phase);
    },
    asked: (session, asked) => void told.asked.push([session, asked]),
    line: (direction, line) => void told.log.push(`${direction} ${line.slice(0, 300)}`),
    stderr: () => undefined,
    terminalFirst: false,
    signInTerminal: () => Promise.resolve(),
  };
  Object.defineProperties(host, Object.getOwnPropertyDescriptors(options)); // what is asked again and again stays so
  const client: AgentClient = new AgentClient(command, host);
  return { client, told };
}

export async function until(what: () => unknown, within = 50_000): Promise<void> {
  const end = Date.now() + within;
  while (!what()) {
    if (Date.now() > end) throw new Error(`not within ${within} ms: ${what.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function message(text: string): { blocks: { type: "text"; text: string }[]; text: string; images: []; attached: [] } {
  return { blocks: [{ type: "text", text }], text, images: [], attached: [] };
}

/** The text of all messages of a kind. */
export function texts(session: Session, kind: Item["kind"]): string {
  return session.transcript.items.map((item) => (item.kind === kind && "text" in item ? item.text : "")).join("");
}

export function notices(session: Session): string {
  return session.transcript.items.map((item) => (item.kind === "notice" ? item.title : "")).filter((title) => title !== "").join("\n");
}

export function tools(session: Session): ToolItem[] {
  return session.transcript.items.filter((item) => item.kind === "tool");
}
