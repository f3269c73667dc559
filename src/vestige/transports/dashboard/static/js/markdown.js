// Markdown as elements of a short list: headings, lists, paragraphs, code, bold. Everything else stays text.

import { html } from "./lib.js";

const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/;

function inline(text) {
  return text.split(INLINE).map((part) => {
    if (part.length > 2 && part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.length > 4 && part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    return part;
  });
}

// Blocks of a text: { kind, lines }.
export function blocks(text) {
  const found = [];
  let fenced = false;
  const add = (kind, line) => {
    if (found.at(-1)?.kind === kind && kind !== "heading") found.at(-1).lines.push(line);
    else found.push({ kind, lines: [line] });
  };
  for (const line of text.split("\n")) {
    if (/^\s*```/.test(line)) {
      fenced = !fenced;
      if (fenced) found.push({ kind: "code", lines: [] });
    } else if (fenced) add("code", line);
    else if (!line.trim()) found.push({ kind: "gap", lines: [] });
    else if (/^#{1,6} /.test(line)) add("heading", line.replace(/^#+ /, "").replace(/:$/, ""));
    else if (/^\s*[-*] /.test(line)) add("list", line.replace(/^\s*[-*] /, ""));
    else add("text", line);
  }
  return found.filter((one) => one.kind !== "gap");
}

export function Markdown({ text }) {
  return html`<div class="markdown" dir="auto">${blocks(text).map(({ kind, lines }) => {
    if (kind === "heading") return html`<h3>${inline(lines[0])}</h3>`;
    if (kind === "list") return html`<ul>${lines.map((one) => html`<li>${inline(one)}</li>`)}</ul>`;
    if (kind === "code") return html`<pre tabindex="0">${lines.join("\n")}</pre>`;
    return html`<p>${inline(lines.join("\n"))}</p>`;
  })}</div>`;
}
