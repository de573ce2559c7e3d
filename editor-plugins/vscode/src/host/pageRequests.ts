/** What the user asks for in the page of the chat. */

import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import { told } from "../core/problems";
import { messageOf } from "../core/prompts";
import type { Reviews } from "../core/reviews";
import type { Roots } from "../core/roots";
import type { Session } from "../core/session";
import type { ToHost } from "../shared/messages";
import type { Say } from "../shared/words";
import type { AgentInUse } from "./agentInUse";
import type { ChatView } from "./chatView";
import { editorPath } from "./files";
import { openDiff, openFile, openLink, openPage, openText, type ShownTexts } from "./opening";
import type { ReviewEditor } from "./review";
import { fileAttachment, type Suggestions } from "./suggestions";
import { fail, inform } from "./telling";

/** The parts of the editor that do it. */
interface Parts {
  readonly agent: AgentInUse;
  readonly view: ChatView;
  readonly review: ReviewEditor;
  readonly reviews: Reviews;
  readonly roots: Roots;
  readonly suggestions: Suggestions;
  readonly texts: ShownTexts;
  readonly say: Say;
}

export class PageRequests {
  constructor(private readonly parts: Parts) {}

  /** Do what a message asks for. What fails is told. */
  take(message: ToHost): void {
    this.#done(message).catch((error: unknown) => fail(told(error)));
  }

  async #done(message: ToHost): Promise<void> {
    const { agent, view } = this.parts;
    if (message.type === "ready") {
      await agent.start();
      return;
    }
    const client = agent.client ?? (message.type === "prompt" ? await agent.start() : undefined);
    if (client === undefined && message.type === "prompt") return view.restore(message);
    if (message.type === "command") {
      await vscode.commands.executeCommand(`acpAgent.${message.command}`);
    } else if (message.type === "copy") {
      await vscode.env.clipboard.writeText(message.text);
    } else if (message.type === "suggest") {
      view.suggestions({ type: "suggestions", request: message.request, suggestions: await this.parts.suggestions.find(message.query) });
    } else if (message.type === "drop") {
      const uris = message.uris.map((uri) => vscode.Uri.parse(uri)).filter((uri) => uri.scheme === "file" || uri.scheme === "vscode-remote");
      view.attach(uris.map((uri) => fileAttachment(vscode.Uri.file(uri.fsPath), this.parts.roots)));
    } else if (client !== undefined) {
      await this.#forAgent(client, message);
    }
  }

  /** A page is opened first, and the question answered only then. */
  async #answer(client: AgentClient, session: Session, message: Extract<ToHost, { type: "answer" }>): Promise<void> {
    const asked = session.transcript.items.find((item) => item.kind === "question" && item.requestId === message.requestId);
    if (message.action === "accept" && asked?.kind === "question" && asked.url !== undefined && asked.elsewhere === undefined) {
      const opened = await openPage(asked.url, this.parts.say);
      const terminal = client.view.signIn.find((method) => method.terminal)?.id ?? "";
      if (opened === "elsewhere") session.asking.elsewhere(message.requestId, terminal);
      if (opened !== "opened") return;
    }
    session.answer(message.requestId, message.action, message.content);
  }

  async #forAgent(client: AgentClient, message: ToHost): Promise<void> {
    const session = client.active;
    const { review, reviews, roots, say, texts, view } = this.parts;
    switch (message.type) {
      case "prompt": {
        await client.start();
        const sent = await client.prompt(messageOf(message.text, message.attachments, message.images, {
          image: client.abilities?.image ?? false,
          embeddedContext: client.abilities?.embeddedContext ?? false,
        }));
        if (!sent) view.restore(message);
        return;
      }
      case "cancel":
        return session.cancel();
      case "permission":
        return session.asking.choose(message.requestId, message.optionId);
      case "answer":
        return this.#answer(client, session, message);
      case "setOption":
        return session.setOption(message.id, message.value);
      case "open":
        return openFile(message.path, message.line, say);
      case "openLink":
        return openLink(message.href, session.cwd, say);
      case "openDiff": {
        const diff = session.transcript.callOfItem(message.itemId)?.diffs.get(message.part);
        if (diff === undefined) return void inform(say("files.notShown"));
        const path = editorPath(diff.path);
        if (reviews.get(path) !== undefined) return review.open(path);
        return openDiff(diff, texts, roots.label(diff.path), say);
      }
      case "openOutput": {
        const text = session.transcript.callOfItem(message.itemId)?.texts.get(message.part);
        return text === undefined ? undefined : openText("output.txt", text, texts);
      }
      case "signIn":
        return client.signIn(message.methodId);
      default:
    }
  }
}
