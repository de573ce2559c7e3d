import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Give all tests one folder for their temporary files, which is removed after them. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "acp-vscode-"));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
