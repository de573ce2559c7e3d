import { describe, expect, it } from "vitest";

import { Secrets } from "../../src/core/secrets";
import { WireLines } from "../../src/core/wireLines";
import type { WireLog } from "../../src/core/settings";
import { hostile, message, until, use } from "./harness";

function log(how: WireLog = "full"): { lines: WireLines; written: string[]; clock: { now: number } } {
  const written: string[] = [];
  const clock = { now: 0 };
  return { written, clock, lines: new WireLines(() => how, (line) => written.push(line), () => clock.now) };
}

const secret = "Zq8-secret-of-the-test";

describe("the log of the wire", () => {
  it.each([
    ["in", { method: "elicitation/create", id: 1, params: { env: [{ name: "A", value: secret }] } }],
    ["out", { method: "session/new", id: 1, params: { mcpServers: [{ name: "x", env: [{ name: "A", value: secret }] }, { headers: [{ name: "X", value: secret }] }] } }],
    ["in", { method: "terminal/create", id: 1, params: { command: "x", env: [{ name: "A", value: secret }] } }],
    ["in", { id: 0, result: { authMethods: [{ id: "x", env: { A: secret } }] } }],
    ["out", { method: "authenticate", id: 1, params: { methodId: "key", _meta: { key: secret } } }],
    ["in", { method: "session/update", params: { update: { rawInput: { apiKey: secret, nested: { "x-api-key": secret, password: secret } } } } }],
    ["in", { method: "session/update", params: { update: { content: { text: `{"client_secret": "${secret}"} and TOKEN=${secret}` } } } }],
    ["in", { method: "session/update", params: { update: { content: { text: `Authorization: Bearer ${secret}` } } } }],
  ] as const)("has no secret that goes %s (%#)", (direction, content) => {
    const { lines, written } = log();
    lines.line(direction, JSON.stringify({ jsonrpc: "2.0", ...content }));
    expect(written).toHaveLength(1);
    expect(written[0]).not.toContain(secret);
    expect(written[0]).toContain("•••");
  });

  it("has no key that looks like one", () => {
    const secrets = new Secrets();
    for (const key of [`sk-ant-${"a1".repeat(20)}`, `ghp_${"A1".repeat(15)}`, `AIza${"B2".repeat(17)}`, `AKIA${"C".repeat(16)}`, `eyJhbGciOiJI.eyJzdWIiOiIx.${"d".repeat(20)}`]) {
      expect(secrets.text(`it is ${key}.`)).toBe("it is •••.");
    }
  });

  it("has what is no secret", () => {
    const { lines, written } = log();
    const line = JSON.stringify({ jsonrpc: "2.0", id: 3, result: { stopReason: "end_turn", usage: { inputTokens: 123456, maxTokens: "200000" }, configOptions: [{ id: "model" }], cursor: "abcdefgh" } });
    lines.line("in", line);
    expect(written).toEqual([`← ${line}`]);
  });

  it("has no answer to a form, nor later what was answered in a secret field of it", () => {
    for (const how of ["full", "off"] as const) {
      const { lines, written } = log(how);
      const form = { mode: "form", requestedSchema: { properties: { a: { type: "string", format: "password" }, userPin: { type: "string" }, colour: { type: "string" } } } };
      lines.line("in", JSON.stringify({ jsonrpc: "2.0", id: "q", method: "elicitation/create", params: form }));
      lines.line("out", JSON.stringify({ jsonrpc: "2.0", id: "q", result: { action: "accept", content: { a: secret, userPin: "493871", colour: "purple" } } }));
      lines.stderr(`got ${secret} and 493871 and purple\n`);
      expect(written.join("\n")).not.toMatch(/Zq8|493871|"purple"/u);
      expect(written.at(-1)).toBe("! got ••• and ••• and purple");
      expect(written).toHaveLength(how === "off" ? 1 : 3);
    }
  });

  it("has no secret in parts: of the error output or where a line is cut", () => {
    const { lines, written } = log("short");
    lines.secrets.learnEnvironment({ MY_API_KEY: secret, EDITOR: "some-editor", MAX_TOKENS: "200000" });
    for (const piece of ["key: ", secret.slice(0, 9), `${secret.slice(9)} some-editor 200000\n`]) lines.stderr(piece);
    expect(written).toEqual(["! key: ••• some-editor 200000"]);
    lines.line("in", `${"x".repeat(390)}${secret}${"y".repeat(100)}`);
    expect(written[1]).not.toContain("Zq8");
  });

  it("has no more than so many lines a second, and none without an end", () => {
    const { lines, written, clock } = log("full");
    for (let at = 0; at < 2_000; at += 1) lines.line("in", "{}");
    clock.now = 1_000;
    lines.line("in", "{}");
    expect(written).toHaveLength(502);
    expect(written[500]).toBe("… 1500 more lines");
    lines.line("in", "x".repeat(1_000_000));
    lines.stderr("y".repeat(1_000_000));
    expect(Math.max(...written.map((line) => line.length))).toBeLessThan(201_000);
  });

  it("of an agent has none of the user's variables, whatever the agent prints", async () => {
    const { lines, written } = log("full");
    const env = { MY_API_KEY: secret };
    lines.secrets.learnEnvironment(env);
    const { client } = use({ ...hostile("env-log"), env }, { line: (direction, line) => lines.line(direction, line), stderr: (text) => lines.stderr(text) });
    await client.prompt(message("go"));
    await until(() => written.some((line) => line.startsWith("! using")));
    expect(written.join("\n")).toContain("my key is •••");
    expect(written.join("\n")).not.toContain(secret);
  });
});
