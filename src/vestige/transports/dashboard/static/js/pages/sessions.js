// Sessions: transcripts of coding agents on the server's machine. They are listed, searched and read here.

import { act, get, go, html, many, may, number, post, seesAll, session, setQuery, useData, useStore } from "../lib.js";
import { Badge, Choice, Empty, Link, Loaded, Page, Pager, Panel, Prose, Time } from "../ui.js";

const CLIENTS = ["claude", "codex", "gemini", "opencode", "cursor", "cursor-cli", "copilot", "factory", "goose", "amp", "openclaw"];
const PAGE = 50;

export function NotHere({ what }) {
  return html`<${Empty} title=${`Your key does not see ${what}.`}>They belong to the machine of the server, and your key may not see what is there.<//>`;
}

function Facts({ one }) {
  return html`<span class="hit-facts session-facts"><${Badge}>${one.client}<//>${one.repository ?? one.cwd ? html`<code>${one.repository ?? one.cwd}</code>` : null}${one.branch ? html`<span>${one.branch}</span>` : null}<span>${many(one.prompts, "prompt")}, ${many(one.entries, "entry", "entries")}</span>${one.ended ? html`<${Time} at=${one.ended} />` : null}</span>`;
}

function Row({ one }) {
  return html`<li class="session-row"><p><${Link} to="/sessions" query=${{ id: one.sessionId }} class="memory-link"><bdi>${one.title || one.sessionId}</bdi><//></p><${Facts} one=${one} />
    ${(one.passages ?? []).map((part) => html`<blockquote><strong>${part.role}</strong> <bdi>${part.text}</bdi></blockquote>`)}</li>`;
}

function Entry({ entry }) {
  return html`<li class=${`entry ${entry.side ? "faint" : ""}`}><p class="revision-head"><${Badge} tone=${entry.role === "user" ? "good" : ""}>${entry.role}<//>${entry.at ? html`<${Time} at=${entry.at} />` : null}${entry.side ? html`<span class="muted">taken back</span>` : null}</p>
    ${entry.text ? html`<div class="memory-text" dir="auto">${entry.text}</div>` : null}
    ${(entry.commands ?? []).map((one) => html`<p><code>${one.command}</code>${one.status ? html` <${Badge} tone="warn">status ${one.status}<//>` : null}</p>`)}
    ${(entry.files ?? []).length ? html`<p class="note">${entry.files.join(" · ")}</p>` : null}</li>`;
}

function Reader({ id, first }) {
  const from = useData((signal) => get(`/sessions/${encodeURIComponent(id)}`, { first, limit: PAGE }, { signal }), [id, first]);
  return html`<${Loaded} from=${from} rows=${8}>${(read) => html`<${Panel} title=${read.session.title || read.session.sessionId} extra=${html`<${Link} to="/sessions">All sessions<//>`}>
      <${Facts} one=${read.session} />${read.session.resumeCommand ? html`<p class="note">Take it up again: <code>${read.session.resumeCommand}</code></p>` : null}
      <ol class="plain rows entries">${read.entries.map((entry, index) => html`<${Entry} entry=${entry} key=${first + index} />`)}</ol>
      <nav class="pager" aria-label="Parts of the session"><button disabled=${first === 0} onClick=${() => setQuery({ first: Math.max(0, first - PAGE) || "" })}>Earlier</button><span>${read.entries.length ? `${number(first + 1)}–${number(first + read.entries.length)} of ${number(read.session.entries)}` : "No entries."}</span><button disabled=${!read.more} onClick=${() => setQuery({ first: first + PAGE })}>Later</button></nav><//>`}<//>`;
}

function Found({ query }) {
  const client = query.client ? [query.client] : [];
  const offset = Number(query.offset ?? 0);
  const from = useData((signal) => (query.q
    ? post("/sessions/search", { query: query.q, client, limit: 20 }, { signal })
    : get("/sessions", { client, limit: PAGE, offset }, { signal })), [query.q, query.client, offset]);
  const index = () => act((answer) => answer.message, () => post("/sessions/index", {}), { after: from.reload });
  return html`<${Loaded} from=${from} rows=${8}>${(answer) => html`<p class="note" role="status"><${Prose} text=${answer.message.trim()} /></p>
    ${answer.sessions.length ? html`<ul class="plain rows sheet">${answer.sessions.map((one) => html`<${Row} one=${one} key=${one.sessionId} />`)}</ul>
      ${!query.q && html`<${Pager} total=${answer.total} offset=${offset} limit=${PAGE} onMove=${(to) => setQuery({ offset: to || "" })} />`}`
      : html`<${Empty} title=${query.q ? "No session is about this." : "No session is indexed."}>${may("admin") && !query.q ? html`<button onClick=${index}>Index the sessions of this machine</button>` : "The transcripts of coding agents on the server's machine appear here once they are indexed."}<//>`}`}<//>`;
}

export function Sessions({ query }) {
  useStore(session);
  const submit = (event) => {
    event.preventDefault();
    go("/sessions", { q: event.target.elements.q.value.trim(), client: query.client ?? "" });
  };
  const twin = seesAll() ? (query.id ? `/api/v1/sessions/${encodeURIComponent(query.id)}` : "/api/v1/sessions") : null;
  return html`<${Page} title="Sessions" lead="What was asked, said and done in sessions of coding agents on this machine." twin=${twin}>
    ${!seesAll() ? html`<${NotHere} what="sessions" />` : query.id ? html`<${Reader} id=${query.id} first=${Number(query.first ?? 0)} />` : html`
      <form class="search-form" role="search" onSubmit=${submit}><input type="search" name="q" value=${query.q ?? ""} placeholder="the flaky login test last week" aria-label="Question" /><button class="primary">Search</button></form>
      <div class="filters"><${Choice} label="Client" value=${query.client ?? ""} options=${[["", "any"], ...CLIENTS.map((one) => [one, one])]} onChange=${(client) => setQuery({ client, offset: "" })} /></div>
      <${Found} query=${query} />`}<//>`;
}
