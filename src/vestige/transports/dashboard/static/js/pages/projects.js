// Projects: the index of a project's code, a search in it, and the package that an agent would get for a task.

import { act, bytes, failure, get, html, may, number, percent, post, score, seesAll, session, setQuery, urlOf, useData, useStore, when } from "../lib.js";
import { Bars } from "../charts.js";
import { Badge, Empty, Facts, Field, Loaded, MemoryLink, Page, Panel, Prose } from "../ui.js";
import { NotHere } from "./sessions.js";

const TONES = { fresh: "good", stale: "warn", diverged: "warn", unknown: "" };

function Fresh({ found }) {
  return html`<${Badge} tone=${TONES[found.word]}>${found.word}${found.staleFiles ? ` · ${number(found.staleFiles)} files` : ""}<//>${found.reason ? html` <span class="muted">${found.reason}</span>` : null}`;
}

function Status({ status, path, reload }) {
  const refresh = () => act((answer) => answer.message, () => post("/project/refresh", { path }), { after: reload });
  const skipped = Object.entries(status.skipped).map(([why, count]) => `${number(count)} ${why}`).join(", ");
  return html`<${Panel} title=${status.project} extra=${may("write") && html`<button onClick=${refresh}>Refresh</button>`}><${Facts} rows=${[
    ["Index", html`<${Fresh} found=${status.freshness} />`], ["Folder", status.root && html`<code>${status.root}</code>`], ["Branch", status.branch], ["Indexed", status.indexedAt && when(status.indexedAt)],
    ["Files", `${number(status.files)} in ${number(status.sections)} sections`], ["Symbols", `${number(status.definitions)} defined, ${number(status.references)} used`], ["Memories", number(status.memories)],
    ["Size", bytes(status.sizeBytes)], ["Left out", skipped], ["Secrets", status.redacted ? `${number(status.redacted)} redacted` : null]]} /><//>`;
}

function Code({ path, text }) {
  const from = useData((signal) => post("/project/search", { query: text, limit: 10, path }, { signal }), [path, text]);
  return html`<${Loaded} from=${from}>${(found) => found.hits.length ? html`<ol class="plain rows">${found.hits.map((hit) => html`<li class="code-hit"><p><code>${hit.path}:${hit.startLine}–${hit.endLine}</code> <${Badge}>${hit.kind}<//>${hit.symbol ? html` <strong>${hit.symbol}</strong>` : null} <span class="num">${score(hit.score)}</span>${hit.reread ? html` <${Badge} tone="warn">read again<//>` : null}</p>${hit.text ? html`<pre tabindex="0">${hit.text}</pre>` : null}</li>`)}</ol>` : html`<${Empty} title="No section of the code fits." />`}<//>`;
}

function Package({ path, text }) {
  const from = useData((signal) => post("/project/recall", { task: text, path }, { signal }), [path, text]);
  return html`<${Loaded} from=${from}>${(found) => html`<p class="answer"><strong>${number(found.tokens)}</strong> of ${number(found.tokenBudget)} tokens<span class="budget" aria-hidden="true"><span style=${{ width: percent(Math.min(1, found.tokens / found.tokenBudget)) }}></span></span> · confidence ${percent(found.confidence)}${found.leftOut ? ` · ${number(found.leftOut)} left out` : ""}</p>
    ${found.memories.length ? html`<ul class="plain rows">${found.memories.map((one) => html`<li class="memory-row"><${Badge}>${one.kind}<//><${MemoryLink} id=${one.id} /></li>`)}</ul>` : null}
    <pre class="exact" tabindex="0" dir="auto">${found.text}</pre>`}<//>`;
}

function Project({ path, query }) {
  const from = useData((signal) => get("/project", { path }, { signal }), [path]);
  if (from.error && from.error.status !== 0) {
    return html`<${Empty} title="There is no index to show."><${Prose} text=${failure(from.error)} /><//>`;
  }
  const ask = (event) => {
    event.preventDefault();
    setQuery({ q: event.target.elements.q.value.trim() });
  };
  return html`<${Loaded} from=${from} rows=${6}>${(status) => html`<${Status} status=${status} path=${path} reload=${from.reload} />
    <form class="search-form after" role="search" onSubmit=${ask}><input type="search" name="q" value=${query.q ?? ""} placeholder="A symbol, a sentence, a stack trace or a task" aria-label="Question about the code" /><button class="primary">Search</button></form>
    ${query.q ? html`<div class="grid two"><${Panel} title="Sections of the code"><${Code} path=${path} text=${query.q} /><//><${Panel} title="What an agent would get for this task"><${Package} path=${path} text=${query.q} /><//></div>` : null}`}<//>`;
}

// Scopes of projects that hold memories, whether their code has an index here or not.
function Scopes() {
  const from = useData((signal) => get("/stats", {}, { signal }), []);
  return html`<${Panel} title="Projects with memories"><${Loaded} from=${from}>${({ byScope }) => {
    const found = Object.entries(byScope).filter(([name]) => name.startsWith("/project/"));
    return found.length ? html`<${Bars} label="Memories by project" rows=${found.map(([name, count]) => ({ name, count, to: `/memories?suppressed=1&scope=${encodeURIComponent(name)}` }))} />` : html`<p class="note">No project has memories yet.</p>`;
  }}<//><//>`;
}

export function Projects({ query }) {
  useStore(session);
  const sees = seesAll() && may("admin"); // naming a folder of the server needs that
  return html`<${Page} title="Projects" lead="The index of a project's code on this machine, and what an agent gets from it." twin=${sees && query.path ? urlOf("/project", { path: query.path }) : null}>
    ${!sees ? html`<${NotHere} what="projects" />` : html`
      <div class="filters"><${Field} className="grow-field" label="Folder on the server's machine" value=${query.path ?? ""} placeholder="~/code" onCommit=${(path) => setQuery({ path: path.trim() })} /></div>
      ${query.path ? html`<${Project} key=${query.path} path=${query.path} query=${query} />` : html`<${Empty} title="Enter the folder of a project."><code>vestige project init</code> in a repository makes its index.<//>`}`}
    ${!query.path && html`<${Scopes} />`}<//>`;
}
