/** In which encoding the editor reads and writes a file. */

import { RequestError } from "@agentclientprotocol/sdk/unstable";
import * as vscode from "vscode";

const UTF8 = new Set(["utf8", "utf8bom"]);

/**
 * Whether the editor takes the file for UTF-8 whatever is in it: then its bytes need not go through the
 * editor. Where the settings say another encoding, also for one language only, or let the editor guess,
 * what would be right for the bytes may be wrong for the editor that shows them.
 */
export function surelyUtf8(uri: vscode.Uri): boolean {
  const files = vscode.workspace.getConfiguration("files", uri);
  const byLanguage = files.inspect("encoding")?.languageIds ?? [];
  return UTF8.has(files.get("encoding", "utf8")) && files.get("autoGuessEncoding") !== true && byLanguage.length === 0;
}

/** @throws RequestError when the document's encoding has not every character of a text: saved, they would be question marks. */
export async function mustFit({ encoding, uri }: vscode.TextDocument, text: string): Promise<void> {
  if (encoding.startsWith("utf")) return;
  const bytes = await vscode.workspace.encode(text, { encoding });
  if ((await vscode.workspace.decode(bytes, { encoding })) !== text) throw notAll(uri);
}

/** A text as the bytes of a new file, in the encoding that the settings want for it. */
export async function newBytes(uri: vscode.Uri, text: string): Promise<Uint8Array> {
  const bytes = await vscode.workspace.encode(text, { uri });
  if (!surelyUtf8(uri) && (await vscode.workspace.decode(bytes, { uri })) !== text) throw notAll(uri);
  return bytes;
}

function notAll({ fsPath }: vscode.Uri): RequestError {
  return new RequestError(-32603, `the encoding that the editor uses for the file has not every character of the text: ${fsPath}`);
}
