/**
 * An agent in use: started when it is needed, started again when it ends, with its sessions.
 *
 * Nothing here knows of the editor; what does is handed in.
 */

import type { AgentView } from "../shared/view";
import type { AgentCommand } from "./agentProcess";
import type { ClientHost } from "./clientHost";
import { attach, attachAgain, type Attaching } from "./attaching";
import { record, text } from "./json";
import { Lifeline, type Ask } from "./lifeline";
import { OpenSessions } from "./openSessions";
import { AgentProblem, needsSignIn, told } from "./problems";
import { SignIn } from "./signIn";
import type { Message, Session, SessionEvents, Wire } from "./session";
import { SessionStore, type SessionEntry } from "./sessionStore";

const OPEN_SECONDS = 120;

export class AgentClient {
  readonly store: SessionStore;
  readonly #life: Lifeline;
  readonly #sessions: OpenSessions;
  readonly #signIn: SignIn;
  #first: Promise<Session | null> | null = null;

  constructor(
    command: AgentCommand,
    private readonly host: ClientHost,
  ) {
    this.#sessions = new OpenSessions(command.cwd, this.#wire(), host, this.#sessionEvents());
    this.#life = new Lifeline(command, this.#sessions.side(), host, {
      changed: () => host.agentChanged(),
      ended: (reason) => {
        host.terminals?.dispose();
        this.#sessions.interrupted(reason);
      },
      resume: (ask) => this.#resume(ask),
    });
    this.#signIn = new SignIn(() => this.#life.abilities, (methodId) => this.#life.request("authenticate", { methodId }), () => this.command, host);
    this.store = new SessionStore((method, params) => this.#request(method, params));
  }

  /** How it is started. */
  get command(): AgentCommand {
    return this.#life.command;
  }

  /** What is shown while there is no session. */
  get lobby(): Session {
    return this.#sessions.lobby;
  }

  get active(): Session {
    return this.#sessions.active;
  }

  get open(): readonly Session[] {
    return this.#sessions.all;
  }

  get abilities(): Lifeline["abilities"] {
    return this.#life.abilities;
  }

  get view(): AgentView {
    const abilities = this.#life.abilities;
    return {
      name: this.command.name,
      title: abilities?.title ?? this.command.name,
      ...this.#life.state,
      signIn: this.#signIn.methods,
      signInReason: this.#signIn.reason,
      images: abilities?.image ?? true,
      steering: abilities?.steering ?? false,
    };
  }

  /** Start the agent, if need be, and open a session if none is. Failures are shown. */
  async start(): Promise<void> {
    if (!(await this.#life.ready())) return;
    if (this.#sessions.none && !this.#signIn.wanted) await this.#firstSession();
  }

  /** Start it anew, as `command` says from now on, with the sessions that are open. */
  async restart(command: AgentCommand = this.command): Promise<void> {
    await this.#life.restart(command);
    if (this.#sessions.none) await this.start();
  }

  /** End the agent's process at once, as a crash would. */
  kill(): void {
    this.#life.kill();
  }

  async stop(): Promise<void> {
    await this.#life.stop();
  }

  async newSession(): Promise<Session | null> {
    return this.#opened(async () => {
      const response = await this.#request("session/new", { ...this.#place(this.command.cwd), mcpServers: [] });
      return this.#adopt(text(record(response)["sessionId"]), this.command.cwd, response);
    }, async () => {
      await this.newSession();
    });
  }

  /** Show a session: one that is open, or one of the agent's. */
  async show(entry: SessionEntry): Promise<Session | null> {
    const known = this.#sessions.get(entry.sessionId);
    if (known !== undefined) {
      this.#sessions.show(known);
      return known;
    }
    return this.#opened(async () => {
      const session = this.#sessions.make(entry.sessionId, entry.cwd);
      session.rename(entry.title);
      this.#sessions.add(session); // its updates come before the answer
      try {
        await this.#attach(session);
      } catch (error) {
        this.#sessions.remove(entry.sessionId);
        throw error;
      }
      this.#sessions.show(session);
      return session;
    }, async () => {
      await this.show(entry);
    });
  }

  async fork(entry: SessionEntry): Promise<Session | null> {
    return this.#opened(async () => {
      const response = await this.#request("session/fork", { sessionId: entry.sessionId, ...this.#place(entry.cwd), mcpServers: [] });
      const id = text(record(response)["sessionId"]);
      const source = this.#sessions.get(entry.sessionId);
      const session = this.#adopt(id, entry.cwd, response);
      if (source !== undefined) session.transcript.copy(source.transcript);
      else if (this.abilities?.load === true) await this.#attach(session);
      session.rename(entry.title);
      return session;
    }, async () => {
      await this.fork(entry);
    });
  }

  async rename(sessionId: string, title: string): Promise<void> {
    const response = await this.#request("session/set_title", { sessionId, title });
    this.#sessions.get(sessionId)?.rename(text(record(response)["title"], title));
    this.host.agentChanged();
  }

  async delete(sessionId: string): Promise<void> {
    await this.close(sessionId);
    await this.#request("session/delete", { sessionId });
    this.host.agentChanged();
  }

  /** Let go of an open session; another one, or the lobby, is shown instead. */
  async close(sessionId: string): Promise<void> {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    session.cancel();
    this.#sessions.remove(sessionId);
    if (this.abilities?.close === true) await this.#request("session/close", { sessionId }).catch(() => undefined);
  }

  /**
   * Say something in the session that is shown; one is opened if none is.
   *
   * False: nobody could be told, and the message is the caller's again. One that waits for a login is
   * kept.
   */
  async prompt(message: Message): Promise<boolean> {
    if (!(await this.#life.ready())) return false;
    if (this.#sessions.none && (await this.#firstSession()) === null) {
      if (!this.#signIn.wanted) return false;
      this.lobby.transcript.user(message.text, message.images, message.attached);
      this.#signIn.after(async () => {
        await this.prompt(message);
      });
      return true;
    }
    await this.active.prompt(message);
    return true;
  }

  /** Log in by one of the agent's methods, then do what the login was missing for. */
  async signIn(methodId: string): Promise<void> {
    await this.#signIn.by(methodId, this.active.transcript);
  }

  async signOut(): Promise<void> {
    const { transcript } = this.active;
    try {
      await this.#request("logout", {});
      transcript.notice("info", this.host.say("auth.signedOut"));
    } catch (error) {
      transcript.notice("error", this.host.say("auth.signOutFailed", told(error)));
    }
  }

  /** Show the methods of logging in. */
  askSignIn(): void {
    this.#signIn.want("", () => this.start());
  }

  /** One session to begin with, however many ask for it at once. */
  #firstSession(): Promise<Session | null> {
    this.#first ??= this.newSession().finally(() => {
      this.#first = null;
    });
    return this.#first;
  }

  #wire(): Wire {
    return {
      request: (method, params) => this.#life.request(method, params),
      notify: (method, params) => this.#life.notify(method, params),
      steering: () => this.#life.abilities?.steering ?? false,
    };
  }

  #request(method: string, params: object): Promise<unknown> {
    return this.#life.request(method, params, OPEN_SECONDS);
  }

  #place(cwd: string): { cwd: string; additionalDirectories?: string[] } {
    const others = this.host.folders.filter((folder) => folder !== cwd);
    return this.abilities?.additionalDirectories === true && others.length > 0 ? { cwd, additionalDirectories: others } : { cwd };
  }

  /** Run what opens a session; a failure is shown, one for want of a login leads to it. */
  async #opened(work: () => Promise<Session>, again: () => Promise<void>): Promise<Session | null> {
    if (!(await this.#life.ready())) return null;
    try {
      return await this.#sessions.early.during(work);
    } catch (error) {
      if (needsSignIn(error)) {
        this.#signIn.want(told(error), again);
      } else {
        this.active.transcript.notice("error", this.host.say("session.failed", told(error)));
      }
      return null;
    } finally {
      this.host.agentChanged();
    }
  }

  #adopt(id: string, cwd: string, response: unknown): Session {
    if (id === "") throw new AgentProblem(this.host.say("session.noId"));
    const session = this.#sessions.make(id, cwd);
    session.opened(response);
    if (this.#sessions.none) session.transcript.takeNotices(this.lobby.transcript);
    this.#sessions.add(session);
    this.#sessions.show(session);
    return session;
  }

  #attach(session: Session): Promise<void> {
    return attach(session, this.#attaching(session, (method, params) => this.#request(method, params)), false);
  }

  async #resume(ask: Ask): Promise<void> {
    if (this.#sessions.none) void this.start(); // waits for the end of this
    await attachAgain(this.open, (session) => this.#attaching(session, (method, params) => ask(method, params, OPEN_SECONDS)));
  }

  #attaching(session: Session, request: Attaching["request"]): Attaching {
    return { request, place: this.#place(session.cwd), abilities: this.abilities, say: this.host.say };
  }

  #sessionEvents(): SessionEvents {
    return {
      changed: (session, change) => {
        this.host.changed(session, change);
        if (change.op === "session") this.host.agentChanged();
      },
      asked: (session, asked) => this.host.asked(session, asked),
      needsSignIn: (session, reason, message) => {
        this.#signIn.want(reason, () => session.prompt(message));
      },
    };
  }
}
