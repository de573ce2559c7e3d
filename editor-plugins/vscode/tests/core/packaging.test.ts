import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";

import { notices } from "../../notices.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const lock = JSON.parse(readFileSync(`${root}/package-lock.json`, "utf8")) as { packages: Record<string, { license?: string }> };

describe("the notices in the package", () => {
  let text = "";
  let bundled: string[] = [];

  beforeAll(async () => {
    const common = { bundle: true, write: false, metafile: true, logLevel: "silent", absWorkingDir: root } as const;
    const built = await Promise.all([
      esbuild.build({ ...common, entryPoints: ["src/extension.ts"], platform: "node", external: ["vscode"] }),
      esbuild.build({ ...common, entryPoints: ["src/webview/main.ts"], platform: "browser" }),
    ]);
    const files = built.flatMap((one) => Object.keys(one.metafile.inputs)).filter((file) => file.includes("node_modules/"));
    bundled = [...new Set(files.map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/u.exec(file)?.[1] ?? file))];
    text = await notices(built.map((one) => one.metafile), ["@vscode/codicons"]);
  });

  it("have every package of the bundles, with its licence's words", () => {
    expect(bundled.length).toBeGreaterThan(8);
    for (const name of [...bundled, "@vscode/codicons"]) expect(text, name).toMatch(new RegExp(`^${name} \\d`, "mu"));
    expect(text.match(/Permission is hereby granted/gu)?.length).toBeGreaterThan(4);
    expect(text).toContain("Redistributions in binary form");
    expect(text).toContain("Creative Commons");
  });

  it("name licences only that allow to be passed on", () => {
    const known = new Set(["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "(MPL-2.0 OR Apache-2.0)", "CC-BY-4.0"]);
    for (const name of [...bundled, "@vscode/codicons"]) expect(known, name).toContain(lock.packages[`node_modules/${name}`]?.license);
  });
});
