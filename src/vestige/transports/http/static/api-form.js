// What an operation takes, as fields of a form, and the request that they make. Nothing here sends anything.

/** Every argument of an operation: {name, place, required, description, schema, example}. */
export function argumentsOf(operation) {
  const apart = (operation.parameters ?? []).filter((one) => one.in !== "header");
  const found = apart.map((one) => ({ ...one, place: one.in }));
  const content = operation.requestBody?.content["application/json"];
  if (!content) return found;
  const { properties, required = [] } = content.schema;
  for (const [name, schema] of Object.entries(properties)) {
    found.push({
      name,
      place: "body",
      required: required.includes(name),
      description: schema.description ?? "",
      schema,
      example: content.example?.[name],
    });
  }
  return found;
}

/** A schema without its reference and without the null that means it may be left out. */
export function plain(schema, schemas) {
  const { $ref, anyOf = [], ...rest } = schema;
  if ($ref) return plain({ ...schemas[$ref.split("/").pop()], ...rest }, schemas);
  const branches = anyOf.filter((one) => one.type !== "null");
  return branches.length === 1 ? plain({ ...branches[0], ...rest }, schemas) : schema;
}

/** How a value is asked for: choice, boolean, number, list, json, line or text. */
export function kindOf(schema) {
  if (schema.enum) return "choice";
  if (schema.type === "boolean") return "boolean";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "array" && schema.items?.type === "string") return "list";
  if (schema.type !== "string") return "json";
  const short = schema.anyOf || schema.maxLength <= 300; // a time is any of two forms
  return short ? "line" : "text";
}

/** The value of a field's text; undefined if it is empty. */
export function valueOf(kind, text) {
  if (text.trim() === "") return undefined;
  switch (kind) {
    case "boolean":
      return text === "true";
    case "number":
      return Number(text);
    case "list":
      return text.split("\n").map((line) => line.trim()).filter(Boolean);
    case "json":
      return JSON.parse(text);
    default:
      return text;
  }
}

/** The text that stands for a value. */
export function textOf(kind, value) {
  if (value === undefined || value === null) return "";
  if (kind === "list" && Array.isArray(value)) return value.join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/** Address and body of a request. Whatever is in no place of the path goes into the body or the query. */
export function requestOf(method, path, values) {
  const rest = { ...values };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = rest[name];
    delete rest[name];
    if (value === undefined || value === "") throw new Error(`“${name}” is needed.`);
    return encodeURIComponent(value);
  });
  if (method !== "GET" && method !== "DELETE") return { path: filled, body: JSON.stringify(rest) };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) {
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one);
  }
  return { path: query.size ? `${filled}?${query}` : filled };
}
