// Bundles the extension and the page of its chat into dist/.

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import * as esbuild from "esbuild";

import { notices } from "./notices.mjs";

const minify = process.argv.includes("--minify");
const watch = process.argv.includes("--watch");
const require = createRequire(import.meta.url);

const common = { bundle: true, minify, sourcemap: minify ? false : "linked", logLevel: "warning", legalComments: "none", metafile: true };
const host = { ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"], define: { navigator: "undefined" } };
const page = { ...common, entryPoints: ["src/webview/main.ts"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "es2022" };

/** The icons that the page uses: their rules, taken from the font's own style sheet. */
async function styles() {
  const own = await readFile("src/webview/webview.css", "utf8");
  const icons = await readFile(require.resolve("@vscode/codicons/dist/codicon.css"), "utf8");
  const rules = icons.match(/^\.codicon-[a-z0-9-]+:before \{[^}]*\}/gmu) ?? [];
  const used = /codicon-(?:add|arrow-circle-right|arrow-down|arrow-swap|check|checklist|circle-outline|close|copy|debug-disconnect|debug-stop|diff|edit|error|file|fold|globe|history|info|key|lightbulb|link|loading|pass-filled|question|search|send|settings|sync|terminal|tools|trash|warning):before/u;
  await writeFile("dist/webview.css", `${own}\n${rules.filter((rule) => used.test(rule)).join("\n")}\n`);
  await copyFile(require.resolve("@vscode/codicons/dist/codicon.ttf"), "dist/codicon.ttf");
}

/** What the editor shows of the extension: without the pictures, which are not in the package, and how it is developed. */
function forUsers(readme) {
  return readme.replace(/^!\[.*\n\n?/gmu, "").replace(/\n## For developers\n[^]*$/u, "");
}

await mkdir("dist", { recursive: true });
await styles();
if (watch) {
  for (const options of [host, page]) await (await esbuild.context(options)).watch();
} else {
  const built = await Promise.all([esbuild.build(host), esbuild.build(page)]);
  await writeFile("dist/third-party-notices.txt", `${await notices(built.map((one) => one.metafile), ["@vscode/codicons"])}\n`);
  await writeFile("dist/README.md", forUsers(await readFile("README.md", "utf8")));
}
