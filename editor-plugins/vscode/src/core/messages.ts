/** Reading what the webview sends: nothing of it is believed before it was looked at. */

import { VIEW_COMMANDS, type AnswerContent, type Attachment, type ToHost, type ViewCommand } from "../shared/messages";
import type { ImageView } from "../shared/view";
import { imageOf } from "./content";
import { finite, list, record, text, type Json } from "./json";

const MAX_TEXT = 4_000_000;
const MAX_ATTACHED = 100;

/** The message, or undefined for one that there is not. */
export function toHost(value: unknown): ToHost | undefined {
  const message = record(value);
  const number = finite(message["requestId"]) ?? finite(message["request"]) ?? finite(message["revision"]) ?? -1;
  switch (message["type"]) {
    case "ready":
    case "cancel":
    case "earlier":
      return { type: message["type"] };
    case "ack":
      return { type: "ack", revision: number };
    case "prompt":
      return {
        type: "prompt", text: text(message["text"]).slice(0, MAX_TEXT),
        attachments: attachments(message["attachments"]), images: images(message["images"]),
      };
    case "permission":
      return { type: "permission", requestId: number, optionId: text(message["optionId"]) };
    case "answer":
      return { type: "answer", requestId: number, action: message["action"] === "accept" ? "accept" : "decline", content: content(message["content"]) };
    case "setOption":
      return { type: "setOption", id: text(message["id"]), value: typeof message["value"] === "boolean" ? message["value"] : text(message["value"]) };
    case "open":
      return { type: "open", path: text(message["path"]), ...line(message["line"]) };
    case "openLink":
      return { type: "openLink", href: text(message["href"]) };
    case "openDiff":
    case "openOutput":
      return { type: message["type"], itemId: text(message["itemId"]), part: finite(message["part"]) ?? -1 };
    case "suggest":
      return { type: "suggest", request: number, query: text(message["query"]).slice(0, 200) };
    case "drop":
      return { type: "drop", uris: list(message["uris"]).map((one) => text(one)).slice(0, MAX_ATTACHED) };
    case "signIn":
      return { type: "signIn", methodId: text(message["methodId"]) };
    case "copy":
      return { type: "copy", text: text(message["text"]).slice(0, MAX_TEXT) };
    case "command":
      return isCommand(message["command"]) ? { type: "command", command: message["command"] } : undefined;
    default:
      return undefined;
  }
}

function isCommand(value: unknown): value is ViewCommand {
  return (VIEW_COMMANDS as readonly unknown[]).includes(value);
}

function line(value: unknown): { line?: number } {
  const number = finite(value);
  return number === undefined ? {} : { line: Math.max(1, Math.trunc(number)) };
}

function images(value: unknown): ImageView[] {
  return list(value).slice(0, MAX_ATTACHED).flatMap((one) => imageOf({ type: "image", ...record(one) }) ?? []);
}

function attachments(value: unknown): Attachment[] {
  return list(value).slice(0, MAX_ATTACHED).flatMap((one) => {
    const given = record(one);
    const uri = text(given["uri"]);
    const selected = lines(given);
    // What is in no file, such as a new one that was never saved, has nothing but its text.
    if (!uri.startsWith("file:") && selected.text === undefined) return [];
    return [{ uri, label: text(given["label"], uri), ...selected }];
  });
}

function lines(given: Json): Pick<Attachment, "startLine" | "endLine" | "text"> {
  const startLine = finite(given["startLine"]);
  const endLine = finite(given["endLine"]);
  if (startLine === undefined || endLine === undefined) return {};
  return { startLine, endLine, text: text(given["text"]).slice(0, MAX_TEXT) };
}

function content(value: unknown): AnswerContent {
  const answered: AnswerContent = {};
  for (const [name, one] of Object.entries(record(value))) {
    if (typeof one === "string" || typeof one === "boolean" || finite(one) !== undefined) answered[name] = one as string | number | boolean;
    else if (Array.isArray(one)) answered[name] = one.map((item) => text(item));
  }
  return answered;
}
