/** A message: the user's, the agent's, or a thought, which is folded. */

import type { ImageView, Item, TextItem } from "../shared/view";
import { IMAGE_TYPES } from "../shared/view";
import type { Context } from "./context";
import { button, fill, h, icon, setHidden } from "./dom";
import type { ItemView } from "./itemView";
import { StreamedMarkdown } from "./streamed";

const LABELS = { user: "chat.you", agent: "chat.agentSays", thought: "chat.thought" } as const;

export class MessageView implements ItemView {
  readonly element: HTMLElement;
  readonly #body: StreamedMarkdown;
  readonly #images = h("div", { class: "images" });
  readonly #cut = h("div", { class: "dim" });
  readonly #kind: TextItem["kind"];

  constructor(item: TextItem, private readonly context: Context) {
    this.#kind = item.kind;
    this.#body = new StreamedMarkdown(item.text, (drawn) => this.#copyable(drawn));
    const parts = [this.#body.element, this.#images, this.#cut];
    const label = context.say(LABELS[item.kind]);
    if (item.kind === "thought") {
      const fold = h("details", { class: "thought" }, h("summary", {}, icon("lightbulb"), h("span", {}, label)), ...parts);
      fold.open = context.thoughts === "open";
      this.element = fold;
    } else {
      const copy = this.#copy("chat.copy", () => this.#body.text);
      const attached = item.attached.length === 0 ? null : h("div", { class: "attached" }, ...item.attached.map((name) => h("span", { class: "chip" }, icon("file"), h("span", { class: "chip-label" }, name))));
      this.element = h("article", { class: `message ${item.kind}`, attributes: { "aria-label": label } }, ...parts, attached, copy);
    }
    this.#rest(item);
  }

  update(item: Item): boolean {
    if (item.kind !== this.#kind) return false;
    this.#body.set(item.text);
    this.#rest(item);
    return true;
  }

  append(text: string): void {
    this.#body.append(text);
  }

  /** Every block of code gets a button that copies it. */
  #copyable(drawn: DocumentFragment): void {
    for (const code of drawn.querySelectorAll("pre")) {
      const block = h("div", { class: "code" });
      code.replaceWith(block);
      block.append(code, this.#copy("chat.copyCode", () => code.textContent));
    }
  }

  #copy(label: "chat.copy" | "chat.copyCode", text: () => string): HTMLElement {
    const { announce, say, send } = this.context;
    return button({ icon: "copy", label: say(label), class: "icon-button copy" }, () => {
      send({ type: "copy", text: text() });
      announce(say("chat.copied"));
    });
  }

  #rest(item: TextItem): void {
    setHidden(this.#cut, item.cut === 0);
    this.#cut.textContent = item.cut === 0 ? "" : this.context.say("chat.cut", item.cut);
    setHidden(this.#images, item.images.length === 0);
    if (this.#images.childElementCount !== item.images.length) fill(this.#images, ...item.images.map((image) => picture(image, this.context)));
  }
}

/** An image from its data; of a type that can be no script. */
export function picture(image: ImageView, context: Context): HTMLImageElement {
  const element = h("img", { class: "picture", attributes: { alt: context.say("chat.image") } });
  if (IMAGE_TYPES.includes(image.mimeType)) element.src = `data:${image.mimeType};base64,${image.data}`;
  return element;
}
