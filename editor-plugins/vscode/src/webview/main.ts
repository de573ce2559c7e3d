/** The page of the chat. */

import type { Change, ToHost, ToWebview } from "../shared/messages";
import type { AgentView, SessionHeader, ViewState } from "../shared/view";
import { speaker } from "../shared/words";
import { Announcer } from "./announcer";
import { Banner } from "./banner";
import { Composer } from "./composer";
import type { Context } from "./context";
import { h } from "./dom";
import { Draft } from "./draft";
import { PlanView } from "./planView";
import { TranscriptView } from "./transcriptView";

interface Host {
  postMessage(message: ToHost): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): Host;

class Page {
  readonly #context: Context;
  readonly #announcer = new Announcer();
  readonly #transcript: TranscriptView;
  readonly #banner: Banner;
  readonly #plan: PlanView;
  readonly #composer: Composer;
  readonly #title = h("div", { class: "session-title" });
  #agent: AgentView;
  #session: SessionHeader | null;
  readonly #speaking = new Set<string>();

  constructor(root: HTMLElement, private readonly host: Host, state: ViewState) {
    this.#context = {
      say: speaker(state.language),
      thoughts: state.thoughts,
      send: (message) => this.#send(message),
      announce: (text) => this.#announcer.say(text),
    };
    this.#transcript = new TranscriptView(this.#context);
    this.#banner = new Banner(this.#context);
    this.#plan = new PlanView(this.#context);
    this.#composer = new Composer(this.#context, new Draft(host));
    this.#agent = state.agent;
    this.#session = state.session;
    root.replaceChildren(this.#title, this.#transcript.element, this.#banner.element, this.#plan.element, this.#composer.element, this.#announcer.element);
    this.reset(state);
  }

  reset(state: ViewState): void {
    this.#context.thoughts = state.thoughts;
    this.#agent = state.agent;
    this.#session = state.session;
    this.#speaking.clear();
    this.#transcript.reset(state.session?.sessionId ?? "", state.items, state.earlier);
    this.#composer.revert();
    this.#around();
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      this.#speak(change);
      if (change.op === "session") this.#header(change.header);
      else if (change.op === "agent") this.#agent = change.agent;
      else this.#transcript.apply(change);
    }
    this.#around();
  }

  receive(message: Exclude<ToWebview, { type: "state" }>): void {
    switch (message.type) {
      case "changes":
        this.apply(message.changes);
        // The answer waits for the drawing, so that the host sends no faster than that.
        requestAnimationFrame(() => this.host.postMessage({ type: "ack", revision: message.revision }));
        return;
      case "suggestions":
        return this.#composer.suggestions(message.request, message.suggestions);
      case "attach":
        return this.#composer.attach(message.attachments);
      case "restore":
        return this.#composer.restore(message.text, message.attachments, message.images);
      case "focus":
        if (message.target === "permission" && this.#transcript.focusPermission()) return;
        return this.#composer.focus();
    }
  }

  #send(message: ToHost): void {
    if (message.type === "prompt") this.#transcript.toEnd(); // where the answer will be
    this.host.postMessage(message);
  }

  #header(header: SessionHeader): void {
    if (header.running !== this.#session?.running) {
      if (!header.running) this.#announcer.finish();
      this.#announcer.say(this.#context.say(header.running ? "chat.working" : "chat.finished"));
    }
    this.#session = header;
    this.#composer.revert();
  }

  #speak(change: Change): void {
    if (change.op === "put" && change.item.kind === "agent" && !this.#speaking.has(change.item.id)) {
      this.#speaking.add(change.item.id);
      this.#announcer.stream(change.item.text);
    } else if (change.op === "append" && this.#speaking.has(change.id)) {
      this.#announcer.stream(change.text);
    }
  }

  #around(): void {
    this.#title.textContent = this.#session?.title ?? "";
    this.#title.hidden = this.#title.textContent === "";
    this.#banner.update(this.#agent, this.#session);
    this.#plan.update(this.#session?.plans ?? []);
    this.#composer.update(this.#agent, this.#session);
  }
}

function start(): void {
  const root = document.getElementById("app");
  if (root === null) return;
  const host = acquireVsCodeApi();
  let page: Page | undefined;
  window.addEventListener("message", (event: MessageEvent<ToWebview>) => {
    const message = event.data; // only the editor can send messages here
    if (message.type !== "state") {
      page?.receive(message);
      return;
    }
    if (page === undefined) page = new Page(root, host, message.state);
    else page.reset(message.state);
    host.postMessage({ type: "ack", revision: message.revision });
  });
  host.postMessage({ type: "ready" });
}

start();
