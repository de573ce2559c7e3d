// From nothing to an answer.

import { ask, idle, prompt, until } from "../chat.mjs";

/** From nothing to an answer: no key, no configuration, an empty home. */
export async function demo(bench, { pictures }) {
  const chat = await bench.chat(); // the first step
  await chat.locator(".sign-in button").first().waitFor();
  const methods = await chat.locator(".sign-in button").allTextContents();
  await bench.picture(`${pictures}-first-run`);
  await chat.locator(".sign-in button", { hasText: "Try the demo" }).click(); // the second
  await chat.locator(".options select").first().waitFor();
  await prompt(chat, "read notes.txt"); // the third
  await chat.locator(".message.agent").first().waitFor();
  await idle(chat);
  return { methods, text: (await chat.locator(".message.agent").allTextContents()).join("\n") };
}

/** What stands in the editor's terminal. */
function terminal(bench, text) {
  return bench.page.locator(".terminal-wrapper.active .xterm-rows", { hasText: text });
}

/** Give a key in the terminal, and ask the model that it is for. */
async function giveKey(bench, chat, key) {
  await terminal(bench, "Provider (number or name)").waitFor();
  await bench.picture("vscode-login-terminal");
  await bench.page.keyboard.type("scripted\n");
  await terminal(bench, "not shown").waitFor();
  await bench.page.keyboard.type(`${key}\n`);
  await chat.locator(".options select").first().waitFor();
  return ask(chat, "Hello?");
}

/** From nothing to a model of the user's own, in three steps. */
export async function inTerminal(bench, { key }) {
  const chat = await bench.chat(); // the first step
  const first = chat.locator(".sign-in button").first();
  const method = await first.textContent();
  await first.click(); // the second
  const answer = await giveKey(bench, chat, key); // the third
  const left = await bench.page.locator(".terminal-wrapper").count();
  return { method, answer, left, notices: await chat.locator(".notice").allTextContents() };
}

/** The login's page, which this browser would reach under another address: what is said, and what can be done. */
async function visited(bench) {
  const chat = await bench.chat();
  await chat.locator(".sign-in button", { hasText: "in the browser" }).click();
  const question = chat.locator(".question");
  await question.getByRole("button", { name: "Open in browser" }).click();
  await question.getByRole("alert").waitFor();
  await bench.picture("vscode-login-elsewhere");
  return { chat, question };
}

export async function fromPageToTerminal(bench, { key }) {
  const opened = [];
  bench.page.context().on("page", (other) => opened.push(other.url()));
  const { chat, question } = await visited(bench);
  const told = await question.getByRole("alert").textContent();
  await question.getByRole("button", { name: "Log in from a terminal" }).click();
  const answer = await giveKey(bench, chat, key);
  return { told, answer, opened, errors: await chat.locator(".notice.error").allTextContents() };
}

/** The address is taken to a browser on the same computer. */
export async function byCopiedAddress(bench, { key }) {
  await bench.page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: bench.task.url });
  const { chat, question } = await visited(bench);
  await question.getByRole("button", { name: "Copy address" }).click();
  const address = await until(async () => {
    const copied = await bench.page.evaluate(() => navigator.clipboard.readText());
    return copied.startsWith("http") && copied;
  });
  const visit = await bench.browser.newPage();
  await visit.goto(address);
  await visit.locator("select[name=provider]").selectOption("scripted");
  await visit.locator("input[name=key]").fill(key);
  await visit.locator("button[type=submit], button").first().click();
  await visit.getByRole("heading").first().waitFor();
  await bench.page.bringToFront();
  await chat.locator(".options select").first().waitFor();
  const answer = await ask(chat, "Hello?");
  return { answer, outcome: await question.locator(".dim").last().textContent().catch(() => "") };
}
