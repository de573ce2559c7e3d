/** One life of an agent: the process, the connection to it, and what it said of itself. */

import {
  client,
  methods,
  PROTOCOL_VERSION,
  type ClientCapabilities,
  type ClientConnection,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type CreateTerminalRequest,
  type CreateTerminalResponse,
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type TerminalOutputResponse,
  type WaitForTerminalExitResponse,
  type WriteTextFileRequest,
} from "@agentclientprotocol/sdk/unstable";

import type { Say } from "../shared/words";
import { abilities, type Abilities } from "./abilities";
import { AgentProcess, exitWords, type AgentCommand } from "./agentProcess";
import { record, text } from "./json";
import { jsonLines, MAX_LINE } from "./jsonLines";
import { AgentProblem, told, within } from "./problems";
import type { Exit } from "./processEnd";

/** The files of the editor, as the agent may use them. Failures are RequestErrors. */
export interface EditorFiles {
  read(request: ReadTextFileRequest): Promise<ReadTextFileResponse>;
  write(request: WriteTextFileRequest): Promise<void>;
}

/** The terminals of the editor; `terminalId`s that are unknown are RequestErrors. */
export interface EditorTerminals {
  create(request: CreateTerminalRequest): CreateTerminalResponse | Promise<CreateTerminalResponse>;
  output(terminalId: string): TerminalOutputResponse;
  waitForExit(terminalId: string): Promise<WaitForTerminalExitResponse>;
  kill(terminalId: string): void;
  release(terminalId: string): void;
  /** The agent is gone: end them all. */
  dispose(): void;
}

/** What the agent may ask of the client and tell it. */
export interface ClientSide {
  files: EditorFiles;
  /** Null: terminals are not offered. Asked when the agent is started. */
  readonly terminals: EditorTerminals | null;
  update(sessionId: string, update: unknown): void;
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>;
  elicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse>;
  elicitationComplete(elicitationId: string): void;
  garbage(line: string): void;
  line: (direction: "in" | "out", line: string) => void;
  stderr: (text: string) => void;
}

export interface ConnectionOptions {
  version: string;
  startSeconds: number;
  say: Say;
  /** Aborted when the agent is no longer wanted: its start is then waited for no longer. */
  wanted: AbortSignal;
}

export class AgentConnection {
  private constructor(
    readonly process: AgentProcess,
    private readonly connection: ClientConnection,
    readonly abilities: Abilities,
  ) {}

  /**
   * Start the agent and agree on the protocol.
   * @throws AgentProblem that names what is wrong with the agent.
   */
  static async open(command: AgentCommand, side: ClientSide, options: ConnectionOptions): Promise<AgentConnection> {
    const { say } = options;
    let garbage = "";
    const child = await AgentProcess.start(command, say, side.stderr);
    const stream = jsonLines(child.stdin, child.stdout, {
      line: side.line,
      update: (params) => {
        const { sessionId, update } = record(params);
        side.update(text(sessionId), update);
      },
      garbage: (line) => {
        garbage ||= line.slice(0, 200);
        side.garbage(line);
      },
      tooLong: () => {
        side.garbage(say("agent.tooLong", MAX_LINE / 1024 / 1024));
        child.kill();
      },
    });
    const connection = app(side).connect(stream);
    void connection.closed.catch(() => undefined);
    try {
      const initialize = connection.agent.request(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: { name: "acp-agent-vscode", title: "ACP Agent for VS Code", version: options.version },
        clientCapabilities: announced(side.terminals !== null),
      });
      const result = await within(Promise.race([initialize, diedEarly(child, say), unwanted(options.wanted)]), options.startSeconds, () =>
        new AgentProblem(
          say("agent.silent", options.startSeconds) + (garbage === "" ? "" : ` ${say("agent.garbage", garbage)}`),
          child.stderr,
        ),
      );
      const version = record(result)["protocolVersion"];
      if (version !== PROTOCOL_VERSION) {
        throw new AgentProblem(say("agent.version", String(version), PROTOCOL_VERSION), child.stderr);
      }
      // One that closed its output can say nothing more, even if it still runs.
      void connection.closed.finally(() => void child.stop()).catch(() => undefined);
      return new AgentConnection(child, connection, abilities(result, command.name));
    } catch (error) {
      // The end of the connection is seen before the end of the process, which says more.
      const exit = await Promise.race([child.exited, new Promise<null>((resolve) => setTimeout(resolve, 300, null))]);
      connection.close();
      await child.stop();
      if (error instanceof AgentProblem) throw error;
      throw exit === null ? new AgentProblem(told(error), child.stderr) : earlyDeath(exit, child, say);
    }
  }

  get exited(): Promise<Exit> {
    return this.process.exited;
  }

  /**
   * Ask the agent. The answer is not checked: whoever reads it takes nothing for granted.
   *
   * When the agent is gone the failure is told after its end was, which says why.
   */
  async request(method: string, params: object): Promise<unknown> {
    try {
      return await this.connection.agent.request<unknown, object>(method, params);
    } catch (error) {
      if (this.connection.signal.aborted) await this.process.exited;
      throw error;
    }
  }

  async notify(method: string, params: object): Promise<void> {
    await this.connection.agent.notify<object>(method, params);
  }

  async stop(): Promise<void> {
    await this.process.stop();
    this.connection.close();
  }
}

function announced(terminal: boolean): ClientCapabilities {
  return {
    fs: { readTextFile: true, writeTextFile: true },
    terminal,
    session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
    plan: {},
    auth: { terminal: true },
    elicitation: { form: {}, url: {} },
    _meta: { terminal_output: true, "terminal-auth": true },
  };
}

function unwanted(wanted: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new AgentProblem("stopped"));
    if (wanted.aborted) abort();
    else wanted.addEventListener("abort", abort, { once: true });
  });
}

async function diedEarly(child: AgentProcess, say: Say): Promise<never> {
  throw earlyDeath(await child.exited, child, say);
}

function earlyDeath(exit: Exit, child: AgentProcess, say: Say): AgentProblem {
  return new AgentProblem(say("agent.diedAtStart", exitWords(exit, say)), child.stderr);
}

function app(side: ClientSide): ReturnType<typeof client> {
  const built = client({ name: "acp-agent-vscode" })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => side.files.read(params))
    .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
      await side.files.write(params);
      return {};
    })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => side.permission(params, signal))
    .onRequest(methods.client.elicitation.create, ({ params, signal }) => side.elicitation(params, signal))
    .onNotification(methods.client.elicitation.complete, ({ params }) => side.elicitationComplete(params.elicitationId));
  return side.terminals === null ? built : withTerminals(built, side.terminals);
}

function withTerminals(built: ReturnType<typeof client>, terminals: EditorTerminals): ReturnType<typeof client> {
  return built
    .onRequest(methods.client.terminal.create, ({ params }) => terminals.create(params))
    .onRequest(methods.client.terminal.output, ({ params }) => terminals.output(params.terminalId))
    .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.waitForExit(params.terminalId))
    .onRequest(methods.client.terminal.kill, ({ params }) => {
      terminals.kill(params.terminalId);
      return {};
    })
    .onRequest(methods.client.terminal.release, ({ params }) => {
      terminals.release(params.terminalId);
      return {};
    });
}
