/** Keeps an agent alive: one start at a time, and another one, after a while, when it ended unexpectedly. */

import type { Phase } from "../shared/view";
import type { Say } from "../shared/words";
import type { Abilities } from "./abilities";
import { exitWords, type AgentCommand } from "./agentProcess";
import { AgentConnection, type ClientSide } from "./connection";
import { AgentProblem, told, within } from "./problems";

export interface LifeState {
  phase: Phase;
  problem: string;
  detail: string;
}

/** Asks the agent; with `seconds` an answer is waited for no longer than that. */
export type Ask = (method: string, params: object, seconds?: number) => Promise<unknown>;

export interface LifeEvents {
  changed(): void;
  /** A life ended; `reason` is how. Null: it was to end. */
  ended(reason: string | null): void;
  /**
   * Another life begins. What it has to be told before anything else is asked with `ask`; every other
   * request waits for it.
   */
  resume(ask: Ask): Promise<void>;
}

export interface LifeOptions {
  say: Say;
  version: string;
  readonly startSeconds: number;
  /** Milliseconds before the first restart; doubled with every unexpected end. */
  restartDelay?: number;
  /** A life of so many milliseconds was no failure. */
  steadyAfter?: number;
}

const MAX_ENDS = 5;
const STEADY_AFTER = 60_000;
const RESTART_DELAY = 500;

export class Lifeline {
  #command: AgentCommand;
  #connection: AgentConnection | null = null;
  #starting: Promise<boolean> | null = null;
  #state: LifeState = { phase: "stopped", problem: "", detail: "" };
  #lives = 0;
  /** Lives, one after the other, that ended unexpectedly soon after they began. */
  #ends = 0;
  #began = 0;
  #retry: NodeJS.Timeout | undefined;
  #wanted = new AbortController();

  constructor(
    command: AgentCommand,
    private readonly side: ClientSide,
    private readonly options: LifeOptions,
    private readonly events: LifeEvents,
  ) {
    this.#command = command;
  }

  get command(): AgentCommand {
    return this.#command;
  }

  get state(): LifeState {
    return this.#state;
  }

  get abilities(): Abilities | null {
    return this.#connection?.abilities ?? null;
  }

  /** Whether the agent can be asked; starts it when it was not started, or could not be. */
  async ready(): Promise<boolean> {
    if (this.#starting !== null) return this.#starting;
    if (this.#connection !== null) return true;
    clearTimeout(this.#retry);
    this.#wanted = new AbortController();
    this.#starting = this.#start(this.#wanted.signal).finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async request(method: string, params: object, seconds?: number): Promise<unknown> {
    if (!(await this.ready()) || this.#connection === null) throw new AgentProblem(this.#state.problem);
    return this.#ask(this.#connection)(method, params, seconds);
  }

  async notify(method: string, params: object): Promise<void> {
    await this.#connection?.notify(method, params);
  }

  async stop(): Promise<void> {
    this.#wanted.abort();
    clearTimeout(this.#retry);
    const connection = this.#connection;
    this.#connection = null;
    await connection?.stop();
    await this.#starting;
    if (this.#state.phase !== "failed") this.#set("stopped");
  }

  kill(): void {
    this.#connection?.process.kill();
  }

  /** End it and start it anew, as `command` says from now on. */
  async restart(command: AgentCommand): Promise<void> {
    this.#command = command;
    this.#ends = 0;
    const had = this.#connection !== null;
    await this.stop();
    if (had) this.events.ended(null);
    await this.ready();
  }

  async #start(wanted: AbortSignal): Promise<boolean> {
    this.#set("starting");
    let connection: AgentConnection;
    try {
      const { say, version, startSeconds } = this.options;
      connection = await AgentConnection.open(this.#command, this.side, { say, version, startSeconds, wanted });
    } catch (error) {
      if (wanted.aborted) this.#set("stopped");
      else this.#set("failed", told(error), error instanceof AgentProblem ? error.detail : "");
      return false;
    }
    if (wanted.aborted) {
      await connection.stop();
      return false;
    }
    this.#connection = connection;
    this.#began = Date.now();
    this.#lives += 1;
    void connection.exited.then((exit) => {
      if (this.#connection === connection) this.#died(exitWords(exit, this.options.say), connection.process.stderr);
    });
    if (this.#lives > 1) await this.events.resume(this.#ask(connection));
    // It may have ended meanwhile.
    if (this.#connection !== connection) return false;
    this.#set("ready");
    return true;
  }

  #ask(connection: AgentConnection): Ask {
    return (method, params, seconds) => {
      const answer = connection.request(method, params);
      if (seconds === undefined) return answer;
      return within(answer, seconds, () => new AgentProblem(this.options.say("agent.silent", seconds)));
    };
  }

  #died(reason: string, stderr: string): void {
    this.#connection = null;
    this.events.ended(reason);
    const steady = Date.now() - this.#began >= (this.options.steadyAfter ?? STEADY_AFTER);
    this.#ends = steady ? 1 : this.#ends + 1;
    const { say } = this.options;
    if (this.#ends >= MAX_ENDS) {
      this.#set("failed", say("agent.diedOften", this.#ends), stderr);
      this.#ends = 0; // whoever asks again gets as many
      return;
    }
    this.#set("restarting", say("agent.restarting", this.#command.name, this.#ends), stderr);
    this.#retry = setTimeout(() => void this.#again(this.#wanted.signal), (this.options.restartDelay ?? RESTART_DELAY) * 2 ** (this.#ends - 1));
  }

  async #again(wanted: AbortSignal): Promise<void> {
    await this.#starting; // that of the life that ended
    if (!wanted.aborted) await this.ready();
  }

  #set(phase: Phase, problem = "", detail = ""): void {
    this.#state = { phase, problem, detail };
    this.events.changed();
  }
}
