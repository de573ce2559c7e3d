/** The editor, as an agent in use needs it. */

import type { Change } from "../shared/messages";
import type { Say } from "../shared/words";
import type { AuthMethod } from "./abilities";
import type { AgentCommand } from "./agentProcess";
import type { Asked } from "./asking";
import type { EditorFiles, EditorTerminals } from "./connection";
import type { Roots } from "./roots";
import type { Session } from "./session";

/** What the editor is told, and what it does for the agent. */
export interface ClientHost {
  files: EditorFiles;
  /** Asked when the agent is started. */
  readonly terminals: EditorTerminals | null;
  roots: Roots;
  /** The folders of the workspace; the first is where the agent works. */
  readonly folders: readonly string[];
  say: Say;
  version: string;
  readonly startSeconds: number;
  /** Milliseconds before the first restart, and of a life that was no failure; for tests. */
  restartDelay?: number;
  steadyAfter?: number;
  changed(session: Session, change: Change): void;
  /** The state of the agent, or which session is shown, or which there are. */
  agentChanged(): void;
  asked(session: Session, asked: Asked): void;
  line: (direction: "in" | "out", line: string) => void;
  stderr: (text: string) => void;
  /** The user's browser may be on another computer than the agent, so that logins in a terminal come first. */
  readonly terminalFirst: boolean;
  /** Run a login in a terminal; resolves when it ended. */
  signInTerminal(method: AuthMethod, command: AgentCommand): Promise<void>;
}
