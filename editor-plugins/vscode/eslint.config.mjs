import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/"] },
  js.configs.recommended,
  {
    files: ["src/**/*.ts", "tests/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { project: ["./tsconfig.json", "./tsconfig.webview.json"], tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      "max-lines": ["error", { max: 320, skipBlankLines: true }],
    },
  },
  {
    files: ["**/*.mjs"],
    languageOptions: { globals: { document: "readonly", process: "readonly", console: "readonly", setTimeout: "readonly", setInterval: "readonly", setImmediate: "readonly", URL: "readonly", Buffer: "readonly", navigator: "readonly", ClipboardItem: "readonly", requestAnimationFrame: "readonly", performance: "readonly" } },
  },
  {
    // The editor makes links of what is in its messages, also such as run commands.
    files: ["src/**/*.ts"],
    ignores: ["src/host/telling.ts"],
    rules: {
      "no-restricted-properties": ["error", ...["Information", "Warning", "Error"].map((kind) => ({ property: `show${kind}Message`, message: "Use telling.ts." }))],
    },
  },
  {
    // What the webview shows comes from strangers: nothing of it may become markup by itself.
    files: ["src/webview/**/*.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: "AssignmentExpression > MemberExpression[property.name=/^(innerHTML|outerHTML)$/]", message: "Use h() or sanitized()." },
        { selector: "CallExpression[callee.property.name='insertAdjacentHTML']", message: "Use h() or sanitized()." },
      ],
    },
  },
);
