// Drives an agent with the official TypeScript SDK's client and prints what happened as JSON.
//
// Its one argument is JSON: {command, arguments, env, cwd, press, steps}. A step is
// {prompt, cancelWhen?}: text to prompt, and the text or tool call status at which to cancel it;
// {load: true} opens the session of the steps before in a fresh process.

import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const task = JSON.parse(process.argv[2]);
const seen = { updates: [], replayed: [], asked: [], written: [], stops: [], exit: null };
let into = seen.updates;
let watch = null; // {wanted, found}

function noticed(update) {
  if (watch === null) return;
  const text = update.content?.text ?? "";
  if (update.status === watch.wanted || text.includes(watch.wanted)) watch.found();
}

const app = client({ name: "sdk-client" })
  .onNotification(methods.client.session.update, ({ params }) => {
    into.push(params.update);
    noticed(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.toolCall);
    const option = params.options.find((one) => one.kind === task.press);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params }) => ({
    content: await readFile(params.path, "utf-8"),
  }))
  .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
    seen.written.push(params.path);
    await writeFile(params.path, params.content);
    return {};
  });

async function connected(work) {
  const agent = spawn(task.command, task.arguments, {
    env: task.env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  await app.connectWith(stream, async (context) => {
    seen.initialized = await context.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
      clientInfo: { name: "sdk-client", version: "1.0.0" },
    });
    await work(context);
  });
  agent.stdin.end();
  seen.exit = await ended;
}

async function prompt(context, step) {
  const reached = new Promise((resolve) => {
    watch = step.cancelWhen ? { wanted: step.cancelWhen, found: resolve } : null;
  });
  const answered = context.request(methods.agent.session.prompt, {
    sessionId: seen.sessionId,
    prompt: [{ type: "text", text: step.prompt }],
  });
  if (step.cancelWhen) {
    await reached;
    await context.notify(methods.agent.session.cancel, { sessionId: seen.sessionId });
  }
  seen.stops.push((await answered).stopReason);
}

await connected(async (context) => {
  const made = await context.request(methods.agent.session.new, { cwd: task.cwd, mcpServers: [] });
  seen.sessionId = made.sessionId;
  seen.configOptions = made.configOptions;
  for (const step of task.steps) if (step.prompt) await prompt(context, step);
});
if (task.steps.some((step) => step.load)) {
  into = seen.replayed;
  await connected((context) =>
    context.request(methods.agent.session.load, {
      sessionId: seen.sessionId,
      cwd: task.cwd,
      mcpServers: [],
    }),
  );
}
console.log(JSON.stringify(seen));
