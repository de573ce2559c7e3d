/** The editor's terminals for the agent: commands that run here, with what they print. */

import {
  RequestError,
  type CreateTerminalRequest,
  type CreateTerminalResponse,
  type TerminalOutputResponse,
  type WaitForTerminalExitResponse,
} from "@agentclientprotocol/sdk/unstable";
import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

import type { EditorTerminals } from "./connection";
import { environment } from "./environment";
import { launch } from "./launch";
import { OutputTail } from "./outputTail";
import { ended, signalGroup } from "./processEnd";

interface Running {
  child: ChildProcess;
  sessionId: string;
  output: OutputTail;
  exit: Promise<WaitForTerminalExitResponse>;
  exited: WaitForTerminalExitResponse | null;
  /** The command ended, and something that it started goes on. */
  held: boolean;
}

/** Told of what a terminal prints, and of its end. */
export type TerminalWatch = (sessionId: string, terminalId: string, piece: string, exit?: WaitForTerminalExitResponse) => void;

const MAX_TERMINALS = 100;
const MAX_OUTPUT = 8 * 1024 * 1024; // bytes

export class Terminals implements EditorTerminals {
  readonly #running = new Map<string, Running>();
  #next = 0;

  constructor(
    private readonly cwd: string,
    private readonly watch: TerminalWatch,
  ) {}

  create(request: CreateTerminalRequest): CreateTerminalResponse {
    this.#next += 1;
    const terminalId = `terminal-${this.#next}`;
    const child = spawned(request, request.cwd ?? this.cwd);
    const running: Running = {
      child, sessionId: request.sessionId, output: new OutputTail(Math.min(request.outputByteLimit ?? MAX_OUTPUT, MAX_OUTPUT)),
      exited: null, exit: Promise.resolve({}), held: false,
    };
    running.exit = new Promise((resolve) => {
      const settle = (exit: WaitForTerminalExitResponse): void => {
        if (running.exited !== null) return;
        running.exited = exit;
        this.watch(running.sessionId, terminalId, "", exit);
        resolve(exit);
      };
      child.once("error", (error) => {
        this.#print(terminalId, running, `${error.message}\n`);
        settle({ exitCode: 127 });
      });
      void ended(child, () => (running.held = true)).then(({ code, signal }) => settle(signal === null ? { exitCode: code } : { signal }));
    });
    for (const stream of [child.stdout, child.stderr]) {
      const decoder = new StringDecoder("utf8");
      stream.on("data", (piece: Buffer) => this.#print(terminalId, running, decoder.write(piece)));
    }
    this.#forget();
    this.#running.set(terminalId, running);
    return { terminalId };
  }

  output(terminalId: string): TerminalOutputResponse {
    const { output, exited } = this.#get(terminalId);
    return { output: output.text, truncated: output.truncated, ...(exited === null ? {} : { exitStatus: exited }) };
  }

  waitForExit(terminalId: string): Promise<WaitForTerminalExitResponse> {
    return this.#get(terminalId).exit;
  }

  kill(terminalId: string): void {
    kill(this.#get(terminalId));
  }

  release(terminalId: string): void {
    kill(this.#get(terminalId));
    this.#running.delete(terminalId);
  }

  dispose(): void {
    for (const running of this.#running.values()) kill(running);
    this.#running.clear();
  }

  /** Of an agent that releases none the oldest that ended are given up. */
  #forget(): void {
    for (const [terminalId, { exited, held }] of this.#running) {
      if (this.#running.size < MAX_TERMINALS) return;
      if (exited !== null && !held) this.#running.delete(terminalId);
    }
  }

  #get(terminalId: string): Running {
    const running = this.#running.get(terminalId);
    if (running === undefined) throw RequestError.resourceNotFound(terminalId);
    return running;
  }

  #print(terminalId: string, running: Running, piece: string): void {
    running.output.add(piece);
    this.watch(running.sessionId, terminalId, piece);
  }
}

/** @throws RequestError for arguments that the command cannot be given. */
function spawned({ command, args, env: own }: CreateTerminalRequest, cwd: string): ChildProcessByStdio<null, Readable, Readable> {
  const env = environment(Object.fromEntries((own ?? []).map(({ name, value }) => [name, value])));
  const shell = (args ?? []).length === 0 && /\s/u.test(command); // some agents send a whole command line as the command
  const { file, args: given, verbatim } = shell ? { file: command, args: [], verbatim: false } : launch(command, args ?? [], cwd, env);
  return spawn(file, given, {
    cwd,
    env,
    shell,
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
    windowsVerbatimArguments: verbatim,
  });
}

function kill({ child, exited, held }: Running): void {
  if (exited === null || held) signalGroup(child, "SIGKILL");
}
