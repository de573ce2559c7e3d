// The turn of an agent that changes files: what it asks, and how its changes are looked at.

import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { idle, prompt, until } from "../chat.mjs";

/** An answer streams, a plan and a permission appear, an edit is allowed and reviewed by hunk. */
export async function work(bench, { file, pictures }) {
  const seen = {};
  const chat = await bench.chat();
  await prompt(chat, "Greet everyone politely.");
  const allow = chat.locator(".permission:not([hidden]) button").first();
  await allow.waitFor();
  seen.options = await chat.locator(".permission:not([hidden]) button").allTextContents();
  seen.badge = await bench.badge.textContent();
  await bench.picture(`${pictures}-permission`);
  await bench.picture(`${pictures}-plan`, chat.locator(".plan"));
  await chat.locator(".diff-head .place").first().click();
  await bench.page.locator(".tab", { hasText: "proposed" }).waitFor();
  const proposed = bench.page.locator(".modified-in-monaco-diff-editor .view-line", { hasText: "Goodbye" });
  await proposed.first().waitFor();
  seen.proposed = await proposed.count();
  await bench.command("View: Close All Editors");
  await allow.focus();
  await allow.press("Enter");
  await idle(chat);
  seen.text = await chat.locator(".message.agent").allTextContents();
  seen.thoughtOpen = await chat.locator(".thought").first().getAttribute("open");
  seen.plan = await chat.locator(".plan .entry").allTextContents();
  seen.highlighted = await chat.locator(".hljs-keyword").count();
  seen.usage = await chat.locator(".meter").getAttribute("aria-valuenow");
  await bench.picture(`${pictures}-chat`);
  seen.written = readFileSync(file, "utf8");

  await chat.locator(".diff-head .place").first().click();
  const lens = (word) => bench.page.locator(".modified-in-monaco-diff-editor .codelens-decoration a", { hasText: word });
  await until(async () => (await lens("Accept").count()) >= 2);
  await bench.picture(`${pictures}-diff`);
  seen.hunks = await lens("Accept").count();
  await lens("Accept").first().click();
  await until(async () => (await lens("Accept").count()) === 1);
  seen.afterAccept = readFileSync(file, "utf8");
  await lens("Reject").first().click();
  await until(() => readFileSync(file, "utf8") !== seen.afterAccept);
  seen.afterReject = readFileSync(file, "utf8");
  await until(async () => (await bench.page.locator(".pane-header", { hasText: "Changes" }).count()) === 0);
  return seen;
}

/** The chat is not in sight when the agent asks; it is as it was when it is seen again. */
export async function notified(bench, { file }) {
  const chat = await bench.chat();
  await prompt(chat, "replace Hello with Good in greeting.py");
  await chat.locator("textarea").fill("a draft");
  await bench.page.locator('.activitybar .action-item [aria-label^="Explorer"]').first().click();
  await bench.badge.waitFor(); // the agent asks
  await bench.command("ACP Agent: Answer the Agent");
  await bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "Allow once" }).click();
  await until(() => /Good \{name\}/u.test(readFileSync(file, "utf8")));
  const again = await bench.chat();
  await again.locator(".message.user", { hasText: "replace Hello" }).waitFor();
  return { draft: await again.locator("textarea").inputValue(), users: await again.locator(".message.user").count() };
}

/** A file is changed by somebody else between the agent's change and its review. */
export async function changed(bench, { file }) {
  const chat = await bench.chat();
  await prompt(chat, "replace Hello with Good in greeting.py");
  await chat.locator(".permission:not([hidden]) button").first().click();
  await idle(chat);
  writeFileSync(file, `${readFileSync(file, "utf8")}# mine\n`);
  await chat.locator(".diff-head .place").first().click();
  const said = bench.page.locator(".notification-toast", { hasText: "changed after the agent wrote it" });
  await said.first().waitFor();
  const lenses = bench.page.locator(".modified-in-monaco-diff-editor .codelens-decoration a", { hasText: "Reject" });
  await until(async () => (await lenses.count()) === 2);
  await lenses.first().click();
  await until(() => !readFileSync(file, "utf8").includes("Good"));
  return { text: readFileSync(file, "utf8") };
}

/** The chat is hidden before the agent asks: a notification asks in its place. */
export async function hidden(bench, { file }) {
  const chat = await bench.chat();
  await prompt(chat, "go");
  await bench.page.locator('.activitybar .action-item [aria-label^="Explorer"]').first().click();
  const allow = bench.page.locator(".notification-toast .monaco-button", { hasText: "Allow once" });
  await allow.waitFor();
  await allow.click();
  await until(() => existsSync(file) && readFileSync(file, "utf8") === "written\n");
  return { done: true };
}

/** Text that is not saved is what the agent reads. */
export async function unsaved(bench) {
  const chat = await bench.chat();
  await bench.openFile("notes.txt");
  await bench.page.keyboard.press("Control+End");
  await bench.page.keyboard.type("never saved");
  await prompt(chat, "read notes.txt");
  await idle(chat);
  return { text: (await chat.locator(".message.agent").allTextContents()).join("\n") };
}
