/** The commands of the palette, the menus and the status item. */

import * as vscode from "vscode";

import type { Review } from "../core/reviews";
import type { Controller } from "./controller";
import { CHAT_VIEW } from "./chatView";
import { SECTION, settings } from "./settings";
import { sure } from "./telling";

export function registerCommands(controller: Controller): vscode.Disposable[] {
  const { review, say } = controller;
  const pathOf = (given?: Review | string): string | undefined =>
    typeof given === "string" ? given : (given?.path ?? vscode.window.activeTextEditor?.document.uri.fsPath);
  const commands: Record<string, (...args: never[]) => unknown> = {
    newSession: async () => {
      await controller.view.reveal();
      const running = controller.client !== undefined;
      const client = await controller.agent.start();
      if (running) await client?.newSession();
      controller.view.focus("input");
    },
    focusChat: async () => {
      await controller.view.reveal();
      controller.view.focus("input");
    },
    cancel: () => controller.client?.active.cancel(),
    restart: () => controller.agent.restart(),
    chooseAgent: () => chooseAgent(controller),
    chooseOption: () => chooseOption(controller),
    signIn: () => controller.client?.askSignIn(),
    signOut: () => controller.client?.signOut(),
    showLog: () => controller.log.show(),
    openFolder: () => vscode.commands.executeCommand("vscode.openFolder"),
    trust: () => vscode.commands.executeCommand("workbench.trust.manage"),
    openSettings: () => vscode.commands.executeCommand("workbench.action.openSettings", SECTION),
    menu: () => menu(controller),
    addSelection: () => controller.addSelection(),
    addFile: (uri?: vscode.Uri) => controller.addFile(uri),
    answerPermission: () => controller.asking.pick(),
    "review.open": (given?: Review | string) => {
      const path = pathOf(given);
      return path === undefined ? undefined : review.open(path);
    },
    "review.acceptHunk": (path?: unknown, line?: number) => review.acceptHunk(...hunkPlace(path, line)),
    "review.rejectHunk": (path?: unknown, line?: number) => review.rejectHunk(...hunkPlace(path, line)),
    "review.nextHunk": () => review.next(),
    "review.acceptFile": (given?: Review | string) => {
      const path = pathOf(given instanceof vscode.Uri ? given.fsPath : given);
      if (path !== undefined) review.accept(path);
    },
    "review.rejectFile": (given?: Review | string) => {
      const path = pathOf(given instanceof vscode.Uri ? given.fsPath : given);
      return path === undefined ? undefined : review.reject(path);
    },
    "review.acceptAll": () => {
      for (const { path } of controller.reviews.all) review.accept(path);
    },
    "review.rejectAll": async () => {
      const all = controller.reviews.all;
      if (!(await sure(say("review.rejectAll", all.length), say("review.rejectAllDo")))) return;
      for (const { path } of all) await review.reject(path);
    },
  };
  return Object.entries(commands).map(([name, work]) => vscode.commands.registerCommand(`acpAgent.${name}`, work));
}

/** A lens names its hunk; a menu gives other things, and then the cursor counts. */
function hunkPlace(path: unknown, line: unknown): [string | undefined, number | undefined] {
  return typeof path === "string" && typeof line === "number" ? [path, line] : [undefined, undefined];
}

async function chooseAgent(controller: Controller): Promise<void> {
  const { agent, agents } = settings();
  const items = agents.map((name) => ({ label: name, picked: name === agent }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: controller.say("agent.choose") });
  if (chosen === undefined) return;
  await vscode.workspace.getConfiguration(SECTION).update("agent", chosen.label, vscode.ConfigurationTarget.Global);
}

async function chooseOption(controller: Controller): Promise<void> {
  const session = controller.client?.active;
  const items = (session?.header.options ?? []).flatMap((option) => {
    const { input } = option;
    if (input.type === "unknown") return [];
    const value = input.type === "boolean" ? String(input.value)
      : input.groups.flatMap((group) => group.options).find((one) => one.value === input.value)?.name ?? input.value;
    return [{ label: option.name, description: value, detail: option.description, option, input }];
  });
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: controller.say("option.pick") });
  if (chosen === undefined || session === undefined) return;
  if (chosen.input.type === "boolean") return session.setOption(chosen.option.id, !chosen.input.value);
  const values = chosen.input.groups.flatMap((group) => [
    ...(group.name === "" ? [] : [{ label: group.name, kind: vscode.QuickPickItemKind.Separator, value: "" }]),
    ...group.options.map((one) => ({ label: one.name, description: one.description, value: one.value })),
  ]);
  const value = await vscode.window.showQuickPick(values, { placeHolder: chosen.label });
  if (value !== undefined) await session.setOption(chosen.option.id, value.value);
}

async function menu(controller: Controller): Promise<void> {
  const { say } = controller;
  const items = [
    { label: `$(comment-discussion) ${say("permission.show")}`, command: `${CHAT_VIEW}.focus` },
    ...(controller.client?.active.running === true ? [{ label: `$(debug-stop) ${say("chat.stop")}`, command: "acpAgent.cancel" }] : []),
    { label: `$(settings) ${say("chat.options")}`, command: "acpAgent.chooseOption" },
    { label: `$(add) ${say("session.new")}`, command: "acpAgent.newSession" },
    { label: `$(history) ${say("session.pick")}`, command: "acpAgent.showSessions" },
    { label: `$(plug) ${say("agent.choose")}`, command: "acpAgent.chooseAgent" },
    { label: `$(debug-restart) ${say("agent.restart")}`, command: "acpAgent.restart" },
    { label: `$(output) ${say("agent.log")}`, command: "acpAgent.showLog" },
  ];
  const chosen = await vscode.window.showQuickPick(items, { title: controller.client?.view.title ?? settings().agent });
  if (chosen !== undefined) await vscode.commands.executeCommand(chosen.command);
}
