/** What can be wrong with an agent, in words that name it and what to do. */

import { RequestError } from "@agentclientprotocol/sdk/unstable";

import { oneLine } from "./json";

/** The protocol's error that asks for a login. */
export const AUTH_REQUIRED = -32000;

/** A failure that is told to the user as it stands; `detail` is what the agent wrote to its error output. */
export class AgentProblem extends Error {
  constructor(
    message: string,
    readonly detail = "",
  ) {
    super(message);
    this.name = "AgentProblem";
  }
}

/** An error for the agent that names a parameter. */
export function invalid(message: string): RequestError {
  return new RequestError(-32602, message);
}

const SHOWN_CHARACTERS = 500;

/** A failure in one line. */
export function told(error: unknown): string {
  if (error instanceof RequestError) {
    return oneLine(`${error.message}${reason(error.data)}`, SHOWN_CHARACTERS);
  }
  return oneLine(error instanceof Error ? error.message : String(error), SHOWN_CHARACTERS);
}

export function needsSignIn(error: unknown): boolean {
  return error instanceof RequestError && error.code === AUTH_REQUIRED;
}

function reason(data: unknown): string {
  return typeof data === "string" && data !== "" ? `: ${data}` : "";
}

/** The result of `work`; after `seconds` without one, `problem` is thrown instead. */
export async function within<T>(work: Promise<T>, seconds: number, problem: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(problem()), seconds * 1000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
