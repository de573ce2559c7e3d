// Several conversations: opened, forked, renamed, deleted, and taken up after the window was loaded anew.

import { ask, idle, prompt, until } from "../chat.mjs";

/** A second one, then back to the first: its words are still there. */
export async function switched(bench) {
  const chat = await bench.chat();
  await ask(chat, "read notes.txt");
  await bench.command("ACP Agent: New Session");
  await chat.locator(".empty").waitFor();
  await ask(chat, "hello");
  await bench.command("ACP Agent: Open a Session");
  const row = bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "read notes.txt" }).first();
  await row.click();
  await chat.locator(".message.user", { hasText: "read notes.txt" }).waitFor();
  return { users: await chat.locator(".message.user").allTextContents() };
}

/** The list of sessions in the side bar. */
class Sessions {
  constructor(bench) {
    this.page = bench.page;
    this.pane = bench.page.locator(".pane:has(.pane-header[aria-label^='Sessions'])");
  }

  async open() {
    const header = this.pane.locator(".pane-header");
    if ((await header.getAttribute("aria-expanded")) !== "true") await header.click();
    await this.row(/./u).first().waitFor();
  }

  row(text) {
    return this.pane.locator(".monaco-list-row", { hasText: text });
  }

  titles() {
    return this.pane.locator(".monaco-list-row .label-name").allTextContents();
  }

  /** Choose from the menu of a row. */
  async choose(text, command) {
    await this.row(text).first().click({ button: "right" });
    // A press of the mouse counts only some time after the menu came; a key at once.
    await this.page.locator(".monaco-menu .action-item", { hasText: command }).hover();
    await this.page.locator(".monaco-menu .action-item.focused", { hasText: command }).waitFor();
    await this.page.keyboard.press("Enter");
  }
}

/** A session is forked; the fork goes on with what was said, the source without what is said in the fork. */
export async function forked(bench) {
  const chat = await bench.chat();
  await ask(chat, "The colour is blue.");
  const sessions = new Sessions(bench);
  await sessions.open();
  await sessions.choose("The colour is blue.", "Fork");
  await until(async () => (await sessions.row(/open|shown/u).count()) === 2);
  const copied = await chat.locator(".message").allTextContents();
  await ask(chat, "Which colour is it?");
  const rows = await sessions.row(/open|shown/u).count();
  await bench.picture("vscode-sessions");
  return { copied, rows };
}

/** A session gets another title, which is there after the window was loaded anew; then it is opened again. */
export async function renamed(bench) {
  let chat = await bench.chat();
  await ask(chat, "The colour is blue.");
  let sessions = new Sessions(bench);
  await sessions.open();
  await sessions.choose("The colour is blue.", "Rename");
  await bench.page.locator(".quick-input-widget input").fill("About colours");
  await bench.page.keyboard.press("Enter");
  await sessions.row("About colours").waitFor();
  await chat.locator(".session-title", { hasText: "About colours" }).waitFor();
  await bench.reload();
  chat = await bench.chat();
  sessions = new Sessions(bench);
  await sessions.open();
  await sessions.row("About colours").click();
  await chat.locator(".message.user", { hasText: "The colour is blue." }).waitFor();
  const again = await chat.locator(".message").allTextContents();
  await ask(chat, "Which colour is it?");
  return { again };
}

/** Deleting asks first, and deletes only then. */
export async function deleted(bench) {
  const chat = await bench.chat();
  await ask(chat, "The colour is blue.");
  const sessions = new Sessions(bench);
  await sessions.open();
  await sessions.choose("The colour is blue.", "Delete");
  const question = await bench.dialog.textContent();
  await bench.picture("vscode-delete");
  await bench.dialog.getByRole("button", { name: "Cancel" }).click();
  await bench.dialog.waitFor({ state: "hidden" });
  const kept = await sessions.row("The colour is blue.").count();
  await sessions.choose("The colour is blue.", "Delete");
  await bench.dialog.getByRole("button", { name: "Delete" }).click();
  await sessions.row("The colour is blue.").waitFor({ state: "detached" });
  await until(async () => (await chat.locator(".message").count()) === 0);
  await idle(chat);
  await prompt(chat, "And now?");
  await chat.locator(".message.agent").waitFor();
  return { question, kept, said: await chat.locator(".message.user").allTextContents() };
}
