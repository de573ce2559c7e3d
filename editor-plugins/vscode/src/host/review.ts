/** Reviewing what the agent changed: in the diff editor, hunk by hunk. */

import * as vscode from "vscode";

import type { Hunk } from "../core/hunks";
import type { Review, Reviews } from "../core/reviews";
import type { Roots } from "../core/roots";
import type { Say } from "../shared/words";
import { setContext } from "./contexts";
import { edit } from "./editing";
import { openDocument, textOf } from "./files";
import { inform, sure, warn } from "./telling";

const SCHEME = "acp-agent-before";

interface FoundHunk {
  path: string;
  review: Review;
  hunk: Hunk;
  document: vscode.TextDocument;
}

export class ReviewEditor implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider {
  readonly #contentChanged = new vscode.EventEmitter<vscode.Uri>();
  readonly #lensesChanged = new vscode.EventEmitter<void>();
  readonly onDidChange = this.#contentChanged.event;
  readonly onDidChangeCodeLenses = this.#lensesChanged.event;

  constructor(
    private readonly reviews: Reviews,
    private readonly roots: Roots,
    private readonly say: Say,
  ) {}

  register(): vscode.Disposable[] {
    const files = { scheme: "file" };
    return [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerCodeLensProvider(files, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#documentChanged(document)),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.window.onDidChangeWindowState(({ focused }) => void (focused && this.lookForDeleted())),
      vscode.workspace.onDidDeleteFiles(({ files: gone }) => gone.forEach((uri) => this.reviews.deleted(uri.fsPath))),
      vscode.workspace.onDidRenameFiles(({ files: moved }) => moved.forEach(({ oldUri, newUri }) => this.reviews.renamed(oldUri.fsPath, newUri.fsPath))),
      new vscode.Disposable(() => {
        this.#contentChanged.dispose();
        this.#lensesChanged.dispose();
      }),
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.reviews.get(uri.fsPath)?.before ?? "";
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const path = document.uri.fsPath;
    if (this.reviews.get(path) === undefined) return [];
    const now = document.getText();
    return this.reviews.hunks(path, now).flatMap((hunk) => {
      const line = Math.min(hunk.newStart, Math.max(0, document.lineCount - 1));
      const range = new vscode.Range(line, 0, line, 0);
      return [
        new vscode.CodeLens(range, { title: `$(check) ${this.say("review.accept")}`, command: "acpAgent.review.acceptHunk", arguments: [path, line] }),
        new vscode.CodeLens(range, { title: `$(discard) ${this.say("review.reject")}`, command: "acpAgent.review.rejectHunk", arguments: [path, line] }),
      ];
    });
  }

  /** Show what a file was beside what it is. */
  async open(path: string): Promise<void> {
    const now = await textOf(path);
    if (now === null) this.reviews.accept(path); // it was deleted meanwhile
    if (this.reviews.get(path) === undefined || now === null) {
      void inform(this.say("review.none"));
      return;
    }
    if (this.reviews.changedSince(path, now)) {
      void warn(this.say("files.changed", this.roots.label(path)));
    }
    const title = this.say("review.title", this.roots.label(path));
    await vscode.commands.executeCommand("vscode.diff", beforeUri(path), vscode.Uri.file(path), title);
    await this.next(path, -1);
  }

  async acceptHunk(path?: string, line?: number): Promise<void> {
    const found = await this.#hunkAt(path, line);
    if (found === undefined) return;
    this.reviews.acceptHunk(found.path, found.hunk, found.document.getText());
    this.#contentChanged.fire(beforeUri(found.path));
    this.update();
  }

  async rejectHunk(path?: string, line?: number): Promise<void> {
    const found = await this.#hunkAt(path, line);
    if (found === undefined) return;
    const { document, hunk, review } = found;
    if (review.before === null) return this.reject(found.path);
    const end = hunk.newStart + hunk.newLines.length;
    const range = document.validateRange(new vscode.Range(hunk.newStart, 0, end, 0));
    const was = document.getText();
    const last = this.reviews.hunks(found.path, was).length === 1;
    const wasDirty = document.isDirty;
    await edit(document, range, hunk.oldLines.join(""), last ? lineEndOf(review) : undefined);
    if (!wasDirty) await document.save();
    this.reviews.rejectedHunk(found.path, was, document.getText());
    this.update();
  }

  accept(path: string): void {
    this.reviews.accept(path);
    this.#contentChanged.fire(beforeUri(path));
    this.update();
  }

  /** Put the whole file back; one that the agent made goes to the trash. What the user changed meanwhile goes only if they say so. */
  async reject(path: string): Promise<void> {
    const now = await textOf(path);
    const review = this.reviews.get(path);
    if (review === undefined) return;
    const uri = vscode.Uri.file(path);
    if (now !== null && this.reviews.changedSince(path, now)) {
      const question = this.say("review.rejectChanged", this.roots.label(path));
      if (!(await sure(question, this.say("review.rejectAllDo")))) return;
    }
    if (review.before === null) {
      const removal = new vscode.WorkspaceEdit();
      removal.deleteFile(uri, { ignoreIfNotExists: true });
      await vscode.workspace.applyEdit(removal);
    } else if (now !== null) {
      const document = await vscode.workspace.openTextDocument(uri);
      await edit(document, document.validateRange(new vscode.Range(0, 0, document.lineCount, 0)), review.before, lineEndOf(review));
      await document.save();
    }
    this.accept(path);
  }

  /** What was deleted outside of the editor is not to be reviewed any more. */
  async lookForDeleted(): Promise<void> {
    for (const { path } of this.reviews.all) {
      const now = await textOf(path).catch(() => "");
      if (now === null) this.accept(path);
    }
  }

  /** Go to the next hunk after a line; after the last one, to the first. */
  async next(path?: string, after?: number): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const file = path ?? editor?.document.uri.fsPath;
    const document = file === undefined ? undefined : openDocument(file);
    if (editor === undefined || document === undefined || editor.document !== document) return;
    const hunks = this.reviews.hunks(document.uri.fsPath, document.getText());
    const from = after ?? editor.selection.active.line;
    const hunk = hunks.find((one) => one.newStart > from) ?? hunks[0];
    if (hunk === undefined) return;
    const at = new vscode.Position(Math.min(hunk.newStart, document.lineCount - 1), 0);
    editor.selection = new vscode.Selection(at, at);
    editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    await Promise.resolve();
  }

  /** Draw again what depends on what is to be reviewed. */
  update(): void {
    this.#lensesChanged.fire();
    const active = vscode.window.activeTextEditor?.document.uri;
    const reviewing = active?.scheme === "file" && this.reviews.get(active.fsPath) !== undefined;
    setContext("reviewing", reviewing);
  }

  #documentChanged(document: vscode.TextDocument): void {
    if (document.uri.scheme !== "file" || this.reviews.get(document.uri.fsPath) === undefined) return;
    this.reviews.check(document.uri.fsPath, document.getText());
    this.update();
  }

  /** The hunk at a line, or where the cursor is, or the nearest one after it. */
  async #hunkAt(path?: string, line?: number): Promise<FoundHunk | undefined> {
    const editor = vscode.window.activeTextEditor;
    const file = typeof path === "string" ? path : editor?.document.uri.fsPath;
    const review = file === undefined ? undefined : this.reviews.get(file);
    if (file === undefined || review === undefined) return undefined;
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(file));
    const at = line ?? editor?.selection.active.line ?? 0;
    const hunks = this.reviews.hunks(file, document.getText());
    const hunk = hunks.find((one) => at >= Math.min(one.newStart, document.lineCount - 1) && at < Math.max(one.newStart + 1, one.newStart + one.newLines.length))
      ?? hunks.find((one) => one.newStart > at) ?? hunks.at(-1);
    return hunk === undefined ? undefined : { path: file, review, hunk, document };
  }
}

function beforeUri(path: string): vscode.Uri {
  return vscode.Uri.file(path).with({ scheme: SCHEME });
}

/** The line end that the file had, where it had one for all lines. */
function lineEndOf({ lineEnd }: Review): vscode.EndOfLine | undefined {
  if (lineEnd === "") return undefined;
  return lineEnd === "\n" ? vscode.EndOfLine.LF : vscode.EndOfLine.CRLF;
}
