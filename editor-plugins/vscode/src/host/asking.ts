/** What the agent asks, told as notifications where the chat is not in sight. */

import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import type { Asked } from "../core/asking";
import { told } from "../core/problems";
import type { Session } from "../core/session";
import type { Say } from "../shared/words";
import type { ChatView } from "./chatView";
import { setContext } from "./contexts";
import { settings } from "./settings";
import { fail, inform } from "./telling";

const MAX_BUTTONS = 4;
const MAX_SHOWN = 3; // notifications at a time; more would only cover each other

export class AskingNotices {
  #shown = 0;

  constructor(
    private readonly view: ChatView,
    private readonly client: () => AgentClient | undefined,
    private readonly say: Say,
  ) {}

  asked(session: Session, asked: Asked): void {
    if (this.view.visible && this.client()?.active === session) return;
    if (settings().notifications && this.#shown < MAX_SHOWN) void this.#notify(session, asked).catch((error: unknown) => fail(told(error)));
  }

  /** Answer the oldest permission by the keyboard alone. */
  async pick(): Promise<void> {
    const waiting = this.#waiting()[0];
    if (waiting === undefined) {
      void inform(this.say("permission.none"));
      return;
    }
    const [session, asked] = waiting;
    const items = asked.options.map((option) => ({ label: option.name, optionId: option.optionId }));
    const chosen = await vscode.window.showQuickPick(items, { title: asked.title, placeHolder: this.say("permission.pick") });
    if (chosen !== undefined) session.asking.choose(asked.requestId, chosen.optionId);
  }

  /** Tell the editor how many permissions wait. */
  update(): void {
    const count = this.#waiting().length;
    this.view.badge(count, this.say("permission.pick"));
    setContext("asking", count > 0);
  }

  #waiting(): [Session, Extract<Asked, { kind: "permission" }>][] {
    const sessions = this.client()?.open ?? [];
    return sessions.flatMap((session) => session.asking.permissions.map((asked) => [session, asked] as [Session, typeof asked]));
  }

  async #notify(session: Session, asked: Asked): Promise<void> {
    const name = this.client()?.view.title ?? "";
    const show = { title: this.say("permission.show"), optionId: "", show: true };
    const options = asked.kind === "permission"
      ? asked.options.slice(0, MAX_BUTTONS).map((option) => ({ title: option.name, optionId: option.optionId, show: false }))
      : [];
    const text = asked.kind === "permission"
      ? this.say("permission.notice", name, asked.title)
      : this.say("elicitation.notice", name);
    this.#shown += 1;
    const answer = await inform(text, ...options, show).then((one) => one, () => undefined);
    this.#shown -= 1;
    if (answer === undefined) return;
    if (!answer.show) {
      session.asking.choose(asked.requestId, answer.optionId);
      return;
    }
    await this.client()?.show({ sessionId: session.id, cwd: session.cwd, title: session.header.title, updatedAt: "" });
    await this.view.reveal();
    this.view.focus("permission");
  }
}
