/** The list of items: drawn one by one, with no more of them in the page than it can bear. */

import type { Change } from "../shared/messages";
import type { Item } from "../shared/view";
import type { Context } from "./context";
import { button, h, setHidden } from "./dom";
import { itemView, type ItemView } from "./itemView";

const MAX_DRAWN = 400;
const DROPPED_AT_ONCE = 150;
const NEAR_END = 60; // pixels

export class TranscriptView {
  readonly #list = h("div", { class: "items" });
  readonly #earlier: HTMLButtonElement;
  readonly #latest: HTMLButtonElement;
  readonly #empty: HTMLElement;
  readonly #scroller: HTMLElement;
  readonly element: HTMLElement;
  readonly #views = new Map<string, ItemView>();
  /** Items that were drawn and taken away again. */
  readonly #dropped = new Set<string>();
  #earlierCount = 0;
  #session = "";
  #following = true;
  /** Where the list was scrolled to, and how high it was. */
  #top = 0;
  #height = 0;

  constructor(private readonly context: Context) {
    const { say, send } = context;
    this.#earlier = button({ text: "", class: "link earlier" }, () => send({ type: "earlier" }));
    this.#latest = button({ icon: "arrow-down", label: say("chat.latest"), class: "icon-button latest" }, () => this.toEnd());
    this.#empty = h("div", { class: "empty" }, h("h2", {}, say("chat.empty")), h("p", {}, say("chat.emptyHint")));
    this.#scroller = h("div", {
      class: "scroller",
      attributes: { role: "log", "aria-label": say("chat.log"), "aria-live": "off", tabindex: "0" },
      on: { scroll: () => this.#scrolled(), click: (event) => this.#link(event), keydown: (event) => this.#key(event) },
    }, this.#earlier, this.#empty, this.#list);
    this.element = h("div", { class: "transcript" }, this.#scroller, this.#latest);
    setHidden(this.#latest, true);
    const sizes = new ResizeObserver(() => this.#follow());
    sizes.observe(this.#list);
    sizes.observe(this.#scroller); // what is below it, such as the plan, takes its room
  }

  /** Draw a session's items; with earlier ones than before, those that were drawn stay where they are seen. */
  reset(session: string, items: readonly Item[], earlier: number): void {
    const grows = session === this.#session && earlier < this.#earlierCount;
    const stay = grows ? this.#seenFirst() : undefined;
    if (!grows) this.#clear();
    this.#session = session;
    this.#dropped.clear();
    this.#earlierCount = earlier;
    this.#drawAll(items);
    this.#around();
    if (stay === undefined) return this.toEnd();
    this.#following = false;
    this.#scroller.scrollTop += stay.element.getBoundingClientRect().top - stay.top;
  }

  apply(change: Change): void {
    switch (change.op) {
      case "put":
        this.#put(change.item);
        break;
      case "append":
        this.#views.get(change.id)?.append?.(change.text);
        break;
      case "output":
        this.#views.get(change.id)?.output?.(change.terminalId, change.text);
        break;
      case "clear":
        this.reset(this.#session, [], 0);
        break;
      default:
        return;
    }
    this.#follow();
  }

  /** Put the keyboard onto the first button of what is asked. */
  focusPermission(): boolean {
    const pressed = this.#list.querySelector<HTMLButtonElement>(".permission:not([hidden]) button");
    pressed?.focus();
    return pressed !== null;
  }

  /** Show the end, and go on doing so. */
  readonly toEnd = (): void => {
    this.#following = true;
    this.#follow();
    setHidden(this.#latest, true);
  };

  #put(item: Item): void {
    if (this.#dropped.has(item.id)) return;
    if (this.#views.has(item.id)) {
      this.#drawn(item);
      return;
    }
    const view = this.#drawn(item);
    if (view === undefined) return;
    this.#list.append(view.element);
    this.#bound();
    this.#around();
  }

  #clear(): void {
    this.#views.clear();
    this.#list.replaceChildren();
  }

  /** Draw the items in their order. Of what is drawn nothing is moved, as it would lose where it is scrolled to. */
  #drawAll(items: readonly Item[]): void {
    const views = items.flatMap((item) => {
      const view = this.#drawn(item);
      return view === undefined ? [] : [[item.id, view] as const];
    });
    this.#views.clear();
    let next = this.#list.firstElementChild;
    for (const [id, view] of views) {
      this.#views.set(id, view);
      if (view.element === next) next = next.nextElementSibling;
      else this.#list.insertBefore(view.element, next);
    }
    while (next !== null) {
      const gone = next;
      next = next.nextElementSibling;
      gone.remove();
    }
  }

  /** An item's view as the item is now; none for what is not to be shown. */
  #drawn(item: Item): ItemView | undefined {
    if (item.kind === "thought" && this.context.thoughts === "hidden") return undefined;
    const known = this.#views.get(item.id);
    if (known?.update(item) === true) return known;
    const made = itemView(item, this.context);
    known?.element.replaceWith(made.element);
    this.#views.set(item.id, made);
    return made;
  }

  /** The first item that is in sight, and where it is. */
  #seenFirst(): { element: HTMLElement; top: number } | undefined {
    const edge = this.#scroller.getBoundingClientRect().top;
    for (const { element } of this.#views.values()) {
      const { bottom, top } = element.getBoundingClientRect();
      if (bottom > edge) return { element, top };
    }
    return undefined;
  }

  #bound(): void {
    if (this.#views.size <= MAX_DRAWN || !this.#following) return;
    for (const [id, view] of [...this.#views].slice(0, DROPPED_AT_ONCE)) {
      if (view.element.classList.contains("asking")) continue;
      view.element.remove();
      this.#views.delete(id);
      this.#dropped.add(id);
      this.#earlierCount += 1;
    }
  }

  #around(): void {
    setHidden(this.#earlier, this.#earlierCount === 0);
    this.#earlier.textContent = this.context.say("chat.earlier", this.#earlierCount);
    setHidden(this.#empty, this.#views.size > 0);
  }

  /** Who goes up leaves the end. What grows below, or takes the list's room, does not. */
  #scrolled(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    if (atEnd) this.#following = true;
    else if (scrollTop < this.#top && scrollHeight >= this.#height) this.#following = false;
    this.#top = scrollTop;
    this.#height = scrollHeight;
    setHidden(this.#latest, this.#following);
  }

  #follow(): void {
    if (this.#following) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #link(event: Event): void {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-href]") : null;
    const href = link?.dataset["href"];
    if (href === undefined) return;
    event.preventDefault();
    this.context.send({ type: "openLink", href });
  }

  #key(event: KeyboardEvent): void {
    if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.dataset["href"] !== undefined) this.#link(event);
  }
}
