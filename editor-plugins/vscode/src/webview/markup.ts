/** How this page's Markdown differs from the renderer's: addresses, images, tasks, the sides of a table's columns. */

import type { MarkdownIt, RendererRule } from "markdown-it";

/** What may stand in an address (RFC 3986). Other scripts write on without a space after it. */
const ADDRESS = /^\/\/[\w.~:/?#[\]@!$&'()*+,;=%-]+/u;
const BOX = /^\[([ xX])\] /u;

export function markup(renderer: MarkdownIt): MarkdownIt {
  linkAddresses(renderer);
  markTasks(renderer);
  renderer.renderer.rules["image"] = imageAsLink(renderer);
  renderer.renderer.rules["th_open"] = renderer.renderer.rules["td_open"] = cell;
  return renderer;
}

/** Web addresses that stand alone are links; words that look like a site or a mailbox are not. */
function linkAddresses({ linkify }: MarkdownIt): void {
  linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  for (const schema of ["ftp:", "mailto:", "//"]) linkify.add(schema, null);
  const validate = (text: string, at: number): number => whole(ADDRESS.exec(text.slice(at, at + 2_000))?.[0] ?? "").length;
  for (const schema of ["http:", "https:"]) linkify.add(schema, { validate });
}

/** An address without the end of the sentence, or of the brackets, that it stands in. */
function whole(address: string): string {
  const bare = address.replace(/[.,;:!?'*_]+$/u, "");
  if (!bare.endsWith(")") && !bare.endsWith("]")) return bare;
  const [open, close] = bare.endsWith(")") ? ["(", ")"] : ["[", "]"];
  return bare.split(open).length < bare.split(close).length ? whole(bare.slice(0, -1)) : bare;
}

/** "[x] done", at the beginning of a list's entry, is a box. */
function markTasks({ core }: MarkdownIt): void {
  core.ruler.push("tasks", ({ tokens }) => {
    for (const [at, token] of tokens.entries()) {
      const first = token.children?.[0];
      if (first?.type !== "text" || tokens[at - 2]?.type !== "list_item_open") continue;
      first.content = first.content.replace(BOX, (_, mark: string) => (mark === " " ? "☐ " : "☑ "));
    }
  });
}

/** No image is loaded. Within a link it is the words of that. */
function imageAsLink({ utils }: MarkdownIt): RendererRule {
  return (tokens, at) => {
    const address = String(tokens[at]?.attrGet("src") ?? "");
    const words = utils.escapeHtml(tokens[at]?.content || address);
    const before = tokens.slice(0, at);
    const inLink = before.filter(({ type }) => type === "link_open").length > before.filter(({ type }) => type === "link_close").length;
    return inLink ? words : `<a href="${utils.escapeHtml(address)}">${words}</a>`;
  };
}

/** The page's policy allows no styles in the text: the side of a cell is a class. */
const cell: RendererRule = (tokens, at, options, _, renderer) => {
  const token = tokens[at];
  const side = /^text-align:(left|center|right)$/u.exec(String(token?.attrGet("style") ?? ""))?.[1];
  if (token !== undefined && side !== undefined) token.attrs = [["class", side]];
  return renderer.renderToken(tokens, at, options);
};
