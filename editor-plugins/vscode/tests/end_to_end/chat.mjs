// Working the chat, once its frame is found.

export const WITHIN = 60_000; // milliseconds; an editor on a busy machine starts slowly
const ASKED_EVERY = 100; // milliseconds

/** Wait until `what` gives something, and give that. */
export async function until(what, within = WITHIN) {
  const end = Date.now() + within;
  for (;;) {
    const found = await what();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${within} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY));
  }
}

/** Send a message, and wait until it is in the conversation. */
export async function prompt(chat, text) {
  const before = await chat.locator(".message.user").count();
  await chat.locator("textarea").fill(text);
  await chat.locator("textarea").press("Enter");
  await until(async () => (await chat.locator(".message.user").count()) > before);
}

/** Wait until the turn is over. */
export async function idle(chat) {
  await chat.locator(".stop").waitFor({ state: "hidden" });
}

/** Send a message, and wait for the end of the turn; the agent's last message. */
export async function ask(chat, text) {
  const before = await chat.locator(".message.agent").count();
  await prompt(chat, text);
  await until(async () => (await chat.locator(".message.agent").count()) > before);
  await idle(chat);
  return chat.locator(".message.agent").last().textContent();
}
