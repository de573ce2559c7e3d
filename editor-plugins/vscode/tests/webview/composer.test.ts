import { beforeAll, describe, expect, it, vi } from "vitest";

import type { AgentView, SessionHeader } from "../../src/shared/view";
import { Composer } from "../../src/webview/composer";
import { Draft } from "../../src/webview/draft";
import { button, context, withoutLayout } from "./support";

beforeAll(withoutLayout);

const agent: AgentView = {
  name: "a", title: "A", phase: "ready", problem: "", detail: "", signIn: [], signInReason: "", images: true, steering: true,
};
const session: SessionHeader = {
  sessionId: "s", title: "", running: false, cancelling: false, stuck: false, plans: [], usage: null, options: [], waiting: [],
  commands: [{ name: "compact", description: "Shorten", hint: "what to keep" }],
};

interface Written {
  page: ReturnType<typeof context>;
  composer: Composer;
  input: HTMLTextAreaElement;
  store: { state: unknown };
  type: (text: string) => void;
  press: (key: string, more?: KeyboardEventInit) => void;
}

function written(state?: unknown): Written {
  const store = { state };
  const page = context();
  const composer = new Composer(page, new Draft({ getState: () => store.state, setState: (next) => (store.state = next) }));
  composer.update(agent, session);
  document.body.replaceChildren(composer.element);
  const input = composer.element.querySelector("textarea");
  if (input === null) throw new Error("no input");
  return {
    page, composer, input, store,
    type: (text) => {
      input.value = text;
      input.setSelectionRange(text.length, text.length);
      input.dispatchEvent(new Event("input"));
    },
    press: (key, more) => void input.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true, ...more })),
  };
}

describe("the input", () => {
  it("sends with Enter, not with Shift and Enter, and is empty then", () => {
    const { page, input, type, press } = written();
    type("hello");
    press("Enter", { shiftKey: true });
    expect(page.sent).toEqual([]);
    press("Enter");
    expect(page.sent).toEqual([{ type: "prompt", text: "hello", attachments: [], images: [] }]);
    expect(input.value).toBe("");
  });

  it("does not send what an input method is still composing", () => {
    const { page, type, press } = written();
    type("你");
    press("Enter", { isComposing: true });
    expect(page.sent).toEqual([]);
  });

  it("completes a command, and tells what is to follow it", () => {
    const { composer, input, type, press } = written();
    type("/com");
    expect(composer.element.querySelector('[role="option"]')?.textContent).toContain("/compact");
    press("Tab");
    expect(input.value).toBe("/compact ");
    expect(composer.element.querySelector<HTMLElement>(".hint")?.textContent).toBe("what to keep");
  });

  it("asks the host for files, and attaches the one that is chosen", () => {
    const { page, composer, input, type, press } = written();
    type("see @app");
    expect(page.sent).toEqual([{ type: "suggest", request: 1, query: "app" }]);
    const attachment = { uri: "file:///p/app.py", label: "app.py" };
    composer.suggestions(1, [{ label: "app.py", detail: "", attachment }]);
    press("Enter");
    expect(input.value).toBe("see @app.py ");
    press("Enter");
    expect(page.sent.at(-1)).toEqual({ type: "prompt", text: "see @app.py", attachments: [attachment], images: [] });
  });

  it("takes no suggestions for what was asked before", () => {
    const { composer, type } = written();
    type("@a");
    type("@ab");
    composer.suggestions(1, [{ label: "late", detail: "", attachment: { uri: "file:///x", label: "x" } }]);
    expect(composer.element.querySelectorAll('[role="option"]')).toHaveLength(0);
  });

  it("stops the turn with Escape, and says what sending does while it runs", () => {
    const { page, composer, press } = written();
    composer.update(agent, { ...session, running: true });
    expect(button(composer.element, "Send now to steer the agent")).toBeTruthy();
    press("Escape");
    expect(page.sent).toEqual([{ type: "cancel" }]);
    composer.update({ ...agent, steering: false }, { ...session, running: true });
    expect(button(composer.element, "Send when the agent is idle")).toBeTruthy();
  });

  it("keeps the draft while the page is hidden", () => {
    const { store, type } = written();
    type("half a thought");
    expect(written(store.state).input.value).toBe("half a thought");
  });

  it("takes a message back that could not be sent, beside what was written since", () => {
    const { composer, input, type } = written();
    type("newer");
    composer.restore("older", [], []);
    expect(input.value).toBe("older\nnewer");
  });
});

describe("images", () => {
  const picture = new File([new Uint8Array([1, 2, 3])], "a.png", { type: "image/png" });

  function paste(input: HTMLTextAreaElement, file: File): boolean {
    const event = Object.assign(new Event("paste", { cancelable: true }), { clipboardData: { files: [file] } });
    input.dispatchEvent(event);
    return event.defaultPrevented;
  }

  it("are attached when they are pasted, other files are not", async () => {
    const { composer, input } = written();
    expect(paste(input, new File(["text"], "a.txt", { type: "text/plain" }))).toBe(false);
    expect(paste(input, picture)).toBe(true);
    await vi.waitFor(() => expect(composer.element.querySelectorAll(".chip img")).toHaveLength(1));
    button(composer.element, "Remove Image").click();
    expect(composer.element.querySelectorAll(".chip")).toHaveLength(0);
  });

  it("of a kind that could be a script are refused, which is told until the message is another", () => {
    const { composer, input, type } = written();
    const told = (): string => composer.element.querySelector("[role=alert]")?.textContent ?? "";
    paste(input, new File(["<svg/>"], "a.svg", { type: "image/svg+xml" }));
    expect(told()).toContain("image/svg+xml");
    type("without it");
    expect(told()).toBe("");
  });

  it("are neither taken for nor sent to an agent that takes none", () => {
    const { page, composer, input, press } = written({ text: "look", images: [{ mimeType: "image/png", data: "AQID" }] });
    composer.update({ ...agent, images: false }, session);
    const told = (): string => composer.element.querySelector("[role=alert]")?.textContent ?? "";
    press("Enter");
    expect(page.sent).toEqual([]);
    expect(told()).toBe("This agent does not accept images.");
    button(composer.element, "Remove Image").click();
    expect(paste(input, picture)).toBe(true);
    expect(composer.element.querySelectorAll(".chip")).toHaveLength(0);
    expect(told()).toBe("This agent does not accept images.");
  });
});

describe("a drop", () => {
  it("is taken wherever it falls on the page, before the editor takes it for itself", () => {
    const { page } = written();
    const editors = vi.fn();
    window.addEventListener("dragover", editors);
    document.body.dispatchEvent(new Event("dragover", { bubbles: true, cancelable: true }));
    expect(editors).not.toHaveBeenCalled();
    const lists: Record<string, string> = { "text/uri-list": "# a comment\r\nfile:///a.py\r\nfile:///a.py" };
    const data = { files: [], getData: (type: string) => lists[type] ?? "" };
    document.body.dispatchEvent(Object.assign(new Event("drop", { bubbles: true }), { dataTransfer: data }));
    expect(page.sent).toEqual([{ type: "drop", uris: ["file:///a.py"] }]);
  });
});
