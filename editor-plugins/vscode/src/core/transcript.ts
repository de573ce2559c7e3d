/**
 * A session's conversation: items made from the agent's updates, one after the other.
 *
 * Each step is told as a change, so that whoever shows the items need not look at all of them again.
 */

import type { Change } from "../shared/messages";
import type {
  CompactionItem, ImageView, Item, NoticeItem, QuestionItem, Severity, TerminalView, TextItem, TextKind,
} from "../shared/view";
import type { Say } from "../shared/words";
import { imageOf, markdownOf } from "./content";
import { list, oneLine, record, shown, text, type Json } from "./json";
import type { Roots } from "./roots";
import { addOutput, liveOutput, newToolCall, patch, type ToolCall } from "./toolCalls";
import { imagesWeight, Weights } from "./weights";

const MAX_MESSAGE = 400_000; // characters of one message that are shown
const MAX_NOTICE = 2_000;
const MAX_ITEMS = 20_000;
const MAX_TERMINALS = 500;
const MAX_IMAGES = 24_000_000; // characters of those of one message

export class Transcript {
  #items: Item[] = [];
  readonly #byId = new Map<string, Item>();
  readonly #calls = new Map<string, ToolCall>();
  readonly #callsByItem = new Map<string, ToolCall>();
  readonly #weights = new Weights();
  /** Terminals of the editor, which cards may name. */
  readonly #terminals = new Map<string, TerminalView>();
  #next = 0;
  /** The rest of a prompt that the agent may be repeating to us. */
  #echo = "";
  /** The last message that was sent from here: what the agent tells of the user's words is never added to it. */
  #said = "";

  constructor(
    private readonly roots: Roots,
    private readonly say: Say,
    private readonly changed: (change: Change) => void,
  ) {}

  get items(): readonly Item[] {
    return this.#items;
  }

  call(toolCallId: string): ToolCall | undefined {
    return this.#calls.get(toolCallId);
  }

  callOfItem(itemId: string): ToolCall | undefined {
    return this.#callsByItem.get(itemId);
  }

  /** Take over an update of the conversation; whether it was one. */
  apply(update: Json): boolean {
    switch (update["sessionUpdate"]) {
      case "user_message_chunk":
        this.#userChunk(update);
        return true;
      case "agent_message_chunk":
        this.#chunk("agent", update);
        return true;
      case "agent_thought_chunk":
        this.#chunk("thought", update);
        return true;
      case "tool_call":
      case "tool_call_update":
        this.toolCall(update);
        return true;
      case "notice":
        this.notice(severity(update["severity"]), text(update["title"]), text(update["description"]));
        return true;
      case "compaction_update":
      case "compaction_summary_chunk":
        this.#compaction(update);
        return true;
      default:
        return false;
    }
  }

  /** The user's message, shown as it is sent. */
  user(message: string, images: ImageView[], attached: string[]): void {
    this.#said = this.#id();
    this.#put({ kind: "user", id: this.#said, text: message, cut: 0, images, attached });
    this.#echo = message;
  }

  notice(level: Severity, title: string, detail = ""): void {
    const item: NoticeItem = {
      kind: "notice", id: this.#id(), severity: level, title: oneLine(title, MAX_NOTICE), detail: detail.slice(0, MAX_NOTICE),
    };
    this.#put(item);
  }

  unknown(update: Json): void {
    this.notice("info", text(update["sessionUpdate"], "?"), shown(update, MAX_NOTICE));
  }

  question(item: Omit<QuestionItem, "id" | "kind">): QuestionItem {
    const made: QuestionItem = { kind: "question", id: this.#id(), ...item };
    this.#put(made);
    return made;
  }

  /** Make or change the card of a tool call. */
  toolCall(update: Json): ToolCall {
    const id = text(update["toolCallId"], "?");
    let call = this.#calls.get(id);
    if (call === undefined) {
      call = newToolCall(this.#id(), update);
      this.#calls.set(id, call);
      this.#callsByItem.set(call.item.id, call);
    } else if (onlyOutput(update)) {
      const live = liveOutput(call, update, this.say);
      if (live !== undefined) this.changed({ op: "output", id: call.item.id, ...live });
      this.#weights.put(call.item, call);
      return call;
    }
    patch(call, update, this.roots, this.say);
    for (const part of call.item.parts) {
      const view = part.type === "terminal" ? this.#terminals.get(part.terminalId) : undefined;
      if (view !== undefined && part.type === "terminal") call.item.terminals[part.terminalId] = view;
    }
    liveOutput(call, update, this.say);
    this.#put(call.item);
    return call;
  }

  /** Something happened in a terminal of the editor. */
  terminal(terminalId: string, piece: string, exit?: string): void {
    const view = this.#terminals.get(terminalId) ?? { output: "", cut: 0 };
    this.#terminals.set(terminalId, view);
    if (this.#terminals.size > MAX_TERMINALS) this.#terminals.delete([...this.#terminals.keys()][0] ?? "");
    addOutput(view, piece);
    if (exit !== undefined) view.exit = exit;
    for (const { item } of this.#calls.values()) {
      if (item.terminals[terminalId] !== view) continue;
      if (exit === undefined) this.changed({ op: "output", id: item.id, terminalId, text: piece });
      else this.touch(item);
    }
  }

  /** Show an item again that was changed. */
  touch(item: Item): void {
    this.#put(item);
  }

  /** Nothing runs any more: what had not ended was cut off. */
  cutOff(): void {
    for (const { item } of this.#calls.values()) {
      if (item.status !== "pending" && item.status !== "in_progress") continue;
      item.status = "interrupted";
      this.#put(item);
    }
  }

  clear(): void {
    this.#items = [];
    this.#byId.clear();
    this.#calls.clear();
    this.#callsByItem.clear();
    this.#weights.clear();
    this.#echo = "";
    this.changed({ op: "clear" });
  }

  /** Begin with what another conversation has. */
  copy(from: Transcript): void {
    this.clear();
    for (const item of structuredClone(from.#items)) {
      if (item.kind === "tool") delete item.permission;
      item.id = this.#id();
      this.#put(item);
    }
  }

  /** Take over what was told where no conversation was yet. */
  takeNotices(from: Transcript): void {
    for (const item of from.#items) if (item.kind === "notice") this.#put({ ...item, id: this.#id() });
    from.clear();
  }

  #userChunk(update: Json): void {
    const piece = markdownOf(update["content"], this.say);
    if (this.#echo !== "" && this.#echo.startsWith(piece)) {
      this.#echo = this.#echo.slice(piece.length);
      return;
    }
    this.#echo = "";
    this.#chunk("user", update);
  }

  #chunk(kind: TextKind, update: Json): void {
    const messageId = text(update["messageId"]);
    const last = this.#items.at(-1);
    const goesOn = last?.kind === kind && last.id !== this.#said && (messageId === "" || this.#messageOf(last.id) === messageId);
    const image = goesOn && imagesWeight(last.images) > MAX_IMAGES ? undefined : imageOf(update["content"]);
    const piece = image === undefined ? markdownOf(update["content"], this.say) : "";
    if (!goesOn) {
      const id = messageId === "" ? this.#id() : `${this.#id()} ${messageId}`;
      const item: TextItem = { kind, id, text: "", cut: 0, images: image === undefined ? [] : [image], attached: [] };
      grow(item, piece);
      this.#put(item);
      return;
    }
    if (image !== undefined) {
      last.images.push(image);
      this.#put(last);
      return;
    }
    const taken = grow(last, piece);
    if (taken === "") return;
    this.#weights.add(last.id, taken.length);
    this.changed({ op: "append", id: last.id, text: taken });
    this.#bound();
  }

  #messageOf(itemId: string): string {
    return itemId.slice(itemId.indexOf(" ") + 1);
  }

  #compaction(update: Json): void {
    const id = `compaction ${text(update["compactionId"])}`;
    const known = this.#byId.get(id);
    const item: CompactionItem = known?.kind === "compaction" ? known : { kind: "compaction", id, status: "in_progress", summary: "" };
    if (typeof update["status"] === "string") item.status = update["status"];
    if (Array.isArray(update["summary"])) {
      item.summary = list(update["summary"]).map((block) => markdownOf(block, this.say)).join("").slice(0, MAX_MESSAGE);
    }
    if (update["content"] !== undefined) {
      item.summary = (item.summary + markdownOf(update["content"], this.say)).slice(0, MAX_MESSAGE);
    }
    this.#put(item);
  }

  #put(item: Item): void {
    if (!this.#byId.has(item.id)) {
      this.#items.push(item);
      this.#byId.set(item.id, item);
    }
    this.#weights.put(item, this.#callsByItem.get(item.id));
    this.#bound();
    this.changed({ op: "put", item });
  }

  /** What is oldest is given up when there is far too much: first what cards leave out, then items. */
  #bound(): void {
    this.#weights.lighten();
    if (this.#items.length <= MAX_ITEMS && !this.#weights.tooMuch) return;
    for (const item of this.#items.splice(0, Math.ceil(Math.min(MAX_ITEMS, this.#items.length - 1) / 10))) {
      this.#byId.delete(item.id);
      this.#callsByItem.delete(item.id);
      this.#weights.remove(item.id);
    }
    for (const [id, call] of this.#calls) if (!this.#byId.has(call.item.id)) this.#calls.delete(id);
  }

  #id(): string {
    this.#next += 1;
    return `i${this.#next}`;
  }
}

/** Add to a message as much as it may have; what was added. */
function grow(item: TextItem, piece: string): string {
  const taken = piece.slice(0, Math.max(0, MAX_MESSAGE - item.text.length));
  item.text += taken;
  item.cut += piece.length - taken.length;
  return taken;
}

function severity(value: unknown): Severity {
  return value === "error" || value === "warning" ? value : "info";
}

/** Whether an update has nothing but a piece of live output. */
function onlyOutput(update: Json): boolean {
  const known = new Set(["sessionUpdate", "toolCallId", "_meta"]);
  const meta = record(update["_meta"]);
  return meta["terminal_output"] !== undefined && meta["terminal_exit"] === undefined && meta["terminal_info"] === undefined
    && Object.keys(update).every((key) => known.has(key));
}
