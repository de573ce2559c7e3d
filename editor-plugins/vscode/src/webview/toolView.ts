/** The card of a tool call. */

import type { DiffLine, Item, LocationView, TerminalView, ToolItem, ToolPart } from "../shared/view";
import type { Context } from "./context";
import { button, fill, h, setHidden } from "./dom";
import type { ItemView } from "./itemView";
import { picture } from "./messageView";
import { output } from "./output";

const KINDS: Readonly<Record<string, string>> = {
  read: "file", edit: "edit", delete: "trash", move: "arrow-swap", search: "search", execute: "terminal",
  think: "lightbulb", fetch: "globe", switch_mode: "settings", other: "tools",
};
const STATES = { pending: "circle-outline", in_progress: "loading", completed: "check", failed: "error", interrupted: "debug-disconnect" } as const;
const CLASSES = { "+": "added", "-": "removed", " ": "same", "…": "gap" } as const;
const MAX_LOCATIONS = 6;

export class ToolView implements ItemView {
  readonly element: HTMLElement;
  readonly #state = h("span", { class: "state" });
  readonly #stateWord = h("span", { class: "unseen" });
  readonly #kind = h("span", { class: "kind" });
  readonly #title = h("span", { class: "title" });
  readonly #places = h("div", { class: "places" });
  readonly #parts = h("div", { class: "parts" });
  readonly #input = h("details", { class: "input" });
  readonly #permission = h("div", { class: "permission", attributes: { role: "group" } });
  readonly #fold: HTMLDetailsElement;
  readonly #terminals = new Map<string, HTMLElement>();
  #item: ToolItem;
  #drawnParts = "";
  #drawnPermission = -1;
  #touched = false;

  constructor(item: ToolItem, private readonly context: Context) {
    this.#item = item;
    const summary = h("summary", { on: { click: () => (this.#touched = true) } }, this.#state, this.#kind, this.#title, this.#stateWord);
    this.#fold = h("details", {}, summary, this.#parts, this.#input);
    this.element = h("article", { class: "tool" }, this.#fold, this.#places, this.#permission);
    this.#permission.setAttribute("aria-label", context.say("tool.permission"));
    this.update(item);
  }

  update(item: Item): boolean {
    if (item.kind !== "tool") return false;
    this.#item = item;
    const { say } = this.context;
    this.element.className = `tool ${item.status}${item.permission === undefined ? "" : " asking"}`;
    this.element.setAttribute("aria-label", item.title);
    this.#state.className = `state codicon codicon-${STATES[item.status]}${item.status === "in_progress" ? " codicon-modifier-spin" : ""}`;
    this.#stateWord.textContent = say(`tool.${item.status}`);
    this.#state.title = say(`tool.${item.status}`);
    this.#kind.className = `kind codicon codicon-${KINDS[item.toolKind] ?? "tools"}`;
    this.#title.textContent = item.title;
    const inDiffs = new Set(item.parts.flatMap((part) => (part.type === "diff" ? [part.location.path] : [])));
    const places = item.locations.filter((place) => !inDiffs.has(place.path)).slice(0, MAX_LOCATIONS);
    fill(this.#places, ...places.map((place) => this.#place(place)));
    setHidden(this.#places, places.length === 0);
    this.#drawInput();
    this.#drawParts();
    this.#drawPermission();
    // Changes and what waits for a decision are in sight; other results when they are asked for.
    if (!this.#touched) this.#fold.open = item.permission !== undefined || item.status === "in_progress" || item.parts.some((part) => part.type === "diff" || part.type === "image");
    return true;
  }

  output(terminalId: string, text: string): void {
    const element = this.#terminals.get(terminalId);
    const view = this.#item.terminals[terminalId];
    if (view === undefined || element === undefined) return;
    view.output = (view.output + text).slice(-60_000);
    drawTerminal(element, view, this.context);
  }

  #place(place: LocationView): HTMLElement {
    const label = place.line === undefined ? place.label : `${place.label}:${place.line}`;
    const open = button({ text: label, class: "place" }, () => {
      this.context.send({ type: "open", path: place.path, ...(place.line === undefined ? {} : { line: place.line }) });
    });
    if (place.outside) open.append(h("span", { class: "tag" }, this.context.say("tool.outside")));
    open.title = place.path;
    return open;
  }

  #drawInput(): void {
    setHidden(this.#input, this.#item.input === "");
    if (this.#item.input === "") return;
    if (this.#input.childElementCount === 0) this.#input.append(h("summary", {}, this.context.say("tool.input")), h("pre", {}));
    const pre = this.#input.querySelector("pre");
    if (pre !== null && pre.textContent !== this.#item.input) pre.textContent = this.#item.input;
  }

  #drawParts(): void {
    const key = JSON.stringify([this.#item.parts, this.#item.terminals]);
    if (key === this.#drawnParts) return;
    this.#drawnParts = key;
    this.#terminals.clear();
    const named = new Set(this.#item.parts.flatMap((part) => (part.type === "terminal" ? [part.terminalId] : [])));
    const unnamed = Object.keys(this.#item.terminals).filter((id) => !named.has(id));
    fill(
      this.#parts,
      ...this.#item.parts.map((part, index) => this.#part(part, index)),
      ...unnamed.map((terminalId) => this.#part({ type: "terminal", terminalId }, -1)),
    );
  }

  #part(part: ToolPart, index: number): HTMLElement {
    const { say, send } = this.context;
    switch (part.type) {
      case "text":
        return h("div", {}, output(part.text), part.cut === 0 ? null : h("div", { class: "dim" },
          say("chat.cut", part.cut), " ", button({ text: say("chat.openAll"), class: "link" }, () => send({ type: "openOutput", itemId: this.#item.id, part: index }))));
      case "image":
        return h("div", {}, picture(part.image, this.context));
      case "diff":
        return this.#diff(part, index);
      case "terminal": {
        const view = this.#item.terminals[part.terminalId] ?? { output: "", cut: 0 };
        const element = h("div", { class: "terminal", attributes: { tabindex: "0", role: "region", "aria-label": say("tool.output") } });
        this.#terminals.set(part.terminalId, element);
        drawTerminal(element, view, this.context);
        return element;
      }
      case "link":
        return button({ icon: "link", text: part.name.slice(0, 200), class: "place" }, () => send({ type: "openLink", href: part.uri }));
      case "unknown":
        return h("details", {}, h("summary", {}, say("tool.unknown", part.name.slice(0, 100))), h("pre", {}, part.json));
    }
  }

  #diff(part: Extract<ToolPart, { type: "diff" }>, index: number): HTMLElement {
    const { say, send } = this.context;
    const open = button({ icon: "diff", text: part.location.label, class: "place" }, () => send({ type: "openDiff", itemId: this.#item.id, part: index }));
    open.title = say("tool.diff");
    const head = h("div", { class: "diff-head" }, open,
      part.isNew ? h("span", { class: "tag" }, say("tool.newFile")) : null,
      part.location.outside ? h("span", { class: "tag" }, say("tool.outside")) : null,
      h("span", { class: "count added" }, `+${part.added}`), h("span", { class: "count removed" }, `−${part.removed}`));
    return h("div", { class: "diff" }, head, h("div", { class: "diff-lines", attributes: { tabindex: "0", role: "region", "aria-label": say("tool.diff") } }, ...part.lines.map(diffLine)),
      part.cut ? button({ text: say("chat.openAll"), class: "link" }, () => send({ type: "openDiff", itemId: this.#item.id, part: index })) : null);
  }

  #drawPermission(): void {
    const asked = this.#item.permission;
    setHidden(this.#permission, asked === undefined);
    if (asked === undefined || asked.requestId === this.#drawnPermission) return;
    this.#drawnPermission = asked.requestId;
    this.context.announce(this.context.say("chat.asks", this.#item.title));
    fill(this.#permission, ...asked.options.map((option, index) =>
      button({ text: option.name, class: permissionClass(option.kind, index) }, () => {
        this.context.send({ type: "permission", requestId: asked.requestId, optionId: option.optionId });
      })));
  }
}

function permissionClass(kind: string, index: number): string {
  if (index === 0 && kind.startsWith("allow")) return "button primary";
  return kind.startsWith("reject") ? "button reject" : "button";
}

function diffLine(line: DiffLine): HTMLElement {
  return h("div", { class: `line ${CLASSES[line.sign]}` }, h("span", { class: "sign" }, line.sign === "…" ? "⋯" : line.sign), h("span", {}, line.text));
}

function drawTerminal(element: HTMLElement, view: TerminalView, context: Context): void {
  const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 30;
  fill(element,
    view.cut === 0 ? null : h("div", { class: "dim" }, context.say("chat.cut", view.cut)),
    view.output === "" && view.exit !== undefined ? h("div", { class: "dim" }, context.say("tool.noOutput")) : output(view.output),
    view.exit === undefined ? null : h("div", { class: "dim" }, context.say("tool.exit", view.exit)));
  if (atEnd) element.scrollTop = element.scrollHeight;
}
