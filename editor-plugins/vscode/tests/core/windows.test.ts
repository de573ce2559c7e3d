/** How commands are started and ended on Windows, which is not at hand: read as its documentation says. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";

import { environment } from "../../src/core/environment";
import { launch, type Launch } from "../../src/core/launch";
import { signalGroup } from "../../src/core/processEnd";

const NODE = "C:\\Program Files\\nodejs";
const ENV = { Path: `"C:\\tools";${NODE}`, ComSpec: "C:\\Windows\\System32\\cmd.exe" };
const HARD = [
  "", "plain", "with spaces", "tab\there", "%PATH%", "%", "100%", "^", "a^b", "a&b", "a & b", "say \"hi\"", "\"", "\\", "C:\\dir\\", "\\\\share\\a b\\", "back\\\"slash",
  "{\"a\": \"b & calc | more > x\", \"c\": \"%PATH%^\"}", "\" & calc & \"", "!PATH!", "(a) [b] *?", "a;b,c=d", "日本 語", "--model=demo/demo",
];

function onWindows(command: string, args: readonly string[], files: readonly string[], cwd = "C:\\work"): Launch {
  const known = files.map((file) => file.toLowerCase());
  return launch(command, args, cwd, ENV, { platform: "win32", isFile: (file) => known.includes(file.toLowerCase()) });
}

/** What cmd.exe makes of a line: variables first, then what is behind a "^" outside of quotes stands for itself. */
function read(line: string, variables: boolean): string {
  const filled = variables ? line.replace(/%([^%]+)%/gu, (all, name: string) => (name === "PATH" ? "FILLED" : all)) : line;
  let inQuotes = false;
  let made = "";
  for (let at = 0; at < filled.length; at += 1) {
    let one = filled[at] ?? "";
    if (one === "^" && !inQuotes) one = filled[(at += 1)] ?? "";
    else if (one === "\"") inQuotes = !inQuotes;
    else if (!inQuotes && /[&|<>]/u.test(one)) throw new Error(`another command: ${filled.slice(at)}`);
    made += one;
  }
  return made;
}

/** A command line as programs read it: https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments */
function argv(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let inQuotes = false;
  for (const [, slashes = "", quote = "", other = ""] of line.matchAll(/(\\+(?="))?(?:(")|([^]))/gu)) {
    if (quote !== "") {
      word = (word ?? "") + "\\".repeat(Math.floor(slashes.length / 2));
      if (slashes.length % 2 === 1) word += "\"";
      else inQuotes = !inQuotes;
    } else if (!inQuotes && /[ \t]/u.test(other)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + other;
    }
  }
  return word === null ? words : [...words, word];
}

/** What the program behind a batch file gets, which names its arguments as %*: their variables are not looked for again. */
function received({ args }: Launch, file: string): string[] {
  const line = args.at(-1)?.replace(/^"|"$/gu, "") ?? "";
  const once = read(line, true);
  expect(once.startsWith(`${file} `)).toBe(true);
  return argv(read(once.slice(file.length + 1), false));
}

describe("on Windows", () => {
  it("a program is started itself, with its arguments as they are", () => {
    expect(onWindows("uvx", HARD, ["C:\\tools\\uvx.exe"])).toEqual({ file: "C:\\tools\\uvx.exe", args: HARD, verbatim: false });
  });

  it("a batch file is read by cmd.exe, and every argument arrives untouched", () => {
    const npx = onWindows("npx", HARD, [`${NODE}\\npx`, `${NODE}\\npx.cmd`]);
    expect({ ...npx, args: npx.args.slice(0, -1) }).toEqual({ file: ENV.ComSpec, args: ["/d", "/s", "/v:off", "/c"], verbatim: true });
    expect(received(npx, `${NODE}\\npx.cmd`)).toEqual(HARD);
  });

  it.each(HARD)("the argument %j alone arrives untouched", (one) => {
    expect(received(onWindows(".\\agent.bat", [one], ["C:\\work\\agent.bat"]), "C:\\work\\agent.bat")).toEqual([one]);
  });

  it("a folder's name is nothing to cmd.exe either", () => {
    const file = "C:\\a & b\\100% (x86)\\agent.cmd";
    expect(received(onWindows(file, ["x"], [file]), file)).toEqual(["x"]);
  });

  it("the first folder of the PATH counts, in it programs before batch files, and never the folder that is worked in", () => {
    const files = ["C:\\work\\agent.exe", `${NODE}\\agent.exe`, "C:\\tools\\agent.cmd", "C:\\tools\\agent.exe"];
    expect(onWindows("agent", [], files).file).toBe("C:\\tools\\agent.exe");
    expect(onWindows("agent.cmd", [], files).file).toBe(ENV.ComSpec);
    expect(onWindows("agent", [], files.slice(0, 1)).file).toBe("agent");
  });

  it("a name with a dot in it has no ending by that", () => {
    expect(onWindows("python3.12", [], ["C:\\tools\\python3.12.exe"]).file).toBe("C:\\tools\\python3.12.exe");
  });

  it("a line break, which would end the command, is refused for batch files", () => {
    expect(() => onWindows("npx", ["a\nb"], [`${NODE}\\npx.cmd`])).toThrow("line breaks");
    expect(onWindows("uvx", ["a\nb"], ["C:\\tools\\uvx.exe"]).args).toEqual(["a\nb"]);
  });

  it("a variable of the user's replaces the editor's, however its name is written", () => {
    expect(environment({ path: "mine" }, { Path: "theirs", OTHER: "1" }, "win32")).toEqual({ path: "mine", OTHER: "1" });
    expect(environment({ path: "mine" }, { Path: "theirs" }, "linux")).toEqual({ path: "mine", Path: "theirs" });
  });

  it("a process is ended with all that it started, and only while it lives", async () => {
    const ran: string[] = [];
    const child: ChildProcess = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)"]);
    onTestFinished(() => void child.kill("SIGKILL"));
    const killing = { platform: "win32" as const, run: (program: string, args: readonly string[]) => void ran.push([program, ...args].join(" ")) };
    signalGroup(child, "SIGTERM", killing);
    expect(ran).toEqual([`C:\\Windows\\System32\\taskkill.exe /PID ${child.pid ?? ""} /T /F`]);
    child.kill("SIGKILL");
    await once(child, "exit");
    signalGroup(child, "SIGKILL", killing);
    expect(ran).toHaveLength(1);
  });

  it("the process alone is ended where the program that ends trees is missing", async () => {
    const child: ChildProcess = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)"]);
    onTestFinished(() => void child.kill("SIGKILL"));
    signalGroup(child, "SIGKILL", { platform: "win32", run: (_program, _args, failed) => failed() });
    expect((await once(child, "exit"))[1]).toBe("SIGKILL");
  });
});

describe("elsewhere", () => {
  it("a command is started as it is", () => {
    const system = { platform: "linux" as const, isFile: () => true };
    expect(launch("npx", HARD, "/work", {}, system)).toEqual({ file: "npx", args: HARD, verbatim: false });
  });
});
