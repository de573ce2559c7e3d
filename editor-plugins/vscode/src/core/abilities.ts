/** What an agent says of itself in its answer to `initialize`. */

import type { AuthMethodView } from "../shared/view";
import { isRecord, list, oneLine, record, text } from "./json";

const MAX_METHODS = 20;
const MAX_NAME = 100;
const MAX_DESCRIPTION = 300;

/** A method of logging in, with what a terminal is started with. */
export interface AuthMethod extends AuthMethodView {
  args: string[];
  env: Record<string, string>;
  /** A command of its own, where the agent names one in the older form. */
  command?: string;
}

export interface Abilities {
  title: string;
  version: string;
  load: boolean;
  resume: boolean;
  list: boolean;
  fork: boolean;
  rename: boolean;
  delete: boolean;
  close: boolean;
  additionalDirectories: boolean;
  image: boolean;
  embeddedContext: boolean;
  steering: boolean;
  logout: boolean;
  authMethods: AuthMethod[];
}

export function abilities(initialized: unknown, name: string): Abilities {
  const result = record(initialized);
  const capabilities = record(result["agentCapabilities"]);
  const sessions = record(capabilities["sessionCapabilities"]);
  const prompts = record(capabilities["promptCapabilities"]);
  const info = record(result["agentInfo"]);
  const has = (key: string): boolean => isRecord(sessions[key]);
  return {
    title: oneLine(text(info["title"]) || text(info["name"]), MAX_NAME) || name,
    version: oneLine(text(info["version"]), MAX_NAME),
    load: capabilities["loadSession"] === true,
    resume: has("resume"),
    list: has("list"),
    fork: has("fork"),
    rename: has("title"),
    delete: has("delete"),
    close: has("close"),
    additionalDirectories: has("additionalDirectories"),
    image: prompts["image"] === true,
    embeddedContext: prompts["embeddedContext"] === true,
    steering: steers(result) || steers(capabilities),
    logout: isRecord(record(capabilities["auth"])["logout"]),
    authMethods: list(result["authMethods"]).slice(0, MAX_METHODS).flatMap(authMethod),
  };
}

/** `_meta.steering` is how agents say that words may be sent into a running turn. */
function steers(of: Record<string, unknown>): boolean {
  return record(record(of["_meta"])["steering"])["supported"] === true;
}

function authMethod(value: unknown): AuthMethod[] {
  const method = record(value);
  const id = text(method["id"]);
  if (id === "") return [];
  const older = record(record(method["_meta"])["terminal-auth"]);
  const terminal = method["type"] === "terminal";
  const from = terminal ? method : older;
  const command = text(older["command"]);
  return [
    {
      id,
      name: oneLine(text(method["name"], id), MAX_NAME),
      description: oneLine(text(method["description"]), MAX_DESCRIPTION),
      terminal: terminal || command !== "",
      args: list(from["args"]).map((one) => text(one)),
      env: Object.fromEntries(Object.entries(record(from["env"])).map(([key, one]) => [key, text(one)])),
      ...(command !== "" && !terminal ? { command } : {}),
    },
  ];
}
