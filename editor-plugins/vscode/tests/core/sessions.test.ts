import { describe, expect, it } from "vitest";

import { badAgent, message, until, use } from "./harness";

describe("a session without a title of the agent's", () => {
  it("is called by the user's first words, until it has one", async () => {
    const { client } = use(badAgent("good"));
    await client.start();
    expect(client.active.name).toBe("");
    await client.prompt(message(`Make the greeting\npolite ${"please ".repeat(20)}`));
    await client.prompt(message("And now?"));
    expect(client.active.name).toMatch(/^Make the greeting polite please .* …$/u);
    expect(client.active.name.length).toBeLessThan(70);
    client.active.update({ sessionUpdate: "session_info_update", title: "Politeness" });
    expect(client.active.name).toBe("Politeness");
  });
});

describe("a session that asks", () => {
  it("waits until it is answered", async () => {
    const { client, told } = use(badAgent("asks"));
    await client.start();
    const session = client.active;
    void client.prompt(message("go"));
    await until(() => told.asked.length > 0);
    expect(session.asking.waits).toBe(true);
    session.cancel();
    expect(session.asking.waits).toBe(false);
  });
});
