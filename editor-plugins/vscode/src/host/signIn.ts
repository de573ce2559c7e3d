/** A login of the agent's in a terminal of the editor. */

import * as vscode from "vscode";

import type { AuthMethod } from "../core/abilities";
import type { AgentCommand } from "../core/agentProcess";
import { exitWords } from "../core/agentProcess";
import { environment } from "../core/environment";
import { launch } from "../core/launch";
import type { Say } from "../shared/words";

/**
 * Run the agent as the method says, until it ends.
 * @throws Error when it ended otherwise than well.
 */
export async function signInTerminal(method: AuthMethod, command: AgentCommand, say: Say): Promise<void> {
  const own = { ...command.env, ...method.env };
  const args = method.command === undefined ? [...command.args, ...method.args] : method.args;
  const started = launch(method.command ?? command.command, args, command.cwd, environment(own));
  const terminal = vscode.window.createTerminal({
    name: say("terminal.title", method.name),
    shellPath: started.file,
    shellArgs: started.verbatim ? started.args.join(" ") : started.args, // the editor quotes those of a list
    env: own,
    cwd: command.cwd,
  });
  terminal.show();
  const code = await new Promise<number | undefined>((resolve) => {
    const closed = vscode.window.onDidCloseTerminal((one) => {
      if (one !== terminal) return;
      closed.dispose();
      resolve(one.exitStatus?.code);
    });
  });
  if (code !== 0) throw new Error(exitWords({ code: code ?? null, signal: null }, say));
}
