/** The environment of programs that are started: the editor's, without what it has for itself. */

/** With these set, a program made with Electron, or the command `code`, would take itself for a part of this editor. */
const EDITORS_OWN = /^(?:ELECTRON_|VSCODE_)/u;

/** The variables of `base`, and over them those of `own`; on Windows also where their names are written otherwise. */
export function environment(
  own: Readonly<Record<string, string>>,
  base: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): NodeJS.ProcessEnv {
  const plain = (name: string): string => (platform === "win32" ? name.toUpperCase() : name);
  const replaced = new Set(Object.keys(own).map(plain));
  const kept = Object.entries(base).filter(([name]) => !EDITORS_OWN.test(name) && !replaced.has(plain(name)));
  return { ...Object.fromEntries(kept), ...own };
}

/** A variable of Windows, however its name is written. */
export function variable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const wanted = name.toUpperCase();
  return Object.entries(env).find(([one]) => one.toUpperCase() === wanted)?.[1];
}
