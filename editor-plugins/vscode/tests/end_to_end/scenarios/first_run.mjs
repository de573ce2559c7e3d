// From nothing to an answer.

import { idle, prompt } from "../chat.mjs";

/** From nothing to an answer: no key, no configuration, an empty home. */
export async function firstRun(bench, { pictures }) {
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
