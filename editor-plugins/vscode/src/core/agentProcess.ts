/** An agent as a child process, with its process group and the end of its error output. */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";

import type { Say } from "../shared/words";
import { environment } from "./environment";
import { launch } from "./launch";
import { AgentProblem, told } from "./problems";
import { ended, signalGroup, type Exit } from "./processEnd";

/** How an agent is started. */
export interface AgentCommand {
  name: string;
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
}

const STDERR_CHARACTERS = 8_000;
const GRACE_MILLISECONDS = 1_500;

export class AgentProcess {
  readonly exited: Promise<Exit>;
  #stderr = "";

  private constructor(
    private readonly child: ChildProcessByStdio<Writable, Readable, Readable>,
    private readonly onStderr: (text: string) => void,
  ) {
    // What it started ends with it, and may not keep its end from being seen.
    this.exited = ended(child, () => {
      signalGroup(child, "SIGKILL");
      child.stdout.destroy();
      child.stderr.destroy();
    });
    child.once("exit", () => signalGroup(child, "SIGTERM"));
    child.on("error", () => undefined); // those of its start are told by `start`
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (piece: string) => {
      this.#stderr = (this.#stderr + piece).slice(-STDERR_CHARACTERS);
      this.onStderr(piece);
    });
    // Writing to an agent that is gone fails; that it is gone is told by `exited`.
    child.stdin.on("error", () => undefined);
  }

  /**
   * Start the command.
   * @throws AgentProblem when there is no such command or folder, or it cannot be run.
   */
  static async start(command: AgentCommand, say: Say, onStderr: (text: string) => void): Promise<AgentProcess> {
    const child = spawned(command, say);
    const running = new AgentProcess(child, onStderr);
    try {
      await once(child, "spawn");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        throw new AgentProblem(say("agent.notExecutable", command.command, (error as Error).message));
      }
      // The system says the same of both.
      throw new AgentProblem(existsSync(command.cwd) ? say("agent.missing", command.command) : say("agent.folderMissing", command.cwd));
    }
    return running;
  }

  get stdin(): Writable {
    return this.child.stdin;
  }

  get stdout(): Readable {
    return this.child.stdout;
  }

  /** The end of what it wrote to its error output. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** End it: its input is closed, then it is asked, then killed, each with some time. */
  async stop(): Promise<void> {
    this.child.stdin.end();
    if (await this.#ended(GRACE_MILLISECONDS)) return;
    signalGroup(this.child, "SIGTERM");
    if (await this.#ended(GRACE_MILLISECONDS)) return;
    signalGroup(this.child, "SIGKILL");
    await this.#ended(GRACE_MILLISECONDS);
  }

  /** End it at once. */
  kill(): void {
    signalGroup(this.child, "SIGKILL");
  }

  async #ended(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), milliseconds);
    });
    const ended = await Promise.race([this.exited.then(() => true as const), late]);
    clearTimeout(timer);
    return ended;
  }
}

/** @throws AgentProblem for arguments that it cannot be given. */
function spawned({ command, args, cwd, env: own }: AgentCommand, say: Say): ChildProcessByStdio<Writable, Readable, Readable> {
  const env = environment(own);
  try {
    const started = launch(command, args, cwd, env);
    return spawn(started.file, started.args, {
      cwd,
      env,
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32", // a group of its own, so that its children end with it
      windowsHide: true,
      windowsVerbatimArguments: started.verbatim,
    });
  } catch (error) {
    throw new AgentProblem(say("agent.notExecutable", command, told(error)));
  }
}

/** An exit in words. */
export function exitWords(exit: Exit, say: Say): string {
  return exit.signal === null
    ? say("agent.exitCode", exit.code ?? "?")
    : say("agent.exitSignal", exit.signal);
}
