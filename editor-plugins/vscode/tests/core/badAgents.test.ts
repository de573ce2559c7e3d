import { describe, expect, it } from "vitest";

import { badAgent, fresh, message, notices, texts, tools, until, use } from "./harness";

describe("an agent that cannot be used is shown as what it is", () => {
  it("says that a command is missing, and gives the message back", async () => {
    const { client } = use({ ...badAgent("good"), command: "no-such-agent-anywhere" });
    expect(await client.prompt(message("hello"))).toBe(false);
    expect(client.view.phase).toBe("failed");
    expect(client.view.problem).toContain("“no-such-agent-anywhere” not found");
  });

  it("tells the exit code and the error output of one that dies at start", async () => {
    const { client } = use(badAgent("dies"));
    await client.start();
    expect(client.view).toMatchObject({ phase: "failed", detail: "cannot find its configuration" });
    expect(client.view.problem).toContain("exit code 3");
  });

  it("tells the version of one that speaks another", async () => {
    const { client } = use(badAgent("version"));
    await client.start();
    expect(client.view.problem).toContain("uses version 7 of the protocol; this extension supports version 1");
  });

  it("gives up on one that never answers", async () => {
    const { client } = use(badAgent("silent"), { startSeconds: 0.5 });
    await client.start();
    expect(client.view.problem).toContain("did not respond within 0.5 seconds");
  });

  it("shows what one prints that is not the protocol, and works on", async () => {
    const { client } = use(badAgent("garbage"));
    await client.start();
    await client.prompt(message("hello"));
    expect(notices(client.active)).toContain("Loading the model, please wait");
    expect(client.lobby.transcript.items).toEqual([]);
    expect(texts(client.active, "agent")).not.toBe("");
  });

  it("can be started again after it failed", async () => {
    const { client } = use(badAgent("version"));
    await client.start();
    await client.restart();
    expect(client.view.phase).toBe("failed");
  });
});

describe("an agent that ends in a turn", () => {
  it.each(["crash", "resumes"])("is started again and the session goes on (%s)", async (how) => {
    const { client, told } = use(badAgent(how, fresh("crashed")));
    await client.prompt(message("work"));
    const session = client.active;
    await until(() => notices(session).includes("You can continue the conversation"));
    expect(told.phases).toContain("restarting");
    expect(session.running).toBe(false);
    await client.prompt(message("and now?"));
    expect(client.active).toBe(session);
    expect(texts(session, "agent")).toContain("I am back.");
    expect(notices(session)).toContain("You can continue the conversation");
  });

  it("keeps what was shown where the agent resumes without a replay", async () => {
    const { client } = use(badAgent("resumes", fresh("crashed")));
    await client.prompt(message("work"));
    await until(() => notices(client.active).includes("You can continue the conversation"));
    expect(texts(client.active, "agent")).toBe("half of an ans");
    expect(notices(client.active)).toContain("exit code 9");
  });

  it("is not started again for ever", async () => {
    const { client } = use(badAgent("always"));
    for (let at = 0; at < 5; at += 1) {
      await until(() => client.view.phase === "ready" || client.view.phase === "stopped" || client.view.phase === "failed");
      await client.prompt(message("work"));
      await until(() => client.view.phase !== "ready");
    }
    await until(() => client.view.phase === "failed");
    expect(client.view.problem).toContain("5 times, each time within a minute");
  });
});

describe("an agent that sends too much, or what nobody knows", () => {
  it("is read while the editor goes on", async () => {
    const { client } = use(badAgent("flood"));
    await client.start();
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 5);
    await client.prompt(message("go"));
    clearInterval(timer);
    const item = client.active.transcript.items.at(-1);
    expect(item).toMatchObject({ kind: "agent", cut: 20_000 * 100 - 400_000 });
    expect(turns).toBeGreaterThan(10);
  });

  it("has every one of a thousand tool calls shown", async () => {
    const { client } = use(badAgent("calls"));
    await client.prompt(message("go"));
    expect(tools(client.active)).toHaveLength(1000);
    expect(tools(client.active).every((item) => item.status === "completed")).toBe(true);
  });

  it("has unknown updates kept, and malformed ones do no harm", async () => {
    const { client } = use(badAgent("unknown"));
    await client.prompt(message("go"));
    expect(notices(client.active)).toContain("hologram");
    expect(tools(client.active)[0]?.parts[0]).toMatchObject({ type: "unknown", name: "smell" });
  });

  it("does not lose updates that come before the answer which opens their session", async () => {
    const { client } = use(badAgent("early"));
    await client.start();
    expect(client.active.header.commands.map((command) => command.name)).toEqual(["early"]);
  });
});

describe("a turn", () => {
  it("that is asked for while the first session is being opened runs in that session", async () => {
    const { client } = use(badAgent("good"));
    void client.start();
    await until(() => client.view.phase === "ready");
    void client.start();
    await client.prompt(message("hello"));
    expect(client.open).toHaveLength(1);
    expect(texts(client.active, "agent")).toBe("You said: hello");
  });

  it("that is stopped withdraws what was asked", async () => {
    const { client, told } = use(badAgent("asks"));
    const turn = client.prompt(message("go"));
    await until(() => told.asked.length === 1);
    expect(tools(client.active)[0]?.permission?.options).toHaveLength(2);
    client.active.cancel();
    await turn;
    expect(texts(client.active, "agent")).toContain('"cancelled"');
    expect(tools(client.active)[0]?.permission).toBeUndefined();
  });

  it("takes no answer that was not offered", async () => {
    const { client, told } = use(badAgent("asks"));
    const turn = client.prompt(message("go"));
    await until(() => told.asked.length === 1);
    const asked = told.asked[0]?.[1].requestId ?? 0;
    client.active.asking.choose(asked, "everything");
    client.active.asking.choose(asked + 1000, "yes");
    expect(client.active.asking.permissions).toHaveLength(1);
    client.active.asking.choose(asked, "no");
    await turn;
    expect(texts(client.active, "agent")).toContain('"optionId":"no"');
  });

  it("lets words reach an agent that can be steered", async () => {
    const { client, told } = use(badAgent("steers"));
    const turn = client.prompt(message("go"));
    await until(() => texts(client.active, "agent") === "working");
    await client.prompt(message("left"));
    expect(told.log.some((line) => line.startsWith("out") && line.includes("_session/steering") && line.includes("left"))).toBe(true);
    expect(texts(client.active, "user")).toBe("goleft");
    client.active.cancel();
    await turn;
    expect(notices(client.active)).toBe("Stopped.");
  });

  it("lets words wait where the agent cannot be steered", async () => {
    const { client } = use(badAgent("mute"));
    void client.prompt(message("go"));
    await until(() => client.active.running);
    await client.prompt(message("later"));
    expect(client.active.header.waiting).toEqual(["later"]);
  });
});
