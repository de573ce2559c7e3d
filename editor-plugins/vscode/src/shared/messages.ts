/** The messages between the extension host and the webview; docs/decisions/vscode.md has the contract. */

import type { AgentView, ImageView, Item, SessionHeader, ViewState } from "./view";

/** A step from what the webview shows to what it is to show. */
export type Change =
  | { op: "put"; item: Item }
  /** The conversation begins anew: nothing of it is left. */
  | { op: "clear" }
  | { op: "append"; id: string; text: string }
  | { op: "output"; id: string; terminalId: string; text: string }
  | { op: "session"; header: SessionHeader }
  | { op: "agent"; agent: AgentView };

/** Something that goes with a prompt: a file, or lines of one. */
export interface Attachment {
  uri: string;
  label: string;
  /** From 1, both included; without them the whole file is meant. */
  startLine?: number;
  endLine?: number;
  /** The selected text, as it was when it was attached. */
  text?: string;
}

export interface Suggestion {
  label: string;
  detail: string;
  attachment: Attachment;
}

export type ToWebview =
  | { type: "state"; state: ViewState; revision: number }
  | { type: "changes"; changes: Change[]; revision: number }
  | { type: "suggestions"; request: number; suggestions: Suggestion[] }
  | { type: "attach"; attachments: Attachment[] }
  /** A message that could not be sent: it goes back into the input. */
  | { type: "restore"; text: string; attachments: Attachment[]; images: ImageView[] }
  | { type: "focus"; target: "input" | "permission" };

/** What the webview may ask the host to run: nothing beside these. */
export const VIEW_COMMANDS = [
  "newSession", "showSessions", "restart", "showLog", "openSettings", "openFolder", "trust", "chooseAgent", "signOut",
] as const;
export type ViewCommand = (typeof VIEW_COMMANDS)[number];

export type AnswerContent = Record<string, string | number | boolean | string[]>;

export type ToHost =
  | { type: "ready" }
  | { type: "ack"; revision: number }
  | { type: "prompt"; text: string; attachments: Attachment[]; images: ImageView[] }
  | { type: "cancel" }
  | { type: "permission"; requestId: number; optionId: string }
  | { type: "answer"; requestId: number; action: "accept" | "decline"; content: AnswerContent }
  | { type: "setOption"; id: string; value: string | boolean }
  | { type: "open"; path: string; line?: number }
  | { type: "openLink"; href: string }
  | { type: "openDiff"; itemId: string; part: number }
  | { type: "openOutput"; itemId: string; part: number }
  | { type: "suggest"; request: number; query: string }
  | { type: "drop"; uris: string[] }
  | { type: "signIn"; methodId: string }
  | { type: "earlier" }
  | { type: "copy"; text: string }
  | { type: "command"; command: ViewCommand };
