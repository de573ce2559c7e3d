import { defineConfig } from "vitest/config";

const common = { testTimeout: 60_000, pool: "threads" as const, isolate: false, globalSetup: "tests/globalSetup.ts" };

export default defineConfig({
  test: {
    poolOptions: { threads: { maxThreads: 2 } },
    projects: [
      { test: { ...common, name: "core", include: ["tests/core/**/*.test.ts"], environment: "node" } },
      { test: { ...common, name: "webview", include: ["tests/webview/**/*.test.ts"], environment: "jsdom" } },
    ],
  },
});
