/** A conversation with the agent: its turn, what can be set, what it asks, and what is shown of it. */

import type {
  ContentBlock,
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk/unstable";

import type { AnswerContent, Change } from "../shared/messages";
import type { ImageView, SessionHeader } from "../shared/view";
import type { Say } from "../shared/words";
import { Asking, type Asked } from "./asking";
import { list, oneLine, record, text, type Json } from "./json";
import { MODES_ID, options, optionsOf, withMode } from "./options";
import { planOf, usageOf, withPlan } from "./plans";
import { needsSignIn, told } from "./problems";
import type { Roots } from "./roots";
import { Transcript } from "./transcript";

/** The agent, as a session needs it. */
export interface Wire {
  request(method: string, params: object): Promise<unknown>;
  notify(method: string, params: object): Promise<void>;
  /** Whether words can be sent into a running turn. */
  steering(): boolean;
}

/** What a session tells of. */
export interface SessionEvents {
  changed(session: Session, change: Change): void;
  asked(session: Session, asked: Asked): void;
  /** The agent wants a login before it answers; `message` is to be said again after it. */
  needsSignIn(session: Session, reason: string, message: Message): void;
}

/** A message of the user's: what the agent gets, and what is shown. */
export interface Message {
  blocks: ContentBlock[];
  text: string;
  images: ImageView[];
  attached: string[];
}

const STUCK_MILLISECONDS = 10_000;
const MAX_NAME = 60; // characters of the user's words
const MAX_COMMANDS = 500;
const MAX_GARBAGE = 3; // notices of it in a session

export class Session {
  readonly transcript: Transcript;
  readonly asking: Asking;
  readonly #header: SessionHeader;
  readonly #waiting: Message[] = [];
  #stuckTimer: NodeJS.Timeout | undefined;
  /** Counts the lives of the agent that the session has seen: an answer from an earlier one is nothing. */
  #life = 0;
  #garbage = 0;

  constructor(
    readonly id: string,
    readonly cwd: string,
    private readonly wire: Wire,
    roots: Roots,
    private readonly say: Say,
    private readonly events: SessionEvents,
  ) {
    this.transcript = new Transcript(roots, say, (change) => events.changed(this, change));
    this.asking = new Asking(this.transcript, (asked) => events.asked(this, asked));
    this.#header = {
      sessionId: id, title: "", running: false, cancelling: false, stuck: false,
      plans: [], usage: null, commands: [], options: [], waiting: [],
    };
  }

  get header(): SessionHeader {
    return { ...this.#header };
  }

  get running(): boolean {
    return this.#header.running;
  }

  /** What it is called: as the agent says, or else by the user's first words. */
  get name(): string {
    if (this.#header.title !== "") return this.#header.title;
    const first = this.transcript.items.find((item) => item.kind === "user");
    return first?.kind === "user" ? oneLine(first.text, MAX_NAME) : "";
  }

  /** Take over the answer that opened the session. */
  opened(response: unknown): void {
    this.#set({ options: optionsOf(response) });
  }

  rename(title: string): void {
    this.#set({ title: oneLine(title, 300) });
  }

  /** Take over an update of the agent's. */
  update(value: unknown): void {
    const update = record(value);
    switch (update["sessionUpdate"]) {
      case "plan":
      case "plan_update": {
        const plan = planOf(update);
        if (plan !== null) this.#set({ plans: withPlan(this.#header.plans, plan) });
        return;
      }
      case "plan_removed":
        return this.#set({ plans: this.#header.plans.filter((plan) => plan.id !== update["planId"]) });
      case "usage_update":
        return this.#set({ usage: usageOf(update) ?? this.#header.usage });
      case "available_commands_update":
        return this.#set({ commands: commands(update) });
      case "config_option_update":
        return this.#set({ options: options(update["configOptions"]) });
      case "current_mode_update":
        return this.#set({ options: withMode(this.#header.options, text(update["currentModeId"])) });
      case "session_info_update":
        if (typeof update["title"] === "string") this.rename(update["title"]);
        return;
      default:
        if (!this.transcript.apply(update)) this.transcript.unknown(update);
    }
  }

  /** Say something: begins a turn, or reaches the one that runs, or waits for its end. */
  async prompt(message: Message): Promise<void> {
    if (!this.#header.running) return this.#turn(message);
    if (this.wire.steering() && !this.#header.cancelling && (await this.#steer(message))) return;
    if (!this.running) return this.#turn(message);
    this.#waiting.push(message);
    this.#tellWaiting();
  }

  /** Stop the turn. What was asked is withdrawn, and what waits is not said. */
  cancel(): void {
    this.asking.cancel();
    this.#waiting.length = 0;
    this.#tellWaiting();
    if (!this.running || this.#header.cancelling) return;
    this.#set({ cancelling: true });
    this.#stuckTimer = setTimeout(() => {
      this.#set({ stuck: true });
      this.transcript.notice("warning", this.say("turn.stuck"));
    }, STUCK_MILLISECONDS);
    // An agent that does not read is not waited for.
    void this.wire.notify("session/cancel", { sessionId: this.id }).catch(() => undefined);
  }

  async setOption(id: string, value: string | boolean): Promise<void> {
    try {
      if (id === MODES_ID) {
        await this.wire.request("session/set_mode", { sessionId: this.id, modeId: value });
        return this.#set({ options: withMode(this.#header.options, String(value)) });
      }
      const typed = typeof value === "boolean" ? { type: "boolean", value } : { value };
      const response = await this.wire.request("session/set_config_option", { sessionId: this.id, configId: id, ...typed });
      const answered = record(response)["configOptions"];
      if (Array.isArray(answered)) this.#set({ options: options(answered) });
    } catch (error) {
      this.transcript.notice("error", this.say("turn.optionFailed", told(error)));
      this.#set({}); // the control goes back to what is so
    }
  }

  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse> {
    return this.asking.permission(request, signal);
  }

  elicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    return this.asking.elicitation(request, signal);
  }

  answer(requestId: number, action: "accept" | "decline", content: AnswerContent): void {
    this.asking.answer(requestId, action, content);
  }

  /** The agent printed something that is not the protocol; only some of it is shown. */
  garbage(line: string): void {
    this.#garbage += 1;
    if (this.#garbage > MAX_GARBAGE) return;
    this.transcript.notice("warning", this.say("agent.garbage", oneLine(line, 200)));
  }

  /** The agent is gone: whatever ran is over. `reason` is how it ended, null when it was to end. */
  interrupted(reason: string | null): void {
    this.#life += 1;
    this.asking.cancel();
    this.transcript.cutOff();
    if (this.running) {
      this.transcript.notice("warning", reason === null ? this.say("agent.cutOff") : this.say("agent.interrupted", reason));
    }
    this.#ended();
  }

  /** Another life of the agent has the session: what waited is said to it. */
  resumed(): void {
    if (!this.running) void this.#next();
  }

  async #steer(message: Message): Promise<boolean> {
    const life = this.#life;
    this.transcript.user(message.text, message.images, message.attached);
    try {
      const answer = await this.wire.request("_session/steering", {
        sessionId: this.id, prompt: message.blocks, _meta: { steering: { idleBehavior: "promptRequired" } },
      });
      if (record(answer)["outcome"] !== "promptRequired" || life !== this.#life) return true;
    } catch (error) {
      if (life !== this.#life) return true;
      this.transcript.notice("error", this.say("turn.failed", told(error)));
      return true;
    }
    if (this.running) {
      this.#waiting.push({ ...message, text: "" }); // it is shown already
      return true;
    }
    await this.#turn({ ...message, text: "" });
    return true;
  }

  async #turn(message: Message): Promise<void> {
    const life = this.#life;
    if (message.text !== "" || message.images.length > 0) {
      this.transcript.user(message.text, message.images, message.attached);
    }
    this.#set({ running: true, cancelling: false, stuck: false });
    try {
      const response = await this.wire.request("session/prompt", { sessionId: this.id, prompt: message.blocks });
      if (life !== this.#life) return;
      this.#stopped(text(record(response)["stopReason"]));
    } catch (error) {
      if (life !== this.#life) return;
      if (needsSignIn(error)) this.events.needsSignIn(this, told(error), { ...message, text: "", images: [] });
      else if (this.#header.cancelling) this.transcript.notice("info", this.say("turn.cancelled"));
      else this.transcript.notice("error", this.say("turn.failed", told(error)));
    }
    this.asking.cancel();
    this.transcript.cutOff();
    this.#ended();
    await this.#next();
  }

  /** Say what waits for the end of the turn. */
  async #next(): Promise<void> {
    const next = this.#waiting.shift();
    this.#tellWaiting();
    if (next !== undefined) await this.#turn(next);
  }

  #stopped(reason: string): void {
    switch (reason) {
      case "end_turn":
        return;
      case "cancelled":
        return this.transcript.notice("info", this.say("turn.cancelled"));
      case "max_tokens":
      case "max_turn_requests":
      case "refusal":
        return this.transcript.notice("warning", this.say(`turn.${reason}`));
      default:
        return this.transcript.notice("info", this.say("turn.other", reason === "" ? "?" : reason));
    }
  }

  #ended(): void {
    clearTimeout(this.#stuckTimer);
    this.#set({ running: false, cancelling: false, stuck: false });
  }

  #tellWaiting(): void {
    this.#set({ waiting: this.#waiting.map((message) => oneLine(message.text, 200)).filter((line) => line !== "") });
  }

  #set(fields: Partial<SessionHeader>): void {
    Object.assign(this.#header, fields);
    this.events.changed(this, { op: "session", header: this.header });
  }
}

function commands(update: Json): SessionHeader["commands"] {
  return list(update["availableCommands"]).slice(0, MAX_COMMANDS).flatMap((value) => {
    const command = record(value);
    const name = text(command["name"]).replace(/^\//u, "");
    if (name === "" || /\s/u.test(name)) return [];
    return [{
      name: oneLine(name, 100),
      description: oneLine(text(command["description"]), 300),
      hint: oneLine(text(record(command["input"])["hint"]), 100),
    }];
  });
}
