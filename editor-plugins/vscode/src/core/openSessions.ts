/** The sessions that are open, the one that is shown, and the way of what the agent says to each. */

import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk/unstable";

import type { ClientHost } from "./clientHost";
import type { ClientSide } from "./connection";
import { EarlyUpdates } from "./earlyUpdates";
import { record, text } from "./json";
import { Session, type SessionEvents, type Wire } from "./session";

export class OpenSessions {
  /** What is shown while there is no session. */
  readonly lobby: Session;
  readonly early = new EarlyUpdates();
  readonly #sessions = new Map<string, Session>();
  #active: Session;

  constructor(
    cwd: string,
    private readonly wire: Wire,
    private readonly host: ClientHost,
    private readonly events: SessionEvents,
  ) {
    this.lobby = this.make("", cwd);
    this.#active = this.lobby;
  }

  get active(): Session {
    return this.#active;
  }

  get all(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  get none(): boolean {
    return this.#active === this.lobby;
  }

  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  /** A session that is not open yet. */
  make(id: string, cwd: string): Session {
    return new Session(id, cwd, this.wire, this.host.roots, this.host.say, this.events);
  }

  /** Let it have what the agent sends for it, and what came for it already. */
  add(session: Session): void {
    this.#sessions.set(session.id, session);
    for (const update of this.early.of(session.id)) session.update(update);
  }

  /** Let go of one; another one, or the lobby, is shown instead. */
  remove(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    if (session === this.#active) this.show(this.all.at(-1) ?? this.lobby);
    else this.host.agentChanged();
  }

  show(session: Session): void {
    this.#active = session;
    this.host.agentChanged();
  }

  /** The agent is gone; `reason` is how it ended, null when it was to end. */
  interrupted(reason: string | null): void {
    for (const session of [...this.all, this.lobby]) session.interrupted(reason);
  }

  /** What the agent asks and tells, brought to the session that it is for. */
  side(): ClientSide {
    const { host } = this;
    return {
      files: host.files,
      get terminals() {
        return host.terminals;
      },
      update: (sessionId, update) => {
        const session = this.get(sessionId);
        if (session === undefined) this.early.add(sessionId, update);
        else session.update(update);
      },
      permission: (request, signal) => this.#permission(request, signal),
      elicitation: (request, signal) => this.#elicitation(request, signal),
      elicitationComplete: (id) => {
        for (const session of [this.lobby, ...this.all]) session.asking.complete(id);
      },
      garbage: (line) => this.#active.garbage(line),
      line: host.line,
      stderr: host.stderr,
    };
  }

  #permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse> {
    const session = this.get(request.sessionId);
    return session?.permission(request, signal) ?? Promise.resolve({ outcome: { outcome: "cancelled" } });
  }

  /** One that is for no session is shown where the user looks. */
  #elicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const session = this.get(text(record(request)["sessionId"])) ?? this.#active;
    return session.elicitation(request, signal);
  }
}
