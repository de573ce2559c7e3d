/** The output channel with what goes over the wire, and what the agent writes to its error output. */

import * as vscode from "vscode";

import { WireLines } from "../core/wireLines";
import { settings } from "./settings";

export class WireLog {
  /** A channel for logs: the editor writes it to files that it keeps small, and begins anew. */
  readonly #channel = vscode.window.createOutputChannel("ACP Agent", { log: true });
  readonly #lines = new WireLines(() => settings().wireLog, (line) => this.#channel.info(line));

  constructor() {
    this.#lines.secrets.learnEnvironment(process.env);
  }

  /** The user's variables for an agent: those that are secret are not shown. */
  use(env: Readonly<Record<string, string>>): void {
    this.#lines.secrets.learnEnvironment(env);
  }

  readonly line = (direction: "in" | "out", line: string): void => this.#lines.line(direction, line);

  readonly stderr = (text: string): void => this.#lines.stderr(text);

  show(): void {
    this.#channel.show(true);
  }

  dispose(): void {
    this.#lines.end();
    this.#channel.dispose();
  }
}
