import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { changedPart } from "../../src/core/changedPart";
import { withoutHunk } from "../../src/core/hunks";
import { Reviews } from "../../src/core/reviews";
import { MAX_KEPT, ReviewStore, type Storage } from "../../src/core/reviewStore";
import { decoded, encoded, lineEndOf, linesOf } from "../../src/core/textFile";
import { cpuMilliseconds } from "./cpuTime";

const before = "one\ntwo\nthree\nfour\nfive\n";
const after = "ONE\ntwo\nthree\nfour\nFIVE\n";

function made(): Reviews {
  return new Reviews(() => undefined);
}

describe("a review", () => {
  it("ends when its last hunk is accepted", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    for (const left of [2, 1]) {
      const hunks = reviews.hunks("/a", after);
      expect(hunks).toHaveLength(left);
      for (const hunk of hunks.slice(0, 1)) reviews.acceptHunk("/a", hunk, after);
    }
    expect(reviews.all).toEqual([]);
  });

  it("keeps the text before the first of several changes", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    reviews.wrote("/a", after, "ONE\n");
    expect(reviews.get("/a")?.before).toBe(before);
  });

  it("knows when the file became something else, and that a hunk put back is not that", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    expect(reviews.changedSince("/a", after.replace(/\n/gu, "\r\n"))).toBe(false);
    expect(reviews.changedSince("/a", `${after}mine\n`)).toBe(true);
    const [hunk] = reviews.hunks("/a", after);
    if (hunk === undefined) throw new Error("no hunk");
    const now = withoutHunk(after, hunk);
    reviews.rejectedHunk("/a", after, now);
    expect(reviews.changedSince("/a", now)).toBe(false);
    reviews.rejectedHunk("/a", `${now}mine\n`, `${now}mine too\n`);
    expect(reviews.changedSince("/a", `${now}mine too\n`)).toBe(true);
  });

  it("ends when the agent puts everything back", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    reviews.wrote("/a", after, before);
    expect(reviews.all).toEqual([]);
  });

  it("of what the user changed in between has the differences of both", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    const now = after.replace("three", "mine");
    reviews.check("/a", now);
    expect(reviews.hunks("/a", now).map((hunk) => hunk.newLines)).toEqual([["ONE\n"], ["mine\n"], ["FIVE\n"]]);
  });

  it("goes with a file or its folder to another name, and with both when they are deleted", () => {
    const reviews = made();
    for (const path of ["/p/a", "/p/sub/b", "/p/subway"]) reviews.wrote(path, before, after);
    reviews.renamed("/p/a", "/p/c");
    reviews.renamed("/p/sub", "/q");
    expect(reviews.all.map((one) => one.path).sort()).toEqual(["/p/c", "/p/subway", "/q/b"]);
    expect(reviews.hunks("/q/b", after)).toHaveLength(2);
    reviews.deleted("/p");
    expect(reviews.all.map((one) => one.path)).toEqual(["/q/b"]);
  });

  it("knows the line end that a file had, where it had one", () => {
    const reviews = made();
    reviews.wrote("/crlf", "a\r\nb\r\n", "A\nb\n");
    reviews.wrote("/mixed", "a\r\nb\n", "A\nb\n");
    expect([reviews.get("/crlf")?.lineEnd, reviews.get("/mixed")?.lineEnd]).toEqual(["\r\n", ""]);
    expect(reviews.hunks("/crlf", "A\r\nb\r\n")).toHaveLength(1);
  });

  it("of 5 MB is made, drawn and changed in little time of the processor", () => {
    const big = Array.from({ length: 100_000 }, (_, at) => `line ${at} ${"x".repeat(40)}\n`).join("");
    const now = big.replace("line 7 ", "LINE 7 ").replace("line 99000 ", "LINE 99000 ");
    const reviews = made();
    const started = cpuMilliseconds();
    reviews.wrote("/big", big, now);
    const [hunk] = reviews.hunks("/big", now);
    expect(reviews.hunks("/big", now)).toHaveLength(2);
    if (hunk !== undefined) reviews.acceptHunk("/big", hunk, now);
    expect(reviews.hunks("/big", now)).toHaveLength(1);
    expect(cpuMilliseconds() - started).toBeLessThan(10_000);
    const asked = cpuMilliseconds();
    for (let at = 0; at < 50; at += 1) reviews.hunks("/big", now);
    expect(cpuMilliseconds() - asked).toBeLessThan(1_000); // they are not looked for again
  });
});

describe("a change that the agent tells", () => {
  it("is reviewed when the agent made it itself", () => {
    const reviews = made();
    reviews.told("/a", before, after, after);
    expect(reviews.get("/a")?.before).toBe(before);
    reviews.told("/a", after, `${after}more\n`, `${after}more\n`);
    expect(reviews.get("/a")?.before).toBe(before);
    expect(reviews.changedSince("/a", `${after}more\n`)).toBe(false);
  });

  it("is reviewed when only the changed lines are told", () => {
    const reviews = made();
    reviews.told("/a", "five\n", "FIVE\n", "one\nfour\nFIVE\n");
    expect(reviews.get("/a")?.before).toBe("one\nfour\nfive\n");
    reviews.told("/b", "x", "y", "y y");
    expect(reviews.get("/b")).toBeUndefined(); // which of the two is not known
  });

  it("is known when it came through the editor, also when the user has dealt with it", () => {
    const reviews = made();
    reviews.wrote("/a", before, after);
    reviews.accept("/a");
    reviews.wrote("/b", before, after);
    reviews.check("/b", before);
    reviews.told("/b", before, after, before);
    expect(reviews.all).toEqual([]);
  });

  it("is nothing when the file is otherwise", () => {
    const reviews = made();
    reviews.told("/a", before, after, "something else\n");
    reviews.told("/a", null, "new\n", "something else\n");
    expect(reviews.all).toEqual([]);
  });
});

/** A window: its reviews, kept in a file. */
function opened(file: string): { reviews: Reviews; store: ReviewStore } {
  const storage: Storage = {
    read: async () => (existsSync(file) ? readFile(file, "utf8") : null),
    write: (text) => writeFile(file, text),
  };
  const reviews = made();
  const textsOf = async (path: string): Promise<string[]> => (existsSync(path) ? [await readFile(path, "utf8")] : []);
  return { reviews, store: new ReviewStore(reviews, storage, textsOf) };
}

describe("reviews of a window that is loaded again", () => {
  async function reloaded(change: (path: string) => Promise<void> | void, kept?: (file: string) => void): Promise<{ reviews: Reviews; path: string }> {
    const folder = mkdtempSync(join(tmpdir(), "acp-vscode-"));
    const [path, file] = [join(folder, "a.txt"), join(folder, "kept.json")];
    const first = opened(file);
    await first.store.load();
    writeFileSync(path, after);
    first.reviews.wrote(path, before, after);
    const [hunk] = first.reviews.hunks(path, after);
    if (hunk !== undefined) first.reviews.acceptHunk(path, hunk, after);
    await first.store.flush();
    await change(path);
    kept?.(file);
    const second = opened(file);
    await second.store.load();
    return { reviews: second.reviews, path };
  }

  it("are as they were", async () => {
    const { reviews, path } = await reloaded(() => undefined);
    expect(reviews.hunks(path, after).map((hunk) => hunk.oldLines)).toEqual([["five\n"]]);
    expect(reviews.changedSince(path, after)).toBe(false);
  });

  it("are none of files that have another text, or are gone", async () => {
    expect((await reloaded((path) => writeFile(path, `${after}mine\n`))).reviews.all).toEqual([]);
    expect((await reloaded((path) => rm(path))).reviews.all).toEqual([]);
  });

  it("are of a file whose line ends alone are others", async () => {
    expect((await reloaded((path) => writeFile(path, after.replace(/\n/gu, "\r\n")))).reviews.all).toHaveLength(1);
  });

  it("are none where what was kept cannot be read", async () => {
    for (const text of ["", "{", "[]", "null", '{"version":2,"reviews":[]}', '{"version":1,"reviews":[5,{"path":7},{"path":"/a","before":5}]}']) {
      expect((await reloaded(() => undefined, (file) => writeFileSync(file, text))).reviews.all, text).toEqual([]);
    }
  });

  it("are those that there is room for", async () => {
    const folder = mkdtempSync(join(tmpdir(), "acp-vscode-"));
    const first = opened(join(folder, "kept.json"));
    await first.store.load();
    for (const [name, size] of [["old", 100], ["huge", MAX_KEPT + 1], ["large", MAX_KEPT - 200], ["new", 150]] as const) {
      writeFileSync(join(folder, name), "now");
      first.reviews.wrote(join(folder, name), "x".repeat(size), "now");
    }
    await first.store.flush();
    const second = opened(join(folder, "kept.json"));
    await second.store.load();
    expect(second.reviews.all.map((one) => one.path.slice(folder.length + 1))).toEqual(["large", "new"]);
  });

  it("are not overwritten before they were read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "acp-vscode-"));
    writeFileSync(join(folder, "kept.json"), "kept");
    const { reviews, store } = opened(join(folder, "kept.json"));
    reviews.wrote("/a", before, after);
    await store.flush();
    expect(readFileSync(join(folder, "kept.json"), "utf8")).toBe("kept");
  });
});

describe("a file that no editor has open", () => {
  it("keeps its mark and its line ends when it gets another text", () => {
    const found = decoded(Buffer.from("\uFEFFa\r\nb\r\n"));
    expect(found).toEqual({ text: "a\r\nb\r\n", form: { mark: true, crlf: true } });
    expect(Buffer.from(encoded("A\nb\n", found?.form)).toString()).toBe("\uFEFFA\r\nb\r\n");
    expect(Buffer.from(encoded("\uFEFFA\r\n", found?.form)).toString()).toBe("\uFEFFA\r\n");
    expect(Buffer.from(encoded("A\r\nb\n")).toString()).toBe("A\r\nb\n");
  });

  it("is no text when it is no UTF-8", () => {
    expect(decoded(Buffer.from([0x67, 0x72, 0xfc, 0xdf]))).toBeNull();
  });

  it("has one line end, or not one for all", () => {
    expect(["a\nb\n", "a\r\nb\r\n", "a\r\nb\n", "\na\r\n", "a\rb\r\n", "a", ""].map(lineEndOf)).toEqual(["\n", "\r\n", "", "", "", "", ""]);
  });

  it("is read by lines as they are", () => {
    expect(linesOf("a\r\nb\r\nc", 2, 1)).toBe("b\r\n");
    expect(linesOf("a\nb\nc", 2, null)).toBe("b\nc");
    expect(linesOf("a\nb", null, 5)).toBe("a\nb");
    expect(linesOf("a\nb", 9, 1)).toBe("");
  });
});

describe("the part of a text that is to be replaced", () => {
  it.each([["abc", "abXc"], ["abc", "c"], ["", "x"], ["aaa", "aaaa"], ["x😀y", "x😁y"], ["x😀", "x𐐀"], ["😀😀", "😀"], ["😀", "🨀"], ["a\r\nb", "a\r\n\r\nb"]])("makes the other of it, and cuts through no character (%j → %j)", (now, wanted) => {
    const part = changedPart(now, wanted) ?? { start: 0, end: 0, text: "" };
    expect(now.slice(0, part.start) + part.text + now.slice(part.end)).toBe(wanted);
    for (const at of [part.start, part.end]) expect(/[\uD800-\uDBFF]$/u.test(now.slice(0, at))).toBe(false);
    expect(() => encodeURIComponent(part.text)).not.toThrow(); // no half of one in it
  });

  it("is none of texts that are the same", () => {
    expect(changedPart("a", "a")).toBeNull();
  });
});
