// The filter as a form: conditions, and the equivalent expression.
import { ask } from "./ask.js";
import { make, number } from "./grid.js";

const $ = (id) => document.getElementById(id);

const WAYS = {
  text: { is: "is", not: "is not", contains: "contains", starts: "starts with" },
  number: { is: "is", least: "is at least", most: "is at most" },
  bool: { true: "is true", false: "is false" },
};
const NAMES = { path: "file path" };
const displayName = (name) => NAMES[name] ?? name;

const column = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `column(${JSON.stringify(name)})`);
const printed = {
  is: ({ name, value }) => `${column(name)} == ${literal(value)}`,
  not: ({ name, value }) => `${column(name)} != ${literal(value)}`,
  least: ({ name, value }) => `${column(name)} >= ${literal(value)}`,
  most: ({ name, value }) => `${column(name)} <= ${literal(value)}`,
  contains: ({ name, value }) => `like(${column(name)}, ${literal(`*${value}*`)})`,
  starts: ({ name, value }) => `like(${column(name)}, ${literal(`${value}*`)})`,
  true: ({ name }) => column(name),
  false: ({ name }) => `not ${column(name)}`,
};
const literal = (value) => (typeof value === "number" ? String(value) : JSON.stringify(value));

export const compile = (conditions) => conditions.map((each) => printed[each.way](each)).join(" and ");

// Conditions of an expression that a form could have printed; null for any other.
export const parse = (where) => {
  const conditions = [];
  const text = '"(?:[^"\\\\]|\\\\.)*"';
  const place = `(?:column\\((${text})\\)|([A-Za-z_]\\w*))`;
  const one = new RegExp(`^(?:${place} (==|!=|>=|<=) (${text}|-?[0-9.]+(?:e[+-]?[0-9]+)?)|like\\(${place}, (${text})\\)|(not )?${place})(?: and |$)`);
  for (let rest = where.trim(); rest; ) {
    const found = one.exec(rest);
    if (!found) return null;
    const [whole, n1, n2, sign, value, n3, n4, pattern, not, n5, n6] = found;
    const quoted = n1 ?? n3 ?? n5;
    const name = quoted ? JSON.parse(quoted) : (n2 ?? n4 ?? n6);
    if (sign) conditions.push({ name, way: { "==": "is", "!=": "not", ">=": "least", "<=": "most" }[sign], value: JSON.parse(value) });
    else if (pattern) {
      const glob = JSON.parse(pattern);
      const inner = glob.replace(/^\*|\*$/g, "");
      if (!glob.endsWith("*") || /[*?]/.test(inner)) return null;
      conditions.push({ name, way: glob.startsWith("*") ? "contains" : "starts", value: inner });
    } else conditions.push({ name, way: not ? "false" : "true" });
    rest = rest.slice(whole.length);
  }
  return conditions;
};

const sayCondition = ({ name, way, value }, kind) =>
  [displayName(name), (WAYS[kind] ?? WAYS.text)[way] ?? way, value === undefined ? "" : typeof value === "string" ? value || "nothing" : number(value)].filter(Boolean).join(" ");

export class FilterForm {
  constructor(apply) {
    this.apply = apply;
    this.columns = null;
    $("filter-open").addEventListener("click", () => this.open($("tools").hidden));
    $("condition-add").addEventListener("click", () => this.row());
    $("where-clear").addEventListener("click", () => this.send(""));
    $("tools").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send($("expression").open ? $("where").value.trim() : compile(this.conditions()));
    });
    $("expression").addEventListener("toggle", () => {
      $("conditions-field").hidden = $("expression").open;
      if ($("expression").open && !$("where").value) $("where").value = compile(this.conditions());
    });
  }

  send(where) {
    this.open(false);
    this.apply(where);
  }

  async open(wanted, expression = false) {
    $("tools").hidden = !wanted;
    $("filter-open").setAttribute("aria-expanded", String(wanted));
    if (!wanted) return;
    this.columns ??= (await ask("/api/columns")).columns;
    const text = this.columns.find((each) => each.kind === "text" && each.values.length);
    const year = this.columns.find((each) => each.kind === "number");
    const shown = text ? `${column(text.name)} == ${JSON.stringify(text.values[0].value)}` : 'like(path, "*2021*")';
    $("where-hint").textContent = `Such as ${shown}${year ? ` and ${column(year.name)} >= ${year.low}` : ""}; with and, or, not and parentheses.`;
    this.fillRows();
    if (expression) $("expression").open = true;
    ($("expression").open ? $("where") : $("conditions").querySelector("select"))?.focus();
  }

  // Show an expression: as chips, and in the form.
  show(where) {
    const conditions = parse(where);
    $("where").value = where;
    $("where-clear").hidden = !where;
    this.given = conditions ?? [];
    this.isExpression = conditions === null;
    $("chips").replaceChildren(
      ...(conditions ?? [{ code: where }]).map((each, place) => {
        const kind = this.columns?.find((column) => column.name === each.name)?.kind;
        const way = each.way === "is" || each.way === "true" || each.way === "false" ? undefined : kind;
        const chip = make("button", each.code ? "code" : "", each.code ?? sayCondition(each, way ?? (typeof each.value === "number" ? "number" : each.value === undefined ? "bool" : "text")));
        chip.type = "button";
        chip.append(make("span", "", " ×"));
        chip.setAttribute("aria-label", `Remove: ${each.code ?? sayCondition(each, kind)}`);
        chip.addEventListener("click", () => this.apply(each.code ? "" : compile(conditions.filter((_, other) => other !== place))));
        return chip;
      }),
    );
    if (!$("tools").hidden && this.columns) this.fillRows();
  }

  fillRows() {
    $("expression").open = this.isExpression;
    $("conditions").replaceChildren();
    const known = this.given.filter((each) => this.columns.some((column) => column.name === each.name));
    for (const each of known.length ? known : [undefined]) this.row(each);
  }

  row(condition) {
    const row = make("li");
    const [names, ways] = [make("select"), make("select")];
    names.setAttribute("aria-label", "Column");
    ways.setAttribute("aria-label", "Comparison");
    names.append(...this.columns.map((each) => new Option(displayName(each.name), each.name)));
    if (condition) names.value = condition.name;
    const remove = make("button", "", "×");
    remove.type = "button";
    remove.setAttribute("aria-label", "Remove this condition");
    remove.addEventListener("click", () => row.remove());
    const value = make("span", "value");
    const choose = (way, given) => {
      const column = this.columns.find((each) => each.name === names.value);
      ways.replaceChildren(...Object.entries(WAYS[column.kind]).map(([key, text]) => new Option(text, key)));
      ways.value = way ?? (column.kind === "text" && !column.values.length ? "contains" : Object.keys(WAYS[column.kind])[0]);
      fillValue(given);
    };
    const fillValue = (given) => value.replaceChildren(...valueOf(this.columns.find((each) => each.name === names.value), ways.value, given));
    names.addEventListener("change", () => choose());
    ways.addEventListener("change", () => fillValue(value.firstElementChild?.value));
    choose(condition?.way, condition?.value);
    row.append(names, ways, value, remove);
    $("conditions").append(row);
  }

  conditions() {
    const rows = [...$("conditions").children].map((row) => {
      const [names, ways] = row.querySelectorAll("select");
      const { kind } = this.columns.find((each) => each.name === names.value);
      const typed = row.querySelector(".value")?.firstElementChild?.value;
      return { name: names.value, way: ways.value, value: kind === "bool" ? undefined : kind === "number" ? (typed === "" ? undefined : Number(typed)) : typed, kind };
    });
    return rows.filter(({ kind, value }) => kind === "bool" || (value !== undefined && value !== ""));
  }
}

// The input of a value: a list of choices or a text field.
const valueOf = (column, way, given) => {
  if (column.kind === "bool") return [];
  if (column.values.length && ["is", "not"].includes(way)) {
    const list = make("select");
    list.append(new Option("choose …", ""), ...column.values.map((each) => new Option(`${each.value} (${number(each.items)})`, each.value)));
    if (column.values.some((each) => each.value === given)) list.value = given;
    list.setAttribute("aria-label", "Value");
    return [list];
  }
  const box = make("input");
  box.type = column.kind === "number" ? "number" : "text";
  if (column.kind === "number") {
    box.step = "any";
    if (column.low !== null) box.placeholder = `${column.low} to ${column.high}`;
  }
  if (given !== undefined) box.value = given;
  box.setAttribute("aria-label", "Value");
  return [box];
};
