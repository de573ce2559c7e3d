/** The file in which the editor keeps what is to be reviewed in this workspace. */

import * as vscode from "vscode";

import type { Storage } from "../core/reviewStore";

const NAME = "reviews.json";

/** `folder` is the extension's own for the workspace; without one nothing is kept. */
export function reviewStorage(folder: vscode.Uri | undefined): Storage {
  if (folder === undefined) return { read: () => Promise.resolve(null), write: () => Promise.resolve() };
  const file = vscode.Uri.joinPath(folder, NAME);
  const next = vscode.Uri.joinPath(folder, `${NAME}.new`);
  return {
    read: async () => {
      try {
        return new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
      } catch {
        return null; // there is none yet
      }
    },
    write: async (text) => {
      await vscode.workspace.fs.createDirectory(folder);
      await vscode.workspace.fs.writeFile(next, new TextEncoder().encode(text));
      await vscode.workspace.fs.rename(next, file, { overwrite: true }); // never half a file
    },
  };
}
