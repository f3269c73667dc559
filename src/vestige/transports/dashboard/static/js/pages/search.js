// Search, with the recall debugger: why something came back, and why something did not.

import { act, api, ago, clip, get, go, html, many, may, percent, post, route, score, setQuery, useData, useState, words } from "../lib.js";
import { Badge, canLift, Choice, Empty, Failed, Link, Loaded, MemoryLink, Meter, Page, Panel, Tags, Time, TypeMark } from "../ui.js";

const MODES = [["balanced", "balanced"], ["precise", "precise"], ["exhaustive", "exhaustive"]];

// What the names of the operation mean; a name that is not here is shown as it is.
const SIGNALS = {
  context: "alike, with its neighbours", own: "alike, word by word", words: "words in common", own_words: "words in common, alone", thread: "words of its thread",
  dated: "the date asked for", cosine: "alike as a whole", likeness: "like the best notes", speaker: "said by who is asked for", present: "who is asked for is there",
  timed: "says when", asks: "is itself a question", literal: "exact words", form: "kind of text",
};
const STAGES = {
  relevance: "relevance", reading: "read together with the question", temporal: "its time", decay: "its strength", accessibility: "how accessible it is", context: "where it was learned",
  scope: "the scope", competition: "rivals", spreading: "its links", utility: "how useful it was before",
};
const FOUND = { Both: "by words and meaning", Keyword: "by words", Semantic: "by meaning", Association: "by a link", Literal: "by its exact words" };

function Stages({ stages, signals }) {
  const most = Math.max(0.0001, ...stages.map((one) => one.score));
  return html`<div class="explain">
    <table><caption>Signals of relevance</caption><thead><tr><th>signal</th><th class="num">value</th><th class="num">weight</th><th class="num">adds</th></tr></thead>
      <tbody>${signals.map((one) => html`<tr><td title=${one.signal}>${SIGNALS[one.signal] ?? words(one.signal)}</td><td class="num">${score(one.value)}</td><td class="num">${score(one.weight)}</td><td class="num">${score(one.adds)}</td></tr>`)}</tbody></table>
    <table><caption>Stages</caption><thead><tr><th>stage</th><th>score</th><th class="num">rank</th></tr></thead>
      <tbody>${stages.map((one) => html`<tr><td title=${one.stage}>${STAGES[one.stage] ?? words(one.stage)}</td><td><span class="stage-bar" aria-hidden="true"><span style=${{ width: percent(one.score / most) }}></span></span>${score(one.score)}</td>
        <td class="num">${one.rank ?? "–"}${one.moved ? html` <small class=${one.moved > 0 ? "good" : "low"}>${one.moved > 0 ? "▲" : "▼"}${Math.abs(one.moved)}</small>` : null}</td></tr>`)}</tbody></table>
  </div>`;
}

function Hit({ hit, rank, open }) {
  const why = hit.explain;
  return html`<li class="hit"><div class="hit-head"><span class="rank">${rank}</span><${TypeMark} type=${hit.nodeType} />
      <${MemoryLink} id=${hit.id} text=${hit.content} /></div>
    <div class="hit-facts"><span title="combined score">score <strong>${score(hit.combinedScore)}</strong></span>
      <span title="calibrated probability that it answers the question">confidence <strong>${hit.confidence === undefined ? "–" : percent(hit.confidence)}</strong></span>
      <span title="BM25 of the words">words ${score(hit.keywordScore)}</span><span title="cosine of the vectors, 1 is the same">meaning ${score(hit.semanticScore)}</span>
      ${hit.matchType ? html`<${Badge}>${FOUND[hit.matchType] ?? words(hit.matchType)}<//>` : null}<${Meter} value=${hit.retentionStrength} /><${Time} at=${hit.createdAt} /><${Tags} tags=${hit.tags} /></div>
    ${why && html`<details open=${open}><summary>Why rank ${why.rank}</summary><${Stages} stages=${why.stages} signals=${why.signals} />
      ${why.domains?.length ? html`<p class="note">Domains: ${why.domains.join(" · ")}</p>` : null}</details>`}</li>`;
}

// -- Why not: the same question without each of the filters, and the memory that should have come

const FILTERS = [
  { name: "suppressed", what: "suppression", args: { include_suppressed: true }, fix: "Lift its suppression." },
  { name: "expired", what: "validity", args: { include_expired: true }, fix: "Change when it is true." },
];

async function missing(query, args, signal) {
  const ask = (more) => post("/search", { query, limit: 50, record: false, explain: true, ...args, ...more }, { signal, quiet: true });
  const plain = await ask({ limit: 50, all: true });
  const shown = new Set((await ask({ limit: args.limit })).results.map((one) => one.id));
  const found = [];
  for (const filter of FILTERS) {
    const { results } = await ask({ ...filter.args, all: true, detail_level: "full" });
    const known = new Set(plain.results.map((one) => one.id));
    for (const hit of results) if (!known.has(hit.id)) found.push({ hit, why: `left out by its ${filter.what}`, fix: filter.fix });
  }
  if (args.scope || args.tags?.length || args.as_of) {
    const known = new Set([...plain.results, ...found.map((one) => one.hit)].map((one) => one.id));
    const { results } = await ask({ scope: null, tags: [], as_of: null, known_at: null, all: true });
    for (const hit of results) if (!known.has(hit.id)) found.push({ hit, why: "outside of the filters of this search", fix: "Search everything, or move it." });
  }
  const below = plain.results.filter((one) => !shown.has(one.id)).map((hit) => ({ hit, why: hit.confidence !== undefined && hit.confidence < plain.confidence / 2 ? "unrelated: its confidence is too low" : "below the limit of results" }));
  return { found, below, confidence: plain.confidence };
}

function Missed({ one, reload }) {
  const { hit } = one;
  const suppressed = one.why.includes("suppression");
  return html`<li class="hit"><div class="hit-head"><${TypeMark} type=${hit.nodeType} /><${MemoryLink} id=${hit.id} text=${hit.content} /></div>
    <div class="hit-facts"><${Badge} tone="warn">${one.why}<//><span>score ${score(hit.combinedScore)}</span><span>rank ${hit.explain?.rank ?? "–"}</span><${Meter} value=${hit.retentionStrength} />
    ${may("write") && suppressed && canLift(hit) && html`<button onClick=${() => act("The suppression is lifted.", () => post(`/memories/${hit.id}/suppress`, { reverse: true }), { after: reload, undo: () => post(`/memories/${hit.id}/suppress`, {}) })}>Lift the suppression</button>`}
    ${may("write") && !suppressed && html`<button onClick=${() => act("Promoted.", () => post(`/memories/${hit.id}/promote`, {}), { after: reload, undo: () => post(`/memories/${hit.id}/demote`, {}) })}>Promote</button>`}
    ${may("write") && html`<${Link} to=${`/memories/${hit.id}`} query=${{ edit: 1 }}>Edit<//>`}</div>
    ${one.fix && html`<p class="note">${one.fix}</p>`}</li>`;
}

function WhyNot({ query, args }) {
  const from = useData((signal) => missing(query, args, signal), [query, JSON.stringify(args)]);
  return html`<${Panel} title="Why did the agent not know it?" className="why-not">
    <${Loaded} from=${from}>${({ found, below }) => html`
      <h3>Kept away by a filter</h3>
      ${found.length ? html`<ul class="plain">${found.slice(0, 10).map((one) => html`<${Missed} one=${one} reload=${from.reload} />`)}</ul>` : html`<p class="note">No suppressed, expired or filtered memory fits the question.</p>`}
      <h3>Nearest misses</h3>
      ${below.length ? html`<p class="note">If one of them should have answered, edit it to say what the question asks.</p><ul class="plain">${below.slice(0, 5).map((one) => html`<${Missed} one=${one} reload=${from.reload} />`)}</ul>` : html`<p class="note">Nothing else is close to the question: it was probably never stored.</p>`}`}<//><//>`;
}

function answer(found) {
  if (found.abstained) return html`<${Badge} tone="warn">abstained<//> <span>The memory does not know this: its confidence is ${percent(found.confidence)}.</span>`;
  return html`<span>${many(found.total, "result")} · confidence <strong>${percent(found.confidence ?? 0)}</strong> · ${words(found.method)}</span>`;
}

export function Search({ query }) {
  const asked = query.q ?? "";
  const args = {
    limit: Number(query.limit ?? 10), retrieval_mode: query.mode ?? "balanced", scope: query.scope || null,
    tags: query.tags ? query.tags.split(",") : [], as_of: query.as_of || null, known_at: query.as_of || null,
    include_suppressed: query.suppressed === "1", include_expired: query.expired === "1",
  };
  const from = useData((signal) => asked ? post("/search", { query: asked, explain: true, record: false, ...args }, { signal }) : Promise.resolve(undefined), [asked, JSON.stringify(args)]);
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: event.target.elements.q.value.trim() });
  };
  return html`<${Page} title="Search" lead="What an agent would get for a question, and why. Looking here leaves no trace in the memory.">
    <form class="search-form" role="search" onSubmit=${submit}>
      <input type="search" name="q" value=${asked} placeholder="Ask as your agent would" aria-label="Question" />
      <button class="primary">Search</button>
    </form>
    <div class="filters">
      <${Choice} label="Mode" value=${args.retrieval_mode} options=${MODES} onChange=${(mode) => setQuery({ mode })} />
      <${Choice} label="Results" value=${String(args.limit)} options=${[["5", "5"], ["10", "10"], ["25", "25"], ["50", "50"]]} onChange=${(limit) => setQuery({ limit })} />
      <label class="check"><input type="checkbox" checked=${args.include_suppressed} onChange=${(event) => setQuery({ suppressed: event.target.checked ? "1" : "" })} /> suppressed</label>
      <label class="check"><input type="checkbox" checked=${args.include_expired} onChange=${(event) => setQuery({ expired: event.target.checked ? "1" : "" })} /> expired</label>
      ${query.tags && html`<button class="tag" onClick=${() => setQuery({ tags: "" })}>${query.tags} ✕</button>`}
    </div>
    ${!asked ? html`<${Empty} title="Ask a question.">Each result explains its rank: the signals of relevance, and what every later stage made of it.<//>`
      : html`<${Loaded} from=${from} rows=${6}>${(found) => !found ? null : html`
        <p class="answer" role="status">${answer(found)}</p>
        ${found.note && html`<p class="note">${found.note}</p>`}
        ${found.missing?.length ? html`<p class="note">No memory mentions: ${found.missing.join(", ")}.</p>` : null}
        ${found.weakerLeftOut ? html`<p class="note">${many(found.weakerLeftOut, "weaker match", "weaker matches")} left out.</p>` : null}
        ${found.rejected?.length ? html`<${Panel} title="Best of what was refused"><ol class="plain hits">${found.rejected.map((hit, index) => html`<${Hit} hit=${hit} rank=${index + 1} open />`)}</ol><//>` : null}
        ${found.results.length ? html`<ol class="plain hits">${found.results.map((hit, index) => html`<${Hit} hit=${hit} rank=${index + 1} key=${hit.id} open=${index === 0} />`)}</ol>` : html`<${Empty} title="Nothing comes back for this question." />`}
        ${query.why === "1" ? html`<${WhyNot} query=${asked} args=${args} />` : html`<p class="after"><button onClick=${() => setQuery({ why: "1" })}>Why did the agent not know it?</button></p>`}`}<//>`}
  <//>`;
}
