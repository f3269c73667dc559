// Trace a text: every record that holds a phrase, in the present or in an earlier revision, and transcripts of sessions.

import { act, html, many, may, number, post, seesAll, session, setQuery, useData, useState, useStore, words } from "../lib.js";
import { Badge, Dialog, Empty, Facts, Link, Loaded, MemoryLink, Page, Panel, Time } from "../ui.js";

const MOST = 100;
const FIELDS = { content: "text", phrasings: "other wording", tags: "tag", node_type: "type", agent_id: "agent", session_id: "session" };

function Where({ one }) {
  const now = one.fields.map((name) => FIELDS[name] ?? words(name));
  const state = [one.archived && "archived", one.suppressed && "suppressed"].filter(Boolean);
  return html`<span class="tags">${[...now, ...state].map((name) => html`<${Badge} tone="warn">${name}<//>`)}
    ${one.revisions.length ? html`<${Badge}>${one.revisions.length === 1 ? `revision ${one.revisions[0]}` : `revisions ${one.revisions.join(", ")}`}<//>` : null}</span>`;
}

function Row({ one, purge }) {
  if (one.document) return html`<li class="memory-row trace-row"><${Badge} tone="warn">${words(one.document)}<//><span class="grow muted"><code>${one.id}</code></span></li>`;
  return html`<li class="memory-row trace-row"><${Where} one=${one} /><${MemoryLink} id=${one.id} text=${one.preview} /><span class="muted">${one.source ?? ""}</span><${Time} at=${one.createdAt} />
    ${may("write") && html`<button class="danger" onClick=${() => purge(one)}>Purge</button>`}</li>`;
}

// A purge is the one change here that nothing takes back, so it is asked for twice.
function Purge({ one, onClose, purge }) {
  return html`<${Dialog} title="Purge for good" onClose=${onClose}><p class="muted"><bdi>${one.preview}</bdi></p>
    <p>${one.pinned ? "This memory is pinned. Its" : "Its"} text, revisions, vectors and links go from every file of the store. This cannot be undone.</p>
    <div class="actions"><button class="danger" onClick=${() => { purge(one); onClose(); }}>Purge every trace</button><button onClick=${onClose}>Cancel</button></div><//>`;
}

// What a purge did, until the next phrase: its answer in full.
function Receipt({ done }) {
  return html`<${Panel} title="Receipt of the purge"><${Facts} rows=${[["Purged", html`<code>${done.id}</code>`], ["At", html`<${Time} at=${done.at} />`], ["With it", done.alsoPurged?.join(", ")],
    ["Still in", done.stillIn.length ? done.stillIn.map((id) => html`<${MemoryLink} id=${id} /> `) : "no other memory"], ["Files not touched", done.copies.length ? done.copies.join(", ") : "none"], ["Note", done.message]]} /><//>`;
}

// The search in transcripts goes by words; only passages that hold the phrase itself are shown.
function Transcripts({ phrase }) {
  const from = useData((signal) => post("/sessions/search", { query: phrase, limit: 20 }, { signal, quiet: true }), [phrase]);
  if (from.error) return null;
  return html`<${Panel} title="Transcripts of sessions"><${Loaded} from=${from}>${({ sessions }) => {
    const wanted = phrase.toLowerCase();
    const holding = sessions.filter((one) => (one.passages ?? []).some((part) => part.text.toLowerCase().includes(wanted)));
    return holding.length ? html`<ul class="plain rows">${holding.map((one) => html`<li class="memory-row"><${Badge}>${one.client}<//><${Link} to="/sessions" query=${{ id: one.sessionId }} class="memory-link"><bdi>${one.title || one.sessionId}</bdi><//><${Time} at=${one.ended} /></li>`)}</ul><p class="note">Transcripts belong to the agents that wrote them; delete such a file there.</p>`
      : html`<p class="note">No passage that the search of sessions finds for these words holds the phrase.</p>`;
  }}<//><//>`;
}

export function Trace({ query }) {
  const phrase = query.q ?? "";
  useStore(session);
  const [receipts, setReceipts] = useState([]);
  const [chosen, setChosen] = useState(null);
  const sees = seesAll();
  const from = useData((signal) => phrase && sees ? post("/memories/trace", { phrase, limit: MOST }, { signal }) : Promise.resolve(undefined), [phrase]);
  const submit = (event) => {
    event.preventDefault();
    setReceipts([]);
    setQuery({ q: event.target.elements.q.value.trim() });
  };
  const purge = async (one) => {
    const done = await act("Purged from every file of the store.", () => post(`/memories/${one.id}/purge`, { confirm: true, even_pinned: one.pinned }), { after: from.reload });
    if (done) setReceipts((all) => [{ ...done, at: new Date().toISOString() }, ...all]);
  };
  return html`<${Page} title="Trace a text" lead="Where a secret or a wrong phrase is kept, letter by letter: texts, wordings, tags, origin, earlier revisions, the archive, other records.">
    ${sees ? null : html`<${Empty} title="Your key cannot trace texts.">It sees a part of the store, and copies elsewhere would be missed.<//>`}
    <form class="search-form" hidden=${!sees} role="search" onSubmit=${submit}><input type="search" name="q" value=${phrase} minlength="2" required placeholder="The exact phrase" aria-label="Phrase" /><button class="primary">Trace</button></form>
    ${phrase && sees ? html`<${Loaded} from=${from} rows=${5}>${(answer) => answer && html`${answer.found.length
        ? html`<p class="answer">${many(answer.total, "record")} ${answer.total === 1 ? "holds" : "hold"} it${answer.shown < answer.total ? `; the first ${number(answer.shown)} are listed` : ""}.</p><ul class="plain rows sheet">${answer.found.map((one) => html`<${Row} one=${one} purge=${setChosen} key=${one.id} />`)}</ul>`
        : html`<${Empty} title="No memory holds it.">${many(answer.memories, "memory", "memories")} and ${many(answer.documents, "other record")} were read letter by letter, with earlier revisions.<//>`}
      ${answer.copies ? html`<p class="note">${many(answer.copies.length, "backup or export", "backups and exports")} may hold it and were not read: ${answer.copies.join(", ")}</p>` : null}`}<//>
      <div class="stack after">${receipts.map((one) => html`<${Receipt} done=${one} key=${one.id} />`)}${may("admin") ? html`<${Transcripts} phrase=${phrase} key=${phrase} />` : null}</div>`
      : sees && html`<${Empty} title="Enter the exact phrase.">Upper and lower case are the same.<//>`}
    ${chosen && html`<${Purge} one=${chosen} purge=${purge} onClose=${() => setChosen(null)} />`}<//>`;
}
