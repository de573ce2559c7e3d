/** The user's settings, as the editor has them. */

import { homedir } from "node:os";
import * as vscode from "vscode";

import type { AgentCommand } from "../core/agentProcess";
import { agentOf, settingsOf, type Settings } from "../core/settings";
import type { Say } from "../shared/words";

export const SECTION = "acpAgent";

export function settings(): Settings {
  const given = vscode.workspace.getConfiguration(SECTION);
  return settingsOf((name) => given.get<unknown>(name));
}

/** How the chosen agent is started in a folder; or what is wrong with the settings. */
export function chosenAgent(folder: string, say: Say): AgentCommand | string {
  const agents = vscode.workspace.getConfiguration(SECTION).get<unknown>("agents");
  return agentOf(agents, settings().agent, { workspaceFolder: folder, userHome: homedir(), env: process.env }, say);
}
