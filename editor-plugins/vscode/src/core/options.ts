/** What can be set for a session: config options of any kind, or the older modes. */

import type { OptionValueView, OptionView } from "../shared/view";
import { isRecord, list, oneLine, record, shown, text } from "./json";

const MAX_OPTIONS = 100;
const MAX_CHOICES = 3_000; // of all options together
const MAX_ID = 1_000;
const MAX_NAME = 200;
const MAX_DESCRIPTION = 500;

/** The id under which modes appear as an option. No option of an agent's has it, as it has a space. */
export const MODES_ID = "session modes";

/** The options of an answer to session/new and the like: modes count only where there are no options. */
export function optionsOf(response: unknown): OptionView[] {
  const { configOptions, modes } = record(response);
  if (Array.isArray(configOptions)) return options(configOptions);
  return isRecord(modes) ? [modesOption(modes)] : [];
}

export function options(configOptions: unknown): OptionView[] {
  const room = { choices: MAX_CHOICES };
  return list(configOptions).slice(0, MAX_OPTIONS).flatMap((value) => {
    const option = record(value);
    const id = text(option["id"]);
    if (id === "" || id.length > MAX_ID) return [];
    return [
      {
        id,
        name: oneLine(text(option["name"], id), MAX_NAME),
        description: oneLine(text(option["description"]), MAX_DESCRIPTION),
        category: oneLine(text(option["category"]), MAX_NAME),
        input: input(option, room),
      },
    ];
  });
}

/** The same options with another current mode, as `current_mode_update` says. */
export function withMode(given: readonly OptionView[], modeId: string): OptionView[] {
  return given.map((option) =>
    option.id === MODES_ID && option.input.type === "select"
      ? { ...option, input: { ...option.input, value: modeId } }
      : option,
  );
}

function input(option: Record<string, unknown>, room: { choices: number }): OptionView["input"] {
  const value = option["currentValue"];
  if (option["type"] === "boolean" && typeof value === "boolean") return { type: "boolean", value };
  if (option["type"] === "select" && typeof value === "string" && value.length <= MAX_ID) {
    return { type: "select", value, groups: groups(list(option["options"]), room) };
  }
  return { type: "unknown", json: shown(option, 2_000) };
}

/** Choices come plain or in groups; plain ones are a group without a name. */
function groups(choices: readonly unknown[], room: { choices: number }): { name: string; options: OptionValueView[] }[] {
  const made: { name: string; options: OptionValueView[] }[] = [];
  for (const choice of choices) {
    const given = record(choice);
    if (Array.isArray(given["options"])) {
      made.push({ name: oneLine(text(given["name"], text(given["group"])), MAX_NAME), options: choicesOf(list(given["options"]), room) });
      continue;
    }
    let last = made.at(-1);
    if (last?.name !== "") made.push((last = { name: "", options: [] }));
    last.options.push(...choicesOf([choice], room));
  }
  return made;
}

function choicesOf(values: readonly unknown[], room: { choices: number }): OptionValueView[] {
  const made = values.slice(0, room.choices).flatMap(choiceOf);
  room.choices -= made.length;
  return made;
}

function choiceOf(value: unknown): OptionValueView[] {
  const choice = record(value);
  const id = text(choice["value"]);
  if (id === "" || id.length > MAX_ID) return [];
  return [{ value: id, name: oneLine(text(choice["name"], id), MAX_NAME), description: oneLine(text(choice["description"]), MAX_DESCRIPTION) }];
}

function modesOption(modes: Record<string, unknown>): OptionView {
  const choices = list(modes["availableModes"]).slice(0, MAX_OPTIONS).flatMap((value) => {
    const mode = record(value);
    return choiceOf({ value: mode["id"], name: mode["name"], description: mode["description"] });
  });
  return {
    id: MODES_ID,
    name: "Mode",
    description: "",
    category: "mode",
    input: { type: "select", value: text(modes["currentModeId"]), groups: [{ name: "", options: choices }] },
  };
}
