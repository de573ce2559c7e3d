/** Messages in the editor's own notifications and dialogs. */

import * as vscode from "vscode";

import { unlinked } from "../core/json";

type Item = string | vscode.MessageItem;

export function inform<T extends Item>(text: string, ...items: T[]): Thenable<T | undefined> {
  return vscode.window.showInformationMessage(unlinked(text), ...(items as vscode.MessageItem[])) as Thenable<T | undefined>;
}

export function warn<T extends Item>(text: string, ...items: T[]): Thenable<T | undefined> {
  return vscode.window.showWarningMessage(unlinked(text), ...(items as vscode.MessageItem[])) as Thenable<T | undefined>;
}

export function fail(text: string): void {
  void vscode.window.showErrorMessage(unlinked(text));
}

/** Whether the user wants to do what cannot be undone; `action` is the button that does it. */
export async function sure(question: string, action: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(unlinked(question), { modal: true }, action)) !== undefined;
}
