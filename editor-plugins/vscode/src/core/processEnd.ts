/** The end of a child process and of its group. */

import type { ChildProcess } from "node:child_process";

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

/** Send a signal to the group of a child that was started `detached`; to the child alone on Windows, which has no groups. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It ended in this moment.
  }
}
