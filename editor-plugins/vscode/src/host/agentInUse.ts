/** The agent that the settings choose: made, started, and made anew when they say something else. */

import * as vscode from "vscode";

import type { AgentCommand } from "../core/agentProcess";
import { AgentClient } from "../core/client";
import type { ClientHost } from "../core/clientHost";
import type { AgentView } from "../shared/view";
import type { Say } from "../shared/words";
import { chosenAgent, settings } from "./settings";
import { inform } from "./telling";

const PAUSE_MILLISECONDS = 400; // somebody is still typing

export class AgentInUse {
  #client: AgentClient | undefined;
  /** What of the settings the running agent was started with. */
  #startedWith = "";
  #changes: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** The settings are others, and the agent is at work. */
  #waiting = false;

  constructor(
    private readonly folder: () => string | undefined,
    private readonly say: Say,
    private readonly host: ClientHost,
    /** Told how an agent is going to be started. */
    private readonly using: (command: AgentCommand) => void,
    /** Whether the chat is in sight: then an agent is started as soon as one can be. */
    private readonly seen: () => boolean,
    private readonly changed: () => void,
  ) {}

  get client(): AgentClient | undefined {
    return this.#client;
  }

  /** The agent as it is shown while there is none. */
  get without(): AgentView {
    const { agent } = settings();
    const command = this.#command();
    const needs = this.#needs;
    return {
      name: agent, title: agent, phase: typeof command === "string" ? "failed" : "stopped", detail: "",
      problem: typeof command === "string" ? command : "", signIn: [], signInReason: "", images: true, steering: false,
      ...(needs === undefined ? {} : { needs }),
    };
  }

  /** Start the chosen agent, if it does not run. */
  async start(): Promise<AgentClient | undefined> {
    const command = this.#command();
    if (this.#client === undefined && typeof command !== "string") {
      this.#startedWith = this.#wanted();
      this.using(command);
      this.#client = new AgentClient(command, this.host);
    }
    this.changed();
    await this.#client?.start();
    return this.#client;
  }

  async restart(): Promise<void> {
    if (this.#client === undefined) await this.start();
    else await this.#apply();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    await client?.stop();
    this.changed();
  }

  /** The settings may say something else. An agent at work is not disturbed, unless the user says so. */
  settingsChanged(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), PAUSE_MILLISECONDS);
  }

  /** The agent's state is another: what waited for the end of its work is done. */
  agentChanged(): void {
    if (this.#waiting && !this.#busy) void this.#apply();
  }

  get #busy(): boolean {
    return this.#client?.open.some((session) => session.running) === true;
  }

  async #look(): Promise<void> {
    if (this.#client !== undefined && this.#startedWith === this.#wanted()) {
      this.#waiting = false;
    } else if (!this.#busy) {
      await this.#apply();
    } else if (!this.#waiting) {
      this.#waiting = true;
      await this.#tellWaiting();
    }
  }

  async #tellWaiting(): Promise<void> {
    const now = this.say("agent.restart");
    const answer = await inform(this.say("agent.settingsWait", this.#client?.view.title ?? ""), now);
    if (answer === now && this.#waiting) await this.#apply();
  }

  /** One change after the other. */
  #apply(): Promise<void> {
    this.#waiting = false;
    this.#changes = this.#changes.then(() => this.#use()).catch(() => undefined);
    return this.#changes;
  }

  async #use(): Promise<void> {
    const command = this.#command();
    if (this.#client !== undefined && typeof command !== "string" && command.name === this.#client.command.name) {
      this.#startedWith = this.#wanted();
      this.using(command);
      await this.#client.restart(command); // with its sessions
      return;
    }
    const had = this.#client !== undefined || this.seen();
    await this.stop();
    if (had) await this.start();
  }

  get #needs(): AgentView["needs"] {
    if (!vscode.workspace.isTrusted) return "trust";
    return this.folder() === undefined ? "folder" : undefined;
  }

  /** A workspace that is not trusted could say in its settings what is started: nothing is, in none. */
  #command(): ReturnType<typeof chosenAgent> {
    if (!vscode.workspace.isTrusted) return this.say("agent.untrusted");
    const folder = this.folder();
    return folder === undefined ? this.say("agent.noFolder") : chosenAgent(folder, this.say);
  }

  /** All that an agent is told at its start. */
  #wanted(): string {
    return JSON.stringify([this.#command(), settings().terminals]);
  }
}

/** The folders of the workspace that are on this computer. */
export function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
}
