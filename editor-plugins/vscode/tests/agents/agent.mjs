// Agents that misbehave, for the tests: `node agent.mjs HOW`. Each speaks the protocol as far as HOW says.

import { createInterface } from "node:readline";
import { existsSync, writeFileSync } from "node:fs";

const how = process.argv[2] ?? "good";
const mark = process.argv[3] ?? "";
const send = (message) => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
};
const update = (update) => send({ method: "session/update", params: { sessionId: "s1", update } });
const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

if (how === "dies") {
  process.stderr.write("cannot find its configuration\n");
  process.exit(3);
}
if (how === "garbage") process.stdout.write("Loading the model, please wait\n[1, 2]\n{\"a\": 1}\n");

const capabilities = {
  loadSession: how !== "resumes",
  sessionCapabilities: how === "resumes" ? { resume: {} } : {},
  promptCapabilities: { image: how === "images" },
  ...(how === "steers" ? { _meta: { steering: { supported: true } } } : {}),
};

let sessions = 0;
let permission = 0;
let waiting = null;

const answers = {
  initialize: () => ({ protocolVersion: how === "version" ? 7 : 1, agentCapabilities: capabilities, agentInfo: { name: how, version: "1" } }),
  "session/new": () => {
    if (how === "early") update({ sessionUpdate: "available_commands_update", availableCommands: [{ name: "early", description: "" }] });
    sessions += 1;
    return { sessionId: `s${sessions}`, modes: { currentModeId: "a", availableModes: [{ id: "a", name: "A" }, { id: "b", name: "B" }] } };
  },
  "session/load": () => {
    say("what was said before");
    return {};
  },
  "session/resume": () => ({}),
  "session/set_mode": () => ({}),
  "_session/steering": () => ({ outcome: "injected" }),
};

/** What a prompt does; true when it was answered already, or will be. */
const prompts = {
  crash: () => {
    if (existsSync(mark)) return say("I am back.");
    writeFileSync(mark, "");
    say("half of an ans");
    process.stdout.write("", () => process.exit(9));
    return true;
  },
  garbage: () => {
    process.stdout.write("Downloading 3 files\n{\"b\": 2}\n");
    say("You are heard all the same.");
  },
  resumes: () => prompts.crash(),
  always: () => process.exit(1),
  mute: () => true,
  steers: (id) => {
    waiting = id;
    say("working");
    return true;
  },
  flood: () => {
    const piece = JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s1", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "word ".repeat(20) } } } });
    for (let at = 0; at < (Number(mark) || 20_000); at += 1) process.stdout.write(`${piece}\n`);
  },
  calls: () => {
    for (let at = 0; at < 1000; at += 1) {
      update({ sessionUpdate: "tool_call", toolCallId: `t${at}`, title: `Call ${at}`, kind: "read", status: "in_progress" });
      update({ sessionUpdate: "tool_call_update", toolCallId: `t${at}`, status: "completed", content: [{ type: "content", content: { type: "text", text: `result ${at}` } }] });
    }
  },
  outside: (id) => {
    permission = id;
    send({ id: "read", method: "fs/read_text_file", params: { sessionId: "s1", path: "/etc/passwd" } });
    return true;
  },
  asks: (id) => {
    permission = id;
    send({ id: "ask", method: "session/request_permission", params: { sessionId: "s1", toolCall: { toolCallId: "t1", title: "Do it" }, options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }, { optionId: "no", name: "No", kind: "reject_once" }] } });
    return true;
  },
  page: (id) => {
    permission = id;
    send({ id: "ask", method: "elicitation/create", params: { sessionId: "s1", mode: "url", elicitationId: "e1", url: "https://example.invalid/consent?for=tests", message: "Give your consent on **this page**." } });
    return true;
  },
  hostile: () => hostile(),
  unknown: () => {
    update({ sessionUpdate: "hologram", beam: 3 });
    update({ sessionUpdate: "tool_call", toolCallId: "t", title: "T", content: [{ type: "smell", of: "roses" }] });
    update({ sessionUpdate: 7 });
    update(null);
    send({ method: "session/update", params: null });
    send({ method: "session/update" });
  },
};

function hostile() {
  const evil = "<img src=x onerror=\"document.body.dataset.owned=1\"><script>document.body.dataset.owned=1</script>";
  const link = "[click](javascript:document.body.dataset.owned=1) [data](data:text/html,<script>1</script>) ![i](https://example.invalid/x.png)";
  say(`${evil}\n\n${link}\n\n\`\`\`html"onload=x\n${evil}\n\`\`\`\n`);
  update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: evil } });
  update({
    sessionUpdate: "tool_call", toolCallId: evil, title: evil, kind: evil, status: evil, rawInput: { [evil]: evil },
    locations: [{ path: evil }, { path: "/etc/passwd", line: 1 }],
    content: [
      { type: "content", content: { type: "text", text: `${evil}\u001b[31m` } },
      { type: "content", content: { type: "image", mimeType: "image/svg+xml", data: "PHN2Zy8+" } },
      { type: "content", content: { type: "resource_link", uri: "javascript:alert(1)", name: evil } },
      { type: "diff", path: `/x/${evil}`, oldText: evil, newText: `${evil}2` },
      { type: "terminal", terminalId: evil },
    ],
  });
  update({ sessionUpdate: "plan", entries: [{ content: evil, status: evil, priority: evil }] });
  update({ sessionUpdate: "available_commands_update", availableCommands: [{ name: evil, description: evil }, { name: "evil", description: evil, input: { hint: evil } }] });
  update({ sessionUpdate: "usage_update", used: 5, size: 10, cost: { amount: 1, currency: evil } });
  update({ sessionUpdate: "session_info_update", title: evil });
  update({ sessionUpdate: "notice", severity: evil, title: evil, description: evil });
  update({ sessionUpdate: "config_option_update", configOptions: [
    { id: "x", type: "select", name: evil, description: evil, category: evil, currentValue: "a", options: [{ value: "a", name: evil }] },
    { id: "y", type: evil, name: evil },
  ] });
}

if (how !== "silent") {
  for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if (message.id === "read" || message.id === "ask") {
      say(`answer: ${JSON.stringify(message.error ?? message.result)}`);
      send({ id: permission, result: { stopReason: "end_turn" } });
    } else if (message.method === "session/prompt") {
      const words = message.params.prompt.map((block) => block.text ?? block.type).join(" ");
      if (prompts[how] === undefined) say(`You said: ${words}`);
      else if (prompts[how](message.id) === true) continue;
      send({ id: message.id, result: { stopReason: "end_turn" } });
    } else if (message.method === "session/cancel") {
      if (how === "steers") send({ id: waiting, result: { stopReason: "cancelled" } });
    } else if (message.id !== undefined) {
      const answer = answers[message.method];
      if (answer === undefined) send({ id: message.id, error: { code: -32601, message: `no ${message.method}` } });
      else send({ id: message.id, result: answer() });
    }
  }
} else {
  setInterval(() => undefined, 1000);
}
