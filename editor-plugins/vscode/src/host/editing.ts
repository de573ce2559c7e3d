/** Changing the text of a document. */

import * as vscode from "vscode";

/**
 * Replace a range of the document; with `lineEnd` all its lines get that end.
 *
 * A document that is in sight is changed through its editor: a `WorkspaceEdit` of the active one is cut by
 * the editor into the characters that differ, through the middle of such as are two units long.
 * @returns whether it was changed.
 */
export async function edit(document: vscode.TextDocument, range: vscode.Range, text: string, lineEnd?: vscode.EndOfLine): Promise<boolean> {
  const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
  const done = await editor?.edit((builder) => {
    builder.replace(range, text);
    if (lineEnd !== undefined) builder.setEndOfLine(lineEnd);
  });
  if (done === true) return true;
  const whole = new vscode.WorkspaceEdit();
  whole.set(document.uri, [
    vscode.TextEdit.replace(range, text),
    ...(lineEnd === undefined ? [] : [vscode.TextEdit.setEndOfLine(lineEnd)]),
  ]);
  return vscode.workspace.applyEdit(whole);
}
