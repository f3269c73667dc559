// The page: lists the operations of the OpenAPI document, and sends what is filled in.

import { argumentsOf, kindOf, plain, requestOf, textOf, valueOf } from "./api-form.js";

// The page is at …/docs; addresses are relative, so that it also works behind a proxy that adds to the path.
const BASE = new URL(".", location.href);
const METHODS = ["get", "post", "put", "patch", "delete"];

const list = document.getElementById("operations");
const state = document.getElementById("state");

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function load() {
  const response = await fetch(new URL("openapi.json", BASE));
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  const described = await response.json();
  document.getElementById("version").textContent = described.info.version;
  for (const { name } of described.tags) list.append(section(name, described));
  state.textContent = "";
  list.removeAttribute("aria-busy");
}

function section(tag, described) {
  const made = element("section", {}, element("h2", { textContent: tag }));
  for (const [path, offered] of Object.entries(described.paths)) {
    for (const method of METHODS) {
      const operation = offered[method];
      if (operation?.tags[0] === tag) {
        made.append(entry(method.toUpperCase(), path, operation, described.components.schemas));
      }
    }
  }
  return made;
}

function entry(method, path, operation, schemas) {
  const made = element(
    "details",
    { id: operation.operationId },
    element(
      "summary",
      {},
      element("span", { className: "method", textContent: method }),
      element("span", { className: "path", textContent: path }),
      element("span", { className: "about", textContent: operation.summary }),
    ),
  );
  made.dataset.words = `${method} ${path} ${operation.operationId} ${operation.description}`.toLowerCase();
  // Forms are made when they are opened: there are many, and most are never looked at.
  made.addEventListener("toggle", () => made.append(form(method, path, operation, schemas)), { once: true });
  return made;
}

function form(method, path, operation, schemas) {
  const fields = argumentsOf(operation).map((one) => field(operation.operationId, one, schemas));
  const rows = element("fieldset", { ariaLabel: "Arguments" }, ...fields.map((one) => one.row));
  const json = jsonField(operation.operationId);
  const send = element("button", { type: "submit", textContent: "Send" });
  const swap = element("button", { type: "button", textContent: "Edit as JSON" });
  const outcome = element("p", { role: "status" });
  const answer = element("pre", { hidden: true, tabIndex: 0, ariaLabel: "Answer" });

  const values = () => (json.row.hidden ? filledIn(fields) : valueOf("json", json.input.value) ?? {});

  swap.addEventListener("click", () =>
    told(outcome, () => {
      const given = values();
      json.row.hidden = !json.row.hidden;
      rows.hidden = !json.row.hidden;
      rows.disabled = rows.hidden; // a hidden field need not be filled in
      swap.textContent = rows.hidden ? "Fill in a form" : "Edit as JSON";
      json.input.value = JSON.stringify(given, null, 2);
      for (const one of fields) one.input.value = textOf(one.kind, given[one.name]);
      outcome.textContent = "";
    }),
  );

  const made = element(
    "form",
    { className: "inside" },
    element("p", { className: "said", textContent: operation.description }),
    element("p", { className: "note", textContent: `Needs the permission “${operation["x-permission"]}”.` }),
    rows,
    json.row,
    element("div", { className: "buttons" }, send, ...(fields.length ? [swap] : [])),
    outcome,
    answer,
  );
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (operation["x-effect"] === "delete" && !confirm(`${operation.summary}\n\nDo it?`)) return;
    send.disabled = true;
    outcome.className = "";
    outcome.textContent = "Waiting…";
    await told(outcome, async () => show(outcome, answer, await ask(method, path, values())));
    send.disabled = false;
  });
  return made;
}

function field(operation, argument, schemas) {
  const schema = plain(argument.schema, schemas);
  const kind = kindOf(schema);
  const id = `${operation}-${argument.name}`;
  const input = control(kind, schema);
  Object.assign(input, { id, name: argument.name });
  if (argument.required && argument.place !== "path") input.required = true;
  if (argument.example !== undefined) input.placeholder = textOf(kind, argument.example);
  input.setAttribute("aria-describedby", `${id}-note`);
  const about = [argument.description, kind === "list" ? "One per line." : "", kind === "json" ? "JSON." : ""];
  const row = element(
    "div",
    { className: "field" },
    element("label", { htmlFor: id, textContent: argument.name }),
    element("span", { className: "kind", textContent: argument.required ? " needed" : "" }),
    input,
    element("p", { id: `${id}-note`, className: "note", textContent: about.filter(Boolean).join(" ") }),
  );
  return { name: argument.name, kind, input, row };
}

function control(kind, schema) {
  if (kind === "choice" || kind === "boolean") {
    const choices = kind === "choice" ? schema.enum : ["true", "false"];
    const options = ["", ...choices].map((one) => element("option", { value: one, textContent: one }));
    return element("select", {}, ...options);
  }
  if (kind === "number") {
    const step = schema.type === "integer" ? "1" : "any";
    return element("input", { type: "number", step, min: schema.minimum ?? "", max: schema.maximum ?? "" });
  }
  if (kind === "line") return element("input", { type: "text", autocomplete: "off" });
  return element("textarea", { rows: kind === "text" ? 2 : 3, spellcheck: kind === "text" });
}

function jsonField(operation) {
  const id = `${operation}-json`;
  const input = element("textarea", { id, rows: 10, spellcheck: false });
  const label = element("label", { htmlFor: id, textContent: "Arguments as JSON" });
  return { input, row: element("div", { className: "field", hidden: true }, label, input) };
}

function filledIn(fields) {
  const given = {};
  for (const { name, kind, input } of fields) {
    const value = valueOf(kind, input.value);
    if (value !== undefined) given[name] = value;
  }
  return given;
}

async function ask(method, path, values) {
  const request = requestOf(method, path, values);
  const key = document.getElementById("key").value.trim();
  const headers = key ? { Authorization: `Bearer ${key}` } : await loggedIn(method);
  if (request.body) headers["Content-Type"] = "application/json";
  return fetch(new URL(request.path.slice(1), BASE), {
    method,
    headers,
    body: request.body,
    credentials: key ? "omit" : "same-origin",
  });
}

/** What a request with the cookie of a login has to say besides. */
async function loggedIn(method) {
  if (method === "GET") return {};
  const response = await fetch(new URL("../../login/session", BASE));
  return response.ok ? { "X-CSRF-Token": (await response.json()).csrf } : {};
}

async function show(outcome, answer, response) {
  const text = await response.text();
  outcome.className = response.ok ? "" : "failed";
  outcome.textContent = `${response.status} ${response.statusText}`;
  answer.textContent = readable(text);
  answer.hidden = false;
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Do something, and tell what is wrong with it if it fails. */
async function told(outcome, work) {
  try {
    await work();
  } catch (error) {
    outcome.className = "failed";
    outcome.textContent = error.message;
  }
}

document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  let shown = 0;
  for (const part of list.querySelectorAll("section")) {
    const entries = [...part.querySelectorAll("details")];
    for (const one of entries) one.hidden = !words.every((word) => one.dataset.words.includes(word));
    part.hidden = entries.every((one) => one.hidden);
    shown += entries.filter((one) => !one.hidden).length;
  }
  state.textContent = words[0] ? `${shown} found` : "";
});

load().catch((error) => {
  state.className = "failed";
  state.textContent = `The description cannot be loaded: ${error.message}`;
});
