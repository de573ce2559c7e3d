/** The end of a child process and of its group. */

import { spawn, type ChildProcess } from "node:child_process";
import { win32 } from "node:path";

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: string | null;
}

const DRAIN_MILLISECONDS = 500;

/**
 * How the child ended, once its output was read to the end.
 *
 * What it started may hold its output open for ever. So some time after its end that is no longer waited
 * for, and `held` is called: the output has not ended.
 */
export function ended(child: ChildProcess, held: () => void): Promise<Exit> {
  return new Promise((resolve) => {
    let late: NodeJS.Timeout | undefined;
    child.once("exit", (code, signal) => {
      late = setTimeout(() => {
        resolve({ code, signal });
        held();
      }, DRAIN_MILLISECONDS);
    });
    child.once("close", (code, signal) => {
      clearTimeout(late);
      resolve({ code, signal });
    });
  });
}

/**
 * Send a signal to the group of a child that was started `detached`.
 *
 * Windows has neither groups nor signals to programs without a window: the child is ended there with all that it
 * started, which can be found only while it lives itself.
 */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals, { platform, run }: Killing = THIS): void {
  if (child.pid === undefined) return;
  if (platform === "win32") {
    if (child.exitCode === null && child.signalCode === null) run(taskkill(), ["/PID", String(child.pid), "/T", "/F"], () => child.kill(signal));
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It ended in this moment.
  }
}

/** How processes are ended on a system. */
export interface Killing {
  platform: NodeJS.Platform;
  /** Run a program; `failed` is called where that cannot be started. */
  run: (program: string, args: readonly string[], failed: () => void) => void;
}

const THIS: Killing = {
  platform: process.platform,
  run: (program, args, failed) => void spawn(program, args, { stdio: "ignore", windowsHide: true }).once("error", failed),
};

/** By its full path, as another one could lie before it on the PATH. */
function taskkill(): string {
  return win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "taskkill.exe");
}
