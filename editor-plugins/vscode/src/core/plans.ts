/** Plans and usage, as updates tell them. */

import type { PlanEntryView, PlanView, UsageView } from "../shared/view";
import { finite, list, oneLine, record, text, type Json } from "./json";

const MAX_ENTRIES = 200;
const MAX_ENTRY = 500;
const MAX_WORD = 40;
const MAX_PLANS = 20;
const MAX_MARKDOWN = 100_000;
const MAX_ADDRESS = 4_096;

/** The plan of an update `plan`, or `plan_update`; null when it says nothing that is known. */
export function planOf(update: Json): PlanView | null {
  if (Array.isArray(update["entries"])) return { id: "", entries: entries(update["entries"]), markdown: "", file: "" };
  const plan = record(update["plan"]);
  const id = text(plan["planId"]).slice(0, MAX_ENTRY);
  switch (plan["type"]) {
    case "items":
      return { id, entries: entries(plan["entries"]), markdown: "", file: "" };
    case "markdown":
      return { id, entries: [], markdown: text(plan["content"]).slice(0, MAX_MARKDOWN), file: "" };
    case "file":
      return { id, entries: [], markdown: "", file: text(plan["uri"]).slice(0, MAX_ADDRESS) };
    default:
      return null;
  }
}

/** The plans with `plan` in the place of the one with its id. */
export function withPlan(plans: readonly PlanView[], plan: PlanView): PlanView[] {
  const others = plans.filter((one) => one.id !== plan.id);
  const empty = plan.entries.length === 0 && plan.markdown === "" && plan.file === "";
  return empty ? others : [...others, plan].slice(-MAX_PLANS);
}

function entries(value: unknown): PlanEntryView[] {
  return list(value).slice(0, MAX_ENTRIES).map((one) => {
    const entry = record(one);
    return {
      content: oneLine(text(entry["content"]), MAX_ENTRY),
      status: oneLine(text(entry["status"], "pending"), MAX_WORD),
      priority: oneLine(text(entry["priority"], "medium"), MAX_WORD),
    };
  });
}

export function usageOf(update: Json): UsageView | null {
  const used = finite(update["used"]);
  const size = finite(update["size"]);
  if (used === undefined || size === undefined) return null;
  return { used, size, cost: costOf(update["cost"]) };
}

function costOf(value: unknown): string {
  const { amount, currency } = record(value);
  const number = finite(amount);
  if (number === undefined) return "";
  const digits = number !== 0 && Math.abs(number) < 0.1 ? 4 : 2;
  const code = oneLine(text(currency), 8);
  return code === "USD" ? `$${number.toFixed(digits)}` : `${number.toFixed(digits)} ${code}`;
}
