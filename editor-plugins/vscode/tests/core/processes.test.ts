import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";

import { AgentProcess, type AgentCommand } from "../../src/core/agentProcess";
import { environment } from "../../src/core/environment";
import { OutputTail } from "../../src/core/outputTail";
import { Terminals } from "../../src/core/terminals";
import { say, until } from "./harness";

function shell(script: string, cwd = process.cwd()): AgentCommand {
  return { name: "shell", command: "sh", args: ["-c", script], env: {}, cwd };
}

async function started(command: AgentCommand): Promise<AgentProcess> {
  const child = await AgentProcess.start(command, say, () => undefined);
  onTestFinished(() => child.stop());
  return child;
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("an agent's process", () => {
  it("is seen to end, and what it started ends with it, though that holds its output open", async () => {
    const folder = mkdtempSync(join(tmpdir(), "acp-vscode-"));
    const child = await started(shell("(trap '' TERM; : > deaf; exec sleep 60) & echo $! > pid; until [ -e deaf ]; do sleep 0.05; done; exit 9", folder));
    child.stdout.resume();
    expect(await child.exited).toEqual({ code: 9, signal: null });
    const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
    expect(pid).toBeGreaterThan(0);
    await until(() => !alive(pid));
  });

  it("that cannot begin for want of its folder says so, and not that the command is missing", async () => {
    await expect(AgentProcess.start(shell("true", "/no/such/folder"), say, () => undefined)).rejects.toThrow("agent's working folder does not exist: /no/such/folder");
  });

  it("has the editor's variables but those that it has for itself, and the user's over them", () => {
    const base = { PATH: "/bin", ELECTRON_RUN_AS_NODE: "1", VSCODE_IPC_HOOK: "/x", HOME: "/root" };
    expect(environment({ HOME: "/mine" }, base)).toEqual({ PATH: "/bin", HOME: "/mine" });
  });
});

describe("a command in a terminal", () => {
  it("has ended when it ended, though what it left running holds its output open, until it is released", async () => {
    const terminals = new Terminals(process.cwd(), () => undefined);
    onTestFinished(() => terminals.dispose());
    const { terminalId } = terminals.create({ sessionId: "s", command: "sh", args: ["-c", "sleep 60 & echo $!"] });
    expect(await terminals.waitForExit(terminalId)).toEqual({ exitCode: 0 });
    const pid = Number(terminals.output(terminalId).output);
    expect(alive(pid)).toBe(true);
    terminals.release(terminalId);
    await until(() => !alive(pid));
  });
});

describe("the end of an output", () => {
  it("is as many bytes as were asked for, and begins with a whole character", () => {
    const tail = new OutputTail(7);
    for (const piece of ["aaaa", "日本", "語"]) tail.add(piece);
    expect([tail.text, tail.truncated]).toEqual(["本語", true]);
  });

  it("costs no more for a flood of small pieces than for few large ones", () => {
    const tail = new OutputTail(1_000_000);
    for (let at = 0; at < 400_000; at += 1) tail.add("0123456789");
    expect(tail.text).toHaveLength(1_000_000);
  });
});
