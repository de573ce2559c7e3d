/** What is to be known of the agent when it is not simply ready: starting, failing, wanting a login. */

import type { ViewCommand } from "../shared/messages";
import type { AgentView, SessionHeader } from "../shared/view";
import type { Context } from "./context";
import { button, fill, h, icon, setHidden } from "./dom";

type Action = readonly ["agent.restart" | "agent.settings" | "agent.log" | "agent.openFolder" | "agent.trust", ViewCommand];

/** What helps with an agent that does not run. */
const REMEDIES: readonly Action[] = [["agent.restart", "restart"], ["agent.settings", "openSettings"], ["agent.log", "showLog"]];

const NEEDS: Readonly<Record<"folder" | "trust", Action>> = { folder: ["agent.openFolder", "openFolder"], trust: ["agent.trust", "trust"] };

export class Banner {
  readonly element = h("div", { class: "banner" });
  #drawn = "";

  constructor(private readonly context: Context) {
    setHidden(this.element, true);
  }

  update(agent: AgentView, session: SessionHeader | null): void {
    const key = JSON.stringify([agent, session?.stuck]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const { say } = this.context;
    if (agent.signIn.length > 0) this.#signIn(agent);
    else if (agent.needs !== undefined) this.#draw("warning", "info", agent.problem, "", [NEEDS[agent.needs]]);
    else if (agent.phase === "failed") this.#draw("error", "error", agent.problem || say("agent.failed", agent.title), agent.detail, REMEDIES);
    else if (agent.phase === "restarting") this.#draw("warning", "sync", agent.problem, agent.detail, REMEDIES);
    else if (agent.phase === "starting") this.#draw("info", "loading", say("agent.starting", agent.title), "", []);
    else if (session?.stuck === true) this.#draw("warning", "warning", say("turn.stuck"), "", REMEDIES);
    else setHidden(this.element, true);
  }

  #draw(kind: string, picture: string, text: string, detail: string, actions: readonly Action[]): void {
    const { say, send } = this.context;
    this.element.className = `banner ${kind}`;
    this.element.setAttribute("role", kind === "info" ? "status" : "alert");
    const face = icon(picture);
    if (picture === "loading" || picture === "sync") face.classList.add("codicon-modifier-spin");
    fill(this.element, face, h("div", {}, h("div", {}, text),
      detail === "" ? null : h("pre", { class: "detail" }, detail),
      actions.length === 0 ? null : h("div", { class: "actions" }, ...actions.map(([word, command], index) =>
        button({ text: say(word), class: index === 0 ? "button primary" : "button" }, () => send({ type: "command", command }))))));
    setHidden(this.element, false);
  }

  #signIn(agent: AgentView): void {
    const { say, send } = this.context;
    this.element.className = "banner sign-in";
    this.element.setAttribute("role", "alert");
    const methods = agent.signIn.map((method, index) => h("li", {},
      button({ text: method.terminal ? say("auth.terminal", method.name) : method.name, class: index === 0 ? "button primary" : "button" }, () => send({ type: "signIn", methodId: method.id })),
      method.description === "" ? null : h("div", { class: "dim" }, method.description)));
    fill(this.element, icon("key"), h("div", {}, h("div", {}, say("auth.title")), agent.signInReason === "" ? null : h("div", { class: "dim" }, agent.signInReason), h("ul", {}, ...methods)));
    setHidden(this.element, false);
  }
}
