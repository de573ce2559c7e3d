// The extension without a mouse, and as assistive technology has it.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import { idle, prompt, until } from "../chat.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const THEMES = {
  light: { name: "Default Light Modern", class: "vscode-light" },
  dark: { name: "Default Dark Modern", class: "vscode-dark" },
  contrast: { name: "Default High Contrast", class: "vscode-high-contrast" },
  lightContrast: { name: "Default High Contrast Light", class: "vscode-high-contrast-light" },
};

/** What axe finds wrong with the page as it is now, in each theme. */
async function violations(bench, chat, state) {
  const found = [];
  for (const [theme, { name, class: dressed }] of Object.entries(THEMES)) {
    const file = `${bench.task.folder}/.vscode/settings.json`;
    const settings = { ...JSON.parse(readFileSync(file, "utf8")), "workbench.colorTheme": name };
    writeFileSync(file, JSON.stringify(settings));
    await chat.locator(`body.${dressed}`).waitFor();
    const wrong = await chat.evaluate(async (rules) => {
      // The page itself is transparent; behind it is the side bar.
      document.documentElement.style.background = "var(--vscode-sideBar-background)";
      const { violations } = await globalThis.axe.run(document, { runOnly: rules });
      return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => ({ id, impact, html: node.html.slice(0, 200), why: node.failureSummary })));
    }, RULES);
    found.push(...wrong.map((one) => ({ state, theme, ...one })));
    await bench.picture(`vscode-access-${state}-${theme}`);
  }
  return found;
}

/** A conversation with everything in it, then a form, each in every theme. */
export async function checked(bench) {
  const chat = await bench.chat();
  await chat.evaluate(AXE);
  const found = await violations(bench, chat, "empty");
  await prompt(chat, "Greet everyone politely.");
  await chat.locator(".permission:not([hidden]) button").first().waitFor();
  await chat.locator("textarea").fill("/");
  await chat.locator(".choice").first().waitFor();
  found.push(...(await violations(bench, chat, "permission")));
  await chat.locator("textarea").fill("");
  await chat.locator(".permission:not([hidden]) button").first().click();
  await chat.locator(".question form").waitFor();
  found.push(...(await violations(bench, chat, "form")));
  return { found };
}

/** The ways to log in, in every theme. */
export async function login(bench) {
  const chat = await bench.chat();
  await chat.locator(".sign-in button").first().waitFor();
  await chat.evaluate(AXE);
  return { found: await violations(bench, chat, "login") };
}

/** What has the keyboard, as it is called. */
function focused(chat) {
  return chat.evaluate(() => {
    const element = document.activeElement;
    const label = element?.getAttribute("aria-label") ?? element?.textContent ?? "";
    return `${element?.getAttribute("role") ?? element?.tagName.toLowerCase()}: ${label.trim().slice(0, 60)}`;
  });
}

/** Go back through the chat until `wanted` has the keyboard; what had it on the way. */
async function back(bench, chat, wanted) {
  const way = [];
  await until(async () => {
    await bench.page.keyboard.press("Shift+Tab");
    way.push(await focused(chat));
    return way.at(-1).includes(wanted);
  });
  return way;
}

/** From an empty window to a reviewed change with no mouse. */
export async function keyboard(bench, { file }) {
  const { keyboard: keys } = bench.page;
  await bench.icon.waitFor(); // the extension's keys are known now
  await keys.press("Control+Alt+A");
  const chat = await bench.chatFrame();
  await chat.locator("textarea:focus").waitFor();
  await keys.type("Greet everyone politely.");
  await keys.press("Enter");
  await chat.locator(".permission:not([hidden]) button").first().waitFor();
  const way = await back(bench, chat, "Allow once");
  await keys.press("Enter");
  await idle(chat);
  const after = await focused(chat);
  await keys.press("Control+Alt+A");
  await chat.locator("textarea:focus").waitFor();
  const toChange = await back(bench, chat, "greeting.py");
  await keys.press("Enter");
  const lens = bench.page.locator(".modified-in-monaco-diff-editor .codelens-decoration a", { hasText: "Reject" });
  await until(async () => (await lens.count()) === 2);
  const before = readFileSync(file, "utf8");
  await keys.press("Control+Alt+J");
  await keys.press("Control+Alt+N");
  await until(() => readFileSync(file, "utf8") !== before);
  const rejected = readFileSync(file, "utf8");
  await until(async () => (await lens.count()) === 1);
  await keys.press("Control+Alt+J");
  await keys.press("Control+Alt+Y");
  await until(async () => (await bench.page.locator(".pane-header", { hasText: "Changes" }).count()) === 0);
  return { way, after, toChange, rejected, final: readFileSync(file, "utf8") };
}
