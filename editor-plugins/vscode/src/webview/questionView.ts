/** A question of the agent's: a form to fill in, or a page to open. */

import type { AnswerContent } from "../shared/messages";
import type { FieldView, Item, QuestionItem } from "../shared/view";
import type { Word } from "../shared/words";
import type { Context } from "./context";
import { button, fill, h, icon } from "./dom";
import type { ItemView } from "./itemView";
import { rendered } from "./markdown";

/** The value of a field that was filled in; undefined when it was left empty. */
type Read = () => AnswerContent[string] | undefined;

const OUTCOMES: Readonly<Record<NonNullable<QuestionItem["outcome"]>, Word>> = {
  accept: "question.accept", decline: "question.declined", cancel: "question.cancel", complete: "question.complete",
};

export class QuestionView implements ItemView {
  readonly element = h("article", { class: "question" });
  #drawn = "";

  constructor(item: QuestionItem, private readonly context: Context) {
    this.update(item);
    context.announce(item.message);
  }

  update(item: Item): boolean {
    if (item.kind !== "question") return false;
    const state = item.outcome ?? (item.elsewhere === undefined ? "open" : "elsewhere");
    if (state === this.#drawn) return true; // what was filled in stays
    this.#drawn = state;
    this.element.setAttribute("aria-label", item.message.slice(0, 200));
    const message = h("div", { class: "markdown" }, rendered(item.message));
    if (item.outcome !== undefined) {
      fill(this.element, icon("question"), message, h("div", { class: "dim" }, this.context.say(OUTCOMES[item.outcome])));
    } else {
      fill(this.element, icon("question"), message, item.url === undefined ? this.#form(item) : this.#page(item, item.url));
    }
    return true;
  }

  #page(item: QuestionItem, url: string): HTMLElement {
    const { say } = this.context;
    const actions = item.elsewhere === undefined
      ? [button({ text: say("question.openUrl"), class: "button primary" }, () => this.#answer(item, "accept"))]
      : this.#elsewhere(item, url, item.elsewhere.terminal);
    return h("div", {},
      h("code", { class: "url" }, url.slice(0, 500)),
      item.elsewhere === undefined ? null : h("p", { attributes: { role: "alert" } }, say("question.elsewhere")),
      h("div", { class: "actions" }, ...actions, button({ text: say("question.decline") }, () => this.#answer(item, "decline"))));
  }

  /** What can be done about a page that this browser would reach under another address. */
  #elsewhere(item: QuestionItem, url: string, terminal: string): HTMLElement[] {
    const { say, send } = this.context;
    const logIn = button({ text: say("question.terminal"), class: "button primary" }, () => {
      send({ type: "signIn", methodId: terminal });
      this.#answer(item, "decline");
    });
    const copy = button({ text: say("question.copy") }, () => {
      send({ type: "copy", text: url });
      this.#answer(item, "accept");
    });
    const open = button({ text: say("question.anyway") }, () => {
      send({ type: "openLink", href: url });
      this.#answer(item, "accept");
    });
    return terminal === "" ? [copy, open] : [logIn, copy, open];
  }

  #answer(item: QuestionItem, action: "accept" | "decline"): void {
    this.context.send({ type: "answer", requestId: item.requestId, action, content: {} });
  }

  #form(item: QuestionItem): HTMLElement {
    const { say, send } = this.context;
    const reads = new Map<string, Read>();
    const form = h("form", {
      on: {
        submit: (event) => {
          event.preventDefault();
          const content: AnswerContent = {};
          for (const [name, read] of reads) {
            const value = read();
            if (value !== undefined) content[name] = value;
          }
          send({ type: "answer", requestId: item.requestId, action: "accept", content });
        },
      },
    });
    item.fields.forEach((field, index) => {
      const id = `field-${item.requestId}-${index}`;
      const [control, read] = this.#control(field, id);
      if (read !== null) reads.set(field.name, read);
      const hint = field.description === "" ? null : h("div", { class: "dim", attributes: { id: `${id}-hint` } }, field.description);
      if (hint !== null) control.setAttribute("aria-describedby", `${id}-hint`);
      form.append(h("div", { class: "field" }, ...this.#named(field, id, control, hint)));
    });
    const submit = h("button", { class: "button primary", attributes: { type: "submit" } }, say("question.submit"));
    const decline = button({ text: say("question.decline") }, () => this.#answer(item, "decline"));
    form.append(h("div", { class: "actions" }, submit, decline));
    return form;
  }

  /** A control with its name: beside a box to tick, above everything else. */
  #named(field: FieldView, id: string, control: HTMLElement, hint: HTMLElement | null): (HTMLElement | null)[] {
    const { type } = field.input;
    if (type === "boolean") return [h("label", { class: "check" }, control, field.title), hint];
    const required = field.required ? h("span", { class: "dim" }, ` (${this.context.say("question.required")})`) : null;
    // A label is for one control; a group of them has its name itself.
    const name = type === "choices" || type === "unknown"
      ? h("span", {}, field.title, required)
      : h("label", { attributes: { for: id } }, field.title, required);
    return [name, hint, control];
  }

  #control(field: FieldView, id: string): [HTMLElement, Read | null] {
    const { input } = field;
    const required = field.required ? "" : undefined;
    switch (input.type) {
      case "text": {
        const box = h("input", { attributes: {
          id, required, type: { email: "email", uri: "url", date: "date", "date-time": "datetime-local" }[input.format] ?? "text",
          minlength: input.minLength?.toString(), maxlength: input.maxLength?.toString(), pattern: input.pattern,
        } });
        box.value = input.value;
        const moment = input.format === "date-time";
        return [box, () => (box.value === "" ? undefined : moment ? new Date(box.value).toISOString() : box.value)];
      }
      case "number": {
        const box = h("input", { attributes: {
          id, required, type: "number", step: input.integer ? "1" : "any", min: input.minimum?.toString(), max: input.maximum?.toString(),
        } });
        box.value = input.value;
        return [box, () => (box.value === "" ? undefined : Number(box.value))];
      }
      case "boolean": {
        const box = h("input", { attributes: { id, type: "checkbox" } });
        box.checked = input.value;
        return [box, () => box.checked];
      }
      case "choice": {
        const choices = input.choices.map((one) => h("option", { attributes: { value: one.value } }, one.title));
        const box = h("select", { attributes: { id, required } }, h("option", { attributes: { value: "" } }, this.context.say("question.choose")), ...choices);
        box.value = input.value;
        return [box, () => (box.value === "" ? undefined : box.value)];
      }
      case "choices": {
        const boxes = input.choices.map((one) => {
          const box = h("input", { attributes: { type: "checkbox", value: one.value } });
          box.checked = input.value.includes(one.value);
          return { box, label: h("label", { class: "check" }, box, one.title) };
        });
        const group = h("div", { class: "checks", attributes: { id, role: "group", "aria-label": field.title } }, ...boxes.map((one) => one.label));
        return [group, () => boxes.filter((one) => one.box.checked).map((one) => one.box.value)];
      }
      case "unknown":
        return [h("pre", { attributes: { id } }, input.json), null];
    }
  }
}
