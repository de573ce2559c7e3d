// What a message can have beside its words, and what can be done while the agent works.

import { existsSync, writeFileSync } from "node:fs";

import { ask, idle, prompt, until } from "../chat.mjs";

/** Drop a file of this computer onto a place of the window. */
async function drop(bench, place, file) {
  const box = await place.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const devtools = await bench.page.context().newCDPSession(bench.page);
  const data = { items: [], files: [file], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await devtools.send("Input.dispatchDragEvent", { type, x, y, data });
  await devtools.detach();
}

/** An image from the clipboard and one that is dropped go with a message. */
export async function images(bench, { picture, big }) {
  const chat = await bench.chat();
  const input = chat.locator("textarea");
  await bench.page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: bench.task.url });
  await bench.page.evaluate(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 3, height: 2 });
    canvas.getContext("2d").fillRect(0, 0, 3, 2);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
  });
  await input.click();
  await bench.page.keyboard.press("Control+V");
  await until(async () => (await chat.locator(".attachments img").count()) === 1);
  await drop(bench, input, picture);
  await until(async () => (await chat.locator(".attachments img").count()) === 2);
  await drop(bench, input, big);
  const problem = chat.locator(".problem");
  await until(async () => (await problem.textContent()) !== "");
  await bench.picture("vscode-images");
  const refused = await problem.textContent();
  await input.fill("What is in them?");
  const gone = await problem.textContent();
  await input.press("Enter");
  await chat.locator(".message.agent").waitFor();
  await idle(chat);
  return { refused, gone, shown: await chat.locator(".message.user img").count() };
}

/** The agent takes no images. */
export async function noImages(bench, { picture }) {
  const chat = await bench.chat();
  await chat.locator(".options select").first().waitFor(); // the agent has said what it can
  await drop(bench, chat.locator("textarea"), picture);
  const problem = chat.locator(".problem");
  await until(async () => (await problem.textContent()) !== "");
  return { refused: await problem.textContent(), attached: await chat.locator(".attachments img").count() };
}

/** A file and the lines that are selected in the editor are named with @, by the keyboard. */
export async function mentions(bench) {
  const chat = await bench.chat();
  const keyboard = bench.page.keyboard;
  await bench.openFile("notes.txt");
  await keyboard.press("Control+Home");
  await keyboard.press("Shift+ArrowDown");
  await bench.page.locator(".statusbar-item", { hasText: "selected" }).waitFor();
  await bench.command("ACP Agent: Go to the Chat");
  await chat.locator("textarea:focus").waitFor();
  await keyboard.type("Compare @oth");
  await chat.locator(".choice[aria-selected=true]", { hasText: "other.txt" }).waitFor();
  await keyboard.press("Enter");
  await until(async () => /@other\.txt $/u.test(await chat.locator("textarea").inputValue()));
  await keyboard.type("with @notes");
  const choices = chat.locator(".choice-label");
  await until(async () => (await choices.allTextContents()).some((label) => label.startsWith("notes.txt:1")));
  const offered = await choices.allTextContents();
  await bench.picture("vscode-mentions");
  for (let at = 0; at < offered.indexOf("notes.txt:1-1"); at += 1) await keyboard.press("ArrowDown");
  await chat.locator(".choice[aria-selected=true]", { hasText: "notes.txt:1-1" }).waitFor();
  await keyboard.press("Tab");
  await until(async () => (await chat.locator(".attachments .chip").count()) === 2);
  const written = await chat.locator("textarea").inputValue();
  await keyboard.press("Enter");
  await chat.locator(".message.agent").waitFor();
  await idle(chat);
  return { written, offered, attached: await chat.locator(".message.user .chip-label").allTextContents(), answer: await chat.locator(".message.agent").last().textContent() };
}

/** Words that are sent while the agent works reach it within its turn. */
export async function steered(bench, { go }) {
  const chat = await bench.chat();
  await prompt(chat, "Wait for me.");
  await chat.locator(".permission:not([hidden]) button", { hasText: "Allow once" }).click();
  await chat.locator(".tool.in_progress").waitFor();
  const send = chat.locator(".send");
  const label = await send.getAttribute("aria-label");
  await chat.locator("textarea").fill("Use tabs, please.");
  await bench.picture("vscode-steering");
  await send.click();
  await chat.locator(".message.user", { hasText: "Use tabs" }).waitFor();
  const stillWorks = await chat.locator(".stop").isVisible();
  writeFileSync(go, "");
  await chat.locator(".message.agent", { hasText: "With tabs." }).waitFor();
  await idle(chat);
  return { label, stillWorks, users: await chat.locator(".message.user").allTextContents(), waiting: await chat.locator(".waiting").isVisible() };
}

/** A turn is stopped in the middle of a command; what the command did is shown as cut off. */
export async function cancelled(bench, { begun }) {
  const chat = await bench.chat();
  await prompt(chat, "Wait for me.");
  await chat.locator(".permission:not([hidden]) button", { hasText: "Allow once" }).click();
  await until(() => existsSync(begun));
  await chat.locator("textarea").focus();
  await bench.page.keyboard.press("Escape");
  await chat.locator(".notice", { hasText: "Stopped." }).waitFor();
  await idle(chat);
  const running = await chat.locator(".tool.in_progress, .tool.pending").count();
  return { running, next: await ask(chat, "And now?") };
}
