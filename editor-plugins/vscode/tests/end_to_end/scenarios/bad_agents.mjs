// Agents that are missing, die, or send what they should not.

import { readFileSync } from "node:fs";

import { ask, idle, prompt, until } from "../chat.mjs";

/** The agent is killed in the middle of an answer. */
export async function crash(bench, { pid }) {
  const chat = await bench.chat();
  await prompt(chat, "Tell me something long.");
  await chat.locator(".message.agent", { hasText: "The first words" }).waitFor();
  process.kill(Number(readFileSync(pid, "utf8")), "SIGKILL");
  await chat.locator(".notice", { hasText: "You can continue the conversation" }).waitFor();
  const kept = (await chat.locator(".message.agent").allTextContents()).join("\n");
  await prompt(chat, "And now?");
  await chat.locator(".message.agent", { hasText: "Back again." }).waitFor();
  await idle(chat);
  return { kept, notices: await chat.locator(".notice").allTextContents() };
}

/** Every text field has markup and scripts in it. */
export async function hostile(bench) {
  const chat = await bench.chat();
  const refused = [];
  bench.page.on("console", (message) => {
    if (/Content Security Policy/u.test(message.text())) refused.push(message.text());
  });
  await prompt(chat, "go");
  await chat.locator(".tool").first().waitFor();
  await idle(chat);
  await bench.picture("vscode-hostile");
  await chat.locator("textarea").fill("/ev");
  await chat.locator(".choice").first().waitFor();
  return {
    owned: await chat.evaluate(() => document.body.dataset.owned ?? null),
    elements: await chat.evaluate(() => [...document.querySelectorAll("#app script, #app iframe, #app img[onerror], #app svg, #app a[href]")].map((one) => one.outerHTML)),
    shown: await chat.locator(".message.agent").first().textContent(),
    commands: await chat.locator(".choice-label").allTextContents(),
    unknownOption: await chat.locator(".chip.unknown").count(),
    refused,
  };
}

/** A file outside of the workspace is asked for. */
export async function outside(bench) {
  const chat = await bench.chat();
  await prompt(chat, "go");
  await chat.locator(".message.agent").first().waitFor();
  await idle(chat);
  await bench.picture("vscode-outside");
  return { answer: await chat.locator(".message.agent").first().textContent(), notices: await chat.locator(".notice").allTextContents() };
}

/** A thousand calls and a flood: the page still answers to the keyboard. */
export async function many(bench) {
  const chat = await bench.chat();
  await chat.locator("textarea").fill("go");
  await chat.locator("textarea").press("Enter");
  await until(async () => /Call 999/u.test((await chat.locator(".tool").last().textContent().catch(() => "")) ?? ""));
  await chat.locator("textarea").fill("still here");
  const drawn = await chat.locator(".tool").count();
  await chat.locator(".earlier").click();
  await until(async () => (await chat.locator(".tool").count()) > drawn);
  return { drawn, typed: await chat.locator("textarea").inputValue() };
}

/** What keeps an agent from starting is told above the input, with what it wrote last. */
export async function notStarted(bench) {
  const chat = await bench.chat();
  const banner = chat.locator(".banner.error");
  await banner.waitFor();
  return { told: await banner.locator("div > div").first().textContent(), detail: (await banner.locator(".detail").allTextContents()).join("") };
}

/** What is printed beside the protocol is told, and the conversation goes on. */
export async function garbage(bench) {
  const chat = await bench.chat();
  const answer = await ask(chat, "hello");
  return { answer, notices: await chat.locator(".notice").allTextContents() };
}

/** Milliseconds from each press of a key in `place` to the frame that shows it. */
async function presses(bench, frame, place, count) {
  await place.evaluate((element) => {
    globalThis.shownAfter = [];
    if (globalThis.watchesKeys) return;
    globalThis.watchesKeys = true;
    element.ownerDocument.addEventListener("keydown", (event) => {
      requestAnimationFrame(() => setTimeout(() => globalThis.shownAfter.push(performance.now() - event.timeStamp)));
    }, true);
  });
  for (let at = 0; at < count; at += 1) await bench.page.keyboard.press("x");
  await until(async () => (await frame.evaluate(() => globalThis.shownAfter.length)) >= count);
  return frame.evaluate(() => globalThis.shownAfter.map(Math.round));
}

/** Far more comes than can be read: the editor and the input are as quick as before it came. */
export async function flood(bench) {
  const chat = await bench.chat();
  const editorKeys = async () => {
    await bench.page.locator(".monaco-editor .view-line").first().click();
    return presses(bench, bench.page, bench.page.locator(".monaco-editor").first(), 20);
  };
  const chatKeys = async () => {
    await chat.locator("textarea").focus();
    return presses(bench, chat, chat.locator("textarea"), 20);
  };
  await bench.openFile("notes.txt");
  const before = { inEditor: await editorKeys(), inChat: await chatKeys() };
  await chat.locator("textarea").fill("");
  await prompt(chat, "go");
  await chat.locator(".message.agent").waitFor();
  const inEditor = await editorKeys();
  const inChat = await chatKeys();
  const running = await chat.locator(".stop").isVisible();
  const typed = await chat.locator("textarea").inputValue();
  await idle(chat);
  return { before, inEditor, inChat, running, typed, notices: await chat.locator(".notice").allTextContents() };
}

/** An agent that cannot be started is shown as what it is, with the words given back. */
export async function missing(bench) {
  const chat = await bench.chat();
  await chat.locator(".banner.error").waitFor();
  await chat.locator("textarea").fill("do not lose me");
  await chat.locator("textarea").press("Enter");
  await until(async () => (await chat.locator("textarea").inputValue()) === "do not lose me");
  return { banner: await chat.locator(".banner.error").textContent() };
}
