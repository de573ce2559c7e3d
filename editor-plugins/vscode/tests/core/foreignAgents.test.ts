/** Agents that nobody here wrote: the example of the SDK, of a time before most of what is asked for here. */

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

import type { AgentCommand } from "../../src/core/agentProcess";
import { message, notices, texts, tools, until, use } from "./harness";

const script = fileURLToPath(new URL("../../node_modules/example-agent/dist/examples/agent.js", import.meta.url));
const example: AgentCommand = { name: "example", command: process.execPath, args: [script], env: {}, cwd: process.cwd() };

describe("the example agent of the SDK", () => {
  it("works in a turn with a permission", async () => {
    const { client, told } = use(example, {
      asked: (session, asked) => {
        told.asked.push([session, asked]);
        session.asking.choose(asked.requestId, "allow");
      },
    });
    await client.prompt(message("improve it"));
    expect(told.asked).toHaveLength(1);
    expect(texts(client.active, "agent")).toContain("successfully updated");
    expect(tools(client.active).map((item) => [item.title, item.toolKind, item.locations[0]?.outside])).toEqual([
      ["Reading project files", "read", true], ["Modifying critical configuration file", "edit", true],
    ]);
    expect(notices(client.active)).toBe("");
  });

  it("is stopped in the middle of its turn, has the next one, and says so where it cannot resume", async () => {
    const { client } = use(example);
    const turn = client.prompt(message("improve it"));
    await until(() => tools(client.active).length === 1);
    client.active.cancel();
    await turn;
    expect(notices(client.active)).toBe("Stopped.");
    void client.prompt(message("again"));
    await until(() => tools(client.active).length === 1 && client.active.running);
    client.kill();
    await until(() => notices(client.active).includes("could not resume this conversation: the agent cannot reopen sessions"));
    expect(await client.newSession()).not.toBeNull();
    expect(client.active.header.options).toEqual([]);
  });
});
