import { describe, expect, it } from "vitest";

import { abilities } from "../../src/core/abilities";
import { fields } from "../../src/core/forms";
import { best } from "../../src/core/fuzzy";
import { Gathered } from "../../src/core/gathered";
import { unlinked } from "../../src/core/json";
import { toHost } from "../../src/core/messages";
import { MODES_ID, options, optionsOf, withMode } from "../../src/core/options";
import { Outbox } from "../../src/core/outbox";
import { planOf, usageOf, withPlan } from "../../src/core/plans";
import { messageOf } from "../../src/core/prompts";
import type { Change } from "../../src/shared/messages";
import type { TextItem } from "../../src/shared/view";
import { speaker, type Word } from "../../src/shared/words";
import { zh } from "../../src/shared/words.zh";
import { until } from "./harness";

describe("options of a session", () => {
  it("are read in every form, and one of an unknown kind is kept", () => {
    const read = options([
      { id: "m", name: "Model", type: "select", category: "model", currentValue: "a", options: [{ group: "g", name: "G", options: [{ value: "a", name: "A" }] }] },
      { id: "s", name: "Plain", type: "select", currentValue: "x", options: [{ value: "x", name: "X" }, { value: "y", name: "Y" }] },
      { id: "b", name: "Fast", type: "boolean", currentValue: true },
      { id: "d", name: "Dial", type: "dial", currentValue: 11 },
      { name: "no id" }, null,
    ]);
    expect(read.map((option) => [option.id, option.input.type])).toEqual([["m", "select"], ["s", "select"], ["b", "boolean"], ["d", "unknown"]]);
    expect(read[0]?.input).toMatchObject({ groups: [{ name: "G", options: [{ value: "a" }] }] });
    expect(read[3]?.input).toMatchObject({ json: expect.stringContaining("11") as string });
  });

  it("are the modes where there are no others", () => {
    const modes = { currentModeId: "a", availableModes: [{ id: "a", name: "A" }, { id: "b", name: "B" }] };
    expect(optionsOf({ modes, configOptions: [] })).toEqual([]);
    const read = optionsOf({ modes });
    expect(read[0]).toMatchObject({ id: MODES_ID, input: { value: "a" } });
    expect(withMode(read, "b")[0]?.input).toMatchObject({ value: "b" });
  });
});

describe("plans and usage", () => {
  it("are replaced as a whole, and go when they are empty", () => {
    const plan = planOf({ entries: [{ content: "Do", status: "pending", priority: "high" }] });
    expect(plan?.entries).toEqual([{ content: "Do", status: "pending", priority: "high" }]);
    const other = planOf({ plan: { type: "markdown", planId: "p", content: "# Plan" } });
    const both = withPlan(withPlan([], plan ?? { id: "", entries: [], markdown: "", file: "" }), other ?? { id: "p", entries: [], markdown: "", file: "" });
    expect(both.map((one) => one.id)).toEqual(["", "p"]);
    expect(withPlan(both, { id: "", entries: [], markdown: "", file: "" }).map((one) => one.id)).toEqual(["p"]);
  });

  it("have the cost with its currency", () => {
    expect(usageOf({ used: 1, size: 2, cost: { amount: 0.0123, currency: "USD" } })?.cost).toBe("$0.0123");
    expect(usageOf({ used: 1, size: 2, cost: { amount: 3, currency: "EUR" } })?.cost).toBe("3.00 EUR");
    expect(usageOf({ used: "1" })).toBeNull();
  });
});

describe("a form", () => {
  it("has a field for every property, whatever its kind", () => {
    const read = fields({
      required: ["name"],
      properties: {
        name: { type: "string", title: "Name", minLength: 2 },
        colour: { type: "string", oneOf: [{ const: "r", title: "Red" }] },
        plain: { type: "string", enum: ["a"] },
        count: { type: "integer", minimum: 1, default: 3 },
        sure: { type: "boolean", default: true },
        many: { type: "array", items: { anyOf: [{ const: "x", title: "X" }] }, default: ["x"] },
        odd: { type: "matrix" },
      },
    });
    expect(read.map((field) => [field.name, field.input.type, field.required])).toEqual([
      ["name", "text", true], ["colour", "choice", false], ["plain", "choice", false], ["count", "number", false],
      ["sure", "boolean", false], ["many", "choices", false], ["odd", "unknown", false],
    ]);
    expect(read[3]?.input).toMatchObject({ integer: true, minimum: 1, value: "3" });
  });
});

describe("an agent's abilities", () => {
  it("are none where it says nonsense", () => {
    expect(abilities({ agentCapabilities: 7, authMethods: "x", agentInfo: [] }, "mine")).toMatchObject({ title: "mine", load: false, authMethods: [] });
  });

  it("have terminal logins in the present form and the older one", () => {
    const read = abilities({ authMethods: [
      { id: "a", name: "A", type: "terminal", args: ["--login"], env: { X: "1" } },
      { id: "b", name: "B", _meta: { "terminal-auth": { command: "c", args: ["d"] } } },
      { id: "c", name: "C" }, {},
    ] }, "x");
    expect(read.authMethods.map(({ id, terminal, command, args }) => [id, terminal, command, args])).toEqual([
      ["a", true, undefined, ["--login"]], ["b", true, "c", ["d"]], ["c", false, undefined, []],
    ]);
  });
});

describe("a text in a notification of the editor", () => {
  it("is no link that runs a command", () => {
    expect(unlinked("[Allow](command:workbench.action.quit) [x](https://y)")).not.toMatch(/\]\(/u);
  });
});

describe("messages of the page", () => {
  it("are nothing when they are not what there is", () => {
    for (const bad of [null, 7, {}, { type: "eval" }, { type: "command", command: "workbench.action.quit" }]) expect(toHost(bad)).toBeUndefined();
  });

  it("carry what is in no file as its text alone", () => {
    const unsaved = { uri: "untitled:Untitled-1", label: "Untitled-1:1-2", startLine: 1, endLine: 2, text: "a\nb" };
    const read = toHost({ type: "prompt", text: "", images: [], attachments: [unsaved, { uri: "untitled:Untitled-1", label: "Untitled-1" }] });
    expect(read).toMatchObject({ attachments: [unsaved] });
  });

  it("carry no address but of files, and no image but of known types", () => {
    const read = toHost({
      type: "prompt", text: 7, images: [{ mimeType: "image/svg+xml", data: "a" }, { mimeType: "image/png", data: "b" }],
      attachments: [{ uri: "http://x", label: "x" }, { uri: "file:///a", label: "a", startLine: 1, endLine: 2, text: "t" }],
    });
    expect(read).toEqual({
      type: "prompt", text: "", images: [{ mimeType: "image/png", data: "b" }],
      attachments: [{ uri: "file:///a", label: "a", startLine: 1, endLine: 2, text: "t" }],
    });
  });
});

describe("a prompt", () => {
  const selection = { uri: "file:///a.py", label: "a.py:1-2", startLine: 1, endLine: 2, text: "x = 1" };

  it("has files as links and selections as resources", () => {
    const { blocks } = messageOf("hi", [{ uri: "file:///b", label: "b" }, selection], [{ mimeType: "image/png", data: "A" }], { image: true, embeddedContext: true });
    expect(blocks).toEqual([
      { type: "text", text: "hi" },
      { type: "resource_link", uri: "file:///b", name: "b" },
      { type: "resource", resource: { uri: "file:///a.py#L1-L2", mimeType: "text/plain", text: "x = 1" } },
      { type: "image", mimeType: "image/png", data: "A" },
    ]);
  });

  it("has nothing that the agent did not say it takes", () => {
    const { blocks } = messageOf("hi", [selection], [{ mimeType: "image/png", data: "A" }], { image: false, embeddedContext: false });
    expect(blocks.map((block) => block.type)).toEqual(["text", "text"]);
  });
});

describe("files are found by some of their letters", () => {
  it("with names before folders, and what lacks a letter left out", () => {
    expect(best(["src/deep/app.py", "app.py", "max.py", "tests/test_app.py", "readme"], "app", 9)).toEqual(["app.py", "src/deep/app.py", "tests/test_app.py"]);
  });
});

describe("work that many ask for", () => {
  it("is done once for all of them, and again for those that ask later", async () => {
    let done = 0;
    const gathered = new Gathered(() => (done += 1), 5);
    for (let at = 0; at < 1_000; at += 1) gathered.ask();
    expect(done).toBe(0);
    await until(() => done === 1);
    gathered.ask();
    await until(() => done === 2);
  });
});

describe("changes on their way to the page", () => {
  it("are joined, and the next are held until those before are drawn", async () => {
    const sent: [Change[], number][] = [];
    const outbox = new Outbox((changes, revision) => sent.push([structuredClone(changes), revision]));
    const item: TextItem = { kind: "agent", id: "1", text: "a", cut: 0, images: [], attached: [] };
    outbox.add({ op: "put", item });
    item.text += "b";
    outbox.add({ op: "append", id: "1", text: "b" });
    await until(() => sent.length === 1);
    expect(sent[0]?.[0]).toEqual([{ op: "put", item: { ...item, text: "ab" } }]);
    for (const text of ["c", "d"]) outbox.add({ op: "append", id: "1", text });
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(sent).toHaveLength(1);
    outbox.acknowledge(sent[0]?.[1] ?? 0);
    await until(() => sent.length === 2);
    expect(sent[1]?.[0]).toEqual([{ op: "append", id: "1", text: "cd" }]);
    outbox.dispose();
  });
});

describe("words", () => {
  it("have the same places for values in both languages", () => {
    const english = speaker("en");
    const places = (text: string): string[] => [...text.matchAll(/\{\d\}/gu)].map((match) => match[0]).sort();
    for (const word of Object.keys(zh) as Word[]) {
      expect(places(zh[word]), word).toEqual(places(english(word, "{0}", "{1}", "{2}")));
    }
    expect(speaker("zh-cn")("chat.send")).toBe("发送");
  });
});
