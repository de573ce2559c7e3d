/** The extension's context keys, which menus and keys depend on. */

import * as vscode from "vscode";

const known = new Map<string, boolean>();

/** Set `acpAgent.KEY`, where it is another than it was. */
export function setContext(key: string, value: boolean): void {
  if (known.get(key) === value) return;
  known.set(key, value);
  void vscode.commands.executeCommand("setContext", `acpAgent.${key}`, value);
}
