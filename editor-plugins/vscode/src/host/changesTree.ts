/** The list of files with changes that wait for review. */

import * as vscode from "vscode";

import { Gathered } from "../core/gathered";
import type { Review, Reviews } from "../core/reviews";
import type { Roots } from "../core/roots";
import type { Say } from "../shared/words";
import { setContext } from "./contexts";
import { textOf } from "./files";

const PAUSE_MILLISECONDS = 100;

export class ChangesTree implements vscode.TreeDataProvider<Review> {
  readonly #changed = new vscode.EventEmitter<Review | undefined>();
  /** Those that are drawn, and those of them that are to be drawn again. */
  #shown: readonly Review[] = [];
  readonly #other = new Set<string>();
  readonly #refresh = new Gathered(() => this.#draw(), PAUSE_MILLISECONDS);
  readonly onDidChangeTreeData = this.#changed.event;

  constructor(
    private readonly reviews: Reviews,
    private readonly roots: Roots,
    private readonly say: Say,
  ) {}

  /** The review of a file is another, or is over. */
  refresh(path: string): void {
    this.#other.add(path);
    this.#refresh.ask();
  }

  dispose(): void {
    this.#refresh.dispose();
    this.#changed.dispose();
  }

  /** Draw again what is another: the texts of all files need not be compared while one is typed in. */
  #draw(): void {
    const { all } = this.reviews;
    const same = all.length === this.#shown.length && all.every((review, at) => review === this.#shown[at]);
    if (same) for (const review of all.filter(({ path }) => this.#other.has(path))) this.#changed.fire(review);
    else this.#changed.fire(undefined);
    this.#shown = all;
    this.#other.clear();
    setContext("hasChanges", all.length > 0);
  }

  getChildren(parent?: Review): Review[] {
    return parent === undefined ? [...this.reviews.all] : [];
  }

  async getTreeItem(review: Review): Promise<vscode.TreeItem> {
    const now = await textOf(review.path).catch(() => null);
    const item = new vscode.TreeItem(vscode.Uri.file(review.path));
    item.id = review.path;
    const open = this.say("review.hunks", now === null ? 0 : this.reviews.hunks(review.path, now).length);
    item.description = `${this.roots.label(review.path)} · ${review.before === null ? this.say("review.new") : open}`;
    item.iconPath = vscode.ThemeIcon.File;
    item.command = { command: "acpAgent.review.open", title: "", arguments: [review] };
    return item;
  }
}
