import { describe, expect, it, onTestFinished } from "vitest";

import { Terminals } from "../../src/core/terminals";

function made(): { terminals: Terminals; printed: string[] } {
  const printed: string[] = [];
  const terminals = new Terminals(process.cwd(), (_, terminalId, piece, exit) => {
    printed.push(exit === undefined ? piece : `${terminalId} ended ${JSON.stringify(exit)}`);
  });
  onTestFinished(() => terminals.dispose());
  return { terminals, printed };
}

describe("a terminal of the editor", () => {
  it("passes arguments as they are, with their spaces and signs", async () => {
    const { terminals } = made();
    const { terminalId } = terminals.create({ sessionId: "s", command: process.execPath, args: ["-e", "console.log(process.argv[1])", "a b $HOME"] });
    expect(await terminals.waitForExit(terminalId)).toEqual({ exitCode: 0 });
    expect(terminals.output(terminalId)).toEqual({ output: "a b $HOME\n", truncated: false, exitStatus: { exitCode: 0 } });
  });

  it("keeps the end of an output that is longer than the agent wants", async () => {
    const { terminals } = made();
    const { terminalId } = terminals.create({ sessionId: "s", command: "printf", args: ["0123456789"], outputByteLimit: 4 });
    await terminals.waitForExit(terminalId);
    expect(terminals.output(terminalId)).toMatchObject({ output: "6789", truncated: true });
  });

  it("tells a killed command's signal, and ends what the command started", async () => {
    const { terminals, printed } = made();
    const { terminalId } = terminals.create({ sessionId: "s", command: "sleep 60 | sleep 60" });
    terminals.kill(terminalId);
    expect(await terminals.waitForExit(terminalId)).toEqual({ signal: "SIGKILL" });
    expect(printed.at(-1)).toBe('terminal-1 ended {"signal":"SIGKILL"}');
  });

  it("says why a command cannot be started", async () => {
    const { terminals } = made();
    const { terminalId } = terminals.create({ sessionId: "s", command: "no-such-command", args: ["x"] });
    expect(await terminals.waitForExit(terminalId)).toEqual({ exitCode: 127 });
    expect(terminals.output(terminalId).output).toContain("ENOENT");
  });

  it("is given up when it ended long ago and was never released, and there are far too many", async () => {
    const { terminals } = made();
    const started = Array.from({ length: 3 }, () => terminals.create({ sessionId: "s", command: "true", args: [] }).terminalId);
    const running = terminals.create({ sessionId: "s", command: "sleep", args: ["60"] }).terminalId;
    await Promise.all(started.map((id) => terminals.waitForExit(id)));
    for (let at = 0; at < 97; at += 1) terminals.create({ sessionId: "s", command: "sleep", args: ["60"] });
    expect(() => terminals.output(started[0] ?? "")).toThrow();
    expect(terminals.output(started[2] ?? "").exitStatus).toEqual({ exitCode: 0 });
    expect(terminals.output(running).exitStatus).toBeUndefined();
  });

  it("is unknown once it was released", () => {
    const { terminals } = made();
    const { terminalId } = terminals.create({ sessionId: "s", command: "sleep", args: ["60"] });
    terminals.release(terminalId);
    expect(() => terminals.output(terminalId)).toThrow();
  });
});
