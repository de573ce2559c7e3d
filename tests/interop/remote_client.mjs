// Drives a listening agent with the official TypeScript SDK's clients for streamable HTTP and
// WebSocket, and prints what happened as JSON.
//
// Its one argument is JSON: {transport, url, token, cwd, press, steps, sessionId?}; `transport` is
// "http" or "websocket". Each step begins a connection of its own: {prompt, cutWhen?} loads the
// session unless it is the first, prompts, and cuts the connection once a text has come; {load:
// true} loads the session and waits for the text in `until`, where it has one.

import { client, methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { createHttpStream, MemoryAcpCookieStore } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const task = JSON.parse(process.argv[2]);
const seen = { connections: [], asked: [], stops: [], requests: [], sessionId: task.sessionId };
const cookieStore = new MemoryAcpCookieStore();
let updates = [];
let watch = null; // {wanted, found}

function textOf(list) {
  return list.map((one) => one.content?.text ?? "").join("");
}

function noticed() {
  if (watch !== null && textOf(updates).includes(watch.wanted)) watch.found();
}

function reached(wanted) {
  return new Promise((resolve) => {
    watch = { wanted, found: resolve };
    noticed();
  });
}

const app = client({ name: "remote-client" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    noticed();
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.toolCall);
    const option = params.options.find((one) => one.kind === task.press);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  });

// The SDK's fetch, with a note of what was sent and answered, and a way to cut all of it.
function recordingFetch(abort) {
  return async (url, init) => {
    const signal = init.signal ? AbortSignal.any([init.signal, abort.signal]) : abort.signal;
    const response = await fetch(url, { ...init, signal });
    seen.requests.push({
      method: init.method,
      status: response.status,
      cookie: new Headers(init.headers).get("cookie"),
    });
    return response;
  };
}

function opened(abort) {
  if (task.transport === "http") {
    const headers = { Authorization: `Bearer ${task.token}` };
    return createHttpStream(task.url, { headers, cookieStore, fetch: recordingFetch(abort) });
  }
  // As in a browser: the constructor takes no headers, so the token is a subprotocol.
  const protocols = ["acp", `acp.bearer.${task.token}`];
  return createWebSocketStream(task.url.replace("http", "ws"), { protocols });
}

async function run(step, first) {
  const abort = new AbortController();
  const stream = opened(abort);
  updates = [];
  seen.connections.push(updates);
  await app.connectWith(stream, async (context) => {
    seen.initialized = await context.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: {},
      clientInfo: { name: "remote-client", version: "1.0.0" },
    });
    if (first) {
      const made = await context.request(methods.agent.session.new, {
        cwd: task.cwd,
        mcpServers: [],
      });
      seen.sessionId = made.sessionId;
    } else {
      await context.request(methods.agent.session.load, {
        sessionId: seen.sessionId,
        cwd: task.cwd,
        mcpServers: [],
      });
    }
    if (step.until) await reached(step.until);
    if (!step.prompt) return;
    const answered = context.request(methods.agent.session.prompt, {
      sessionId: seen.sessionId,
      prompt: [{ type: "text", text: step.prompt }],
    });
    if (step.cutWhen) {
      await reached(step.cutWhen);
      answered.catch(() => {});
      return;
    }
    seen.stops.push((await answered).stopReason);
  });
}

for (const [index, step] of task.steps.entries()) {
  await run(step, index === 0 && !task.sessionId);
}
console.log(JSON.stringify(seen));
process.exit(0);
