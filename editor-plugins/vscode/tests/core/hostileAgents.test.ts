import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { allowed, type GateRules } from "../../src/core/fileGate";
import { Roots } from "../../src/core/roots";
import { fresh, hostile, message, notices, texts, tools, until, use } from "./harness";

describe("an agent that ends", () => {
  it("gets its session again before what is said to it in the pause before its restart", async () => {
    const { client } = use(hostile("crash", fresh("lives")), { restartDelay: 60_000 });
    await client.prompt(message("one"));
    await until(() => client.view.phase === "restarting");
    await client.prompt(message("two"));
    expect(notices(client.active)).toContain("You can continue the conversation");
    expect(texts(client.active, "agent")).toBe("life 2");
  });

  it("gets its session again when a start after that failed and the user says something", async () => {
    const { client } = use(hostile("fails-second", fresh("lives")));
    await client.prompt(message("one"));
    await until(() => client.view.phase === "failed");
    expect(client.view.problem).toContain("exit code 4");
    await client.prompt(message("two"));
    expect(texts(client.active, "agent")).toBe("life 3");
  });

  it("says to its next life what waited for the end of its turn", async () => {
    const { client } = use(hostile("die-asking", fresh("lives")));
    void client.prompt(message("one"));
    await until(() => client.active.running);
    await client.prompt(message("two"));
    await until(() => texts(client.active, "agent") === "again");
    expect(client.active.header.waiting).toEqual([]);
  });

  it("in a permission leaves nothing to be answered", async () => {
    const { client, told } = use(hostile("die-asking", fresh("lives")));
    await client.prompt(message("one"));
    expect(told.asked).toHaveLength(1);
    expect(client.active.asking.permissions).toEqual([]);
    expect(tools(client.active)[0]).toMatchObject({ status: "interrupted" });
    expect(tools(client.active)[0]?.permission).toBeUndefined();
  });

  it("is started again as often as it likes where each life was a long one", async () => {
    const { client, told } = use(hostile("none"), { restartDelay: 1, steadyAfter: 0 });
    await client.start();
    for (let at = 0; at < 7; at += 1) {
      await until(() => client.view.phase === "ready");
      client.kill();
      await until(() => client.view.phase !== "ready");
    }
    await until(() => client.view.phase === "ready");
    expect(told.phases).not.toContain("failed");
  });
});

describe("an agent that does not answer at its start", () => {
  it("is not waited for when it is no longer wanted", async () => {
    const { client } = use(hostile("silent"), { startSeconds: 600 });
    const started = client.start();
    await until(() => client.view.phase === "starting");
    await client.stop();
    await started;
    expect(client.view.phase).toBe("stopped");
  });
});

describe("an agent that reads no more", () => {
  it("can be told to stop, let go of and ended all the same", async () => {
    const { client } = use(hostile("deaf"));
    await client.start();
    void client.prompt(message("x".repeat(4_000_000)));
    await until(() => client.active.running);
    client.active.cancel();
    expect(client.active.header.cancelling).toBe(true);
    await client.close("s1");
    expect(client.open).toEqual([]);
    await client.stop();
    expect(client.view.phase).toBe("stopped");
  });
});

describe("an agent that sends what is too much", () => {
  it("in one line is stopped, and the user is told", async () => {
    const { client } = use(hostile("long"), { restartDelay: 60_000 });
    await client.prompt(message("go"));
    expect(notices(client.active)).toContain("message larger than 64 MB");
    expect(client.view.phase).toBe("restarting");
  });

  it("for sessions that there are not is not shown, and works on", async () => {
    const { client } = use(hostile("strangers"));
    await client.prompt(message("go"));
    expect(client.open).toHaveLength(1);
    expect(texts(client.active, "agent")).toBe("done");
  });

  it("of questions has each of them answered", async () => {
    const { client, told } = use(hostile("asks"));
    const turn = client.prompt(message("go"));
    await until(() => told.asked.length === 500);
    client.active.cancel();
    await turn;
    expect(texts(client.active, "agent").match(/cancelled/gu)).toHaveLength(500);
  });

  it("in every field costs the page a bounded part of it", async () => {
    const { client, told } = use(hostile("big"));
    const turn = client.prompt(message("go"));
    await until(() => told.asked.length === 2);
    await until(() => client.active.header.options.length > 0);
    await turn;
    expect(JSON.stringify(client.active.header).length).toBeLessThan(2_000_000);
    expect(JSON.stringify(client.active.transcript.items).length).toBeLessThan(1_000_000);
    client.askSignIn();
    expect(JSON.stringify(client.view).length).toBeLessThan(10_000);
  });

  it("keeps no more of it than an editor can bear", async () => {
    const { client } = use(hostile("heavy"));
    await client.prompt(message("go"));
    const session = client.active;
    const kept = tools(session).flatMap((item) => [...(session.transcript.callOfItem(item.id)?.diffs.values() ?? [])]);
    expect(kept.reduce((sum, diff) => sum + (diff.before?.length ?? 0) + diff.after.length, 0)).toBeLessThan(70_000_000);
    expect(kept.at(-1)?.path).toBe("/x/29");
    expect(tools(session)).toHaveLength(30);
  });

  it("of images keeps a bounded part of them", async () => {
    const { client } = use(hostile("images"));
    await client.prompt(message("go"));
    expect(JSON.stringify(client.active.transcript.items).length).toBeLessThan(30_000_000);
  });
});

describe("an agent that sends what nobody can read", () => {
  it.each(["shape-null", "shape-list", "shape-text", "shape-number", "shape-id"])("for a session (%s) is told to be wrong, and the message comes back", async (how) => {
    const { client } = use(hostile(how));
    expect(await client.prompt(message("hello"))).toBe(false);
    expect(notices(client.lobby)).toContain("Could not open the session: the agent's answer has no sessionId");
  });

  it("as its first answer cannot be used, and says so", async () => {
    const { client } = use(hostile("malformed-start"));
    await client.start();
    expect(client.view).toMatchObject({ phase: "failed" });
    expect(client.view.problem).not.toBe("");
  });

  it("as an answer of a turn ends it with an error", async () => {
    const { client } = use(hostile("malformed"));
    await client.prompt(message("hello"));
    expect(notices(client.active)).toContain("The agent failed to respond: Invalid request");
    expect(client.active.running).toBe(false);
  });

  it("as requests is answered, and its good ones are", async () => {
    const { client, told } = use(hostile("odd-requests"));
    await client.prompt(message("go"));
    expect(texts(client.active, "agent")).toContain("Agents that do harm");
    for (const id of [7, 8, 9, 10]) expect(told.log.some((line) => line.startsWith(`out {"jsonrpc":"2.0","id":${id},"error"`)), String(id)).toBe(true);
    expect(client.view.phase).toBe("ready");
  });

  it("as two requests with one id has both shown and both answered", async () => {
    const { client, told } = use(hostile("duplicate"));
    const turn = client.prompt(message("go"));
    await until(() => told.asked.length === 2);
    for (const [session, asked] of told.asked) session.asking.choose(asked.requestId, "no");
    await turn;
    expect(texts(client.active, "agent")).toContain('"no"');
    expect(client.active.asking.permissions).toEqual([]);
    await until(() => told.log.filter((line) => line.startsWith("out") && line.includes('"same"')).length === 2);
  });
});

describe("an agent that asks for files outside of the workspace", () => {
  it("gets none by .., by a link, by a link to what is missing, or by a folder's beginning", async () => {
    const base = mkdtempSync(join(tmpdir(), "acp-vscode-"));
    const cwd = join(base, "project");
    mkdirSync(cwd);
    mkdirSync(join(base, "project-other"));
    writeFileSync(join(base, "secret"), "secret");
    writeFileSync(join(cwd, "mine"), "mine");
    symlinkSync(join(base, "secret"), join(cwd, "link"));
    symlinkSync("../absent", join(cwd, "dangling"));
    symlinkSync("loop", join(cwd, "loop"));
    symlinkSync(base, join(cwd, "folder"));
    const refused: string[] = [];
    const rules: GateRules = { roots: new Roots([cwd]), outside: () => false, refused: (file) => refused.push(file) };
    const { client } = use({ ...hostile("files"), cwd }, {
      files: {
        read: async ({ path }) => ({ content: await readFile(await allowed(path, rules), "utf8") }),
        write: async ({ path, content }) => writeFile(await allowed(path, rules), content),
      },
    });
    const paths = [
      "../secret", join(cwd, "..", "secret"), `${cwd}/../secret`, join(cwd, "link"), join(cwd, "dangling"), join(cwd, "loop"),
      join(cwd, "folder", "secret"), join(cwd, "folder", "new"), `${base}/project-other/x`, `${cwd}/a\0/../../secret`, "",
    ];
    await client.prompt(message(JSON.stringify(paths)));
    expect(texts(client.active, "agent")).not.toMatch(/^("secret"|\{\}|null)$/mu);
    expect(readFileSync(join(base, "secret"), "utf8")).toBe("secret");
    for (const name of ["absent", "new", "project-other/x"]) expect(existsSync(join(base, name)), name).toBe(false);
    expect(refused).toHaveLength(16); // those that are absolute, each read and written
    await client.prompt(message(JSON.stringify([join(cwd, "sub", "..", "mine")])));
    expect(readFileSync(join(cwd, "mine"), "utf8")).toBe("owned");
  });
});
