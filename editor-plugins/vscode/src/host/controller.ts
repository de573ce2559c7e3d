/** Puts the parts together for one workspace: the agent, the chat, the review. */

import { homedir } from "node:os";
import * as vscode from "vscode";

import type { AgentClient } from "../core/client";
import type { ClientHost } from "../core/clientHost";
import { Gathered } from "../core/gathered";
import { Reviews } from "../core/reviews";
import { ReviewStore } from "../core/reviewStore";
import { Roots } from "../core/roots";
import type { Session } from "../core/session";
import { Terminals } from "../core/terminals";
import { exitWords as terminalExit, type ToldDiff } from "../core/toolCalls";
import type { Change } from "../shared/messages";
import type { ToolItem } from "../shared/view";
import type { Say } from "../shared/words";
import { AgentInUse, workspaceFolders } from "./agentInUse";
import { AskingNotices } from "./asking";
import { ChangesTree } from "./changesTree";
import { ChatView } from "./chatView";
import { setContext } from "./contexts";
import { WorkspaceFiles, editorPath, textOf, textsOf } from "./files";
import { ShownTexts } from "./opening";
import { PageRequests } from "./pageRequests";
import { ReviewEditor } from "./review";
import { reviewStorage } from "./reviewStorage";
import { SessionsTree } from "./sessionsTree";
import { settings } from "./settings";
import { signInTerminal } from "./signIn";
import { StatusItem } from "./statusItem";
import { fileAttachment, selection, Suggestions } from "./suggestions";
import { WireLog } from "./wireLog";

const FRAME_MILLISECONDS = 30;

export class Controller {
  readonly log = new WireLog();
  readonly roots: Roots;
  readonly reviews: Reviews;
  readonly review: ReviewEditor;
  readonly changes: ChangesTree;
  readonly sessions: SessionsTree;
  readonly texts = new ShownTexts();
  readonly view: ChatView;
  readonly asking: AskingNotices;
  readonly status: StatusItem;
  readonly suggestions: Suggestions;
  readonly agent: AgentInUse;
  readonly requests: PageRequests;
  readonly #kept: ReviewStore;
  readonly #agentChanged = new Gathered(() => this.#drawAgent(), FRAME_MILLISECONDS);
  /** Cards whose changes were looked at, with how many there were. */
  readonly #reviewed = new WeakMap<ToolItem, number>();

  constructor(
    dist: vscode.Uri,
    storage: vscode.Uri | undefined,
    private readonly version: string,
    readonly say: Say,
  ) {
    this.roots = new Roots(workspaceFolders());
    this.suggestions = new Suggestions(this.roots);
    this.reviews = new Reviews((path) => {
      this.#kept.changed();
      this.changes.refresh(path);
      this.review.update();
    });
    this.#kept = new ReviewStore(this.reviews, reviewStorage(storage), textsOf);
    this.review = new ReviewEditor(this.reviews, this.roots, say);
    this.changes = new ChangesTree(this.reviews, this.roots, say);
    this.status = new StatusItem(say);
    this.view = new ChatView(dist, () => this.client, () => this.agent.without, (message) => this.requests.take(message));
    this.sessions = new SessionsTree(() => this.client, say);
    this.asking = new AskingNotices(this.view, () => this.client, say);
    this.agent = new AgentInUse(() => this.roots.folders[0], say, this.#host(), ({ env }) => this.log.use(env), () => this.view.visible, () => this.agentChanged());
    this.requests = new PageRequests(this);
    void this.#kept.load().catch(() => undefined); // what cannot be read any more is nothing
    this.agentChanged();
  }

  get client(): AgentClient | undefined {
    return this.agent.client;
  }

  /** Use what the settings say now. */
  settingsChanged(): void {
    this.agent.settingsChanged();
    this.agentChanged();
    this.view.refresh();
  }

  /** The workspace has other folders. The agent may use them at once, and is told of them with its next session. */
  foldersChanged(): void {
    this.roots.folders = workspaceFolders();
  }

  /** Keep what is not kept yet. */
  async flush(): Promise<void> {
    await this.#kept.flush().catch(() => undefined);
  }

  /** The state of the agent, or of a session, is another: drawn a moment later, once for all that changes until then. */
  agentChanged(): void {
    this.#agentChanged.ask();
  }

  #drawAgent(): void {
    const { client } = this;
    this.agent.agentChanged();
    this.view.agentChanged();
    this.#waitingChanged();
    setContext("running", client?.active.running === true);
    setContext("ready", client !== undefined && client.view.phase === "ready" && client.open.length > 0);
    setContext("canSignIn", (client?.abilities?.authMethods.length ?? 0) > 0);
    setContext("canSignOut", client?.abilities?.logout === true);
  }

  async addSelection(): Promise<void> {
    const attachment = selection(this.roots);
    if (attachment === undefined) return;
    await this.view.reveal();
    this.view.attach([attachment]);
    this.view.focus("input");
  }

  async addFile(uri?: vscode.Uri): Promise<void> {
    const file = uri ?? vscode.window.activeTextEditor?.document.uri;
    if (file?.scheme !== "file") return;
    await this.view.reveal();
    this.view.attach([fileAttachment(file, this.roots)]);
    this.view.focus("input");
  }

  dispose(): void {
    this.#agentChanged.dispose();
    this.changes.dispose();
    this.sessions.dispose();
    void this.agent.stop();
    this.view.dispose();
    this.status.dispose();
    this.log.dispose();
  }

  /** What an agent is told of the editor, and what the editor does for it. */
  #host(): ClientHost {
    const { say, roots } = this;
    const terminals = new Terminals(roots.folders[0] ?? homedir(), (sessionId, terminalId, piece, exit) => {
      const words = exit === undefined ? undefined : terminalExit(exit.exitCode, exit.signal, say);
      this.client?.open.find((session) => session.id === sessionId)?.transcript.terminal(terminalId, piece, words);
    });
    return {
      files: new WorkspaceFiles({
        roots,
        outside: () => settings().outsideWorkspace === "allow",
        refused: (path) => this.client?.active.transcript.notice("warning", say("files.outside", path)),
      }, this.reviews),
      get terminals() {
        return settings().terminals ? terminals : null;
      },
      roots,
      get folders() {
        return roots.folders;
      },
      say,
      version: this.version,
      get startSeconds() {
        return settings().startSeconds;
      },
      changed: (session, change) => this.#changed(session, change),
      agentChanged: () => this.agentChanged(),
      asked: (session, asked) => {
        this.asking.asked(session, asked);
        this.agentChanged();
      },
      line: this.log.line,
      stderr: this.log.stderr,
      terminalFirst: vscode.env.uiKind === vscode.UIKind.Web,
      signInTerminal: (method, started) => signInTerminal(method, started, say),
    };
  }

  /** What waits for an answer, or the state of the agent, is another. */
  #waitingChanged(): void {
    this.asking.update();
    this.sessions.agentChanged();
    this.status.update(settings().agent, this.client);
  }

  #changed(session: Session, change: Change): void {
    this.view.changed(session, change);
    if (change.op !== "put") return;
    if (change.item.kind === "question" || change.item.kind === "user") this.agentChanged(); // the list of sessions tells of it
    if (change.item.kind !== "tool") return;
    if (change.item.permission === undefined) this.#waitingChanged();
    if (change.item.status === "completed") void this.#reviewTold(session, change.item);
  }

  /** A finished call tells changes that did not come through the editor: they are reviewed as well. */
  async #reviewTold(session: Session, item: ToolItem): Promise<void> {
    const diffs = session.transcript.callOfItem(item.id)?.diffs ?? new Map<number, ToldDiff>();
    if (!session.running || (this.#reviewed.get(item) ?? 0) >= diffs.size) return;
    this.#reviewed.set(item, diffs.size);
    for (const { path: told, before, after } of [...diffs.values()]) {
      const path = editorPath(told);
      const now = this.roots.contains(path) ? await textOf(path).catch(() => null) : null;
      if (now !== null) this.reviews.told(path, before, after, now);
    }
  }
}
