// An agent made with the official TypeScript SDK, which checks all that its client sends: it reads
// the file that it is named, asks whether it may change it, and changes it through the client.

import { Readable, Writable } from "node:stream";
import { agent, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

let cancelled = () => {};

agent({ name: "sdk-agent" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: PROTOCOL_VERSION,
    agentCapabilities: {},
    agentInfo: { name: "sdk-agent", version: "1.0.0" },
  }))
  .onRequest(methods.agent.session.new, ({ params }) => ({ sessionId: `in ${params.cwd}` }))
  .onNotification(methods.agent.session.cancel, () => cancelled())
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId } = params;
    const update = (one) =>
      client.notify(methods.client.session.update, { sessionId, update: one });
    const speak = (text) =>
      update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    const path = `${sessionId.slice("in ".length)}/greeting.py`;
    if (params.prompt[0].text.includes("wait")) {
      await speak("Waiting.");
      await new Promise((resolve) => (cancelled = resolve));
      return { stopReason: "cancelled" };
    }
    const { content: oldText } = await client.request(methods.client.fs.readTextFile, {
      sessionId,
      path,
    });
    const newText = oldText.replace("Hello", "Good day");
    const toolCall = {
      toolCallId: "change",
      title: "Change the greeting",
      kind: "edit",
      content: [{ type: "diff", path, oldText, newText }],
      locations: [{ path }],
    };
    await update({ sessionUpdate: "tool_call", status: "pending", ...toolCall });
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall,
      options: [
        { optionId: "y", name: "Change it", kind: "allow_once" },
        { optionId: "n", name: "Leave it", kind: "reject_once" },
      ],
    });
    const allowed = outcome.outcome === "selected" && outcome.optionId === "y";
    if (allowed) {
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content: newText });
    }
    const status = allowed ? "completed" : "failed";
    await update({ sessionUpdate: "tool_call_update", toolCallId: "change", status });
    await speak(allowed ? "It is changed." : "It stays.");
    return { stopReason: "end_turn" };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
