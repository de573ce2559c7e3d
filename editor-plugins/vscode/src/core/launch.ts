/**
 * A command as the system can start it.
 *
 * Windows starts programs only: `npx`, like whatever npm installs, is a batch file there, which cmd.exe has to
 * read. Node.js says so, and leaves the quoting to its users ("Spawning .bat and .cmd files on Windows").
 */

import { statSync } from "node:fs";
import { win32 } from "node:path";

import { variable } from "./environment";
import { invalid } from "./problems";

/** What `spawn` is given; `verbatim` becomes its `windowsVerbatimArguments`. */
export interface Launch {
  file: string;
  args: string[];
  verbatim: boolean;
}

/** The system that a command is started on. */
export interface System {
  platform: NodeJS.Platform;
  isFile: (file: string) => boolean;
}

const THIS: System = {
  platform: process.platform,
  isFile: (file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true,
};

/** In the order in which Windows looks for them where a command has no ending. */
const ENDINGS: readonly string[] = [".com", ".exe", ".bat", ".cmd"];
const BATCH = /\.(?:bat|cmd)$/iu;
/** What has a meaning for cmd.exe, or ends a word. */
const MEANT = /[()\][%!^"`<>&|;, *?]/gu;

/**
 * @param env what the command will have for its environment: its PATH counts.
 * @throws RequestError for arguments that no batch file can be given.
 */
export function launch(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv, system: System = THIS): Launch {
  if (system.platform !== "win32") return { file: command, args: [...args], verbatim: false };
  const file = found(command, cwd, env, system) ?? command; // one that is not found is told by `spawn`
  if (!BATCH.test(file)) return { file, args: [...args], verbatim: false };
  if (args.some((one) => /[\r\n\0]/u.test(one))) throw invalid(`args: a batch file cannot be given line breaks: ${file}`);
  const line = [escaped(file), ...args.map((one) => escaped(escaped(quoted(one))))].join(" ");
  return { file: variable(env, "ComSpec") ?? "cmd.exe", args: ["/d", "/s", "/v:off", "/c", `"${line}"`], verbatim: true };
}

/** The file that Windows would run. Not in the folder where it is to work, unless the command says so. */
function found(command: string, cwd: string, env: NodeJS.ProcessEnv, { isFile }: System): string | undefined {
  const named = /[\\/:]/u.test(command);
  const folders = named ? [cwd] : (variable(env, "PATH") ?? "").split(";").map((folder) => folder.replaceAll("\"", "")).filter((folder) => win32.isAbsolute(folder));
  const endings = ENDINGS.includes(win32.extname(command).toLowerCase()) ? [""] : ENDINGS;
  return folders.flatMap((folder) => endings.map((ending) => win32.resolve(folder, command + ending))).find(isFile);
}

/** An argument as programs read it from their command line (Microsoft: "Parsing C command-line arguments"). */
function quoted(argument: string): string {
  return `"${argument.replace(/(\\*)"/gu, "$1$1\\\"").replace(/\\+$/u, "$&$&")}"`;
}

/**
 * So that cmd.exe takes it as it stands. It reads an argument of a batch file twice: in the command, and where the
 * file names it. A variable's name ends in "^" by this, and there is none of such a name, so that it stays as it is.
 */
function escaped(word: string): string {
  return word.replace(MEANT, "^$&");
}
