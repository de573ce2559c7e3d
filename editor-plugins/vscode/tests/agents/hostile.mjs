// Agents that do harm, or break, for the tests: `node hostile.mjs HOW [FILE]`.
// FILE counts the lives of those that behave otherwise in another life.

import { createInterface } from "node:readline";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const how = process.argv[2] ?? "";
const counter = process.argv[3] ?? "";
const life = counter === "" ? 1 : Number(existsSync(counter) ? readFileSync(counter, "utf8") : 0) + 1;
if (counter !== "") writeFileSync(counter, String(life));

const write = (text) => new Promise((done) => process.stdout.write(text, done));
const send = (message) => void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const update = (update, sessionId = "s1") => send({ method: "session/update", params: { sessionId, update } });
const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

/** The sessions that this life knows. */
const known = new Set();
/** id of a request of ours → what its answer is given to */
const asked = new Map();
let lastAsked = 0;
const ask = (method, params, id = `q${(lastAsked += 1)}`) =>
  new Promise((done) => {
    asked.set(id, done);
    send({ id, method, params });
  });
const told = (answer) => JSON.stringify(answer.error?.message ?? answer.result);
const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }, { optionId: "no", name: "No", kind: "reject_once" }];
const permission = (at) => ask("session/request_permission", { sessionId: "s1", toolCall: { toolCallId: `t${at}`, title: `Do ${at}` }, options });
const crash = () => write("").then(() => process.exit(9));

/** What is done at the start, before anything is asked. */
const starts = {
  "fails-second": () => (life === 2 ? process.exit(4) : undefined),
  "silent": () => new Promise(() => setInterval(() => undefined, 1000)),
};

/** What a prompt does. Without an answer given back the turn ends. */
const prompts = {
  crash: () => (life === 1 ? crash() : say(`life ${life}`)),
  "fails-second": () => (life === 1 ? crash() : say(`life ${life}`)),
  long: async () => {
    await write("x".repeat(8 << 20));
    for (let at = 0; at < 25; at += 1) await write("x".repeat(8 << 20));
    await write("\n");
  },
  files: async (words) => {
    for (const path of JSON.parse(words)) {
      say(`${told(await ask("fs/read_text_file", { sessionId: "s1", path }))}\n`);
      say(`${told(await ask("fs/write_text_file", { sessionId: "s1", path, content: "owned" }))}\n`);
    }
  },
  duplicate: async () => {
    const first = ask("session/request_permission", { sessionId: "s1", toolCall: { toolCallId: "a", title: "First" }, options }, "same");
    send({ id: "same", method: "session/request_permission", params: { sessionId: "s1", toolCall: { toolCallId: "b", title: "Second" }, options } });
    say(`first: ${told(await first)}`);
  },
  "odd-requests": async () => {
    for (const bad of [
      { id: null, method: "fs/read_text_file", params: null }, { id: {}, method: "x" }, { id: [1] }, { method: 5 },
      { id: 7, method: "fs/read_text_file", params: { path: 5 } }, { id: 8, method: "no/such" }, { method: "no/such" },
      { id: 9, method: "session/request_permission", params: { sessionId: "s1" } },
      { id: 999, result: {} }, { id: 998, error: "no" }, { method: "elicitation/complete" }, { id: 10, method: "elicitation/create", params: {} },
    ]) send(bad);
    const mine = await ask("fs/read_text_file", { sessionId: "s1", path: process.argv[1] });
    say(told(mine));
  },
  "die-asking": async () => (life === 1 ? (permission(1), await new Promise((done) => setTimeout(done, 100)), crash()) : say("again")),
  asks: async () => say((await Promise.all(Array.from({ length: 500 }, (_, at) => permission(at)))).map(told).join("")),
  strangers: () => {
    for (let at = 0; at < 20_000; at += 1) update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x".repeat(100) } }, `stranger${at}`);
    say("done");
  },
  big: () => big(),
  heavy: () => {
    const text = "line\n".repeat(300_000);
    for (let at = 0; at < 30; at += 1) {
      update({ sessionUpdate: "tool_call", toolCallId: `t${at}`, title: `Call ${at}`, kind: "edit", status: "completed", content: [{ type: "diff", path: `/x/${at}`, oldText: text, newText: `${text}${at}` }] });
    }
  },
  images: () => {
    for (let at = 0; at < 60; at += 1) update({ sessionUpdate: "agent_message_chunk", messageId: "m", content: { type: "image", mimeType: "image/png", data: "A".repeat(1 << 20) } });
  },
  env: () => say(JSON.stringify({ env: process.env, cwd: process.cwd(), args: process.argv.slice(3) })),
  "env-log": async () => {
    process.stderr.write(`using ${process.env.MY_API_KEY}\n`);
    say(`my key is ${process.env.MY_API_KEY}`);
  },
};

function big() {
  const text = "<b>".repeat(300_000);
  const many = (make) => Array.from({ length: 3_000 }, (_, at) => make(at));
  update({ sessionUpdate: "tool_call", toolCallId: text, title: text, kind: text, status: text, locations: many(() => ({ path: text.slice(0, 5_000) })), rawInput: { text } });
  update({ sessionUpdate: "plan", entries: many(() => ({ content: text.slice(0, 1_000), status: text.slice(0, 300), priority: text.slice(0, 300) })) });
  update({ sessionUpdate: "plan_update", plan: { type: "markdown", planId: text, content: text } });
  update({ sessionUpdate: "usage_update", used: 1e308, size: -1, cost: { amount: 1e300, currency: text } });
  update({ sessionUpdate: "session_info_update", title: text });
  update({ sessionUpdate: "available_commands_update", availableCommands: many((at) => ({ name: `c${at}`, description: text.slice(0, 2_000) })) });
  update({ sessionUpdate: "config_option_update", configOptions: many((at) => ({ id: `o${at}`, type: "select", name: text.slice(0, 2_000), description: text.slice(0, 2_000), category: text.slice(0, 2_000), currentValue: "a", options: [{ value: "a", name: text.slice(0, 2_000) }] })) });
  void permission(text);
  void ask("elicitation/create", { sessionId: "s1", mode: "form", message: text, requestedSchema: { type: "object", properties: Object.fromEntries(many((at) => [`f${at}`, { type: "string", title: text.slice(0, 2_000) }])) } });
}

const odd = { "shape-null": null, "shape-list": [], "shape-text": "yes", "shape-number": 5, "shape-id": { sessionId: 5 } };

const answers = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: how !== "resumes", sessionCapabilities: how === "resumes" ? { resume: {} } : {} },
    authMethods: how === "big" ? [{ id: "x", name: "<b>".repeat(300_000), description: "<b>".repeat(300_000) }] : [],
  }),
  "session/new": () => {
    known.add("s1");
    return how in odd ? odd[how] : { sessionId: "s1" };
  },
  "session/load": ({ sessionId }) => {
    known.add(sessionId);
    return {};
  },
  "session/resume": ({ sessionId }) => answers["session/load"]({ sessionId }),
};

async function handle(message) {
  if (message.method === undefined) {
    asked.get(message.id)?.(message);
    asked.delete(message.id);
  } else if (message.method === "session/prompt") {
    if (!known.has(message.params.sessionId)) return send({ id: message.id, error: { code: -32002, message: "no such session" } });
    await (prompts[how] ?? (() => say("hello")))(message.params.prompt.map((block) => block.text ?? "").join(""));
    send({ id: message.id, ...(how === "malformed" ? {} : { result: how === "shape-null" ? null : { stopReason: "end_turn" } }) });
  } else if (message.id !== undefined) {
    const answer = answers[message.method];
    if (how === "malformed-start" && message.method === "initialize") send({ id: message.id, result: {}, error: {} });
    else if (answer === undefined) send({ id: message.id, error: { code: -32601, message: `no ${message.method}` } });
    else send({ id: message.id, result: answer(message.params) });
  }
}

await starts[how]?.();
for await (const line of createInterface({ input: process.stdin })) {
  void handle(JSON.parse(line));
  if (how === "deaf" && known.size > 0) {
    setInterval(() => undefined, 1000);
    break;
  }
}
