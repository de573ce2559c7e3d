/**
 * Markdown of strangers as elements that can do no harm.
 *
 * HTML in the Markdown stays text; what the renderer makes is sanitised all the same. Images are not
 * loaded, links only tell the host what was clicked.
 */

import createDOMPurify, { type DOMPurify } from "dompurify";
import hljs from "highlight.js/lib/core";
import MarkdownIt from "markdown-it";

import { register } from "./languages";
import { markup } from "./markup";

register(hljs);

const HIGHLIGHTED_CHARACTERS = 50_000;

const renderer = markup(new MarkdownIt({ html: false, linkify: true, breaks: false, highlight }));

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
  "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

let purifier: DOMPurify | undefined;

/** Links keep their target in `data-href`; the page itself goes nowhere. */
export function rendered(markdown: string): DocumentFragment {
  purifier ??= createDOMPurify(window);
  const fragment = purifier.sanitize(renderer.render(markdown), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "class", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    // Relative paths and lines of files are links too; the host decides what is opened.
    ALLOWED_URI_REGEXP: /^(?:https?:|file:|(?![a-z][a-z0-9+.-]*:)[^/]|\/(?!\/))/iu,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    const href = link.getAttribute("href");
    link.removeAttribute("href");
    if (href === null) continue;
    link.dataset["href"] = href;
    link.title = href.slice(0, 300);
    link.tabIndex = 0;
    link.setAttribute("role", "link");
  }
  return fragment;
}

function highlight(code: string, language: string): string {
  const known = hljs.getLanguage(language) === undefined ? "" : language;
  if (known === "" || code.length > HIGHLIGHTED_CHARACTERS) return "";
  return hljs.highlight(code, { language: known, ignoreIllegals: true }).value;
}
