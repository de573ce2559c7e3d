/** The environment of programs that are started: the editor's, without what it has for itself. */

/** With these set, a program made with Electron, or the command `code`, would take itself for a part of this editor. */
const EDITORS_OWN = /^(?:ELECTRON_|VSCODE_)/u;

/** The variables of `base`, and over them those of `own`. */
export function environment(own: Readonly<Record<string, string>>, base: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return { ...Object.fromEntries(Object.entries(base).filter(([name]) => !EDITORS_OWN.test(name))), ...own };
}
