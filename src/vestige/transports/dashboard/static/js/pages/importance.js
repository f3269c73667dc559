// Importance: how a text would be weighed. Activation: what a question wakes up along the links, and paths.

import { get, html, many, notify, number, percent, post, score, setQuery, useData, useState, words } from "../lib.js";
import { Badge, Empty, Field, Loaded, MemoryLink, Meter, Page, Panel, Time, TypeMark } from "../ui.js";
import { Bars } from "../charts.js";

export function Importance({ query }) {
  const text = query.text ?? "";
  const from = useData((signal) => text ? post("/importance", { content: text }, { signal }) : Promise.resolve(undefined), [text]);
  const submit = (event) => {
    event.preventDefault();
    setQuery({ text: event.target.elements.text.value.trim() });
  };
  return html`<${Page} title="Importance" lead="How strongly a text would be kept, by four signals. Nothing is stored.">
    <form class="form" onSubmit=${submit}><label class="field"><span>Text</span><textarea name="text" rows="3" required>${text}</textarea></label><div class="actions"><button class="primary">Score</button></div></form>
    ${text ? html`<${Loaded} from=${from}>${(found) => found && html`<div class="figures after"><div class="figure"><span class="figure-value">${score(found.composite)}</span><span class="figure-label">${found.consolidationPriority.toLowerCase()} importance</span></div><div class="figure"><span class="figure-value">×${score(found.encodingBoost)}</span><span class="figure-label">strength at the start</span></div></div>
      <p class="answer">${found.summary}</p><${Panel} title="Signals"><ul class="plain rows">${Object.entries(found.channels).map(([name, value]) => html`<li class="signal"><strong>${name}</strong><${Meter} value=${value} label=${name} tone="good" /><span class="muted">weight ${score(found.weightsUsed[name])}</span><span>${found.explanations[name]}</span></li>`)}</ul><//>`}<//>` : html`<${Empty} title="Write a text to score it." />`}<//>`;
}

const MOST = 12;

function Spread({ question }) {
  const from = useData((signal) => post("/search", { query: question, retrieval_mode: "exhaustive", limit: 50, explain: true, record: false }, { signal }), [question]);
  return html`<${Loaded} from=${from}>${({ results }) => {
    const found = results.filter((one) => !one.association);
    const woken = results.filter((one) => one.association);
    const texts = Object.fromEntries(results.map((one) => [one.id, one.content]));
    const spread = results.map((hit) => ({ hit, stage: hit.explain?.stages.find((one) => one.stage === "spreading"), before: hit.explain?.stages.find((one) => one.stage === "competition") })).filter((one) => one.stage && one.before && Math.abs(one.stage.score - one.before.score) > 1e-6);
    return html`<div class="grid two"><${Panel} title=${`1 · ${many(found.length, "memory", "memories")} found by the question`} extra=${found.length > MOST ? `the best ${MOST}` : null}>${found.length ? null : html`<p class="note">No memory fits the question.</p>`}<ul class="plain rows">${found.slice(0, MOST).map((hit) => html`<li class="memory-row"><${TypeMark} type=${hit.nodeType} /><${MemoryLink} id=${hit.id} text=${hit.content} /><span class="num">${score(hit.combinedScore)}</span></li>`)}</ul><//>
      <div class="stack"><${Panel} title=${`2 · ${many(woken.length, "memory", "memories")} woken along links`}>${woken.length ? html`<ul class="plain rows">${woken.map((hit) => html`<li class="memory-row"><span class="num" title="activation">${score(hit.association.activation)}</span><${Badge}>${words(hit.association.type ?? "link")}<//><${MemoryLink} id=${hit.id} text=${hit.content} />${hit.association.via && html`<span class="muted via">from <${MemoryLink} id=${hit.association.via} text=${texts[hit.association.via]} /></span>`}</li>`)}</ul>` : html`<p class="note">No link led to another memory.</p>`}<//>
      <${Panel} title=${`3 · ${many(spread.length, "score")} changed by spreading`}>${spread.length ? html`<ul class="plain rows">${spread.map(({ hit, stage, before }) => html`<li class="memory-row"><span class="num">${score(before.score)} → ${score(stage.score)}</span><${MemoryLink} id=${hit.id} text=${hit.content} /></li>`)}</ul>` : html`<p class="note">Spreading changed no score.</p>`}<//></div></div>`;
  }}<//>`;
}

function Paths({ from: start, to }) {
  const from = useData((signal) => get("/connections/chain", { from: start, to }, { signal }), [start, to]);
  return html`<${Panel} title="Paths"><${Loaded} from=${from}>${({ paths, memories }) => {
    const text = Object.fromEntries(memories.map((one) => [one.id, one.preview]));
    return paths.length ? html`<ol class="plain">${paths.map((path) => html`<li class="path"><p class="note">confidence ${percent(path.confidence)} · ${many(path.totalHops, "step")}</p><ol class="plain rows">${path.path.map((id, index) => html`<li class="memory-row">${index ? html`<${Badge}>${words(path.steps[index - 1].type)} ${path.steps[index - 1].weight.toFixed(2)}<//>` : html`<${Badge} tone="good">start<//>`}<${MemoryLink} id=${id} text=${text[id]} /></li>`)}</ol></li>`)}</ol>` : html`<p class="note">No path of links connects them.</p>`;
  }}<//><//>`;
}

// A memory by its id, or by words of it: the first that a search finds.
async function memoryOf(text) {
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(text)) return text;
  const { results } = await post("/search", { query: text, limit: 1, all: true, record: false }, { quiet: true });
  return results[0]?.id ?? null;
}

export function Activation({ query }) {
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: event.target.elements.q.value.trim() });
  };
  const connect = async (event) => {
    event.preventDefault();
    const { from, to } = event.target.elements;
    const ends = await Promise.all([from, to].map((field) => memoryOf(field.value.trim())));
    if (ends.every(Boolean)) setQuery({ from: ends[0], to: ends[1] });
    else notify(`No memory is about “${(ends[0] ? to : from).value.trim()}”.`, { kind: "failed" });
  };
  return html`<${Page} title="Activation" lead="What a question wakes up along the links, with the numbers; and the paths between two memories.">
    <form class="search-form" role="search" onSubmit=${submit}><input type="search" name="q" value=${query.q ?? ""} placeholder="A question to spread from" aria-label="Question" /><button class="primary">Replay</button></form>
    ${query.q ? html`<${Spread} question=${query.q} />` : html`<${Empty} title="Ask a question to replay its spreading." />`}
    <h2 class="section">Path between two memories</h2>
    <form class="filters wide-fields" onSubmit=${connect}><label class="field"><span>From a memory</span><input name="from" required placeholder="words of it, or its id" value=${query.from ?? ""} /></label><label class="field"><span>To a memory</span><input name="to" required placeholder="words of it, or its id" value=${query.to ?? ""} /></label><button>Find paths</button></form>
    ${query.from && query.to && html`<${Paths} from=${query.from} to=${query.to} />`}<//>`;
}
