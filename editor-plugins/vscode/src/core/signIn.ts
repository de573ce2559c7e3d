/** Logging in: that the agent wants it, by which methods, and what is to be done after it. */

import type { AuthMethodView } from "../shared/view";
import type { Abilities, AuthMethod } from "./abilities";
import type { AgentCommand } from "./agentProcess";
import type { ClientHost } from "./clientHost";
import { told } from "./problems";
import type { Transcript } from "./transcript";

export class SignIn {
  #wanted: { reason: string; retry: () => Promise<void> } | null = null;
  #attempts = 0;

  constructor(
    private readonly abilities: () => Abilities | null,
    private readonly authenticate: (methodId: string) => Promise<unknown>,
    private readonly command: () => AgentCommand,
    private readonly host: ClientHost,
  ) {}

  get wanted(): boolean {
    return this.#wanted !== null;
  }

  get reason(): string {
    return this.#wanted?.reason ?? "";
  }

  /** The methods to choose from, while a login is wanted. */
  get methods(): AuthMethodView[] {
    if (this.#wanted === null) return [];
    const methods = (this.abilities()?.authMethods ?? []).map(({ id, name, description, terminal }) => ({ id, name, description, terminal }));
    return this.host.terminalFirst ? [...methods].sort((one, other) => Number(other.terminal) - Number(one.terminal)) : methods;
  }

  /** A login is wanted; `retry` is done after it. */
  want(reason: string, retry: () => Promise<void>): void {
    this.#wanted = { reason, retry };
    this.host.agentChanged();
  }

  /** Let something else be done after the login. */
  after(retry: () => Promise<void>): void {
    if (this.#wanted !== null) this.#wanted.retry = retry;
  }

  /** Log in by one of the methods, then do what the login was missing for. How it goes is told in `transcript`. */
  async by(methodId: string, transcript: Transcript): Promise<void> {
    const method = this.abilities()?.authMethods.find((one) => one.id === methodId);
    if (method === undefined) return;
    const attempt = (this.#attempts += 1);
    try {
      await this.#run(method, transcript);
    } catch (error) {
      if (attempt !== this.#attempts) return; // another way was taken since
      transcript.notice("error", this.host.say("auth.failed", told(error)));
      return;
    }
    transcript.notice("info", this.host.say("auth.done", method.name));
    const retry = this.#wanted?.retry;
    this.#wanted = null;
    await retry?.();
    this.host.agentChanged();
  }

  async #run(method: AuthMethod, transcript: Transcript): Promise<void> {
    if (!method.terminal) {
      await this.authenticate(method.id);
      return;
    }
    transcript.notice("info", this.host.say("auth.terminalHint"));
    await this.host.signInTerminal(method, this.command());
  }
}
