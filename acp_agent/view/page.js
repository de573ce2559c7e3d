// What the page can do beyond being read: search, fold, link, light and dark. All texts are in the
// document; nothing here makes markup, asks a network or runs what a session says.
"use strict";

const root = document.documentElement;
const one = (id) => document.getElementById(id);
const steps = Array.from(document.querySelectorAll(".step"));
const tools = document.querySelector(".tools");
tools.hidden = false;
tools.addEventListener("submit", (event) => event.preventDefault());

// How much of the window the bar covers, so that what a link leads to stands below it.
function measure() {
  const covers = getComputedStyle(tools).position === "sticky" ? tools.offsetHeight : 0;
  root.style.setProperty("--bar", `${covers}px`);
}
new ResizeObserver(measure).observe(tools);
measure();

// -- Folding

const fold = (open) => {
  for (const details of document.querySelectorAll("main details")) details.open = open;
};
one("unfold").addEventListener("click", () => fold(true));
one("fold").addEventListener("click", () => fold(false));

function reveal(element) {
  for (let at = element; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
}

// Browsers that do not know ::details-content print only what is open.
let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("main details:not([open])"));
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
  folded = [];
});

// -- Links to a moment

// What is far away has an estimated height until it is drawn, so the place is looked for again.
function goTo(element) {
  reveal(element);
  element.scrollIntoView({ behavior: "instant", block: "start" });
  requestAnimationFrame(() => element.scrollIntoView({ behavior: "instant", block: "start" }));
}

function followHash() {
  const target = one(location.hash.slice(1)); // ids need no escapes
  if (target) goTo(target);
}
addEventListener("hashchange", followHash);
followHash();

let telling = 0;
function tell(words) {
  one("told").textContent = words;
  clearTimeout(telling);
  telling = setTimeout(() => { one("told").textContent = ""; }, 2500);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.link");
  if (!link || !navigator.clipboard) return;
  navigator.clipboard.writeText(link.href).then(() => tell(one("told").dataset.copied), () => {});
});

// -- Search

const field = one("search");
const marks = window.Highlight && CSS.highlights;
let texts = null; // the words of each step, made when they are first looked for
let found = [];
let current = -1;

// Without the words of the steps inside of it, those of a child session.
function ownText(step) {
  if (!step.querySelector(".step")) return step.textContent.toLowerCase();
  return Array.from(ownNodes(step), (node) => node.data).join("").toLowerCase();
}

function* ownNodes(step) {
  const walker = document.createTreeWalker(step, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest(".step") === step) yield node;
  }
}

function search() {
  const words = field.value.trim().toLowerCase();
  for (const step of found) {
    step.classList.remove("match", "current");
    step.closest(".section").classList.remove("has-match");
  }
  texts ??= steps.map(ownText);
  found = words ? steps.filter((_, place) => texts[place].includes(words)) : [];
  for (const step of found) {
    step.classList.add("match");
    step.closest(".section").classList.add("has-match");
  }
  current = -1;
  if (marks) {
    CSS.highlights.delete("found");
    CSS.highlights.delete("current");
  }
  root.classList.toggle("only-matches", one("matches").checked && words !== "");
  show();
  if (words && !found.length) one("found").textContent = one("found").dataset.none;
}

function show() {
  one("found").textContent = found.length
    ? one("found").dataset.some.replace("{at}", current + 1).replace("{all}", found.length)
    : "";
}

function move(by) {
  if (!found.length) return;
  found[current]?.classList.remove("current");
  current = current < 0 && by < 0 ? found.length - 1 : (current + by + found.length) % found.length;
  const step = found[current];
  step.classList.add("current");
  reveal(step);
  const ranges = rangesIn(step, field.value.trim().toLowerCase());
  if (marks) CSS.highlights.set("found", new Highlight(...ranges));
  const first = ranges[0]?.startContainer.parentElement;
  if (first) reveal(first);
  (first ?? step).scrollIntoView({ behavior: "instant", block: "center" });
  requestAnimationFrame(() => (first ?? step).scrollIntoView({ behavior: "instant", block: "center" }));
  show();
}

// Where the words stand, in texts that no element cuts in two.
function rangesIn(step, words) {
  const ranges = [];
  for (const node of ownNodes(step)) {
    if (ranges.length >= 500) break;
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue; // lower case moved the places
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + words.length);
      ranges.push(range);
    }
  }
  return ranges;
}

let waiting = 0;
field.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
one("matches").addEventListener("change", search);
one("next").addEventListener("click", () => move(1));
one("previous").addEventListener("click", () => move(-1));
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  clearTimeout(waiting);
  if (!found.length || current < 0) search();
  move(event.shiftKey ? -1 : 1);
});

// -- Keys: / to search, j and k from turn to turn, Escape to leave the search

const turns = Array.from(document.querySelectorAll(".section.turn"));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && document.activeElement === field) {
    field.value = "";
    search();
    field.blur();
    return;
  }
  if (event.target.closest("input, select, textarea")) return;
  if (event.key === "/") {
    event.preventDefault();
    field.focus();
  } else if (event.key === "j" || event.key === "k") {
    const under = tools.getBoundingClientRect().bottom + 24;
    const here = turns.findLastIndex((turn) => turn.getBoundingClientRect().top <= under);
    const there = turns[Math.max(0, here + (event.key === "j" ? 1 : -1))];
    if (there) goTo(there);
  }
});

// -- Light and dark

const KEY = "acp-agent-theme";
const theme = one("theme");
function dress(value) {
  if (value) root.dataset.theme = value;
  else delete root.dataset.theme;
  theme.value = value;
}
try {
  const kept = localStorage.getItem(KEY);
  dress(kept === "light" || kept === "dark" ? kept : "");
} catch {
  dress(""); // a browser that keeps nothing for files
}
theme.addEventListener("change", () => {
  dress(theme.value);
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // it counts until the page is closed
  }
});
