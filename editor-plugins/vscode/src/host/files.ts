/** The editor's files for the agent: what is open counts as it stands there, saved or not. */

import { RequestError, type ReadTextFileRequest, type ReadTextFileResponse, type WriteTextFileRequest } from "@agentclientprotocol/sdk/unstable";
import * as vscode from "vscode";

import type { EditorFiles } from "../core/connection";
import { allowed, type GateRules } from "../core/fileGate";
import { splitLines } from "../core/hunks";
import { invalid } from "../core/problems";
import type { Reviews } from "../core/reviews";
import { settings } from "./settings";

const MAX_BYTES = 50 * 1024 * 1024;

export class WorkspaceFiles implements EditorFiles {
  /** The last write of each path; the next one waits for it. */
  readonly #writes = new Map<string, Promise<void>>();

  constructor(
    private readonly rules: GateRules,
    private readonly reviews: Reviews,
  ) {}

  async read({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    const file = await this.#file(path);
    const text = await textOf(file);
    if (text === null) throw RequestError.resourceNotFound(file);
    return { content: part(text, line ?? null, limit ?? null) };
  }

  async write({ path, content }: WriteTextFileRequest): Promise<void> {
    const file = await this.#file(path);
    const before = this.#writes.get(file) ?? Promise.resolve();
    const write = before.catch(() => undefined).then(() => this.#write(file, content));
    this.#writes.set(file, write);
    try {
      await write;
    } finally {
      if (this.#writes.get(file) === write) this.#writes.delete(file);
    }
  }

  /** As the editor writes the path, so that an open document is found by it. */
  async #file(path: string): Promise<string> {
    return vscode.Uri.file(await allowed(path, this.rules)).fsPath;
  }

  async #write(file: string, content: string): Promise<void> {
    const before = await textOf(file);
    const open = openDocument(file);
    if (open === undefined) await vscode.workspace.fs.writeFile(vscode.Uri.file(file), Buffer.from(content, "utf8"));
    else await replace(open, content);
    this.reviews.wrote(file, before, openDocument(file)?.getText() ?? content);
  }
}

export function openDocument(file: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find(
    (document) => document.uri.scheme === "file" && document.uri.fsPath === file && !document.isClosed,
  );
}

/** A file's text, as it stands in the editor or else on disk; null when there is none. */
export async function textOf(file: string): Promise<string | null> {
  const open = openDocument(file);
  if (open !== undefined) return open.getText();
  const uri = vscode.Uri.file(file);
  try {
    const { size, type } = await vscode.workspace.fs.stat(uri);
    if ((type & vscode.FileType.File) === 0) throw invalid(`path: not a file: ${file}`);
    if (size > MAX_BYTES) throw invalid(`path: larger than ${MAX_BYTES} bytes: ${file}`);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await vscode.workspace.fs.readFile(uri));
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === "FileNotFound") return null;
    if (error instanceof TypeError) throw invalid(`path: not UTF-8 text: ${file}`);
    throw error;
  }
}

/** Give an open document another text, changing no more of it than differs. */
export async function replace(document: vscode.TextDocument, content: string): Promise<void> {
  const now = document.getText();
  const wanted = document.eol === vscode.EndOfLine.CRLF ? content.replace(/\r?\n/gu, "\r\n") : content;
  if (now !== wanted) {
    let start = 0;
    while (start < now.length && start < wanted.length && now[start] === wanted[start]) start += 1;
    let end = 0;
    while (end < now.length - start && end < wanted.length - start && now.at(-1 - end) === wanted.at(-1 - end)) end += 1;
    const edit = new vscode.WorkspaceEdit();
    const range = new vscode.Range(document.positionAt(start), document.positionAt(now.length - end));
    edit.replace(document.uri, range, wanted.slice(start, wanted.length - end));
    const wasDirty = document.isDirty;
    if (!(await vscode.workspace.applyEdit(edit))) throw new RequestError(-32603, `the editor did not take the change of ${document.uri.fsPath}`);
    if (!wasDirty || settings().saveUnsaved) await document.save();
  }
}

function part(text: string, line: number | null, limit: number | null): string {
  if (line === null && limit === null) return text;
  const lines = splitLines(text);
  const from = Math.max(0, (line ?? 1) - 1);
  return lines.slice(from, limit === null ? undefined : from + limit).join("");
}
