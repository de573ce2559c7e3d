/** The chat in the side bar: what is shown goes to it in batches, what the user does comes from it. */

import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import { toHost } from "../core/messages";
import { Outbox } from "../core/outbox";
import type { Session } from "../core/session";
import type { Attachment, Change, ToHost, ToWebview } from "../shared/messages";
import type { AgentView } from "../shared/view";
import { page } from "./page";
import { settings } from "./settings";

export const CHAT_VIEW = "acpAgent.chat";
const SHOWN_ITEMS = 200;

export class ChatView implements vscode.WebviewViewProvider {
  #view: vscode.WebviewView | undefined;
  #ready = false;
  #shown: Session | undefined;
  #count = SHOWN_ITEMS;
  /** Items before those that are shown. */
  #hidden = new Set<string>();
  /** What is to be told to a page that is not there yet. */
  #pending: ToWebview[] = [];
  readonly #outbox = new Outbox((changes, revision) => this.#post({ type: "changes", changes, revision }));

  constructor(
    private readonly dist: vscode.Uri,
    private readonly client: () => AgentClient | undefined,
    /** The agent as it is shown while there is none. */
    private readonly without: () => AgentView,
    private readonly received: (message: ToHost) => void,
  ) {}

  get visible(): boolean {
    return this.#view?.visible === true;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#ready = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [this.dist] };
    view.webview.html = page(view.webview, this.dist, vscode.env.language);
    view.webview.onDidReceiveMessage((value: unknown) => {
      if (this.#view === view) this.#receive(value);
    });
    view.onDidChangeVisibility(() => {
      if (!view.visible) this.#gone(view); // it will say that it is ready again
    });
    view.onDidDispose(() => {
      this.#gone(view);
      if (this.#view === view) this.#view = undefined;
    });
  }

  /** A step of a session; steps of sessions that are not shown need not be drawn. */
  changed(session: Session, change: Change): void {
    if (!this.#ready || session !== this.#shown) return;
    if (change.op === "clear") this.#hidden.clear();
    const id = change.op === "put" ? change.item.id : "id" in change ? change.id : "";
    if (!this.#hidden.has(id)) this.#outbox.add(change);
  }

  /** The state of the agent, or which session is shown, may be another. */
  agentChanged(): void {
    if (!this.#ready) return;
    if (this.client()?.active !== this.#shown) this.refresh();
    else this.#outbox.add({ op: "agent", agent: this.client()?.view ?? this.without() });
  }

  /** Draw everything anew. */
  refresh(): void {
    if (!this.#ready) return;
    const client = this.client();
    if (client?.active !== this.#shown) this.#count = SHOWN_ITEMS;
    this.#shown = client?.active;
    const items = this.#shown?.transcript.items ?? [];
    const earlier = Math.max(0, items.length - this.#count);
    this.#hidden = new Set(items.slice(0, earlier).map((item) => item.id));
    const revision = this.#outbox.reset();
    this.#post({
      type: "state",
      revision,
      state: {
        agent: client?.view ?? this.without(),
        session: this.#shown?.header ?? null,
        items: items.slice(earlier),
        earlier,
        language: vscode.env.language,
        thoughts: settings().thoughts,
      },
    });
  }

  attach(attachments: Attachment[]): void {
    this.#tell({ type: "attach", attachments });
  }

  /** Give a message back to the input. */
  restore({ text, attachments, images }: Extract<ToHost, { type: "prompt" }>): void {
    this.#tell({ type: "restore", text, attachments, images });
  }

  focus(target: "input" | "permission"): void {
    this.#tell({ type: "focus", target });
  }

  suggestions(message: Extract<ToWebview, { type: "suggestions" }>): void {
    this.#post(message);
  }

  badge(count: number, tooltip: string): void {
    if (this.#view !== undefined) this.#view.badge = count === 0 ? undefined : { value: count, tooltip };
  }

  /** Bring the chat to the front. */
  async reveal(): Promise<void> {
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
  }

  dispose(): void {
    this.#outbox.dispose();
  }

  /** The page of a view is gone. Another view may be there already, where the user moved the chat to another place. */
  #gone(view: vscode.WebviewView): void {
    if (this.#view === view) this.#ready = false;
  }

  #receive(value: unknown): void {
    const message = toHost(value);
    if (message === undefined) return;
    switch (message.type) {
      case "ready":
        this.#ready = true;
        this.refresh();
        for (const waiting of this.#pending.splice(0)) this.#post(waiting);
        break;
      case "ack":
        return this.#outbox.acknowledge(message.revision);
      case "earlier":
        this.#count += SHOWN_ITEMS * 2;
        return this.refresh();
      default:
    }
    this.received(message);
  }

  #tell(message: ToWebview): void {
    if (this.#ready) this.#post(message);
    else this.#pending.push(message);
  }

  #post(message: ToWebview): void {
    void this.#view?.webview.postMessage(message);
  }
}
