/** The form of an elicitation: its JSON Schema as fields. */

import type { ChoiceView, FieldView } from "../shared/view";
import { finite, list, oneLine, record, shown, text } from "./json";

const MAX_FIELDS = 100;
const MAX_CHOICES = 500;
const MAX_TITLE = 300;
const MAX_DESCRIPTION = 2_000;
const MAX_VALUE = 10_000;
const MAX_PATTERN = 1_000;

export function fields(schema: unknown): FieldView[] {
  const { properties, required } = record(schema);
  const needed = new Set(list(required));
  return Object.entries(record(properties)).slice(0, MAX_FIELDS).map(([name, value]) => {
    const property = record(value);
    return {
      name,
      title: oneLine(text(property["title"], name), MAX_TITLE),
      description: text(property["description"]).slice(0, MAX_DESCRIPTION),
      required: needed.has(name),
      input: input(property),
    };
  });
}

function input(property: Record<string, unknown>): FieldView["input"] {
  const given = property["default"];
  switch (property["type"]) {
    case "string": {
      const choices = choicesOf(property);
      if (choices.length > 0) return { type: "choice", choices, value: text(given).slice(0, MAX_VALUE) };
      return {
        type: "text",
        format: text(property["format"]).slice(0, MAX_TITLE),
        value: text(given).slice(0, MAX_VALUE),
        ...bound("minLength", property["minLength"]),
        ...bound("maxLength", property["maxLength"]),
        ...(typeof property["pattern"] === "string" && property["pattern"].length <= MAX_PATTERN ? { pattern: property["pattern"] } : {}),
      };
    }
    case "number":
    case "integer":
      return {
        type: "number",
        integer: property["type"] === "integer",
        value: finite(given)?.toString() ?? "",
        ...bound("minimum", property["minimum"]),
        ...bound("maximum", property["maximum"]),
      };
    case "boolean":
      return { type: "boolean", value: given === true };
    case "array": {
      const choices = choicesOf(record(property["items"]));
      if (choices.length === 0) return { type: "unknown", json: shown(property, 2_000) };
      return {
        type: "choices",
        choices,
        minItems: finite(property["minItems"]) ?? 0,
        value: list(given).slice(0, MAX_CHOICES).map((one) => text(one).slice(0, MAX_TITLE)),
        ...bound("maxItems", property["maxItems"]),
      };
    }
    default:
      return { type: "unknown", json: shown(property, 2_000) };
  }
}

function bound<Name extends string>(name: Name, value: unknown): Partial<Record<Name, number>> {
  const number = finite(value);
  return number === undefined ? {} : ({ [name]: number } as Record<Name, number>);
}

function choicesOf(property: Record<string, unknown>): ChoiceView[] {
  const titled = [...list(property["oneOf"]), ...list(property["anyOf"])].map(record);
  if (titled.length > 0) {
    return titled.slice(0, MAX_CHOICES).map((one) => choice(text(one["const"]), text(one["title"], text(one["const"]))));
  }
  return list(property["enum"]).slice(0, MAX_CHOICES).map((one) => choice(text(one), text(one)));
}

function choice(value: string, title: string): ChoiceView {
  return { value: value.slice(0, MAX_DESCRIPTION), title: oneLine(title, MAX_TITLE) };
}
