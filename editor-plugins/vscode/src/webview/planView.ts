/** The plan, above the input. */

import type { PlanView as Plan } from "../shared/view";
import type { Context } from "./context";
import { button, fill, h, icon, setHidden } from "./dom";
import { rendered } from "./markdown";

const ICONS: Readonly<Record<string, string>> = { pending: "circle-outline", in_progress: "arrow-circle-right", completed: "pass-filled" };

const LOW = 400; // pixels of a window, or of a strongly magnified one, in which the conversation needs the room more

export class PlanView {
  readonly #summary = h("summary", {});
  readonly #list = h("div", { class: "plan-list" });
  readonly element = h("details", { class: "plan" }, this.#summary, this.#list);
  #drawn = "";
  #over = false;
  #low = false;

  constructor(private readonly context: Context) {
    this.element.open = true;
    setHidden(this.element, true);
    this.#fit();
    window.addEventListener("resize", () => this.#fit());
  }

  update(plans: readonly Plan[]): void {
    const key = JSON.stringify(plans);
    if (key === this.#drawn) return;
    this.#drawn = key;
    setHidden(this.element, plans.length === 0);
    const { say } = this.context;
    const entries = plans.flatMap((plan) => plan.entries);
    const done = entries.filter((entry) => entry.status === "completed").length;
    const progress = entries.length === 0 ? null : h("span", { class: "dim" }, say("chat.planProgress", done, entries.length));
    // A plan that is done needs no room; whoever wants to see it opens it.
    const over = entries.length > 0 && done === entries.length;
    if (over !== this.#over) this.element.open = !over && !this.#low;
    this.#over = over;
    const current = entries.find((entry) => entry.status === "in_progress")?.content ?? "";
    fill(this.#summary, icon("checklist"), h("span", {}, say("chat.plan")), progress, h("span", { class: "dim current" }, current));
    fill(this.#list, ...plans.map((plan) => this.#plan(plan)));
  }

  /** Where the window has become low the plan folds; whoever wants to see it opens it. */
  #fit(): void {
    const low = window.innerHeight < LOW;
    if (low && !this.#low) this.element.open = false;
    this.#low = low;
  }

  #plan(plan: Plan): HTMLElement {
    if (plan.markdown !== "") return h("div", { class: "markdown" }, rendered(plan.markdown));
    if (plan.file !== "") return button({ icon: "file", text: plan.file.slice(0, 200), class: "place" }, () => this.context.send({ type: "openLink", href: plan.file }));
    return h("ul", {}, ...plan.entries.map((entry) => {
      const state = { pending: "tool.pending", in_progress: "tool.in_progress", completed: "tool.completed" } as const;
      const word = entry.status in state ? this.context.say(state[entry.status as "pending"]) : entry.status;
      return h("li", { class: `entry ${ICONS[entry.status] === undefined ? "" : entry.status} priority-${entry.priority === "high" ? "high" : "other"}` },
        icon(ICONS[entry.status] ?? "circle-outline"), h("span", { class: "unseen" }, `${word}: `), h("span", {}, entry.content));
    }));
  }
}
