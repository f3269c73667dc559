// Trace a text: every place that holds a phrase or a secret, among present memories, suppressed ones, archived ones and old revisions.

import { act, clip, get, html, many, may, number, post, setQuery, useData } from "../lib.js";
import { Badge, Empty, Loaded, MemoryLink, Page, Panel, Time } from "../ui.js";

const MOST = 50;

// Candidates come from the search; whether a text holds the phrase is decided letter by letter.
async function places(phrase, signal) {
  const wanted = phrase.toLowerCase();
  const { results } = await post("/search", { query: phrase, limit: MOST, all: true, include_suppressed: true, include_expired: true, record: false, detail_level: "full" }, { signal });
  const archives = await get("/archive", { limit: 20 }, { signal, quiet: true });
  const archived = [...new Set(archives.archives.flatMap((one) => one.ids))].slice(0, 100);
  const kept = archived.length ? (await get("/memories/batch", { ids: archived }, { signal, quiet: true })).results : [];
  const known = new Set(archived);
  const found = [];
  for (const one of [...results, ...kept.filter((memory) => !results.some((hit) => hit.id === memory.id))]) {
    const history = await get(`/memories/${one.id}/history`, {}, { signal, quiet: true });
    const where = [];
    if (one.content.toLowerCase().includes(wanted)) where.push(known.has(one.id) ? "archived text" : one.suppressionCount ? "suppressed text" : one.ended ? "ended text" : "text");
    if ((one.phrasings ?? []).some((text) => text.toLowerCase().includes(wanted))) where.push("other wording");
    if ((one.tags ?? []).some((tag) => tag.toLowerCase().includes(wanted))) where.push("tag");
    const old = history.revisions.filter((revision) => revision.content.toLowerCase().includes(wanted)).map((revision) => `revision ${revision.revision}`);
    if (where.length || old.length) found.push({ memory: one, where: [...where, ...old] });
  }
  return { found, looked: results.length + kept.length };
}

export function Trace({ query }) {
  const phrase = query.q ?? "";
  const from = useData((signal) => phrase ? places(phrase, signal) : Promise.resolve(undefined), [phrase]);
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: event.target.elements.q.value.trim() });
  };
  const purge = (one) => act("Purged from every file of the store.", () => post(`/memories/${one.memory.id}/purge`, { confirm: true }), { after: from.reload });
  return html`<${Page} title="Trace a text" lead="Where a secret or a wrong phrase is kept: texts, wordings, tags, old revisions, the archive.">
    <form class="search-form" role="search" onSubmit=${submit}><input type="search" name="q" value=${phrase} placeholder="The exact phrase" aria-label="Phrase" /><button class="primary">Trace</button></form>
    ${phrase ? html`<${Loaded} from=${from} rows=${5}>${(answer) => answer && (answer.found.length ? html`<p class="answer">${many(answer.found.length, "memory", "memories")} ${answer.found.length === 1 ? "holds" : "hold"} it.</p><ul class="plain rows sheet">${answer.found.map((one) => html`<li class="memory-row trace-row"><span class="tags">${one.where.map((place) => html`<${Badge} tone="warn">${place}<//>`)}</span><${MemoryLink} id=${one.memory.id} text=${one.memory.content} /><span class="muted">${one.memory.source ?? ""}</span><${Time} at=${one.memory.createdAt} />${may("write") && html`<button class="danger" onClick=${() => purge(one)}>Purge</button>`}</li>`)}</ul>` : html`<${Empty} title="No memory holds it.">${number(answer.looked)} candidates were read letter by letter, with their revisions.<//>`)}<//>` : html`<${Empty} title="Enter the exact phrase." />`}<//>`;
}
