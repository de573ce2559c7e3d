/** What the agent asks of the user in a session: permissions and forms, each with one answer. */

import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk/unstable";

import type { AnswerContent } from "../shared/messages";
import type { PermissionOptionView, QuestionItem, ToolItem } from "../shared/view";
import { fields } from "./forms";
import { oneLine, record, text } from "./json";
import type { Transcript } from "./transcript";

/** A question that waits for its answer. */
export type Asked =
  | { kind: "permission"; requestId: number; title: string; options: PermissionOptionView[] }
  | { kind: "question"; requestId: number; title: string };

interface OpenPermission {
  asked: Extract<Asked, { kind: "permission" }>;
  item: ToolItem;
  settle(response: RequestPermissionResponse): void;
}

interface OpenQuestion {
  item: QuestionItem;
  elicitationId: string;
  settle(response: CreateElicitationResponse): void;
}

const MAX_OPTIONS = 50;
const MAX_MESSAGE = 10_000; // characters of a question
const MAX_ADDRESS = 4_096;

let lastRequest = 0; // one count for all sessions, so that no answer reaches another's question

export class Asking {
  readonly #permissions = new Map<number, OpenPermission>();
  readonly #questions = new Map<number, OpenQuestion>();
  /** The agent's ids of the questions that were answered; it may still tell of their end. */
  readonly #ids = new Map<number, string>();

  constructor(
    private readonly transcript: Transcript,
    private readonly asked: (asked: Asked) => void,
  ) {}

  /** The permissions that wait, the oldest first. */
  get permissions(): Extract<Asked, { kind: "permission" }>[] {
    return [...this.#permissions.values()].map((open) => open.asked);
  }

  /** Whether anything waits for an answer. */
  get waits(): boolean {
    return this.#permissions.size + this.#questions.size > 0;
  }

  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse> {
    const requestId = (lastRequest += 1);
    const call = this.transcript.toolCall({ ...record(request.toolCall) });
    const options = request.options.slice(0, MAX_OPTIONS).map((option) => ({
      optionId: option.optionId, name: oneLine(option.name, 200), kind: text(option.kind).slice(0, 40),
    }));
    // A second question about the same call, while the first is open, takes its place in the card.
    call.item.permission = { requestId, options };
    this.transcript.touch(call.item);
    const asked = { kind: "permission" as const, requestId, title: call.item.title, options };
    return new Promise((resolve) => {
      const settle = (response: RequestPermissionResponse): void => {
        if (!this.#permissions.delete(requestId)) return;
        if (call.item.permission?.requestId === requestId) delete call.item.permission;
        this.transcript.touch(call.item);
        resolve(response);
      };
      this.#permissions.set(requestId, { asked, item: call.item, settle });
      onAbort(signal, () => settle({ outcome: { outcome: "cancelled" } }));
      if (!signal.aborted) this.asked(asked);
    });
  }

  /** Answer a permission; one that is no longer asked, or an option that was not offered, is nothing. */
  choose(requestId: number, optionId: string): void {
    const open = this.#permissions.get(requestId);
    if (open?.asked.options.some((option) => option.optionId === optionId) !== true) return;
    open.settle({ outcome: { outcome: "selected", optionId } });
  }

  elicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const requestId = (lastRequest += 1);
    const given = record(request);
    const byUrl = request.mode === "url";
    if (!byUrl && request.mode !== "form") return Promise.resolve({ action: "cancel" });
    const item = this.transcript.question({
      requestId,
      message: request.message.slice(0, MAX_MESSAGE),
      fields: byUrl ? [] : fields(given["requestedSchema"]),
      ...(byUrl ? { url: text(given["url"]).slice(0, MAX_ADDRESS) } : {}),
    });
    return new Promise((resolve) => {
      const settle = (response: CreateElicitationResponse): void => {
        if (this.#questions.delete(requestId)) resolve(response);
      };
      this.#questions.set(requestId, { item, elicitationId: text(given["elicitationId"]), settle });
      onAbort(signal, () => this.#close(requestId, "cancel", { action: "cancel" }));
      if (!signal.aborted) this.asked({ kind: "question", requestId, title: oneLine(request.message, 200) });
    });
  }

  answer(requestId: number, action: "accept" | "decline", content: AnswerContent): void {
    const open = this.#questions.get(requestId);
    const withContent = action === "accept" && open?.item.url === undefined;
    this.#close(requestId, action, withContent ? { action, content } : { action });
  }

  /** The page that was asked for cannot be opened in this browser as it is; it goes on being asked for. */
  elsewhere(requestId: number, terminal: string): void {
    const item = this.#questions.get(requestId)?.item;
    if (item === undefined) return;
    item.elsewhere = { terminal };
    this.transcript.touch(item);
  }

  /** The agent says that what was asked in the browser is done. */
  complete(elicitationId: string): void {
    for (const item of this.transcript.items) {
      if (item.kind !== "question" || this.#ids.get(item.requestId) !== elicitationId) continue;
      item.outcome = "complete";
      this.transcript.touch(item);
    }
  }

  /** Withdraw everything that is asked. */
  cancel(): void {
    for (const open of [...this.#permissions.values()]) open.settle({ outcome: { outcome: "cancelled" } });
    for (const requestId of [...this.#questions.keys()]) this.#close(requestId, "cancel", { action: "cancel" });
  }

  #close(requestId: number, outcome: "accept" | "decline" | "cancel", response: CreateElicitationResponse): void {
    const open = this.#questions.get(requestId);
    if (open === undefined) return;
    this.#ids.set(requestId, open.elicitationId);
    open.item.outcome = outcome;
    this.transcript.touch(open.item);
    open.settle(response);
  }
}

/** The agent may have withdrawn a request before it is looked at. */
function onAbort(signal: AbortSignal, work: () => void): void {
  if (signal.aborted) work();
  else signal.addEventListener("abort", work, { once: true });
}
