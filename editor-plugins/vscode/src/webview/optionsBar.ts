/** What can be set for the session, and how full the model's window is, below the input. */

import type { OptionView, UsageView } from "../shared/view";
import type { Context } from "./context";
import { fill, h, icon, setHidden } from "./dom";

export class OptionsBar {
  readonly #options = h("div", { class: "options", attributes: { role: "group" } });
  readonly #usage = h("div", { class: "usage" });
  readonly element = h("div", { class: "options-bar" }, this.#options, this.#usage);
  #drawn = "";
  #reverts: (() => void)[] = [];

  constructor(private readonly context: Context) {
    this.#options.setAttribute("aria-label", context.say("chat.options"));
  }

  update(options: readonly OptionView[], usage: UsageView | null): void {
    const key = JSON.stringify(options);
    if (key !== this.#drawn) {
      this.#drawn = key;
      const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["option"] : undefined;
      this.#reverts = [];
      fill(this.#options, ...options.map((option) => this.#option(option)));
      this.revert();
      for (const control of this.#options.querySelectorAll<HTMLElement>("[data-option]")) {
        if (control.dataset["option"] === focused) control.focus();
      }
    }
    this.#drawUsage(usage);
  }

  /** Let the controls have the options' values again, whatever is chosen in the page. One that is open stays open. */
  revert(): void {
    for (const revert of this.#reverts) revert();
  }

  #option(option: OptionView): HTMLElement {
    const { input } = option;
    const title = [option.name, option.description].filter((part) => part !== "").join(": ");
    switch (input.type) {
      case "select": {
        const groups = input.groups.map((group) => {
          const choices = group.options.map((one) => h("option", { title: one.description, attributes: { value: one.value } }, one.name));
          return group.name === "" ? choices : [h("optgroup", { attributes: { label: group.name } }, ...choices)];
        });
        const select = h("select", { title, attributes: { "aria-label": option.name } }, ...groups.flat());
        const known = input.groups.some((group) => group.options.some((one) => one.value === input.value));
        if (!known) select.prepend(h("option", { attributes: { value: input.value } }, input.value));
        const { value } = input;
        this.#reverts.push(() => (select.value = value));
        select.dataset["option"] = option.id;
        select.addEventListener("change", () => this.context.send({ type: "setOption", id: option.id, value: select.value }));
        return select;
      }
      case "boolean": {
        const box = h("input", { attributes: { type: "checkbox" } });
        const { value } = input;
        this.#reverts.push(() => (box.checked = value));
        box.dataset["option"] = option.id;
        box.addEventListener("change", () => this.context.send({ type: "setOption", id: option.id, value: box.checked }));
        return h("label", { class: "check", title }, box, option.name);
      }
      case "unknown":
        return h("span", { class: "chip unknown", title: `${this.context.say("chat.unknownOption", option.name)}\n${input.json}` }, icon("question"), h("span", { class: "chip-label" }, option.name));
    }
  }

  #drawUsage(usage: UsageView | null): void {
    setHidden(this.#usage, usage === null);
    if (usage === null) return;
    const { say } = this.context;
    const words = say("usage.label", short(usage.used), short(usage.size));
    const share = usage.size <= 0 ? 0 : Math.max(0, Math.min(1, usage.used / usage.size));
    const bar = h("div", { class: share > 0.8 ? "bar full" : "bar" });
    bar.style.width = `${Math.max(2, share * 100)}%`;
    const meter = h("div", {
      class: "meter",
      attributes: { role: "meter", "aria-label": words, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(share * 100)) },
    }, bar);
    this.#usage.title = say("usage.tooltip", usage.used.toLocaleString(), usage.size.toLocaleString());
    fill(this.#usage, meter, h("span", {}, `${short(usage.used)} / ${short(usage.size)}`), usage.cost === "" ? null : h("span", { class: "cost" }, usage.cost));
  }
}

/** 1234 → 1.2k */
export function short(count: number): string {
  if (count < 1000) return String(Math.round(count));
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
