/** Which files the agent may use through the editor. */

import * as path from "node:path";

import { invalid } from "./problems";
import type { Roots } from "./roots";

export interface GateRules {
  roots: Roots;
  /** Whether files outside the workspace may be used. */
  outside(): boolean;
  /** The agent was refused this one. */
  refused(file: string): void;
}

/**
 * The path of a file that may be used, without `.` and `..`.
 * @throws RequestError for one that may not.
 */
export async function allowed(file: string, rules: GateRules): Promise<string> {
  if (!path.isAbsolute(file) || file.includes("\0")) throw invalid(`path: must be absolute: ${file}`);
  const plain = path.normalize(file);
  if (rules.outside() || (await rules.roots.reallyContains(plain).catch(() => false))) return plain;
  rules.refused(file);
  throw invalid(`path: outside the workspace, which the user's setting acpAgent.files.outsideWorkspace refuses: ${file}`);
}
