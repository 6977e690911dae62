// The API page, built from openapi.json.

const make = (kind, className, text) => {
  const element = document.createElement(kind);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

let schemas = {};

// A schema in one line: the type of the value and its bounds.
const kind = (schema, depth = 0) => {
  if (!schema) return "anything";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return depth > 2 ? name : kind(schemas[name] ?? {}, depth + 1);
  }
  if (schema.anyOf) return schema.anyOf.map((each) => kind(each, depth)).join(" | ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `[${kind(schema.items, depth)}, …]`;
  if (schema.type === "object" && schema.properties) {
    const pad = "  ".repeat(depth + 1);
    const lines = Object.entries(schema.properties).map(([name, each]) => {
      const optional = (schema.required ?? []).includes(name) ? "" : "?";
      const note = each.description ? `   // ${each.description}` : "";
      return `${pad}${name}${optional}: ${kind(each, depth + 1)}${note}`;
    });
    return `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  if (schema.format === "binary") return "file";
  return schema.type ?? "anything";
};

const block = (title, text) => {
  const part = make("div", "part");
  part.append(make("h3", "", title), make("pre", "", text));
  return part;
};

const example = (path, method, operation) => {
  const place = `${location.origin}${path.replace("{number}", "0")}`;
  const types = Object.keys(operation.requestBody?.content ?? {});
  if (method === "get") return `curl '${place}'`;
  if (path.endsWith("search")) return `curl -F image=@photo.jpg -F k=5 ${place}\ncurl -H 'Content-Type: application/json' -d '{"id": 0, "k": 5}' ${place}`;
  if (path.endsWith("verify")) return `curl -F first=@a.jpg -F second=@b.jpg ${place}`;
  if (path.endsWith("why")) return `curl -F image=@photo.jpg -F item=0 ${place}`;
  return `curl -X ${method.toUpperCase()} ${place}   # ${types.join(" or ")}`;
};

const entry = (path, method, operation) => {
  const details = make("details", "card operation");
  const summary = make("summary");
  summary.append(make("b", method, method.toUpperCase()), make("code", "", path), make("span", "", operation.summary));
  details.append(summary);
  const inside = make("div", "inside");
  const parameters = (operation.parameters ?? []).map(
    (each) => `${each.name}${each.required ? "" : "?"}: ${kind(each.schema)}${each.description ? `   // ${each.description}` : ""}`,
  );
  if (parameters.length) inside.append(block("parameters", parameters.join("\n")));
  for (const [type, { schema }] of Object.entries(operation.requestBody?.content ?? {})) {
    schemas = { ...schemas, ...(schema.$defs ?? {}) };
    inside.append(block(`body: ${type}`, kind(schema)));
  }
  const answer = Object.entries(operation.responses["200"]?.content ?? {});
  for (const [type, { schema }] of answer) inside.append(block(`answer: ${type}`, type === "application/json" ? kind(schema) : "file"));
  const faults = Object.entries(operation.responses).filter(([status]) => status !== "200");
  inside.append(block("otherwise: { error: sentence }", faults.map(([status, { description }]) => `${status}   ${description}`).join("\n")));
  inside.append(block("for example", example(path, method, operation)));
  details.append(inside);
  return details;
};

const list = document.getElementById("list");
try {
  const openapi = await (await fetch("/openapi.json")).json();
  schemas = openapi.components?.schemas ?? {};
  document.getElementById("name").textContent = `${openapi.info.title}: API`;
  document.getElementById("facts").textContent = openapi.info.summary;
  const entries = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => entry(path, method, operation)),
  );
  list.replaceChildren(
    make("p", "lead", "Every endpoint returns JSON, except for pictures. An error is one sentence: { error }. If the server requires a token, send it as Authorization: Bearer."),
    ...entries,
  );
} catch {
  list.replaceChildren(make("p", "alarm", "The server does not answer. Is likewise serve still running?"));
}
