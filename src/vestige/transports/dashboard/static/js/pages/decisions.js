// Decisions and patterns of a codebase, with the chains of what replaced what.

import { get, html, many, number, setQuery, useData } from "../lib.js";
import { Badge, Empty, Field, Link, Loaded, MemoryLink, Meter, Page, Time } from "../ui.js";
import { Markdown } from "../markdown.js";

// A decision as a record for the repository.
export function record(item) {
  const body = item.content.replace(/^# Decision: .*\n+/, "");
  return `# ${item.title}\n\nDate: ${item.createdAt.slice(0, 10)}\nStatus: ${item.ended ? "superseded" : "accepted"}\n\n${body}\n`;
}

function save(item) {
  const url = URL.createObjectURL(new Blob([record(item)], { type: "text/markdown" }));
  const anchor = Object.assign(document.createElement("a"), { href: url, download: `${item.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60)}.md` });
  anchor.click();
  URL.revokeObjectURL(url);
}

// Revisions that changed the text; others changed tags or domains only.
function Chain({ id, text }) {
  const from = useData((signal) => get(`/memories/${id}/history`, {}, { signal, quiet: true }), [id]);
  const all = from.data ? [...from.data.revisions, { content: text }] : [];
  const older = all.filter((one, index) => index + 1 < all.length && one.content !== all[index + 1].content);
  return older.length ? html`<details><summary>${many(older.length, "earlier version")}</summary><ol class="plain rows">${older.map((one) => html`<li><p class="note">#${one.revision} until <${Time} at=${one.endedAt} />: ${one.endedBy}</p><${Markdown} text=${one.content} /></li>`)}</ol></details>` : null;
}

function Item({ item }) {
  const text = item.content.replace(/^# [^\n]*\n+/, "");
  return html`<article class="panel pair"><header class="panel-head"><h2><${Link} to=${`/memories/${item.id}`}>${item.title}<//></h2><span class="panel-extra">${item.codebase && html`<${Badge}>${item.codebase}<//>`} <${Meter} value=${item.retentionStrength} /> <${Time} at=${item.createdAt} /></span></header>
    <${Markdown} text=${text} />${item.files.length && !item.files.every((one) => text.includes(one)) ? html`<p class="note">${item.files.join(" · ")}</p>` : null}
    ${item.supersededBy && html`<p class="note">Replaced by <${MemoryLink} id=${item.supersededBy} /></p>`}
    <${Chain} id=${item.id} text=${item.content} /><div class="actions"><button onClick=${() => save(item)}>Save as Markdown</button></div></article>`;
}

export function Decisions({ query }) {
  const from = useData((signal) => get("/codebase", { codebase: query.codebase, limit: 50 }, { signal }), [query.codebase]);
  return html`<${Page} title="Decisions" lead="What was decided about a codebase and why, and the patterns it follows." twin="/api/v1/codebase?limit=50">
    <div class="filters"><${Field} label="Codebase" value=${query.codebase ?? ""} onCommit=${(codebase) => setQuery({ codebase })} placeholder="all" /></div>
    <${Loaded} from=${from}>${({ decisions, patterns, crossProject }) => decisions.count + patterns.count + crossProject.count ? html`<div class="grid two"><div><h2 class="section">Decisions <span class="muted">${number(decisions.count)}</span></h2>${decisions.items.map((one) => html`<${Item} item=${one} key=${one.id} />`)}</div>
      <div><h2 class="section">Patterns <span class="muted">${number(patterns.count)}</span></h2>${patterns.items.map((one) => html`<${Item} item=${one} key=${one.id} />`)}
      ${crossProject.count ? html`<h2 class="section">From other codebases</h2>${crossProject.items.map((one) => html`<${Item} item=${one} key=${one.id} />`)}` : null}</div></div>` : html`<${Empty} title="No decision is known.">An agent keeps them with the tool “codebase”.<//>`}<//><//>`;
}
