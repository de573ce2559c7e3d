/** Which paths are inside the workspace, and how they are called there. */

import { readlink, realpath } from "node:fs/promises";
import * as path from "node:path";

import type { LocationView } from "../shared/view";
import { finite, oneLine, record, text } from "./json";

const LABEL_CHARACTERS = 200;
const MAX_LINKS = 40;
const MAX_PATH = 4_096;

export class Roots {
  /** `folders` may be others later. */
  constructor(public folders: readonly string[]) {}

  /** By the words of the path alone, for what is only shown. */
  contains(file: string): boolean {
    return this.#root(this.folders, path.resolve(file)) !== undefined;
  }

  label(file: string): string {
    const root = this.#root(this.folders, path.resolve(file));
    const name = root === undefined ? file : path.relative(root, path.resolve(file)) || path.basename(root);
    return oneLine(this.folders.length > 1 && root !== undefined ? path.join(path.basename(root), name) : name, LABEL_CHARACTERS);
  }

  /** With every link followed, for what is read and written. A file that is missing is where its folder is. */
  async reallyContains(file: string): Promise<boolean> {
    const folders = await Promise.all(this.folders.map((folder) => real(folder)));
    return this.#root(folders, await real(path.resolve(file))) !== undefined;
  }

  location(file: string, line?: number): LocationView {
    return {
      path: file,
      label: this.label(file),
      outside: !path.isAbsolute(file) || !this.contains(file),
      ...(line === undefined ? {} : { line }),
    };
  }

  /** A location of a tool call, as the protocol has it: lines are from 1. */
  locationOf(value: unknown): LocationView[] {
    const given = record(value);
    const file = text(given["path"]);
    const line = finite(given["line"]);
    return file === "" || file.length > MAX_PATH ? [] : [this.location(file, line === undefined ? undefined : Math.max(1, Math.trunc(line)))];
  }

  #root(folders: readonly string[], file: string): string | undefined {
    return folders.find((folder) => {
      const relative = path.relative(folder, file);
      return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
    });
  }
}

/** Where a path leads. A link to what is missing leads there as well: writing to it makes that. */
async function real(file: string, links = 0): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const folder = path.dirname(file);
    if (folder === file) return file;
    const within = await real(folder, links);
    const target = await readlink(file).catch(() => null);
    if (target === null) return path.join(within, path.basename(file));
    if (links >= MAX_LINKS) throw new Error(`too many links: ${file}`);
    return real(path.resolve(within, target), links + 1);
  }
}
