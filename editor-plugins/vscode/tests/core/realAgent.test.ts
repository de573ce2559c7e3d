/**
 * The real agent, with its offline model: whole turns. ACP_AGENT_COMMAND is the command that starts it;
 * without it these tests do not run.
 */

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";

import type { AgentCommand } from "../../src/core/agentProcess";
import type { AgentClient } from "../../src/core/client";
import { Reviews } from "../../src/core/reviews";
import { clientOf, message, notices, texts, tools, until, type Told } from "./harness";

const command = process.env["ACP_AGENT_COMMAND"] ?? "";

interface World {
  client: AgentClient;
  told: Told;
  cwd: string;
}

function world(args: string[], answer = "allow_once"): World {
  const home = mkdtempSync(join(tmpdir(), "acp-vscode-"));
  const cwd = mkdtempSync(join(tmpdir(), "acp-vscode-project-"));
  writeFileSync(join(cwd, "greeting.py"), 'def greet(name):\n    return f"Hello {name}"\n');
  const none = Object.fromEntries(["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"].map((name) => [name, ""]));
  const started: AgentCommand = { name: "acp-agent", command, args, env: { ...none, HOME: home, ACP_AGENT_HOME: join(home, "acp-agent") }, cwd };
  const made = clientOf(started, {
    asked: (session, asked) => {
      made.told.asked.push([session, asked]);
      if (asked.kind !== "permission") return;
      session.asking.choose(asked.requestId, asked.options.find((option) => option.kind === answer)?.optionId ?? "");
    },
  });
  onTestFinished(() => made.client.stop());
  return { ...made, cwd };
}

describe.skipIf(command === "")("with the real agent", () => {
  it("an edit is asked about, made through the editor, and can be reviewed", async () => {
    const { client, told, cwd } = world(["--model", "demo/demo"]);
    await client.prompt(message("replace Hello with Goodbye in greeting.py"));
    const path = join(cwd, "greeting.py");
    expect(told.asked).toHaveLength(1);
    expect(told.written.get(path)).toContain("Goodbye");
    const edit = tools(client.active).find((item) => item.toolKind === "edit");
    expect(edit?.status).toBe("completed");
    expect(edit?.permission).toBeUndefined();
    expect(edit?.parts[0]).toMatchObject({ type: "diff", added: 1, removed: 1, location: { label: "greeting.py", outside: false } });
    const diff = client.active.transcript.callOfItem(edit?.id ?? "")?.diffs.get(0);
    const reviews = new Reviews(() => undefined);
    reviews.wrote(path, diff?.before ?? null, readFileSync(path, "utf8"));
    expect(reviews.hunks(path, readFileSync(path, "utf8"))).toHaveLength(1);
    expect(client.active.header.usage?.used).toBeGreaterThan(0);
    expect(client.active.header.options.map((option) => option.category)).toEqual(["mode", "model", "_agent"]);
  });

  it("a refused command does not run, and the turn goes on", async () => {
    const { client } = world(["--model", "demo/demo"], "reject_once");
    await client.prompt(message("$ touch made.txt"));
    expect(tools(client.active)[0]?.status).toBe("failed");
    expect(notices(client.active)).toBe("");
  });

  it("a command's output is shown in its card", async () => {
    const { client } = world(["--model", "demo/demo"]);
    await client.prompt(message("$ printf 'one\\ntwo\\n'; touch x"));
    const shown = Object.values(tools(client.active)[0]?.terminals ?? {})[0];
    expect(shown?.output).toBe("one\ntwo\n");
    expect(shown?.exit).toContain("0");
  });

  it("sessions are listed, renamed, forked, loaded with what was said, and deleted", async () => {
    const { client, cwd } = world(["--model", "demo/demo"]);
    await client.prompt(message("read greeting.py"));
    const first = client.active;
    await client.rename(first.id, "Reading");
    const entry = (await client.store.list(cwd))[0];
    expect(entry).toMatchObject({ sessionId: first.id, title: "Reading", cwd });
    if (entry === undefined) return;
    const fork = await client.fork(entry);
    expect(fork?.id).not.toBe(first.id);
    expect(texts(fork ?? first, "agent")).toBe(texts(first, "agent"));
    const said = texts(first, "agent");
    await client.close(first.id);
    const loaded = await client.show(entry);
    expect(loaded).not.toBe(first);
    expect(texts(loaded ?? first, "agent")).toBe(said);
    expect(texts(loaded ?? first, "user")).toBe("read greeting.py");
    await client.delete(first.id);
    expect((await client.store.list(cwd)).map((one) => one.sessionId)).not.toContain(first.id);
  });

  it("a killed agent is started again, and the conversation continues", async () => {
    const { client } = world(["--model", "demo/demo"]);
    const turn = client.prompt(message("$ touch begun; sleep 60"));
    await until(() => tools(client.active).some((item) => item.status === "in_progress"));
    client.kill();
    await turn;
    const session = client.active;
    await until(() => notices(session).includes("You can continue the conversation"));
    expect(tools(session)[0]?.status).toBe("interrupted");
    await client.prompt(message("read greeting.py"));
    expect(texts(session, "agent")).toContain("def greet");
  });

  it("a login in the browser is asked about with its address, and can be declined", async () => {
    const { client, told } = world([]);
    await client.start();
    const login = client.signIn("login-page");
    await until(() => told.asked.length === 1);
    const question = client.lobby.transcript.items.find((item) => item.kind === "question");
    expect(question?.url).toMatch(/^http:\/\/127\.0\.0\.1:/u);
    client.lobby.answer(question?.requestId ?? 0, "decline", {});
    await login;
    expect(notices(client.lobby)).toContain("Login failed");
    expect(client.view.signIn).not.toEqual([]);
  });

  it("the first run without a key takes two steps to an answer", async () => {
    const { client } = world([]);
    await client.start();
    expect(client.view.signIn.map((method) => method.id)).toContain("demo");
    expect(await client.prompt(message("hello"))).toBe(true);
    await client.signIn("demo");
    expect(client.view.signIn).toEqual([]);
    expect(texts(client.active, "agent")).not.toBe("");
  });
});
