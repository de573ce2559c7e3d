/** The extension's entry: everything is made here, and let go of in `deactivate`. */

import * as vscode from "vscode";

import { record, text } from "./core/json";
import { CHAT_VIEW } from "./host/chatView";
import { registerCommands } from "./host/commands";
import { Controller } from "./host/controller";
import { ShownTexts } from "./host/opening";
import { registerSessionCommands } from "./host/sessionCommands";
import { SECTION } from "./host/settings";
import { speaker } from "./shared/words";

let controller: Controller | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const say = speaker(vscode.env.language);
  const version = text(record(context.extension.packageJSON)["version"], "0");
  const made = new Controller(vscode.Uri.joinPath(context.extensionUri, "dist"), context.storageUri, version, say);
  controller = made;
  context.subscriptions.push(
    vscode.window.registerWebviewViewProvider(CHAT_VIEW, made.view),
    vscode.window.registerTreeDataProvider("acpAgent.changes", made.changes),
    vscode.window.registerTreeDataProvider("acpAgent.sessions", made.sessions),
    vscode.workspace.registerTextDocumentContentProvider(ShownTexts.scheme, made.texts),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) made.settingsChanged();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => made.settingsChanged()), // those of the workspace count now
    vscode.workspace.onDidChangeWorkspaceFolders(() => made.foldersChanged()),
    ...made.review.register(),
    ...registerCommands(made),
    ...registerSessionCommands(() => made.client, made.sessions, say),
  );
}

/** The editor waits for this for some seconds: the agent is ended, not left behind. */
export async function deactivate(): Promise<void> {
  await controller?.flush();
  await controller?.agent.stop();
  controller?.dispose();
}
