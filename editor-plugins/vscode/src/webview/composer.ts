/** Where the user writes: the input with its completion, what is attached, and the buttons. */

import type { Attachment, Suggestion } from "../shared/messages";
import type { AgentView, ImageView, SessionHeader } from "../shared/view";
import { Attachments } from "./attachments";
import { CompletionList, fileChoices, fitting, wanted } from "./completion";
import type { Context } from "./context";
import { button, fill, h, icon, setHidden } from "./dom";
import { takeDrops, urisOf } from "./dropping";
import { OptionsBar } from "./optionsBar";
import type { Draft } from "./draft";

const MAX_ROWS_PIXELS = 240;

export class Composer {
  readonly element: HTMLElement;
  readonly #input: HTMLTextAreaElement;
  readonly #list: CompletionList;
  readonly #attachments: Attachments;
  readonly #options: OptionsBar;
  readonly #send: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  readonly #waiting = h("div", { class: "waiting dim" });
  readonly #hint = h("div", { class: "hint dim" });
  /** Why something was not taken or not sent, until the message is another. */
  readonly #problem = h("div", { class: "problem", attributes: { role: "alert" } });
  #session: SessionHeader | null = null;
  #agent: AgentView | null = null;
  #request = 0;

  constructor(private readonly context: Context, private readonly draft: Draft) {
    const { say, send } = context;
    this.#input = h("textarea", {
      attributes: { rows: "2", "aria-label": say("chat.input"), spellcheck: "true" },
      on: {
        input: () => this.#typed(),
        keydown: (event) => this.#key(event),
        paste: (event) => this.#paste(event),
        blur: () => this.#list.close(),
        click: () => this.#complete(),
      },
    });
    this.#list = new CompletionList(context, this.#input);
    this.#attachments = new Attachments(context, draft.attachments, draft.images, () => this.#attached(), (reason) => this.#refuse(reason));
    this.#options = new OptionsBar(context);
    this.#send = button({ icon: "send", label: say("chat.send"), class: "icon-button send" }, () => this.#submit());
    this.#stop = button({ icon: "debug-stop", label: say("chat.stop"), class: "icon-button stop" }, () => send({ type: "cancel" }));
    const box = h("div", { class: "box" }, this.#attachments.element, this.#input, this.#hint, this.#problem, h("div", { class: "buttons" }, this.#options.element, this.#stop, this.#send));
    this.element = h("div", { class: "composer" }, this.#waiting, this.#list.element, box);
    takeDrops(document, (data) => this.#drop(data));
    this.#input.value = draft.text;
    new ResizeObserver(() => this.#fit()).observe(this.element); // its text wraps otherwise when the width changes
    this.#fit();
  }

  update(agent: AgentView, session: SessionHeader | null): void {
    this.#agent = agent;
    this.#session = session;
    const { say } = this.context;
    const running = session?.running === true;
    setHidden(this.#stop, !running);
    this.#stop.disabled = session?.cancelling === true;
    const sends = !running ? "chat.send" : agent.steering ? "chat.steer" : "chat.queue";
    this.#send.title = say(sends);
    this.#send.setAttribute("aria-label", say(sends));
    this.#input.placeholder = say(running ? "chat.placeholderRunning" : "chat.placeholder");
    this.#options.update(session?.options ?? [], session?.usage ?? null);
    const waiting = session?.waiting ?? [];
    setHidden(this.#waiting, waiting.length === 0);
    fill(this.#waiting, ...waiting.map((line) => h("div", {}, icon("history"), ` ${say("chat.waiting", line)}`)));
    this.#showHint();
  }

  /** Everything is drawn anew, also what a refused change left in the controls. */
  revert(): void {
    this.#options.revert();
  }

  focus(): void {
    this.#input.focus();
  }

  /** Take back a message that could not be sent; what was written meanwhile stays below it. */
  restore(text: string, attachments: readonly Attachment[], images: readonly ImageView[]): void {
    this.#input.value = [text, this.#input.value].filter((part) => part !== "").join("\n");
    this.#attachments.add(attachments, images);
    this.#typed();
  }

  attach(attachments: readonly Attachment[]): void {
    this.#attachments.add(attachments);
  }

  suggestions(request: number, suggestions: readonly Suggestion[]): void {
    const now = wanted(this.#input.value, this.#input.selectionStart);
    if (request !== this.#request || now?.sign !== "@") return;
    this.#list.show(fileChoices(suggestions, (one) => {
      this.#replace(now.start, this.#input.selectionStart, `@${one.label} `);
      this.#attachments.add([one.attachment]);
    }));
  }

  #typed(): void {
    fill(this.#problem);
    this.#fit();
    this.#save();
    this.#complete();
    this.#showHint();
  }

  #complete(): void {
    const now = wanted(this.#input.value, this.#input.selectionStart);
    if (now === null) {
      this.#list.close();
    } else if (now.sign === "@") {
      this.#request += 1;
      this.context.send({ type: "suggest", request: this.#request, query: now.query });
    } else {
      this.#list.show(fitting(this.#session?.commands ?? [], now.query).map((command) => ({
        label: `/${command.name}`,
        detail: command.description,
        choose: () => this.#replace(0, this.#input.selectionStart, `/${command.name} `),
      })));
    }
  }

  #key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (this.#list.key(event)) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "Escape" && this.#session?.running === true) {
      this.context.send({ type: "cancel" });
    }
  }

  #submit(): void {
    const text = this.#input.value.trim();
    const { files, images } = this.#attachments;
    if (text === "" && files.length === 0 && images.length === 0) return;
    if (images.length > 0 && this.#agent?.images === false) return this.#refuse(this.context.say("chat.noImages"));
    this.context.send({ type: "prompt", text, attachments: [...files], images: [...images] });
    this.#input.value = "";
    this.#attachments.clear();
    this.#typed();
  }

  #paste(event: ClipboardEvent): void {
    if (this.#images(event.clipboardData)) event.preventDefault();
  }

  #drop(data: DataTransfer): void {
    if (this.#images(data)) return;
    const uris = urisOf(data);
    if (uris.length > 0) this.context.send({ type: "drop", uris });
  }

  /** Take the images of a paste or a drop, where the agent does; whether there were any. */
  #images(data: DataTransfer | null): boolean {
    const images = [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
    if (this.#agent?.images !== false) this.#attachments.take(images);
    else if (images.length > 0) this.#refuse(this.context.say("chat.noImages"));
    return images.length > 0;
  }

  #attached(): void {
    fill(this.#problem);
    this.#save();
  }

  #refuse(reason: string): void {
    fill(this.#problem, icon("warning"), h("span", {}, reason));
  }

  #replace(start: number, end: number, text: string): void {
    this.#input.setRangeText(text, start, end, "end");
    this.#input.focus();
    this.#typed();
  }

  /** What a command wants to be followed by. */
  #showHint(): void {
    const command = /^\/(\S+)\s$/u.exec(this.#input.value)?.[1];
    const hint = this.#session?.commands.find((one) => one.name === command)?.hint ?? "";
    setHidden(this.#hint, hint === "");
    fill(this.#hint, hint);
  }

  #fit(): void {
    this.#input.style.height = "auto";
    this.#input.style.height = `${Math.min(this.#input.scrollHeight, MAX_ROWS_PIXELS)}px`;
  }

  #save(): void {
    this.draft.keep(this.#input.value, this.#attachments.files, this.#attachments.images);
  }
}
