// Formats Lua as stylua.toml says: `node stylua.mjs [--check] PATH…`. With --check nothing is written:
// the files that are not formatted are named, and the exit code is 1 where there is one.

import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as stylua from "@johnnymorganz/stylua";

const settings = [...readFileSync(new URL("../stylua.toml", import.meta.url), "utf8").matchAll(/^(\w+) = (.+)$/gm)];

/** StyLua's configuration; formatting uses one up. */
function configuration() {
  const config = stylua.Config.new();
  config.syntax = stylua.LuaVersion.LuaJIT;
  for (const [, name, value] of settings) {
    config[name] = name === "indent_type" ? stylua.IndentType[JSON.parse(value)] : JSON.parse(value);
  }
  return config;
}

/** The Lua files at or below a path. */
function* luaFiles(path) {
  if (!statSync(path).isDirectory()) {
    yield path;
    return;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name.endsWith(".lua") || (entry.isDirectory() && entry.name !== "node_modules")) {
      yield* luaFiles(join(path, entry.name));
    }
  }
}

const check = process.argv[2] === "--check";
for (const file of process.argv.slice(check ? 3 : 2).flatMap((path) => [...luaFiles(path)])) {
  const before = readFileSync(file, "utf8");
  const after = stylua.formatCode(before, configuration(), undefined, stylua.OutputVerification.Full);
  if (after !== before) {
    console.log(`${check ? "not formatted" : "formatted"}: ${file}`);
    process.exitCode = check ? 1 : 0;
    if (!check) {
      writeFileSync(file, after);
    }
  }
}
