// The licences of what is in the bundles, and of the icons' font.

import { readdir, readFile } from "node:fs/promises";

const MODULES = "node_modules/";

/**
 * The text that goes into the package: each third party's name, version, licence and its words.
 * `metafiles` are esbuild's; `others` are packages that are not bundled but copied.
 * Throws where a package has no text of its licence.
 */
export async function notices(metafiles, others) {
  const inputs = metafiles.flatMap((metafile) => Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs)));
  const bundled = inputs.flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 && file.includes(MODULES) ? [folderOf(file)] : []));
  const folders = [...new Set([...bundled, ...others.map((name) => `${MODULES}${name}`)])].sort();
  const texts = await Promise.all(folders.map(notice));
  return ["This extension has work of others in it, under these licences.", ...texts].join(`\n\n${"-".repeat(78)}\n\n`);
}

/** The folder of the package that a file belongs to, the innermost one. */
function folderOf(file) {
  const at = file.lastIndexOf(MODULES) + MODULES.length;
  const [first, second] = file.slice(at).split("/");
  return file.slice(0, at) + (first.startsWith("@") ? `${first}/${second}` : first);
}

async function notice(folder) {
  const { name, version, license, homepage, repository } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|notice|copying)/iu.test(file)).sort();
  if (files.length === 0) throw new Error(`${name}: no text of its licence`);
  const words = await Promise.all(files.map((file) => readFile(`${folder}/${file}`, "utf8")));
  const where = homepage ?? repository?.url ?? "";
  return [`${name} ${version} (${license})${where === "" ? "" : `\n${where}`}`, ...words.map((one) => one.trim())].join("\n\n");
}
