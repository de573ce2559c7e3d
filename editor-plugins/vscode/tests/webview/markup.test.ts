import { beforeAll, describe, expect, it, vi } from "vitest";

import { rendered } from "../../src/webview/markdown";
import { MessageView } from "../../src/webview/messageView";
import { StreamedMarkdown } from "../../src/webview/streamed";
import { button, context, withoutLayout } from "./support";

beforeAll(withoutLayout);

function shown(markdown: string): HTMLElement {
  const element = document.createElement("div");
  element.append(rendered(markdown));
  return element;
}

function links(markdown: string): (string | undefined)[] {
  return [...shown(markdown).querySelectorAll<HTMLElement>("a")].map((link) => link.dataset["href"]);
}

describe("an address that stands alone", () => {
  it.each([
    ["See https://example.org/a?b=c#d.", "https://example.org/a?b=c#d"],
    ["(https://example.org/a_(b))", "https://example.org/a_(b)"],
    ["见https://example.org/页。", "https://example.org/"],
    ["见https://example.org/a。后面的话", "https://example.org/a"],
    ["**http://localhost:3000/**", "http://localhost:3000/"],
  ])("is a link: %s", (text, address) => {
    expect(links(text)).toEqual([address]);
  });

  it.each(["example.org", "me@example.org", "ftp://example.org", "//example.org/x", "`https://example.org`", "10.0.0.1"])("is none where it is no web address: %s", (text) => {
    expect(links(text)).toEqual([]);
  });
});

describe("what agents write", () => {
  it("has boxes for tasks, done and not, and leaves other brackets alone", () => {
    const entries = [...shown("- [ ] one\n- [x] two\n- [y] three\n\n[ ] four").querySelectorAll("li, p")].map((one) => one.textContent.trim());
    expect(entries).toEqual(["☐ one", "☑ two", "[y] three", "[ ] four"]);
  });

  it("has the columns of a table at their sides, without styles, which the page's policy refuses", () => {
    const table = shown("| a | b | c |\n| :-: | --: | --- |\n| 1 | 2 | 3 |");
    expect([...table.querySelectorAll("td")].map((one) => one.className)).toEqual(["center", "right", ""]);
    expect(table.innerHTML).not.toContain("style");
  });

  it("names its images, also in links", () => {
    expect(shown("See ![the <b>logo](x.png)").textContent.trim()).toBe("See the <b>logo");
    const badge = shown("[![passing](https://a.example/b.svg)](https://a.example/ci)");
    expect([badge.textContent.trim(), badge.querySelector("a")?.dataset["href"]]).toEqual(["passing", "https://a.example/ci"]);
    expect(links("![](x.png)")).toEqual(["x.png"]);
  });
});

describe("a message that ends in a very long block", () => {
  const whole = `Here:\n\n\`\`\`text\nfirst line\n${"a line\n".repeat(5_000)}last line\n\`\`\``;

  it("is shown as a whole when it is there", () => {
    const code = new StreamedMarkdown(whole).element.querySelector("pre code");
    expect(code?.textContent.startsWith("first line\n")).toBe(true);
    expect(code?.textContent.endsWith("last line\n")).toBe(true);
  });

  it("is shown as a whole when nothing more comes, and its end before", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "requestAnimationFrame"] });
    try {
      const message = new StreamedMarkdown("");
      for (let at = 0; at < whole.length; at += 1_000) {
        message.append(whole.slice(at, at + 1_000));
        vi.advanceTimersToNextFrame();
      }
      expect(message.element.textContent).not.toContain("first line");
      expect(message.element.textContent).toContain("last line");
      vi.runAllTimers();
      expect(message.element.querySelector("pre code")?.textContent.startsWith("first line\n")).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a block of code", () => {
  it("is copied as it is, without what is around it", () => {
    const page = context();
    const text = "Do:\n\n```sh\nmake test\n```\n\nor\n\n```sh\nmake check\n```\n";
    const { element } = new MessageView({ kind: "agent", id: "m", text, cut: 0, images: [], attached: [] }, page);
    const buttons = [...element.querySelectorAll<HTMLButtonElement>(".code button")];
    expect(buttons.map((one) => one.getAttribute("aria-label"))).toEqual(["Copy code", "Copy code"]);
    buttons[1]?.click();
    button(element, "Copy").click();
    expect(page.sent[0]).toEqual({ type: "copy", text: "make check\n" });
    expect(page.announced).toContain("Copied");
  });
});
