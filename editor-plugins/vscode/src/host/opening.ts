/** Opening what the chat names: files, addresses, changes, long outputs. */

import * as path from "node:path";
import * as vscode from "vscode";

import { isLoopback } from "../core/loopback";
import type { ToldDiff } from "../core/toolCalls";
import type { Say } from "../shared/words";
import { warn } from "./telling";

const MAX_TEXTS = 200;
const MAX_CHARACTERS = 128_000_000; // of them together

/** Shows texts that are in no file; the query of the address is the key of the text. */
export class ShownTexts implements vscode.TextDocumentContentProvider {
  static readonly scheme = "acp-agent-text";
  readonly #texts = new Map<string, string>();
  #next = 0;
  #characters = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.query) ?? "";
  }

  /** An address under which the text can be opened, named so that it gets the language of `name`. */
  add(name: string, text: string): vscode.Uri {
    this.#next += 1;
    const key = String(this.#next);
    this.#texts.set(key, text);
    this.#characters += text.length;
    for (const [oldest, { length }] of this.#texts) {
      if (this.#texts.size <= MAX_TEXTS && this.#characters <= MAX_CHARACTERS) break;
      this.#texts.delete(oldest);
      this.#characters -= length;
    }
    return vscode.Uri.from({ scheme: ShownTexts.scheme, path: `/${path.basename(name) || "text"}`, query: key });
  }
}

export async function openFile(file: string, line: number | undefined, say: Say): Promise<void> {
  if (!path.isAbsolute(file)) return;
  try {
    const options: vscode.TextDocumentShowOptions = { preview: true };
    if (line !== undefined) options.selection = new vscode.Range(line - 1, 0, line - 1, 0);
    await vscode.window.showTextDocument(vscode.Uri.file(file), options);
  } catch {
    void warn(say("files.missing", file));
  }
}

/** A web address is opened by the editor, which asks about those that the user does not trust; a file in the editor; nothing else. */
export async function openLink(href: string, cwd: string, say: Say): Promise<void> {
  const scheme = /^([a-z][a-z0-9+.-]*):/iu.exec(href)?.[1]?.toLowerCase();
  if (scheme === "http" || scheme === "https") {
    await vscode.env.openExternal(vscode.Uri.parse(href, true));
  } else if (scheme === "file") {
    const uri = vscode.Uri.parse(href);
    await openFile(uri.fsPath, lineOf(uri.fragment), say);
  } else if (scheme === undefined && !href.startsWith("#") && !href.startsWith("//")) {
    const [file = "", fragment = ""] = decoded(href).split("#");
    const numbered = /^(.*):(\d+)$/u.exec(file);
    await openFile(path.resolve(cwd, numbered?.[1] ?? file), lineOf(fragment) ?? lineOf(numbered?.[2] ?? ""), say);
  } else {
    void warn(say("link.refused", scheme ?? href.slice(0, 100)));
  }
}

/**
 * A page that the agent wants the user to see. One on the agent's own computer (RFC 6761's localhost, and the
 * addresses that stand for it) is not opened where the editor would lead the browser there by another address,
 * as a window in a browser does, or a forwarded port: such pages mind under which name they are visited.
 */
export async function openPage(address: string, say: Say): Promise<"opened" | "elsewhere" | "refused"> {
  if (!/^https?:/iu.test(address)) {
    await openLink(address, "", say);
    return "refused";
  }
  const page = vscode.Uri.parse(address, true);
  if (isLoopback(address) && (await vscode.env.asExternalUri(page)).authority !== page.authority) return "elsewhere";
  return (await vscode.env.openExternal(page)) ? "opened" : "refused";
}

/** A change as the agent told it, before it is made or after. */
export async function openDiff(diff: ToldDiff, texts: ShownTexts, label: string, say: Say): Promise<void> {
  await vscode.commands.executeCommand(
    "vscode.diff",
    texts.add(diff.path, diff.before ?? ""),
    texts.add(diff.path, diff.after),
    say("review.proposal", label),
    { preview: true },
  );
}

export async function openText(name: string, text: string, texts: ShownTexts): Promise<void> {
  await vscode.window.showTextDocument(texts.add(name, text), { preview: true });
}

function lineOf(fragment: string): number | undefined {
  const line = Number(/^L?(\d+)/u.exec(fragment)?.[1] ?? 0);
  return line > 0 ? line : undefined;
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}
