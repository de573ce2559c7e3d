/** Commands over sessions: choosing, forking, renaming, deleting. */

import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import { told } from "../core/problems";
import type { SessionEntry } from "../core/sessionStore";
import type { Say } from "../shared/words";
import { entries, stateWords, titleOf, type SessionsTree } from "./sessionsTree";
import { fail, sure } from "./telling";

export function registerSessionCommands(client: () => AgentClient | undefined, tree: SessionsTree, say: Say): vscode.Disposable[] {
  const command = (name: string, work: (client: AgentClient, entry: SessionEntry) => Promise<unknown>): vscode.Disposable =>
    vscode.commands.registerCommand(name, async (entry?: SessionEntry) => {
      const agent = client();
      if (agent === undefined || entry === undefined) return;
      try {
        await work(agent, entry);
      } catch (error) {
        fail(told(error));
      }
      tree.refresh();
    });
  return [
    command("acpAgent.session.open", (agent, entry) => agent.show(entry)),
    command("acpAgent.session.fork", (agent, entry) => agent.fork(entry)),
    command("acpAgent.session.close", (agent, entry) => agent.close(entry.sessionId)),
    command("acpAgent.session.rename", async (agent, entry) => {
      const title = await vscode.window.showInputBox({ prompt: say("session.renamePrompt"), value: entry.title });
      if (title !== undefined && title.trim() !== "") await agent.rename(entry.sessionId, title.trim());
    }),
    command("acpAgent.session.delete", async (agent, entry) => {
      const question = say("session.deleteConfirm", titleOf(agent.open.find((one) => one.id === entry.sessionId), entry, say));
      if (await sure(question, say("session.delete"))) await agent.delete(entry.sessionId);
    }),
    vscode.commands.registerCommand("acpAgent.sessions.refresh", () => tree.refresh()),
    vscode.commands.registerCommand("acpAgent.showSessions", async () => {
      const agent = client();
      if (agent !== undefined) await pick(agent, say);
    }),
  ];
}

async function pick(client: AgentClient, say: Say): Promise<void> {
  await client.start();
  const items = (await entries(client)).map((entry) => {
    const session = client.open.find((one) => one.id === entry.sessionId);
    return {
      label: titleOf(session, entry, say),
      description: stateWords(session, session !== undefined && session === client.active, entry, say),
      entry,
    };
  });
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: say("session.pick"), matchOnDescription: true });
  if (chosen !== undefined) await client.show(chosen.entry);
}
