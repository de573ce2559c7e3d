// A turn with the extension ACP Client: `node acp_client.mjs TASK`, TASK being JSON. Prints what was
// seen as JSON.

import { until } from "../../../editor-plugins/vscode/tests/end_to_end/chat.mjs";
import { open } from "../../../editor-plugins/vscode/tests/end_to_end/workbench.mjs";

const task = JSON.parse(process.argv[2]);
const bench = await open(task);

/** The frame of the chat, once it is there. */
async function chatFrame() {
  let found;
  await until(async () => {
    for (const frame of bench.page.frames()) {
      if ((await frame.locator("#promptInput").count().catch(() => 0)) > 0) found = frame;
    }
    return found !== undefined;
  });
  return found;
}

try {
  await bench.page.locator('.activitybar .action-item [aria-label^="ACP Client"]').first().click();
  await bench.command("ACP: Connect to Agent");
  await bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "acp-agent" }).first().click();
  // No key is there: the agent's ways to log in are offered.
  const demo = bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "Try the demo" });
  await demo.waitFor();
  const logins = await bench.page.locator(".quick-input-list .monaco-list-row").allTextContents();
  await demo.click();
  const chat = await chatFrame();
  await until(async () => /acp-agent/u.test(await chat.locator("#bannerAgent").textContent()));
  await until(async () => (await chat.locator("#configOptionsContainer").textContent()) !== "");
  await chat.locator("#promptInput").fill(task.prompt);
  await chat.locator("#promptInput").press("Enter");
  const allow = bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "Allow once" });
  await allow.waitFor();
  const asked = await bench.page.locator(".quick-input-list .monaco-list-row").allTextContents();
  await allow.click();
  await until(async () => /1 replacement/u.test(await chat.locator("#messages").textContent()));
  console.log(
    JSON.stringify({
      logins,
      asked,
      shown: await chat.locator("#messages").textContent(),
      options: await chat.locator("#configOptionsContainer").textContent(),
    }),
  );
} catch (error) {
  await bench.page.screenshot({ path: `${task.folder}/failed.png` }).catch(() => undefined);
  throw error;
} finally {
  await bench.close();
}
