// Questions of the agent's: forms, and pages to be opened in the browser.

import { idle, prompt } from "../chat.mjs";

/** A form is filled in; what is required is asked for before it is sent. */
export async function answered(bench) {
  const chat = await bench.chat();
  await prompt(chat, "Set up the project.");
  const form = chat.locator(".question form");
  await form.waitFor();
  const labels = await form.locator(".field > label").allTextContents();
  await bench.picture("vscode-form");
  await form.getByRole("button", { name: "Answer" }).click();
  const wanted = await form.locator(":invalid:focus").evaluate((element) => element.labels[0].textContent);
  await form.getByLabel("Which language?").selectOption("Python");
  await form.getByLabel("How many workers?").fill("3");
  await form.getByLabel("lint", { exact: true }).check();
  await form.getByLabel("types", { exact: true }).check();
  await form.getByLabel("Shall there be tests?").check();
  await form.getByRole("button", { name: "Answer" }).click();
  await chat.locator(".message.agent", { hasText: "Set up." }).waitFor();
  await idle(chat);
  return { labels, wanted, outcome: await chat.locator(".question .dim").last().textContent() };
}

/** A form is declined. */
export async function declined(bench) {
  const chat = await bench.chat();
  await prompt(chat, "Set up the project.");
  await chat.locator(".question").getByRole("button", { name: "Decline" }).click();
  await chat.locator(".message.agent", { hasText: "As you like." }).waitFor();
  await idle(chat);
  return { outcome: await chat.locator(".question .dim").last().textContent(), forms: await chat.locator(".question form").count() };
}

/** A page is shown with its whole address before anything opens it; the editor asks about the site itself. */
export async function page(bench) {
  const chat = await bench.chat();
  const opened = [];
  bench.page.context().on("page", (other) => opened.push(other.url()));
  await prompt(chat, "go");
  const question = chat.locator(".question");
  await question.waitFor();
  const seen = { message: await question.locator(".markdown").textContent(), url: await question.locator(".url").textContent() };
  await bench.picture("vscode-page");
  await question.getByRole("button", { name: "Open in browser" }).click();
  await bench.dialog.waitFor();
  seen.dialog = await bench.dialog.textContent();
  await bench.dialog.getByRole("button", { name: "Cancel" }).click();
  await bench.dialog.waitFor({ state: "hidden" });
  seen.stillAsked = await question.getByRole("button").allTextContents();
  await question.getByRole("button", { name: "Decline" }).click();
  await idle(chat);
  return { ...seen, answer: await chat.locator(".message.agent").first().textContent(), opened };
}
