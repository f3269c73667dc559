// What an agent gets at the start of its next session: the exact text, the cost of each line, and why it is in.

import { act, api, get, html, may, number, post, setQuery, useData, words } from "../lib.js";
import { Badge, Choice, Empty, Field, Loaded, MemoryLink, Page, Panel } from "../ui.js";

const KEPT = "vestige-session";

function mute(id, reload) {
  return act("Suppressed: the next session does not get it.", () => post(`/memories/${id}/suppress`, { reason: "not at the start of sessions" }), { after: reload, undo: () => post(`/memories/${id}/suppress`, { reverse: true }) });
}

function pin(id, reload) {
  return act("Pinned.", () => api("PUT", `/memories/${id}/pin`, {}), { after: reload, undo: () => api("DELETE", `/memories/${id}/pin`, {}) });
}

function Item({ item, reload, isNew }) {
  return html`<li class="session-item"><span class="num" title="tokens">${number(item.tokens)}</span><div><p><bdi>${item.text}</bdi> ${isNew ? html`<${Badge} tone="good">new<//>` : null}</p><p class="note">${item.section}: ${item.why} ${item.id && item.kind === "memory" ? html`<${MemoryLink} id=${item.id} text="Open" />` : null}</p></div>
    ${may("write") && item.kind === "memory" ? html`<div class="actions">${item.section !== "Pinned" && html`<button class="quiet" onClick=${() => pin(item.id, reload)}>Pin</button>`}<button class="quiet" onClick=${() => mute(item.id, reload)}>Mute</button></div>` : html`<span></span>`}</li>`;
}

export function Session({ query }) {
  const queries = (query.q ?? "user preferences").split("\n").map((one) => one.trim()).filter(Boolean);
  const args = { queries, token_budget: Number(query.budget ?? 1000), scope: query.scope || null, preview: true };
  const from = useData((signal) => post("/session-context", args, { signal }), [query.q, query.budget, query.scope]);
  const last = JSON.parse(localStorage.getItem(KEPT) ?? "null");
  const keep = () => {
    localStorage.setItem(KEPT, JSON.stringify({ at: new Date().toISOString(), ids: from.data.items.map((one) => one.id) }));
    from.reload();
  };
  return html`<${Page} title="Next session" lead="What your agent gets when it starts its next session here. Looking does not change the memory.">
    <div class="filters"><${Field} className="grow-field" label="What it asks for" value=${queries.join(", ")} onCommit=${(value) => setQuery({ q: value.split(",").map((one) => one.trim()).join("\n") })} />
      <${Field} label="Scope" value=${query.scope ?? ""} onCommit=${(scope) => setQuery({ scope })} placeholder="/" />
      <${Choice} label="Budget" value=${String(args.token_budget)} options=${[["500", "500 tokens"], ["1000", "1,000 tokens"], ["2000", "2,000 tokens"], ["4000", "4,000 tokens"]]} onChange=${(budget) => setQuery({ budget })} /></div>
    <${Loaded} from=${from} rows=${8}>${(session) => {
      const known = last ? new Set(last.ids) : null;
      const gone = last ? last.ids.filter((id) => id && !session.items.some((one) => one.id === id)).length : 0;
      return html`<p class="answer"><strong>${number(session.tokensUsed)}</strong> of ${number(session.tokenBudget)} tokens<span class="budget" aria-hidden="true"><span style=${{ width: `${(100 * session.tokensUsed) / session.tokenBudget}%` }}></span></span>
        ${session.expandable.length ? html` · ${number(session.expandable.length)} more did not fit` : null}${known && gone ? html` · ${number(gone)} gone since you last kept it` : null} <button class="quiet" onClick=${keep}>Keep to compare</button></p>
        <div class="grid two"><${Panel} title="Line by line, in tokens">${session.items.length ? html`<ol class="plain rows">${session.items.map((one) => html`<${Item} item=${one} reload=${from.reload} isNew=${known && one.id && !known.has(one.id)} />`)}</ol>` : html`<${Empty} title="Nothing but the status.">There is no intention, pin or memory to tell about these questions.<//>`}<//>
        <${Panel} title="The exact text"><pre class="exact" tabindex="0" dir="auto">${session.context}</pre><//></div>`;
    }}<//><//>`;
}
