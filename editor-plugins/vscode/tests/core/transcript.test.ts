import { describe, expect, it } from "vitest";

import { Roots } from "../../src/core/roots";
import { MAX_OUTPUT } from "../../src/core/toolCalls";
import { Transcript } from "../../src/core/transcript";
import type { Change } from "../../src/shared/messages";
import { say } from "./harness";

function made(): { transcript: Transcript; changes: Change[] } {
  const changes: Change[] = [];
  return { changes, transcript: new Transcript(new Roots(["/project"]), say, (change) => changes.push(structuredClone(change))) };
}

function chunk(kind: string, text: string, messageId?: string): Record<string, unknown> {
  return { sessionUpdate: `${kind}_chunk`, content: { type: "text", text }, ...(messageId === undefined ? {} : { messageId }) };
}

describe("a transcript", () => {
  it("joins the pieces of a message and tells only what is new", () => {
    const { transcript, changes } = made();
    transcript.apply(chunk("agent_message", "Hel"));
    transcript.apply(chunk("agent_message", "lo"));
    expect(transcript.items).toMatchObject([{ kind: "agent", text: "Hello" }]);
    expect(changes[1]).toEqual({ op: "append", id: transcript.items[0]?.id, text: "lo" });
  });

  it("begins a message where another id comes, or something else came between", () => {
    const { transcript } = made();
    for (const update of [
      chunk("agent_message", "a", "1"), chunk("agent_message", "b", "1"), chunk("agent_message", "c", "2"),
      chunk("agent_thought", "t"), chunk("agent_message", "d", "2"),
    ]) transcript.apply(update);
    expect(transcript.items.map((item) => ("text" in item ? item.text : ""))).toEqual(["ab", "c", "t", "d"]);
    expect(new Set(transcript.items.map((item) => item.id)).size).toBe(4);
  });

  it("shows the user's words once, also when the agent repeats them", () => {
    const { transcript } = made();
    transcript.user("fix the bug", [], []);
    transcript.apply(chunk("user_message", "fix "));
    transcript.apply(chunk("user_message", "the bug"));
    transcript.apply(chunk("user_message", "and more"));
    expect(transcript.items.map((item) => ("text" in item ? item.text : ""))).toEqual(["fix the bug", "and more"]);
  });

  it("that begins anew tells that nothing is left", () => {
    const { transcript, changes } = made();
    transcript.apply(chunk("agent_message", "a"));
    transcript.clear();
    transcript.apply(chunk("agent_message", "b"));
    expect(changes.map((change) => change.op)).toEqual(["put", "clear", "put"]);
    expect(transcript.items).toMatchObject([{ text: "b" }]);
  });

  it("changes a call only where an update says something", () => {
    const { transcript } = made();
    transcript.toolCall({ toolCallId: "1", title: "Read", kind: "read", locations: [{ path: "/project/src/a.py", line: 3 }], rawInput: { a: 1 } });
    transcript.toolCall({ toolCallId: "1", status: "completed", title: null, content: null });
    expect(transcript.items[0]).toMatchObject({
      title: "Read", toolKind: "read", status: "completed", input: '{\n  "a": 1\n}',
      locations: [{ label: "src/a.py", line: 3, outside: false }],
    });
  });

  it("makes a card for an update whose call was never told", () => {
    const { transcript } = made();
    transcript.apply({ sessionUpdate: "tool_call_update", toolCallId: "x", status: "in_progress", title: "Late" });
    expect(transcript.items[0]).toMatchObject({ title: "Late", status: "in_progress" });
  });

  it("adds live output of the agent's own commands piece by piece, and keeps its end", () => {
    const { transcript, changes } = made();
    transcript.toolCall({ toolCallId: "1", title: "Run", content: [{ type: "terminal", terminalId: "t" }], _meta: { terminal_info: { terminal_id: "t" } } });
    transcript.apply({ sessionUpdate: "tool_call_update", toolCallId: "1", _meta: { terminal_output: { terminal_id: "t", data: "one\n" } } });
    expect(changes.at(-1)).toMatchObject({ op: "output", terminalId: "t", text: "one\n" });
    transcript.apply({ sessionUpdate: "tool_call_update", toolCallId: "1", _meta: { terminal_output: { terminal_id: "t", data: "x".repeat(MAX_OUTPUT) } } });
    transcript.apply({ sessionUpdate: "tool_call_update", toolCallId: "1", status: "completed", _meta: { terminal_exit: { terminal_id: "t", exit_code: 2 } } });
    expect(transcript.items[0]).toMatchObject({ terminals: { t: { cut: 4, exit: "exit code 2" } } });
  });

  it("shows what terminals of the editor print, whichever comes first", () => {
    const { transcript } = made();
    transcript.terminal("t", "early ");
    transcript.toolCall({ toolCallId: "1", title: "Run", content: [{ type: "terminal", terminalId: "t" }] });
    transcript.terminal("t", "late");
    transcript.terminal("t", "", "exit code 0");
    expect(transcript.items[0]).toMatchObject({ terminals: { t: { output: "early late", exit: "exit code 0" } } });
  });

  it("marks a path outside of the workspace", () => {
    const { transcript } = made();
    transcript.toolCall({ toolCallId: "1", title: "T", locations: [{ path: "/project/../etc/passwd" }, { path: "relative" }, { path: "/project/..hidden" }] });
    expect(transcript.items[0]).toMatchObject({ locations: [{ outside: true }, { outside: true }, { outside: false }] });
  });

  it("cuts off what had not ended when the turn is over", () => {
    const { transcript } = made();
    transcript.toolCall({ toolCallId: "1", title: "T", status: "in_progress" });
    transcript.toolCall({ toolCallId: "2", title: "T", status: "completed" });
    transcript.cutOff();
    expect(transcript.items).toMatchObject([{ status: "interrupted" }, { status: "completed" }]);
  });

  it("shows images of known types only", () => {
    const { transcript } = made();
    transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "image", mimeType: "image/png", data: "AAAA" } });
    transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "image", mimeType: "image/svg+xml", data: "AAAA" } });
    expect(transcript.items).toMatchObject([{ images: [{ mimeType: "image/png" }], text: "Image of an unsupported kind (image/svg+xml)" }]);
  });

  it("does not let a resource's text end the block it is shown in", () => {
    const { transcript } = made();
    transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "resource", resource: { uri: "file:///a", text: "```\n# not a heading" } } });
    expect(transcript.items[0]).toMatchObject({ text: "\n````\n```\n# not a heading\n````\n" });
  });
});
