/** Content blocks as they are shown. */

import { IMAGE_TYPES, type ImageView, type ToolPart } from "../shared/view";
import type { Say } from "../shared/words";
import { oneLine, record, shown, text, type Json } from "./json";

export const MAX_IMAGE = 8 * 1024 * 1024; // characters of base64
const MAX_UNKNOWN = 2_000;
const MAX_NAME = 300;
const MAX_ADDRESS = 4_096;

/** An image that can be shown, or nothing. */
export function imageOf(block: unknown): ImageView | undefined {
  const { type, mimeType, data } = record(block);
  const shownType = text(mimeType).toLowerCase();
  return type === "image" && IMAGE_TYPES.includes(shownType) && typeof data === "string" && data.length <= MAX_IMAGE
    ? { mimeType: shownType, data }
    : undefined;
}

/** What a block adds to a message, as Markdown. */
export function markdownOf(value: unknown, say: Say): string {
  const block = record(value);
  switch (block["type"]) {
    case "text":
      return text(block["text"]);
    case "image":
      return say("tool.unshown", kind(block));
    case "audio":
      return say("tool.audio", kind(block));
    case "resource_link": {
      const { uri, name } = link(block);
      return `[${escaped(name)}](<${uri.replace(/[<>\s]/gu, encodeURIComponent)}>)`;
    }
    case "resource":
      return fenced(text(record(block["resource"])["text"], text(record(block["resource"])["uri"])));
    default:
      return fenced(shown(value, MAX_UNKNOWN));
  }
}

/** What a block is in a tool call's card. */
export function partOf(value: unknown, maxText: number, say: Say): ToolPart {
  const block = record(value);
  const image = imageOf(value);
  if (image !== undefined) return { type: "image", image };
  switch (block["type"]) {
    case "text":
      return textPart(text(block["text"]), maxText);
    case "image":
      return textPart(say("tool.unshown", kind(block)), maxText);
    case "audio":
      return textPart(say("tool.audio", kind(block)), maxText);
    case "resource_link":
      return { type: "link", ...link(block) };
    case "resource":
      return textPart(text(record(block["resource"])["text"], text(record(block["resource"])["uri"])), maxText);
    default:
      return { type: "unknown", name: oneLine(text(block["type"], "?"), MAX_NAME), json: shown(value, MAX_UNKNOWN) };
  }
}

function kind(block: Json): string {
  return oneLine(text(block["mimeType"]), MAX_NAME);
}

function link(block: Json): { uri: string; name: string } {
  const uri = text(block["uri"]).slice(0, MAX_ADDRESS);
  return { uri, name: oneLine(text(block["title"]) || text(block["name"]) || uri, MAX_NAME) };
}

export function textPart(whole: string, maxText: number): ToolPart {
  return { type: "text", text: whole.slice(0, maxText), cut: Math.max(0, whole.length - maxText) };
}

/** Text in a code block that nothing in the text can end. */
export function fenced(code: string): string {
  const longest = Math.max(2, ...(code.match(/`+/gu) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `\n${fence}\n${code}\n${fence}\n`;
}

function escaped(name: string): string {
  return name.replace(/[\\[\]]/gu, "\\$&");
}
