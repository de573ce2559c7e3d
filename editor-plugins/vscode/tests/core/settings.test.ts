import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";

import { agentOf, settingsOf, type Places } from "../../src/core/settings";
import { fresh, hostile, message, say, texts, until, use } from "./harness";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  contributes: { configuration: { properties: Record<string, { default: unknown; enum?: string[] }> } };
};
const properties = manifest.contributes.configuration.properties;
const places: Places = { workspaceFolder: "/project", userHome: "/home/me", env: { KEY: "value" } };

describe("the settings", () => {
  it("are all read, and have the defaults that the editor shows", () => {
    const asked = new Set<string>();
    const nothing = settingsOf((name) => void asked.add(name));
    const defaults = settingsOf((name) => properties[`acpAgent.${name}`]?.default);
    expect([...asked].map((name) => `acpAgent.${name}`).sort()).toEqual(Object.keys(properties).sort());
    expect({ ...nothing, agents: ["acp-agent"] }).toEqual(defaults);
  });

  it("have each value that the editor offers", () => {
    for (const [name, { enum: values = [] }] of Object.entries(properties)) {
      for (const value of values) {
        const read = settingsOf((asked) => (`acpAgent.${asked}` === name ? value : undefined));
        expect(Object.values(read), `${name}: ${value}`).toContain(value);
      }
    }
  });

  it("that cannot be are the defaults", () => {
    const wrong = settingsOf((name) => ({ agent: 5, agents: [], startTimeout: "soon", thoughts: "loud", wireLog: true, terminals: "no", "files.outsideWorkspace": "Allow" })[name]);
    expect(wrong).toEqual({ ...settingsOf(() => undefined), agents: [] });
    for (const [given, seconds] of [[-5, 1], [0, 1], [1e9, 600], [Number.NaN, 30]]) {
      expect(settingsOf((name) => (name === "startTimeout" ? given : undefined)).startSeconds).toBe(seconds);
    }
  });
});

describe("the command of an agent", () => {
  it("has its places filled in", () => {
    const agents = { mine: { command: "~/bin/agent", args: ["${workspaceFolder}/x", "${env:KEY}${env:NONE}", "${other}"], env: { A: "${userHome}" } } };
    expect(agentOf(agents, "mine", places, say)).toEqual({
      name: "mine", command: "/home/me/bin/agent", args: ["/project/x", "value", "${other}"], env: { A: "/home/me" }, cwd: "/project",
    });
  });

  it.each([
    [undefined, "No agent named “mine” is configured"],
    ["agent", "{ command, args, env }"],
    [{}, "command:"],
    [{ command: " " }, "command:"],
    [{ command: "a", args: "x" }, "args:"],
    [{ command: "a", args: [1] }, "args:"],
    [{ command: "a", env: [] }, "env:"],
    [{ command: "a", env: { PORT: 8080 } }, "PORT"],
    [{ command: "a", env: { "A=B": "x" } }, "A=B"],
  ])("that is wrong is told to be so (%j)", (agent, words) => {
    expect(agentOf({ mine: agent }, "mine", places, say)).toContain(words);
  });

  it("reaches the agent, which works in the workspace's folder", async () => {
    const command = agentOf({ mine: { ...hostile("env"), args: [...hostile("env").args, "", "${workspaceFolder}"], env: { MINE: "${env:KEY}" } } }, "mine", { ...places, workspaceFolder: tmpdir() }, say);
    if (typeof command === "string") throw new Error(command);
    const { client } = use(command);
    await client.prompt(message("go"));
    expect(JSON.parse(texts(client.active, "agent"))).toMatchObject({ env: { MINE: "value" }, cwd: tmpdir(), args: ["", tmpdir()] });
  });
});

describe("an agent whose settings change", () => {
  it("is started anew with them and goes on with its session", async () => {
    const { client } = use({ ...hostile("env"), env: { MINE: "1" } });
    await client.prompt(message("go"));
    const session = client.active;
    await client.restart({ ...client.command, env: { MINE: "2" } });
    await client.prompt(message("go"));
    expect(client.active).toBe(session);
    expect(texts(session, "agent")).toContain('"MINE":"2"');
  });

  it("can be mended when it could not be started", async () => {
    const { client } = use({ ...hostile("none"), command: "no-such-agent" });
    await client.start();
    expect(client.view.phase).toBe("failed");
    await client.restart(hostile("none"));
    expect(client.view.phase).toBe("ready");
    expect(client.open).toHaveLength(1);
  });

  it("is offered terminals from then on, or is not", async () => {
    let offered = false;
    const terminals = { create: () => ({ terminalId: "" }), output: () => ({ output: "", truncated: false }), waitForExit: () => Promise.resolve({}), kill: () => undefined, release: () => undefined, dispose: () => undefined };
    const { client, told } = use(hostile("none", fresh("lives")), { get terminals() { return offered ? terminals : null; } });
    await client.start();
    offered = true;
    await client.restart();
    const announced = told.log.filter((line) => line.includes('"initialize"')).map((line) => line.includes('"terminal":true'));
    expect(announced).toEqual([false, true]);
    await until(() => client.view.phase === "ready");
  });
});
