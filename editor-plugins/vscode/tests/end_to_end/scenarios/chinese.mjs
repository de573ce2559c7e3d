// The editor in Chinese.

import { prompt } from "../chat.mjs";

/** The chat, its views, its commands and its settings. */
export async function everywhere(bench) {
  const chat = await bench.chat();
  const seen = { empty: await chat.locator(".empty h2").textContent(), input: await chat.locator("textarea").getAttribute("placeholder") };
  seen.page = await chat.locator("html").getAttribute("lang");
  seen.views = await bench.page.locator(".pane-header .title").allTextContents();
  await prompt(chat, "replace Kept with Left in notes.txt");
  await chat.locator(".permission:not([hidden]) button").first().waitFor();
  seen.buttons = await chat.locator("button[aria-label]:visible").evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label")));
  await bench.page.keyboard.press("F1");
  await bench.page.locator(".quick-input-widget input").fill(">ACP Agent:");
  const rows = bench.page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "停止当前轮次" }).first().waitFor();
  seen.commands = await rows.evaluateAll((all) => all.map((row) => row.getAttribute("aria-label")));
  await bench.picture("vscode-chinese");
  await bench.page.keyboard.press("Escape");
  return seen;
}
