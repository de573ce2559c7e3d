/** The user's settings, `acpAgent.*`, read so that a wrong value does no more harm than to be told. */

import type { Say } from "../shared/words";
import type { AgentCommand } from "./agentProcess";
import { finite, isRecord, record, text } from "./json";

export type WireLog = "off" | "short" | "full";

export interface Settings {
  agent: string;
  agents: readonly string[];
  startSeconds: number;
  outsideWorkspace: "refuse" | "allow";
  saveUnsaved: boolean;
  terminals: boolean;
  thoughts: "folded" | "open" | "hidden";
  notifications: boolean;
  wireLog: WireLog;
}

/** A value as the editor has it for a name; anything, as users write these by hand. */
export type Given = (name: string) => unknown;

/** What is set. A value that cannot be is the default. */
export function settingsOf(given: Given): Settings {
  const one = <T extends string>(name: string, ...values: readonly [T, ...T[]]): T =>
    values.find((value) => value === given(name)) ?? values[0];
  const on = (name: string): boolean => given(name) !== false;
  return {
    agent: text(given("agent"), "acp-agent"),
    agents: Object.keys(record(given("agents"))),
    startSeconds: Math.min(600, Math.max(1, finite(given("startTimeout")) ?? 30)),
    outsideWorkspace: one("files.outsideWorkspace", "refuse", "allow"),
    saveUnsaved: on("files.saveUnsaved"),
    terminals: on("terminals"),
    thoughts: one("thoughts", "folded", "open", "hidden"),
    notifications: on("notifications"),
    wireLog: one("wireLog", "short", "off", "full"),
  };
}

/** What `${…}` stands for in the settings of an agent. */
export interface Places {
  workspaceFolder: string;
  userHome: string;
  env: NodeJS.ProcessEnv;
}

/** How the agent of that name is started; or what is wrong with the settings, in one line. */
export function agentOf(agents: unknown, name: string, places: Places, say: Say): AgentCommand | string {
  const agent = record(agents)[name];
  if (agent === undefined) return say("agent.none", name);
  const wrong = problemOf(agent);
  if (wrong !== null) return say("agent.badSetting", name, wrong);
  const { command, args, env } = record(agent) as { command: string; args?: string[] | null; env?: Record<string, string> | null };
  const filled = (value: string): string => fill(value, places);
  return {
    name,
    command: filled(command.trim()).replace(/^~(?=[/\\])/u, places.userHome),
    args: (args ?? []).map(filled),
    env: Object.fromEntries(Object.entries(env ?? {}).map(([key, value]) => [key, filled(value)])),
    cwd: places.workspaceFolder,
  };
}

function problemOf(agent: unknown): string | null {
  if (!isRecord(agent)) return "{ command, args, env }";
  const { command, args, env } = agent;
  if (typeof command !== "string" || command.trim() === "") return "command: \"…\"";
  if (args !== undefined && args !== null && !(Array.isArray(args) && args.every((one) => typeof one === "string"))) return "args: [\"…\"]";
  if (env === undefined || env === null) return null;
  if (!isRecord(env)) return "env: { NAME: \"…\" }";
  const odd = Object.entries(env).find(([key, value]) => typeof value !== "string" || key === "" || key.includes("="));
  return odd === undefined ? null : `env: { ${JSON.stringify(odd[0])}: "…" }`;
}

/** A variable of the environment that is not set is empty; what has no meaning stays. */
function fill(value: string, places: Places): string {
  return value.replace(/\$\{(workspaceFolder|userHome|env:([^}]+))\}/gu, (_, name: string, variable?: string) => {
    if (variable !== undefined) return places.env[variable] ?? "";
    return name === "userHome" ? places.userHome : places.workspaceFolder;
  });
}
