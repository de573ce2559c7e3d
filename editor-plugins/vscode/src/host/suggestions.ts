/** What can be named with @: the selection, open editors, files of the workspace. */

import { basename } from "node:path/posix";
import * as vscode from "vscode";

import { best } from "../core/fuzzy";
import type { Roots } from "../core/roots";
import type { Attachment, Suggestion } from "../shared/messages";

const SHOWN = 20;
const MAX_FILES = 20_000;
const FRESH_MILLISECONDS = 15_000;

export class Suggestions {
  #files = new Map<string, vscode.Uri>();
  #readAt = 0;

  constructor(private readonly roots: Roots) {}

  async find(query: string): Promise<Suggestion[]> {
    const selected = selection(this.roots);
    const files = await this.#all();
    const open = vscode.workspace.textDocuments
      .filter((document) => document.uri.scheme === "file" && this.roots.contains(document.uri.fsPath))
      .map((document) => this.roots.label(document.uri.fsPath));
    const labels = new Set([...best(open, query, 5), ...best([...files.keys()], query, SHOWN)]);
    const found = [...labels].slice(0, SHOWN).flatMap((label) => {
      const uri = files.get(label) ?? vscode.workspace.textDocuments.find((one) => this.roots.label(one.uri.fsPath) === label)?.uri;
      return uri === undefined ? [] : [{ label, detail: "", attachment: fileAttachment(uri, this.roots) }];
    });
    if (selected === undefined || !selected.label.toLowerCase().includes(query.toLowerCase())) return found;
    return [{ label: selected.label, detail: "", attachment: selected }, ...found];
  }

  async #all(): Promise<ReadonlyMap<string, vscode.Uri>> {
    if (Date.now() - this.#readAt > FRESH_MILLISECONDS) {
      const uris = await vscode.workspace.findFiles("**/*", undefined, MAX_FILES);
      this.#files = new Map(uris.map((uri) => [this.roots.label(uri.fsPath), uri]));
      this.#readAt = Date.now();
    }
    return this.#files;
  }
}

export function fileAttachment(uri: vscode.Uri, roots: Roots): Attachment {
  return { uri: uri.toString(), label: roots.label(uri.fsPath) };
}

/** The lines that are selected in the editor, also where that shows no file, or one that was never saved. */
export function selection(roots: Roots): Attachment | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.selection.isEmpty) return undefined;
  const { document, selection: { start, end } } = editor;
  const { uri } = document;
  const label = uri.scheme === "file" ? roots.label(uri.fsPath) : basename(uri.path);
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  const lines = new vscode.Range(start.line, 0, last, document.lineAt(last).text.length);
  return {
    uri: uri.toString(),
    label: `${label}:${start.line + 1}-${last + 1}`,
    startLine: start.line + 1,
    endLine: last + 1,
    text: document.getText(lines),
  };
}
