/** What goes with the message that is being written: files, selections, images. */

import type { Attachment } from "../shared/messages";
import { IMAGE_TYPES, type ImageView } from "../shared/view";
import type { Context } from "./context";
import { button, fill, h, icon, setHidden } from "./dom";
import { picture } from "./messageView";

const MAX_IMAGE = 6 * 1024 * 1024; // bytes

export class Attachments {
  readonly element = h("div", { class: "attachments", attributes: { role: "list" } });
  #files: Attachment[];
  #images: ImageView[];

  constructor(
    private readonly context: Context,
    files: readonly Attachment[],
    images: readonly ImageView[],
    private readonly changed: () => void,
    /** What cannot be attached is told, with its reason. */
    private readonly refused: (reason: string) => void,
  ) {
    this.#files = [...files];
    this.#images = [...images];
    this.element.setAttribute("aria-label", context.say("chat.attached"));
    this.#draw();
  }

  get files(): readonly Attachment[] {
    return this.#files;
  }

  get images(): readonly ImageView[] {
    return this.#images;
  }

  clear(): void {
    this.#files = [];
    this.#images = [];
    this.#update();
  }

  add(files: readonly Attachment[], images: readonly ImageView[] = []): void {
    this.#images.push(...images);
    for (const file of files) {
      const known = this.#files.some((one) => one.uri === file.uri && one.startLine === file.startLine && one.endLine === file.endLine);
      if (!known) this.#files.push(file);
    }
    this.#update();
  }

  /** Take images that were pasted or dropped. */
  take(images: readonly File[]): void {
    for (const image of images) void this.#image(image).catch(() => this.refused(this.context.say("chat.imageUnread", image.name)));
  }

  async #image(file: File): Promise<void> {
    const { say } = this.context;
    if (!IMAGE_TYPES.includes(file.type)) return this.refused(say("tool.unshown", file.type));
    if (file.size > MAX_IMAGE) return this.refused(say("chat.imageTooBig", MAX_IMAGE / 1024 / 1024));
    const url = await new Promise<string>((resolve, reject) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => resolve(typeof reader.result === "string" ? reader.result : ""));
      reader.addEventListener("error", () => reject(new Error(file.name)));
      reader.readAsDataURL(file);
    });
    this.#images.push({ mimeType: file.type, data: url.slice(url.indexOf(",") + 1) });
    this.#update();
  }

  #draw(): void {
    setHidden(this.element, this.#files.length + this.#images.length === 0);
    fill(this.element,
      ...this.#files.map((file, index) => this.#chip(file.label, icon("file"), () => this.#files.splice(index, 1))),
      ...this.#images.map((image, index) => this.#chip(this.context.say("chat.image"), picture(image, this.context), () => this.#images.splice(index, 1))));
  }

  #update(): void {
    this.#draw();
    this.changed();
  }

  #chip(label: string, face: HTMLElement, remove: () => void): HTMLElement {
    const close = button({ icon: "close", label: this.context.say("chat.remove", label) }, () => {
      remove();
      this.#update();
    });
    return h("span", { class: "chip", attributes: { role: "listitem" } }, face, h("span", { class: "chip-label" }, label), close);
  }
}
