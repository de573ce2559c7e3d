/** Where the conversation is scrolled to. jsdom has no layout, so that the sizes are said here. */

import { beforeEach, describe, expect, it } from "vitest";

import type { Item } from "../../src/shared/view";
import { TranscriptView } from "../../src/webview/transcriptView";
import { context, tool, withoutLayout } from "./support";

const SEEN = 400;
const ITEM = 100;

/** A list whose items are each 100 pixels high, in a window of 400. */
function opened(): { view: TranscriptView; scroller: HTMLElement; room: (pixels: number, meanwhile?: () => void) => void } {
  let height = SEEN;
  const watched = new Map<Element, ResizeObserverCallback>();
  globalThis.ResizeObserver = class {
    constructor(private readonly told: ResizeObserverCallback) {}

    observe(element: Element): void {
      watched.set(element, this.told);
    }

    unobserve(): void { /* as above */ }
    disconnect(): void { /* as above */ }
  };
  const view = new TranscriptView(context());
  const scroller = view.element.querySelector<HTMLElement>(".scroller");
  const list = view.element.querySelector(".items");
  if (scroller === null || list === null) throw new Error("no list");
  let top = 0;
  const whole = (): number => list.childElementCount * ITEM;
  const scrollTo = (wanted: number): void => {
    top = Math.max(0, Math.min(wanted, whole() - height));
    scroller.dispatchEvent(new Event("scroll"));
  };
  Object.defineProperties(scroller, {
    clientHeight: { get: () => height },
    scrollHeight: { get: whole },
    scrollTop: { get: () => top, set: scrollTo },
  });
  Element.prototype.getBoundingClientRect = function rect(this: Element) {
    const at = [...list.children].indexOf(this) * ITEM - top;
    return this === scroller ? new DOMRect(0, 0, 100, height) : new DOMRect(0, at, 100, ITEM);
  };
  const room = (pixels: number, meanwhile: () => void = () => undefined): void => {
    height = pixels;
    meanwhile();
    watched.get(scroller)?.([], new ResizeObserver(() => undefined));
  };
  return { view, scroller, room };
}

function items(from: number, to: number): Item[] {
  return Array.from({ length: to - from }, (_, at) => tool({ id: `i${from + at}`, title: `Call ${from + at}` }));
}

beforeEach(() => {
  const real = Object.getOwnPropertyDescriptor(Element.prototype, "getBoundingClientRect") ?? {};
  withoutLayout();
  return () => {
    Object.defineProperty(Element.prototype, "getBoundingClientRect", real);
  };
});

describe("the end of the conversation", () => {
  it("stays in sight when the plan, or another view, takes room from the list", () => {
    const { view, scroller, room } = opened();
    view.reset("s", items(0, 10), 0);
    expect(scroller.scrollTop).toBe(600);
    room(200);
    expect(scroller.scrollTop).toBe(800);
  });

  it("is followed though the editor tells of a scroll before the list is", () => {
    const { view, scroller, room } = opened();
    view.reset("s", items(0, 10), 0);
    room(200, () => scroller.dispatchEvent(new Event("scroll")));
    expect(scroller.scrollTop).toBe(800);
    view.apply({ op: "put", item: tool({ id: "new" }) });
    expect(scroller.scrollTop).toBe(900);
  });

  it("is left by who scrolls up, and found again by who sends a message", () => {
    const { view, scroller } = opened();
    view.reset("s", items(0, 10), 0);
    scroller.scrollTop = 100;
    view.apply({ op: "put", item: tool({ id: "new" }) });
    expect(scroller.scrollTop).toBe(100);
    view.toEnd();
    expect(scroller.scrollTop).toBe(700);
  });

  it("is where another session is shown, however few entries that has", () => {
    const { view, scroller } = opened();
    view.reset("long", items(0, 10), 50);
    view.reset("short", items(0, 6), 0);
    expect(scroller.scrollTop).toBe(200);
    view.apply({ op: "put", item: tool({ id: "new" }) });
    expect(scroller.scrollTop).toBe(300);
  });
});

describe("earlier entries", () => {
  it("come above those that are seen, which stay where they are, and are not drawn anew", () => {
    const { view, scroller } = opened();
    view.reset("s", items(50, 60), 50);
    scroller.scrollTop = 130;
    const seen = view.element.querySelectorAll(".tool")[1];
    view.reset("s", items(20, 60), 20);
    expect(view.element.querySelectorAll(".tool")[31]).toBe(seen);
    expect(scroller.scrollTop).toBe(3130);
    expect([...view.element.querySelectorAll(".tool .title")].map((one) => one.textContent)).toEqual(items(20, 60).map((one) => (one as { title: string }).title));
  });

  it("leave the latest in the list as they are now", () => {
    const { view } = opened();
    view.reset("s", items(5, 7), 5);
    view.reset("s", [...items(3, 6), tool({ id: "i6", title: "Other" }), tool({ id: "i7", title: "Call 7" })], 3);
    expect([...view.element.querySelectorAll(".tool .title")].map((one) => one.textContent)).toEqual(["Call 3", "Call 4", "Call 5", "Other", "Call 7"]);
  });
});
