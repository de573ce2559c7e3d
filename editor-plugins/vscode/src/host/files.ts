/** The editor's files for the agent: what is open counts as it stands there, saved or not. */

import { RequestError, type ReadTextFileRequest, type ReadTextFileResponse, type WriteTextFileRequest } from "@agentclientprotocol/sdk/unstable";
import { normalize } from "node:path";
import * as vscode from "vscode";

import { changedPart } from "../core/changedPart";
import type { EditorFiles } from "../core/connection";
import { allowed, type GateRules } from "../core/fileGate";
import { invalid } from "../core/problems";
import type { Reviews } from "../core/reviews";
import { decoded, encoded, linesOf, type TextForm } from "../core/textFile";
import { edit } from "./editing";
import { mustFit, newBytes, surelyUtf8 } from "./encoding";
import { settings } from "./settings";

const MAX_BYTES = 50 * 1024 * 1024; // the editor opens none that are larger either
const UNREADABLE = "\uFFFD";

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
    return { content: linesOf(text, line ?? null, limit ?? null) };
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

  async #file(path: string): Promise<string> {
    return editorPath(await allowed(path, this.rules));
  }

  async #write(file: string, content: string): Promise<void> {
    const found = await textAt(file);
    if (found?.document === undefined) {
      const uri = vscode.Uri.file(file);
      await vscode.workspace.fs.writeFile(uri, found === null ? await newBytes(uri, content) : encoded(content, found.form));
      this.reviews.wrote(file, found?.text ?? null, content);
      return;
    }
    const saved = await replace(found.document, content);
    this.reviews.wrote(file, found.text, found.document.getText());
    if (!saved) throw new RequestError(-32603, `changed in the editor, which could not save it: ${file}`);
  }
}

/** A path as the editor writes it, so that an open document, or a review, is found by it. */
export function editorPath(path: string): string {
  return vscode.Uri.file(normalize(path)).fsPath;
}

export function openDocument(file: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find(
    (document) => document.uri.scheme === "file" && document.uri.fsPath === file && !document.isClosed,
  );
}

/** A file's text, as it stands in the editor or else on disk; null when there is none. */
export async function textOf(file: string): Promise<string | null> {
  return (await textAt(file))?.text ?? null;
}

/** The texts of a file: that of the editor, and that on disk. */
export async function textsOf(file: string): Promise<string[]> {
  const texts = [openDocument(file)?.getText(), await onDisk(file).then((found) => found?.text, () => undefined)];
  return texts.filter((text) => text !== undefined);
}

interface FileText {
  text: string;
  form: TextForm;
  /** The document that it is to be changed in; without one the file itself is written. */
  document?: vscode.TextDocument;
}

async function textAt(file: string): Promise<FileText | null> {
  const document = openDocument(file);
  return document === undefined ? onDisk(file) : ofDocument(document);
}

async function onDisk(file: string): Promise<FileText | null> {
  const uri = vscode.Uri.file(file);
  try {
    const { size, type } = await vscode.workspace.fs.stat(uri);
    if ((type & vscode.FileType.File) === 0) throw invalid(`path: not a file: ${file}`);
    if (size > MAX_BYTES) throw invalid(`path: larger than ${MAX_BYTES} bytes: ${file}`);
    const read = surelyUtf8(uri) ? decoded(await vscode.workspace.fs.readFile(uri)) : null;
    return read ?? (await byEditor(uri));
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === "FileNotFound") return null;
    throw error;
  }
}

/** Of a file that is no UTF-8 the editor may know the encoding, by its settings or a mark, and keeps it. */
async function byEditor(uri: vscode.Uri): Promise<FileText> {
  const document = await vscode.workspace.openTextDocument(uri).then((one) => one, () => null);
  if (document === null || document.getText().includes(UNREADABLE)) {
    throw invalid(`path: neither UTF-8 nor in the encoding that the setting files.encoding names: ${uri.fsPath}`);
  }
  return ofDocument(document);
}

function ofDocument(document: vscode.TextDocument): FileText {
  return { text: document.getText(), form: { mark: false, crlf: document.eol === vscode.EndOfLine.CRLF }, document };
}

/**
 * Give a document another text, changing no more of it than differs.
 * @returns false when it was to be saved and could not be.
 */
async function replace(document: vscode.TextDocument, content: string): Promise<boolean> {
  const wanted = document.eol === vscode.EndOfLine.CRLF ? content.replace(/\r?\n/gu, "\r\n") : content;
  const part = changedPart(document.getText(), wanted);
  if (part === null) return true;
  await mustFit(document, wanted);
  const range = new vscode.Range(document.positionAt(part.start), document.positionAt(part.end));
  const wasDirty = document.isDirty;
  if (!(await edit(document, range, part.text))) throw new RequestError(-32603, `the editor did not take the change of ${document.uri.fsPath}`);
  return wasDirty && !settings().saveUnsaved ? true : document.save();
}
