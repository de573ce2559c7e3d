/** Tool calls: the card of one, made from its updates. */

import type { TerminalView, ToolItem, ToolPart, ToolStatus } from "../shared/view";
import type { Say } from "../shared/words";
import { partOf, textPart } from "./content";
import { diffPreview } from "./diffPreview";
import { finite, list, oneLine, record, shown, text, type Json } from "./json";
import type { Roots } from "./roots";

export const MAX_TEXT = 20_000; // characters of a text in a card
export const MAX_OUTPUT = 60_000; // characters of a terminal's output that are kept
const MAX_TITLE = 300;
const MAX_INPUT = 4_000;
const MAX_WORD = 40;
const MAX_PARTS = 50;
const MAX_PATH = 4_096;
const STATUSES: readonly string[] = ["pending", "in_progress", "completed", "failed"];

/** A change as the agent tells it, whole. */
export interface ToldDiff {
  path: string;
  before: string | null;
  after: string;
}

/** A tool call with what its card leaves out. */
export interface ToolCall {
  item: ToolItem;
  /** By the place of the part in `item.parts`. */
  diffs: Map<number, ToldDiff>;
  texts: Map<number, string>;
}

export function newToolCall(id: string, update: Json): ToolCall {
  const title = text(update["title"]) || text(update["name"]) || text(update["toolCallId"]);
  return {
    item: {
      kind: "tool", id, title: oneLine(title, MAX_TITLE), toolKind: oneLine(text(update["kind"], "other"), MAX_WORD), status: "pending",
      parts: [], terminals: {}, locations: [], input: "",
    },
    diffs: new Map(),
    texts: new Map(),
  };
}

/** Take over what an update says; what it leaves out, or has null for, stays. */
export function patch(call: ToolCall, update: Json, roots: Roots, say: Say): void {
  const { item } = call;
  if (typeof update["title"] === "string") item.title = oneLine(update["title"], MAX_TITLE);
  if (typeof update["kind"] === "string") item.toolKind = oneLine(update["kind"], MAX_WORD);
  if (STATUSES.includes(text(update["status"]))) item.status = update["status"] as ToolStatus;
  if (Array.isArray(update["locations"])) {
    item.locations = list(update["locations"]).flatMap((one) => roots.locationOf(one)).slice(0, MAX_PARTS);
  }
  if (update["rawInput"] !== undefined && update["rawInput"] !== null) item.input = shown(update["rawInput"], MAX_INPUT);
  if (Array.isArray(update["content"])) setContent(call, list(update["content"]), roots, say);
  else if (item.parts.length === 0 && typeof update["rawOutput"] === "string") {
    setContent(call, [{ type: "content", content: { type: "text", text: update["rawOutput"] } }], roots, say);
  }
}

/** What `_meta` says of a command's live output: a piece to add, or undefined. */
export function liveOutput(call: ToolCall, update: Json, say: Say): { terminalId: string; text: string } | undefined {
  const meta = record(update["_meta"]);
  const info = record(meta["terminal_info"]);
  if (idOf(info["terminal_id"]) !== "") terminal(call, idOf(info["terminal_id"]));
  const exit = record(meta["terminal_exit"]);
  const ended = idOf(exit["terminal_id"]);
  if (ended !== "") terminal(call, ended).exit = exitWords(exit["exit_code"], exit["signal"], say);
  const output = record(meta["terminal_output"]);
  const terminalId = idOf(output["terminal_id"]);
  const piece = text(output["data"]);
  if (terminalId === "" || piece === "") return undefined;
  addOutput(terminal(call, terminalId), piece);
  return { terminalId, text: piece };
}

export function exitWords(code: unknown, signal: unknown, say: Say): string {
  const name = text(signal);
  return name === "" ? say("agent.exitCode", finite(code) ?? "?") : say("agent.exitSignal", name);
}

/** The last `MAX_OUTPUT` characters are kept. */
export function addOutput(view: TerminalView, piece: string): void {
  const whole = view.output + piece;
  const cut = Math.max(0, whole.length - MAX_OUTPUT);
  view.output = whole.slice(cut);
  view.cut += cut;
}

/** A terminal of the call; when it has far too many, the first is given up. */
function terminal(call: ToolCall, terminalId: string): TerminalView {
  const { terminals } = call.item;
  const [first = "", ...others] = Object.keys(terminals);
  if (terminals[terminalId] === undefined && others.length >= MAX_PARTS) Reflect.deleteProperty(terminals, first);
  return (terminals[terminalId] ??= { output: "", cut: 0 });
}

function idOf(terminalId: unknown): string {
  return text(terminalId).slice(0, MAX_TITLE);
}

function setContent(call: ToolCall, content: readonly unknown[], roots: Roots, say: Say): void {
  call.diffs.clear();
  call.texts.clear();
  call.item.parts = content.slice(0, MAX_PARTS).map((one, index) => part(call, record(one), index, roots, say));
}

function part(call: ToolCall, content: Json, index: number, roots: Roots, say: Say): ToolPart {
  switch (content["type"]) {
    case "content": {
      const whole = text(record(content["content"])["text"]);
      if (whole.length > MAX_TEXT) {
        call.texts.set(index, whole);
        return textPart(whole, MAX_TEXT);
      }
      return partOf(content["content"], MAX_TEXT, say);
    }
    case "diff": {
      const before = typeof content["oldText"] === "string" ? content["oldText"] : null;
      const diff = { path: text(content["path"]).slice(0, MAX_PATH), before, after: text(content["newText"]) };
      call.diffs.set(index, diff);
      return {
        type: "diff",
        location: roots.location(diff.path),
        isNew: before === null,
        ...diffPreview(before ?? "", diff.after),
      };
    }
    case "terminal":
      terminal(call, idOf(content["terminalId"]));
      return { type: "terminal", terminalId: idOf(content["terminalId"]) };
    default:
      return { type: "unknown", name: oneLine(text(content["type"], "?"), MAX_WORD), json: shown(content, MAX_INPUT) };
  }
}
