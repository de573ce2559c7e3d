import { beforeAll, describe, expect, it } from "vitest";

import type { Item, OptionView, QuestionItem } from "../../src/shared/view";
import { Banner } from "../../src/webview/banner";
import { CompletionList, fitting, wanted } from "../../src/webview/completion";
import { itemView } from "../../src/webview/itemView";
import { rendered } from "../../src/webview/markdown";
import { OptionsBar } from "../../src/webview/optionsBar";
import { plain } from "../../src/webview/output";
import { PlanView } from "../../src/webview/planView";
import { StreamedMarkdown } from "../../src/webview/streamed";
import { TranscriptView } from "../../src/webview/transcriptView";
import { button, context, dangers, EVIL, tool, withoutLayout } from "./support";

beforeAll(withoutLayout);

function shown(fragment: DocumentFragment): HTMLElement {
  const element = document.createElement("div");
  element.append(fragment);
  return element;
}

describe("Markdown of strangers", () => {
  it.each([
    EVIL,
    "[a](javascript:alert(1)) [b](data:text/html,x) [c](vbscript:x) [d]( java\nscript:x) <javascript:x>",
    "![x](https://example.invalid/x.png)",
    '```html" onload="x\n<script>x</script>\n```',
    "<svg onload=x><style>*{}</style><a href=x style=x>y</a>",
    "[x]: javascript:alert(1)\n\n[x]",
    "| <img onerror=x src=x> |\n|-|\n| <iframe src=x> |",
  ])("can do nothing: %s", (markdown) => {
    expect(dangers(shown(rendered(markdown)))).toEqual([]);
  });

  it("is shown as the text that it is", () => {
    expect(shown(rendered("a <b>bold</b> word")).textContent.trim()).toBe("a <b>bold</b> word");
  });

  it("has links that only tell where they lead", () => {
    const element = shown(rendered("[web](https://example.org/a) [file](src/a.py#L3) [abs](/project/b.py) [bad](//example.org)"));
    const links = [...element.querySelectorAll<HTMLElement>("a")];
    expect(links.map((link) => link.dataset["href"])).toEqual(["https://example.org/a", "src/a.py#L3", "/project/b.py", undefined]);
    expect(links.every((link) => !link.hasAttribute("href"))).toBe(true);
    expect(links[0]?.tabIndex).toBe(0);
  });

  it("has images as links, as none is loaded", () => {
    const link = shown(rendered("![a picture](https://example.org/x.png)")).querySelector<HTMLElement>("a");
    expect([link?.textContent, link?.dataset["href"]]).toEqual(["a picture", "https://example.org/x.png"]);
  });

  it("has its code highlighted", () => {
    expect(shown(rendered("```python\ndef f(): return 1\n```")).querySelector(".hljs-keyword")?.textContent).toBe("def");
  });
});

describe("a message that grows", () => {
  const text = "# Title\n\nSome *words* here,\nand **more\nof them** there.\n\n- one\n\n- two\n\n  more of two\n\n```py\na = 1\n\nb = 2\n```\n\nEnd.\n\n1. first\n\n2. second\n\n| a |\n|-|\n| b |\n\nlast";

  it.each([1, 2, 3, 7, 50])("looks at its end as if it had come at once (%d characters a piece)", async (size) => {
    const message = new StreamedMarkdown("");
    for (let at = 0; at < text.length; at += size) {
      message.append(text.slice(at, at + size));
      if (at % 5 === 0) await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    await new Promise((resolve) => requestAnimationFrame(resolve));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const strip = (html: string): string => html.replace(/\s+/gu, " ").replace(/> </gu, "><");
    const tail = message.element.querySelector(".tail");
    tail?.replaceWith(...tail.childNodes);
    expect(strip(message.element.innerHTML)).toBe(strip(shown(rendered(text)).innerHTML));
  });
});

describe("the card of a tool call", () => {
  it("asks for permission with the agent's own options, and sends the one that is pressed", () => {
    const page = context();
    const view = itemView(tool({ permission: { requestId: 5, options: [{ optionId: "y", name: "Allow once", kind: "allow_once" }, { optionId: "n", name: "Reject", kind: "reject_once" }] } }), page);
    expect(page.announced).toEqual(["The agent asks for permission: Edit a.py"]);
    button(view.element, "Reject").click();
    expect(page.sent).toEqual([{ type: "permission", requestId: 5, optionId: "n" }]);
    view.update(tool({ status: "completed" }));
    expect(view.element.querySelector<HTMLElement>(".permission")?.hidden).toBe(true);
  });

  it("opens files at their lines, and says when one is outside the workspace", () => {
    const page = context();
    const view = itemView(tool({ locations: [{ path: "/p/a.py", label: "a.py", line: 3, outside: false }, { path: "/etc/passwd", label: "/etc/passwd", outside: true }] }), page);
    button(view.element, "a.py:3").click();
    expect(page.sent).toEqual([{ type: "open", path: "/p/a.py", line: 3 }]);
    expect(button(view.element, "/etc/passwd").textContent).toContain("outside the workspace");
  });

  it("shows a change with signs, and output without its codes", () => {
    const page = context();
    const view = itemView(tool({
      parts: [
        { type: "diff", location: { path: "/p/a", label: "a", outside: false }, isNew: true, added: 1, removed: 1, cut: false, lines: [{ sign: "-", text: "old" }, { sign: "+", text: "new" }] },
        { type: "terminal", terminalId: "t" },
      ],
      terminals: { t: { output: "\u001b[32mgreen\u001b[0m", cut: 0 } },
    }), page);
    expect([...view.element.querySelectorAll(".line")].map((line) => line.textContent)).toEqual(["-old", "+new"]);
    expect(view.element.querySelector(".output")?.textContent).toBe("green");
    view.output?.("t", " more");
    expect(view.element.querySelector(".output")?.textContent).toBe("green more");
    button(view.element, "a").click();
    expect(page.sent).toEqual([{ type: "openDiff", itemId: "t", part: 0 }]);
  });

  it("shows a progress line as its last version", () => {
    expect(plain("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
  });
});

describe("hostile text in every field", () => {
  const items: Item[] = [
    { kind: "agent", id: "1", text: EVIL, cut: 0, images: [{ mimeType: "image/svg+xml", data: "x" }], attached: [EVIL] },
    { kind: "thought", id: "2", text: EVIL, cut: 0, images: [], attached: [] },
    { kind: "notice", id: "3", severity: "error", title: EVIL, detail: EVIL },
    { kind: "compaction", id: "4", status: EVIL, summary: EVIL },
    { kind: "question", id: "5", requestId: 1, message: EVIL, url: "javascript:alert(1)", fields: [] },
    tool({
      id: "6", title: EVIL, toolKind: EVIL, input: EVIL, locations: [{ path: EVIL, label: EVIL, outside: true }],
      terminals: { [EVIL]: { output: EVIL, cut: 1, exit: EVIL } },
      parts: [
        { type: "text", text: EVIL, cut: 3 }, { type: "link", uri: "javascript:x", name: EVIL }, { type: "unknown", name: EVIL, json: EVIL },
        { type: "diff", location: { path: EVIL, label: EVIL, outside: true }, isNew: true, added: 1, removed: 0, lines: [{ sign: "+", text: EVIL }], cut: true },
        { type: "terminal", terminalId: EVIL },
      ],
      permission: { requestId: 1, options: [{ optionId: EVIL, name: EVIL, kind: EVIL }] },
    }),
  ];

  it.each(items.map((item) => [item.kind, item] as const))("is inert in a %s", (_, item) => {
    const view = itemView(item, context());
    document.body.append(view.element);
    expect(dangers(view.element)).toEqual([]);
    expect(document.body.dataset["owned"]).toBeUndefined();
    view.element.remove();
  });

  it("is inert around the conversation", () => {
    const page = context();
    const plan = new PlanView(page);
    plan.update([{ id: EVIL, entries: [{ content: EVIL, status: EVIL, priority: EVIL }], markdown: "", file: "" }, { id: "m", entries: [], markdown: EVIL, file: "" }]);
    const bar = new OptionsBar(page);
    bar.update([{ id: EVIL, name: EVIL, description: EVIL, category: EVIL, input: { type: "unknown", json: EVIL } }], { used: 1, size: 2, cost: EVIL });
    const banner = new Banner(page);
    banner.update({ name: EVIL, title: EVIL, phase: "failed", problem: EVIL, detail: EVIL, signIn: [], signInReason: EVIL, images: true, steering: true }, null);
    for (const element of [plan.element, bar.element, banner.element]) {
      for (const one of element.querySelectorAll("[style]")) one.removeAttribute("style"); // our own widths, set by script
      expect(dangers(element)).toEqual([]);
    }
  });
});

describe("many calls", () => {
  it("are not all in the page at once, and the earlier ones can be had", () => {
    const page = context();
    const view = new TranscriptView(page);
    for (let at = 0; at < 450; at += 1) view.apply({ op: "put", item: tool({ id: `t${at}`, title: `Call ${at}` }) });
    expect(view.element.querySelectorAll(".tool").length).toBeLessThanOrEqual(400);
    view.apply({ op: "put", item: tool({ id: "t3", title: "Call 3", status: "completed" }) });
    expect(view.element.textContent).not.toContain("Call 3done");
    button(view.element, "earlier entries").click();
    expect(page.sent).toEqual([{ type: "earlier" }]);
  });
});

describe("a question", () => {
  const item: QuestionItem = {
    kind: "question", id: "q", requestId: 3, message: "Which?",
    fields: [
      { name: "n", title: "Number", description: "How many", required: true, input: { type: "number", integer: true, value: "2" } },
      { name: "c", title: "Colour", description: "", required: false, input: { type: "choice", choices: [{ value: "r", title: "Red" }], value: "r" } },
      { name: "m", title: "Many", description: "", required: false, input: { type: "choices", choices: [{ value: "x", title: "X" }, { value: "y", title: "Y" }], minItems: 0, value: ["y"] } },
      { name: "e", title: "Empty", description: "", required: false, input: { type: "text", format: "", value: "" } },
    ],
  };

  it("is answered with what was filled in", () => {
    const page = context();
    const view = itemView(item, page);
    document.body.append(view.element);
    view.element.querySelector("form")?.requestSubmit();
    expect(page.sent).toEqual([{ type: "answer", requestId: 3, action: "accept", content: { n: 2, c: "r", m: ["y"] } }]);
    view.element.remove();
  });

  it("names every field, and what it means", () => {
    const view = itemView(item, context());
    const input = view.element.querySelector("#field-3-0");
    expect(view.element.querySelector('label[for="field-3-0"]')?.textContent).toBe("Number (required)");
    expect(view.element.querySelector(`#${input?.getAttribute("aria-describedby") ?? ""}`)?.textContent).toBe("How many");
  });

  it("whose page is on another computer leads to a terminal, and says why", () => {
    const page = context();
    const asked: QuestionItem = { kind: "question", id: "q", requestId: 4, message: "Log in", fields: [], url: "http://127.0.0.1:1/login" };
    const view = itemView(asked, page);
    view.update({ ...asked, elsewhere: { terminal: "login" } });
    expect(view.element.querySelector("[role=alert]")?.textContent).toContain("another address");
    button(view.element, "Log in from a terminal").click();
    expect(page.sent).toEqual([
      { type: "signIn", methodId: "login" },
      { type: "answer", requestId: 4, action: "decline", content: {} },
    ]);
  });
});

describe("what can be set", () => {
  const options: OptionView[] = [
    { id: "m", name: "Model", description: "", category: "model", input: { type: "select", value: "b", groups: [{ name: "G", options: [{ value: "a", name: "A", description: "" }, { value: "b", name: "B", description: "" }] }] } },
    { id: "f", name: "Fast", description: "", category: "", input: { type: "boolean", value: false } },
    { id: "u", name: "Dial", description: "", category: "", input: { type: "unknown", json: "{}" } },
  ];

  it("is sent when it is changed, and one of an unknown kind is shown", () => {
    const page = context();
    const bar = new OptionsBar(page);
    bar.update(options, null);
    const select = bar.element.querySelector("select");
    expect(select?.value).toBe("b");
    expect(select?.getAttribute("aria-label")).toBe("Model");
    if (select !== null) select.value = "a";
    select?.dispatchEvent(new Event("change"));
    document.body.append(bar.element);
    bar.element.querySelector<HTMLInputElement>("input")?.click();
    bar.element.remove();
    expect(page.sent).toEqual([{ type: "setOption", id: "m", value: "a" }, { type: "setOption", id: "f", value: true }]);
    expect(bar.element.querySelector(".unknown")?.textContent).toBe("Dial");
  });
});

describe("a window in which no agent can work yet", () => {
  it.each([["folder", "Open a folder", "openFolder"], ["trust", "Manage trust", "trust"]] as const)("is offered what is missing: a %s", (needs, label, command) => {
    const page = context();
    const banner = new Banner(page);
    banner.update({
      name: "a", title: "a", phase: "failed", problem: "First", detail: "", signIn: [], signInReason: "",
      images: true, steering: false, needs,
    }, null);
    expect([...banner.element.querySelectorAll("button")].map((one) => one.textContent)).toEqual([label]);
    button(banner.element, label).click();
    expect(page.sent).toEqual([{ type: "command", command }]);
  });
});

describe("the plan", () => {
  it("leaves the room to the conversation where a window is low, or much magnified, unless it is opened", () => {
    const { innerHeight } = window;
    const plan = new PlanView(context());
    plan.update([{ id: "", entries: [{ content: "Test it", status: "in_progress", priority: "" }], markdown: "", file: "" }]);
    expect(plan.element.open).toBe(true);
    const high = (pixels: number): void => {
      window.innerHeight = pixels;
      window.dispatchEvent(new Event("resize"));
    };
    high(270);
    expect(plan.element.open).toBe(false);
    expect(plan.element.querySelector("summary")?.textContent).toContain("Test it");
    plan.element.open = true;
    high(260);
    expect(plan.element.open).toBe(true);
    high(innerHeight);
  });
});

describe("a menu of what can be set", () => {
  const option = (value: string): OptionView => ({
    id: "m", name: "Model", description: "", category: "model",
    input: { type: "select", value, groups: [{ name: "", options: ["a", "b"].map((one) => ({ value: one, name: one, description: "" })) }] },
  });

  it("stays open while other things of the session change, and shows what was not set as it was", () => {
    const bar = new OptionsBar(context());
    bar.update([option("a")], null);
    const select = bar.element.querySelector("select");
    if (select !== null) select.value = "b";
    bar.revert();
    bar.update([option("a")], { used: 1, size: 2, cost: "" });
    expect(bar.element.querySelector("select")).toBe(select);
    expect(select?.value).toBe("a");
    bar.update([option("b")], null);
    expect(bar.element.querySelector("select")?.value).toBe("b");
  });
});

describe("completion", () => {
  it("knows what is wanted at the cursor", () => {
    expect(wanted("/he", 3)).toEqual({ sign: "/", query: "he", start: 0 });
    expect(wanted("see /he", 7)).toBeNull();
    expect(wanted("look at @src/a now", 14)).toEqual({ sign: "@", query: "src/a", start: 8 });
    expect(wanted("me@example", 10)).toBeNull();
  });

  it("has commands that begin so before those that contain it", () => {
    const commands = ["compact", "help", "uncommon"].map((name) => ({ name, description: "", hint: "" }));
    expect(fitting(commands, "com").map((command) => command.name)).toEqual(["compact", "uncommon"]);
  });

  it("is worked by the keyboard and told to screen readers", () => {
    const input = document.createElement("textarea");
    const list = new CompletionList(context(), input);
    const chosen: string[] = [];
    list.show(["a", "b"].map((label) => ({ label, detail: "", choose: () => void chosen.push(label) })));
    expect(input.getAttribute("aria-activedescendant")).toBe("choice-0");
    expect(list.key(new KeyboardEvent("keydown", { key: "ArrowDown" }))).toBe(true);
    expect(input.getAttribute("aria-activedescendant")).toBe("choice-1");
    list.key(new KeyboardEvent("keydown", { key: "Enter" }));
    expect(chosen).toEqual(["b"]);
    expect(input.getAttribute("aria-expanded")).toBe("false");
    expect(list.key(new KeyboardEvent("keydown", { key: "Enter" }))).toBe(false);
  });
});
