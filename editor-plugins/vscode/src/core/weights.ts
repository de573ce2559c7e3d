/** How much of the editor's memory a conversation takes, and which parts of it can be given up. */

import type { ImageView, Item, ToolPart } from "../shared/view";
import type { ToolCall } from "./toolCalls";

/** Characters that items, and what their cards leave out, may have together. */
export const MAX_WEIGHT = 64_000_000;

export class Weights {
  readonly #of = new Map<string, number>();
  /** Calls with more than their cards show, the oldest first. */
  readonly #detailed = new Set<ToolCall>();
  #total = 0;

  get tooMuch(): boolean {
    return this.#total > MAX_WEIGHT;
  }

  /** An item is new, or another than it was; `call` is the one it is the card of. */
  put(item: Item, call: ToolCall | undefined): void {
    this.#set(item.id, itemWeight(item) + (call === undefined ? 0 : detailWeight(call)));
    if (call !== undefined && call.diffs.size + call.texts.size > 0) this.#detailed.add(call);
  }

  add(itemId: string, characters: number): void {
    this.#set(itemId, (this.#of.get(itemId) ?? 0) + characters);
  }

  remove(itemId: string): void {
    this.#set(itemId, 0);
    this.#of.delete(itemId);
  }

  /** Give up what the oldest calls have beside their cards, as far as that is needed. */
  lighten(): void {
    for (const call of this.#detailed) {
      if (!this.tooMuch) return;
      this.add(call.item.id, -detailWeight(call));
      call.diffs.clear();
      call.texts.clear();
      this.#detailed.delete(call);
    }
  }

  clear(): void {
    this.#of.clear();
    this.#detailed.clear();
    this.#total = 0;
  }

  #set(itemId: string, weight: number): void {
    this.#total += weight - (this.#of.get(itemId) ?? 0);
    this.#of.set(itemId, weight);
  }
}

function detailWeight(call: ToolCall): number {
  let sum = 0;
  for (const diff of call.diffs.values()) sum += (diff.before?.length ?? 0) + diff.after.length;
  for (const text of call.texts.values()) sum += text.length;
  return sum;
}

function itemWeight(item: Item): number {
  switch (item.kind) {
    case "user":
    case "agent":
    case "thought":
      return item.text.length + imagesWeight(item.images);
    case "tool":
      return item.input.length + item.parts.reduce((sum, part) => sum + partWeight(part), 0)
        + Object.values(item.terminals).reduce((sum, terminal) => sum + terminal.output.length, 0);
    case "notice":
      return item.title.length + item.detail.length;
    case "compaction":
      return item.summary.length;
    case "question":
      return item.message.length;
  }
}

function partWeight(part: ToolPart): number {
  switch (part.type) {
    case "text":
      return part.text.length;
    case "image":
      return part.image.data.length;
    case "diff":
      return part.lines.reduce((sum, line) => sum + line.text.length, 0);
    case "unknown":
      return part.json.length;
    default:
      return 0;
  }
}

export function imagesWeight(of: readonly ImageView[]): number {
  return of.reduce((sum, image) => sum + image.data.length, 0);
}
