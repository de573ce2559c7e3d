import { describe, expect, it } from "vitest";

import { diffPreview } from "../../src/core/diffPreview";
import { hunksBetween, lineCount, splitLines, withHunk, withoutHunk } from "../../src/core/hunks";
import { cpuMilliseconds } from "./cpuTime";

function random(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}

function texts(seed: number): [string, string] {
  const next = random(seed);
  const line = (): string => "abcdef"[Math.trunc(next() * 6)] ?? "";
  const make = (): string => Array.from({ length: Math.trunc(next() * 12) }, line).join("\n") + (next() > 0.5 ? "\n" : "");
  return [make(), make()];
}

describe("hunks", () => {
  it.each(Array.from({ length: 200 }, (_, seed) => seed))("taken back one by one give the old text, taken over the new (%d)", (seed) => {
    const [before, after] = texts(seed);
    let now = after;
    for (;;) {
      const hunk = hunksBetween(before, now).at(seed % 2 === 0 ? 0 : -1);
      if (hunk === undefined) break;
      now = withoutHunk(now, hunk);
    }
    expect(now).toBe(before);
    let kept = before;
    for (;;) {
      const hunk = hunksBetween(kept, after).at(seed % 2 === 0 ? -1 : 0);
      if (hunk === undefined) break;
      kept = withHunk(kept, hunk);
    }
    expect(kept).toBe(after);
  });

  it("may have more lines than a call may have arguments", () => {
    const lines = Array.from({ length: 1_000_000 }, () => "\n");
    const hunk = { oldStart: 1, oldLines: [], newStart: 1, newLines: lines };
    const long = `first\n${"\n".repeat(lines.length)}`;
    expect(withHunk("first\n", hunk) === long).toBe(true);
    expect(withoutHunk("first\n", { ...hunk, oldLines: lines, newLines: [] }) === long).toBe(true);
  });

  it("are none between texts that differ in their line ends only", () => {
    expect(hunksBetween("a\r\nb\r\n", "a\nb\n")).toEqual([]);
  });

  it("are found in little time of the processor in texts that have nothing in common", () => {
    const before = Array.from({ length: 60_000 }, (_, at) => `a${at}`).join("\n");
    const after = Array.from({ length: 60_000 }, (_, at) => `b${at}`).join("\n");
    const started = cpuMilliseconds();
    const hunks = hunksBetween(before, after);
    expect(cpuMilliseconds() - started).toBeLessThan(3000);
    expect(hunks).toHaveLength(1);
  });
});

describe("a preview", () => {
  it("counts lines and shows the changed ones with some around them", () => {
    const before = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
    const preview = diffPreview(before, before.replace("line 10", "LINE 10"));
    expect(preview).toMatchObject({ added: 1, removed: 1, cut: false });
    expect(preview.lines.map((line) => line.sign).join("")).toBe("…  -+  …");
  });

  it("counts the lines of a text as they are split", () => {
    for (const text of ["", "a", "a\n", "\n", "a\r\nb", "a\n\nb\n"]) expect(lineCount(text), JSON.stringify(text)).toBe(splitLines(text).length);
  });

  it("of a huge change has no lines", () => {
    expect(diffPreview("", "x\n".repeat(300_000))).toMatchObject({ lines: [], cut: true, added: 300_000 });
  });
});
