// The editor in a browser: opening it, finding the chat in it, working it.

import { writeFileSync } from "node:fs";

import { chromium } from "playwright-core";

import { until, WITHIN } from "./chat.mjs";

const SIDE_BAR = 460; // pixels

export async function open(task) {
  const browser = await chromium.launch({
    executablePath: task.chromium,
    args: ["--no-sandbox", "--disable-background-networking", "--force-color-profile=srgb"],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, deviceScaleFactor: 1 });
  page.setDefaultTimeout(WITHIN);
  await page.goto(`${task.url}/?folder=${encodeURIComponent(task.folder)}`);
  await page.locator(".monaco-workbench").waitFor();
  return new Workbench(browser, page, task);
}

class Workbench {
  constructor(browser, page, task) {
    this.browser = browser;
    this.page = page;
    this.task = task;
  }

  close() {
    return this.browser.close();
  }

  /** Load the window anew. */
  async reload() {
    await this.page.reload();
    await this.page.locator(".monaco-workbench").waitFor();
  }

  /**
   * Open the chat, if it is not open; the frame it is in.
   *
   * A window opens by itself what was open in it last, and that may be the chat: a press of the icon of
   * what is open closes it. So first the editor has to have opened something.
   */
  async chat() {
    await this.page.locator(".activitybar .action-item.checked").first().waitFor();
    await this.icon.waitFor();
    if (!(await this.icon.evaluate((element) => element.classList.contains("checked")))) await this.icon.click();
    await this.widen();
    return this.chatFrame();
  }

  chatFrame() {
    return until(async () => {
      for (const frame of this.page.frames()) {
        if ((await frame.locator("#app textarea").count().catch(() => 0)) > 0) return frame;
      }
      return undefined;
    });
  }

  /** Draw the side bar's border to the right. */
  async widen() {
    const box = await this.page.locator(".part.sidebar").boundingBox();
    if (box === null) return;
    const x = box.x + box.width + 2;
    await this.page.mouse.move(x, 500);
    await this.page.mouse.down();
    await this.page.mouse.move(SIDE_BAR, 500, { steps: 8 });
    await this.page.mouse.up();
    await this.page.mouse.move(700, 700);
  }

  /** Run a command of the palette. */
  async command(name) {
    await this.page.keyboard.press("F1");
    await this.page.locator(".quick-input-widget input").fill(`>${name}`);
    // Enter takes what is marked, and that is another command until the list is filtered.
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** Open a file of the folder, and put the cursor into it. */
  async openFile(name) {
    await this.page.keyboard.press("Control+P");
    await this.page.locator(".quick-input-widget input").fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".monaco-editor .view-line").first().click();
  }

  /** The chat's icon in the activity bar. */
  get icon() {
    return this.page.locator('.activitybar .action-item:has([aria-label^="ACP Agent"])').first();
  }

  /** How many permissions wait, at the chat's icon. */
  get badge() {
    return this.icon.locator(".badge-content").first();
  }

  /** The dialog in the middle of the window. */
  get dialog() {
    return this.page.getByRole("dialog");
  }

  /** A screenshot of the whole window, or of one thing in it, when nothing of it moves any more. */
  async picture(name, of = this.page) {
    if (this.task.picturesFolder === null) return;
    await this.page.mouse.move(900, 640);
    let before = Buffer.alloc(0);
    const still = await until(async () => {
      const now = await of.screenshot({ animations: "disabled" });
      const same = now.equals(before);
      before = now;
      return same && now;
    });
    writeFileSync(`${this.task.picturesFolder}/${name}.png`, still);
  }
}
