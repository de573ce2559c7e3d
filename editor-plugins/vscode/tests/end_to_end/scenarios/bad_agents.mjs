// Agents that are missing, die, or send what they should not.

import { readFileSync } from "node:fs";

import { idle, prompt, until } from "../chat.mjs";

/** The agent is killed in the middle of an answer. */
export async function crash(bench, { pid }) {
  const chat = await bench.chat();
  await prompt(chat, "Tell me something long.");
  await chat.locator(".message.agent", { hasText: "The first words" }).waitFor();
  process.kill(Number(readFileSync(pid, "utf8")), "SIGKILL");
  await chat.locator(".notice", { hasText: "the conversation goes on" }).waitFor();
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

/** An agent that cannot be started is shown as what it is, with the words given back. */
export async function missing(bench) {
  const chat = await bench.chat();
  await chat.locator(".banner.error").waitFor();
  await chat.locator("textarea").fill("do not lose me");
  await chat.locator("textarea").press("Enter");
  await until(async () => (await chat.locator("textarea").inputValue()) === "do not lose me");
  return { banner: await chat.locator(".banner.error").textContent() };
}
