/**
 * What the chat shows, as plain data: made in the extension host, drawn in the webview.
 *
 * Every text in it may come from the agent and is untrusted; the webview shows it as text, or as
 * Markdown that was sanitised.
 */

export type TextKind = "user" | "agent" | "thought";

export interface ImageView {
  /** One of the types in `IMAGE_TYPES`. */
  mimeType: string;
  /** Base64. */
  data: string;
}

/** A message. `cut` counts the characters that were left out because it is too long. */
export interface TextItem {
  kind: TextKind;
  id: string;
  text: string;
  cut: number;
  images: ImageView[];
  /** Names of what was attached to a message of the user's. */
  attached: string[];
}

export type ToolStatus = "pending" | "in_progress" | "completed" | "failed" | "interrupted";

export interface LocationView {
  path: string;
  /** Relative to the workspace where the path is inside it. */
  label: string;
  /** From 1. */
  line?: number;
  outside: boolean;
}

/** A line of a diff's preview. */
export interface DiffLine {
  sign: " " | "+" | "-" | "…";
  text: string;
}

export type ToolPart =
  | { type: "text"; text: string; cut: number }
  | { type: "image"; image: ImageView }
  | { type: "diff"; location: LocationView; isNew: boolean; added: number; removed: number; lines: DiffLine[]; cut: boolean }
  | { type: "terminal"; terminalId: string }
  | { type: "link"; uri: string; name: string }
  | { type: "unknown"; name: string; json: string };

/** A command's output: the last part of it, as `cut` characters before are left out. */
export interface TerminalView {
  output: string;
  cut: number;
  exit?: string;
}

export interface PermissionOptionView {
  optionId: string;
  name: string;
  kind: string;
}

export interface PermissionView {
  requestId: number;
  options: PermissionOptionView[];
}

export interface ToolItem {
  kind: "tool";
  id: string;
  title: string;
  toolKind: string;
  status: ToolStatus;
  parts: ToolPart[];
  terminals: Record<string, TerminalView>;
  locations: LocationView[];
  /** The arguments as JSON, shortened. */
  input: string;
  permission?: PermissionView;
}

export type Severity = "info" | "warning" | "error";

export interface NoticeItem {
  kind: "notice";
  id: string;
  severity: Severity;
  title: string;
  detail: string;
}

export interface CompactionItem {
  kind: "compaction";
  id: string;
  status: string;
  summary: string;
}

export interface ChoiceView {
  value: string;
  title: string;
}

/** A field of a form that the agent asks to be filled in. */
export interface FieldView {
  name: string;
  title: string;
  description: string;
  required: boolean;
  input:
    | { type: "text"; format: string; minLength?: number; maxLength?: number; pattern?: string; value: string }
    | { type: "number"; integer: boolean; minimum?: number; maximum?: number; value: string }
    | { type: "boolean"; value: boolean }
    | { type: "choice"; choices: ChoiceView[]; value: string }
    | { type: "choices"; choices: ChoiceView[]; minItems: number; maxItems?: number; value: string[] }
    | { type: "unknown"; json: string };
}

export interface QuestionItem {
  kind: "question";
  id: string;
  requestId: number;
  message: string;
  /** The agent's page, for a question that is answered in the browser. */
  url?: string;
  fields: FieldView[];
  /**
   * The page is on the agent's computer, and this browser would reach it under another address, which it may
   * refuse; so it was not opened. With the id of a login in a terminal, where there is one in its place.
   */
  elsewhere?: { terminal: string };
  /** How it ended; a question without it is open. */
  outcome?: "accept" | "decline" | "cancel" | "complete";
}

export type Item = TextItem | ToolItem | NoticeItem | CompactionItem | QuestionItem;

export interface PlanEntryView {
  content: string;
  status: string;
  priority: string;
}

export interface PlanView {
  id: string;
  entries: PlanEntryView[];
  markdown: string;
  file: string;
}

export interface UsageView {
  used: number;
  size: number;
  cost: string;
}

export interface CommandView {
  name: string;
  description: string;
  hint: string;
}

export interface OptionValueView {
  value: string;
  name: string;
  description: string;
}

/** Something that can be set for the session. One of a kind that we do not know is kept, and shown. */
export interface OptionView {
  id: string;
  name: string;
  description: string;
  category: string;
  input:
    | { type: "select"; value: string; groups: { name: string; options: OptionValueView[] }[] }
    | { type: "boolean"; value: boolean }
    | { type: "unknown"; json: string };
}

export interface SessionHeader {
  sessionId: string;
  title: string;
  running: boolean;
  /** A cancel was sent; `stuck` when the agent has not answered it for long. */
  cancelling: boolean;
  stuck: boolean;
  plans: PlanView[];
  usage: UsageView | null;
  commands: CommandView[];
  options: OptionView[];
  /** Messages that wait for the end of the turn. */
  waiting: string[];
}

export interface AuthMethodView {
  id: string;
  name: string;
  description: string;
  terminal: boolean;
}

export type Phase = "stopped" | "starting" | "ready" | "restarting" | "failed";

export interface AgentView {
  /** The name in the settings, and what the agent calls itself. */
  name: string;
  title: string;
  phase: Phase;
  /** Why it is not ready: one line, and what the agent wrote to its error output. */
  problem: string;
  detail: string;
  /** Methods to choose from, when the agent asks for a login. */
  signIn: AuthMethodView[];
  signInReason: string;
  images: boolean;
  steering: boolean;
  /** What the user has to do before an agent can be started: open a folder, or trust the one that is open. */
  needs?: "folder" | "trust";
}

/** Everything the webview draws. `earlier` counts the items before the first in `items`. */
export interface ViewState {
  agent: AgentView;
  session: SessionHeader | null;
  items: Item[];
  earlier: number;
  language: string;
  thoughts: "folded" | "open" | "hidden";
}

/** The types of images that are shown. */
export const IMAGE_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
