// Domains: topics of the memory, proposals to change them, and how well members fit.

import { act, api, get, go, html, many, may, number, percent, post, score, seesAll, useData, useState, words } from "../lib.js";
import { Badge, Dialog, Empty, Facts, Link, Loaded, MemoryLink, Meter, Page, Panel, Time, topicName, TypeMark } from "../ui.js";
import { useLive } from "../live.js";

export function acceptProposal(one, reload) {
  return act("Done as proposed.", () => post(`/domains/proposals/${one.id}/accept`, {}), { after: reload, undo: () => post(`/domains/proposals/${one.id}/undo`, {}) });
}

export function rejectProposal(one, reload) {
  return act("Rejected: it is not shown again for five discoveries.", () => post(`/domains/proposals/${one.id}/reject`, {}), { after: reload });
}

export function Proposal({ proposal, children }) {
  return html`<article class="panel pair"><header class="panel-head"><h2>${words(proposal.kind)}: ${proposal.domains.join(", ") || "a new domain"}</h2><span class="muted">confidence ${percent(proposal.confidence)} · seen ${many(proposal.seen, "time")}</span></header>
    <div class="sides"><div class="side"><p class="side-head">Now</p><ul class="plain rows">${Object.entries(proposal.before).map(([name, count]) => html`<li class="row-link"><span>${name}</span><strong>${number(count)}</strong></li>`)}</ul></div>
      <div class="side"><p class="side-head">Then</p><ul class="plain rows">${proposal.parts.map((part) => html`<li class="row-link"><span>${part.label ?? part.domain ?? "new"}</span><strong>${number(part.memories ?? part.texts ?? part.size ?? 0)}</strong></li>`)}</ul></div></div>
    ${proposal.termsGained.length > 0 && html`<p class="note">Gains the terms ${proposal.termsGained.join(", ")}.</p>`}
    ${proposal.termsLost.length > 0 && html`<p class="note">Loses the terms ${proposal.termsLost.join(", ")}.</p>`}${children}</article>`;
}

// A login for some scopes or domains does not decide about topics of all memories.
export const NO_PROPOSALS = { proposals: [] };

export function Domains() {
  const from = useData((signal) => get("/domains", {}, { signal }), []);
  const sees = seesAll();
  const proposals = useData((signal) => (sees ? get("/domains/proposals", {}, { signal }) : Promise.resolve(NO_PROPOSALS)), []);
  const reload = () => {
    from.reload();
    proposals.reload();
  };
  useLive(["DomainsChanged"], reload);
  const discover = () => act((answer) => answer.message, () => post("/domains/discover", {}), { after: reload });
  return html`<${Page} title="Domains" lead="Topics that the memory found in itself. Changes are proposed, never made silently." twin="/api/v1/domains"
      actions=${may("write") && sees ? html`<button onClick=${discover}>Discover</button>` : null}>
    <${Loaded} from=${proposals}>${({ proposals: all, unconfirmed }) => all.length ? html`<h2 class="section">Proposals</h2>${all.map((one) => html`<${Proposal} proposal=${one}>${may("write") && html`<div class="actions"><button class="primary" onClick=${() => acceptProposal(one, reload)}>Accept</button><button onClick=${() => rejectProposal(one, reload)}>Reject</button></div>`}<//>`)}`
      : sees && html`<p class="note">No proposal waits for you${unconfirmed ? `; ${unconfirmed} must be confirmed by another discovery first` : ""}.</p>`}<//>
    ${(proposals.data || proposals.error) && html`<${Loaded} from=${from}>${({ domains, unclassified, memories }) => domains.length ? html`<p class="note">${many(domains.length, "domain")}; ${unclassified ? `${number(unclassified)} of ${number(memories)} memories are in none` : `each of the ${number(memories)} memories is in one or more`}.</p>
      <div class="grid cards">${domains.map((one) => html`<${Panel} title=${html`<${Link} to=${`/domains/${encodeURIComponent(one.id)}`}>${topicName(one)}<//>`} extra=${html`<${Link} to="/memories" query=${{ domain: one.id }}>${number(one.memories)}<//>`}>
        ${one.terms.length > 0 && html`<p class="terms">${one.terms.map((term) => html`<span class="tag">${term}</span>`)}</p>`}<p class="note">${one.origin === "found" ? "found automatically" : words(one.origin)}</p><//>`)}</div>` : html`<${Empty} title="There are no domains yet.">They are discovered from 150 memories on.<//>`}<//>`}
  <//>`;
}

export function Domain({ id }) {
  const from = useData((signal) => get(`/domains/${encodeURIComponent(id)}`, {}, { signal }), [id]);
  const [naming, setNaming] = useState(false);
  const rename = async (event) => {
    event.preventDefault();
    const before = from.data.label;
    await act("Renamed.", () => api("PATCH", `/domains/${encodeURIComponent(id)}`, { label: event.target.elements.label.value }), { after: from.reload, undo: () => api("PATCH", `/domains/${encodeURIComponent(id)}`, { label: before }) });
    setNaming(false);
  };
  return html`<${Page} title=${from.data ? topicName(from.data) : "Domain"} twin=${`/api/v1/domains/${encodeURIComponent(id)}`} actions=${from.data && may("write") && html`<button onClick=${() => setNaming(true)}>Rename</button>`}>
    <${Loaded} from=${from}>${(domain) => html`<div class="grid two">
      <div class="stack"><${Panel} title="Scores of its members"><${Histogram} bins=${domain.histogram} cut=${domain.cut} /><${Facts} rows=${[
        ["Members", html`<${Link} to="/memories" query=${{ domain: id }}>${number(domain.memories)}<//>`], ["Most have scores of", `${score(domain.low)} to ${score(domain.high)}`], ["Threshold", score(domain.cut)],
        ["Cohesion", score(domain.cohesion)], ["Conductance", score(domain.conductance)], ["Recurrence", score(domain.recurrence)], ["Id", html`<code>${domain.id}</code>`],
      ]} /><//>
      <${Panel} title="Terms and topics"><p class="terms">${domain.terms.map((term) => html`<span class="tag">${term}</span>`)}</p><ul class="plain rows">${(domain.topics ?? []).map((one) => html`<li class="row-link"><span>${one.label}</span><strong>${number(one.texts)}</strong></li>`)}</ul><//></div>
      <${Panel} title="Typical memories"><ul class="plain rows">${domain.exemplars.map((one) => html`<li class="memory-row"><${TypeMark} type=${one.nodeType} /><${MemoryLink} id=${one.id} text=${one.content} /><${Meter} value=${one.retentionStrength} /></li>`)}</ul><//></div>
      ${naming && html`<${Dialog} title="Rename the domain" onClose=${() => setNaming(false)}><form class="form" onSubmit=${rename}><label class="field"><span>Label</span><input name="label" required value=${domain.label} /></label><div class="actions"><button class="primary">Rename</button></div></form><//>`}`}<//>
  <//>`;
}

function Histogram({ bins, cut }) {
  const most = Math.max(1, ...bins);
  return html`<div class="histogram" role="img" aria-label=${bins.map((count, index) => `${index / 10} to ${(index + 1) / 10}: ${count}`).join(", ")}>
    ${bins.map((count, index) => html`<span class="hist-bin" title=${`${index / 10}–${(index + 1) / 10}: ${count}`}><span style=${{ height: percent(count / most) }}></span></span>`)}
    <span class="hist-cut" style=${{ left: percent(cut) }} title=${`threshold ${score(cut)}`}></span></div>
    <p class="hist-axis" aria-hidden="true">${["0", "0.25", "0.5", "0.75", "1"].map((text) => html`<span>${text}</span>`)}</p><p class="note">${many(bins.reduce((sum, count) => sum + count, 0), "memory", "memories")} by similarity to the topic, at most ${number(most)} in a bar. A new memory joins from the dashed line on.</p>`;
}
