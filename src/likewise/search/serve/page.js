import { ask, Fault, sentence, show } from "./ask.js";
import { CollectionMap, common, largest, overlay } from "./draw.js";

const $ = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const filename = (path) => path.split(/[\\/]/).pop();
const size = (file) => (file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} kB` : `${(file.size / 1e6).toFixed(1)} MB`);
const titleOf = (item) => item.label ?? filename(item.path);

let about = null;
let map = null;
let mapData = null;
let uploads = new Map(); // images that were dropped on this page: they are nowhere else
let current = { kind: "home" };
let shown = []; // the items in the grid
let listed = 0; // of the collection
let running = new AbortController();

// ---------------------------------------------------------------------------------------------- pictures

const thumbnail = (id) => `/api/items/${id}/thumbnail?v=${about.version}`;
const picture = (id) => `/api/items/${id}/image`;

// The first of several addresses that is an image; a class on its frame where none is.
const showFirst = (image, frame, addresses) => {
  const [next, ...rest] = addresses;
  frame.classList.toggle("none", next === undefined);
  if (next === undefined) return;
  image.onerror = () => showFirst(image, frame, rest);
  show(image, next);
};

// ---------------------------------------------------------------------------------------------- where we are

const read = () => {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const given = new URLSearchParams(query);
  const [, kind, id] = path.split("/");
  return {
    kind: ["item", "upload"].includes(kind) && /^\d+$/.test(id) ? kind : "home",
    id: Number(id),
    where: given.get("where") ?? "",
    k: ["12", "24", "48", "96"].includes(given.get("k")) ? given.get("k") : "24",
    rerank: given.get("rerank") ?? "",
    exact: given.get("exact") === "true",
  };
};

const address = (change) => {
  const to = { ...current, ...change };
  const given = new URLSearchParams();
  if (to.where) given.set("where", to.where);
  if (to.k && to.k !== "24") given.set("k", to.k);
  if (to.rerank) given.set("rerank", to.rerank);
  if (to.exact) given.set("exact", "true");
  const query = given.size ? `?${given}` : "";
  return to.kind === "home" ? `#/${query}` : `#/${to.kind}/${to.id}${query}`;
};

const go = (change) => {
  const to = address(change);
  if (to === location.hash) render();
  else location.hash = to;
};

// ---------------------------------------------------------------------------------------------- what is found

const options = () => {
  const given = { k: current.k, place: "true" };
  if (current.where) given.where = current.where;
  if (current.rerank) given.rerank = current.rerank;
  if (current.exact) given.exact = "true";
  return given;
};

const search = async (signal) => {
  if (current.kind === "item") {
    const given = new URLSearchParams(options());
    const [item, answer] = await Promise.all([
      ask(`/api/items/${current.id}`, { signal }).then((item) => (showQuery(item), item)),
      ask(`/api/items/${current.id}/neighbors?${given}`, { signal }),
    ]);
    return { item, answer };
  }
  const file = uploads.get(current.id);
  if (!file) throw new Fault("That image was not kept when the page was loaded again: drop it once more");
  const form = new FormData();
  for (const [name, value] of Object.entries(options())) form.set(name, value);
  form.set("image", file);
  return { item: null, answer: await ask("/api/search", { method: "POST", body: form, signal }) };
};

const render = async () => {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const before = current;
  current = read();
  fill(current);
  const same = before.kind === current.kind && before.id === current.id;
  if (!same) window.scrollTo({ top: 0 });
  $("alarm").hidden = true;
  complain("");
  $("found").setAttribute("aria-busy", "true");
  try {
    about ??= await begin();
    if (current.kind === "home") await renderHome(signal);
    else await renderFound(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    failed(error);
  }
  if (signal.aborted) return;
  $("found").setAttribute("aria-busy", "false");
  $("found").dataset.at = location.hash; // what is shown belongs to this address
};

const failed = (error) => {
  console.debug(error);
  const known = error instanceof Fault ? error.message : "Something went wrong on this page.";
  if (error.status === 422 && current.where && /\bwhere\b/i.test(error.message)) {
    complain(error.message.replace(/^Where must/, "The filter must"));
    if ($("found").querySelector(".blank")) fillGrid([]);
    return;
  }
  $("alarm").hidden = false;
  $("alarm").firstElementChild.textContent = known;
  $("again").hidden = [413, 415, 422].includes(error.status);
  $("headline").textContent = error.status === 0 ? "No answer" : current.kind === "home" ? "The collection" : "No look-alikes";
  $("timing").textContent = "";
  if (current.kind === "upload") showQuery(null);
  fillGrid([]);
};

const complain = (text) => {
  $("where-fault").hidden = !text;
  $("where-fault").textContent = text;
  $("where").setAttribute("aria-invalid", String(Boolean(text)));
};

const fill = (to) => {
  if (document.activeElement !== $("where") || $("where").value.trim() !== to.where) $("where").value = to.where;
  $("where-clear").hidden = !to.where;
  $("k").value = to.k;
  $("rerank").value = to.rerank;
  $("exact").checked = to.exact;
  for (const each of [$("k"), $("rerank")]) each.parentElement.hidden = to.kind === "home";
  $("exact-label").hidden = to.kind === "home" || !about?.near;
};

const renderHome = async (signal) => {
  const page = await listing(0, signal);
  $("query").hidden = true;
  $("drop").hidden = false;
  $("headline").textContent = current.where
    ? `${number(page.total)} of ${number(about.items)} pass the filter`
    : about.items ? "Start from one of these, or drop an image" : "The collection is empty";
  $("timing").textContent = "";
  document.title = `${about.name} · likewise`;
  fillGrid(page.items);
  after(page);
  drawMap(null, current.where ? page.items.map((each) => each.id) : []);
};

const listing = (offset, signal) => {
  const given = new URLSearchParams({ offset, limit: Math.min(48, about.limits.page), spread: !current.where });
  if (current.where) given.set("where", current.where);
  return ask(`/api/items?${given}`, { signal });
};

const after = (page) => {
  listed = page.offset + page.items.length;
  $("more").hidden = listed >= page.total;
  $("more").textContent = `Show more of ${number(page.total)}`;
};

const renderFound = async (signal) => {
  if (current.kind === "upload") showQuery(null);
  const { item, answer } = await search(signal);
  const [{ found, place }] = answer.answers;
  const name = item ? titleOf(item) : uploads.get(current.id).name;
  const headline = $("headline");
  headline.textContent = found.length ? `${number(found.length)} look-alikes of ` : current.where ? "Nothing passes the filter for " : "Nothing to compare with ";
  const em = document.createElement("em");
  em.textContent = name;
  headline.append(em);
  $("timing").textContent = `found in ${answer.milliseconds < 10 ? answer.milliseconds.toFixed(1) : Math.round(answer.milliseconds)} ms`;
  document.title = `${name} · ${about.name} · likewise`;
  $("more").hidden = true;
  fillGrid(found, item?.label);
  drawMap(place, found.map((each) => each.id));
};

const showQuery = (item) => {
  const image = $("query-image");
  const frame = image.parentElement;
  const file = uploads.get(current.id);
  $("drop").hidden = true;
  $("query").hidden = false;
  $("back").disabled = history.length < 2;
  $("query-facts").replaceChildren();
  image.onload = () => image.classList.toggle("small", image.naturalWidth < 100 && image.naturalHeight < 100);
  if (current.kind === "upload") {
    $("query-title").textContent = file ? file.name : "An image";
    $("query-path").textContent = file ? `${size(file)}, looked at and not kept` : "";
    if (image.dataset.upload === String(current.id)) return;
    image.dataset.upload = String(current.id);
    frame.classList.toggle("none", !file);
    if (!file) return;
    image.onerror = () => frame.classList.add("none");
    image.src = URL.createObjectURL(file);
    image.alt = `The query: ${file.name}`;
    return;
  }
  if (!item) return;
  delete image.dataset.upload;
  $("query-title").textContent = titleOf(item);
  $("query-path").textContent = item.path;
  for (const [name, value] of Object.entries(item.metadata)) {
    if (value === null) continue;
    const [term, fact] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    fact.textContent = String(value);
    $("query-facts").append(term, fact);
  }
  image.alt = `The query: ${titleOf(item)}`;
  showFirst(image, frame, [picture(item.id), thumbnail(item.id)]);
};

// ---------------------------------------------------------------------------------------------- the grid

const make = (kind, className, text) => {
  const element = document.createElement(kind);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const cardOf = (item, label) => {
  const [card, link, frame] = [make("li"), make("a"), make("div", "picture")];
  const image = make("img");
  image.alt = "";
  image.loading = "lazy";
  image.decoding = "async";
  frame.append(image);
  frame.dataset.first = titleOf(item).charAt(0).toUpperCase();
  showFirst(image, frame, [thumbnail(item.id), picture(item.id)]);
  link.href = address({ kind: "item", id: item.id });
  link.dataset.id = item.id;
  const known = item.label !== null && item.label === label;
  const spoken = [titleOf(item), item.label === null ? "" : filename(item.path)];
  if (item.score !== undefined) {
    const score = make("span", "score");
    score.append(make("span", "", item.score.toFixed(3)), make("i"));
    score.style.setProperty("--score", Math.max(0, Math.min(1, item.score)));
    frame.append(score);
    spoken.push(`similarity ${item.score.toFixed(2)}`);
  }
  link.setAttribute("aria-label", spoken.filter(Boolean).join(", "));
  const named = make("div", "named");
  const title = make("strong", "", titleOf(item));
  if (known) title.prepend(make("span", "same", "✓ "));
  named.append(title);
  if (item.label !== null) named.append(make("small", "", filename(item.path)));
  link.title = item.path;
  link.append(frame, named);
  card.append(link);
  if (item.score !== undefined && about.model) {
    const why = make("button", "why", "why?");
    why.type = "button";
    why.setAttribute("aria-label", `Why is ${titleOf(item)} alike?`);
    why.addEventListener("click", () => explain(item));
    card.append(why);
  }
  return card;
};

const fillGrid = (items, label) => {
  shown = items;
  $("found").replaceChildren(...items.map((item) => cardOf(item, label)));
  rove(0, false);
};

const links = () => [...$("found").querySelectorAll("a")];

// One link of the grid is in the order of Tab; arrows go to the others.
const rove = (place, focus = true) => {
  links().forEach((link, index) => (link.tabIndex = index === place ? 0 : -1));
  if (focus) links()[place]?.focus();
};

$("found").addEventListener("focusin", (event) => {
  const place = links().indexOf(event.target);
  if (place >= 0) rove(place, false);
});

$("found").addEventListener("keydown", (event) => {
  const all = links();
  const place = all.indexOf(event.target.closest("li")?.querySelector("a"));
  if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const top = all[0].offsetParent === null ? 0 : all[0].getBoundingClientRect().top;
  const columns = Math.max(1, all.filter((each) => Math.abs(each.getBoundingClientRect().top - top) < 4).length);
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -place, End: all.length - 1 - place };
  if (event.key in steps) {
    event.preventDefault();
    rove(Math.max(0, Math.min(all.length - 1, place + steps[event.key])));
  } else if (event.key.toLowerCase() === "w" && shown[place]?.score !== undefined && about.model) {
    explain(shown[place]);
  }
});

$("more").addEventListener("click", async () => {
  try {
    const page = await listing(listed, running.signal);
    const first = shown.length;
    shown = [...shown, ...page.items];
    $("found").append(...page.items.map((item) => cardOf(item)));
    after(page);
    rove(first);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
});

// ---------------------------------------------------------------------------------------------- the map

const drawMap = async (place, found) => {
  const { signal } = running;
  try {
    if (mapData?.version !== about.version) mapData = { version: about.version, ...(await ask("/api/map")) };
  } catch {
    return; // the pictures are there without it
  }
  if (signal.aborted || !mapData.ids.length) return;
  $("map-card").hidden = false;
  map ??= new CollectionMap($("map"), {
    over: (index, x, y) => tip(index, x, y),
    out: () => ($("tip").hidden = true),
    click: (index) => go({ kind: "item", id: mapData.ids[index] }),
  });
  map.show(mapData, place, found);
  const some = mapData.ids.length < mapData.total ? `${number(mapData.ids.length)} of ${number(mapData.total)} images` : `all ${number(mapData.total)} images`;
  const layout = { pca: "principal components", tsne: "t-SNE" }[mapData.layout];
  $("map-hint").textContent = place ? `The ring is the query, dots with an edge are its look-alikes, among ${some} (${layout}).` : `${sentence(some).slice(0, -1)}, alike ones near each other (${layout}).`;
  $("map").setAttribute("aria-label", place ? `The map of the collection: the query lies ${sayPlace(place)}` : "The map of the collection");
};

const sayPlace = ([x, y]) => {
  const across = x < 1 / 3 ? "left" : x > 2 / 3 ? "right" : "";
  const up = y > 2 / 3 ? "top" : y < 1 / 3 ? "bottom" : "";
  return across || up ? `at the ${[up, across].filter(Boolean).join(" ")}` : "in the middle";
};

const tip = (index, x, y) => {
  const box = $("tip");
  const [image, name] = [box.querySelector("img"), box.querySelector("span")];
  const id = mapData.ids[index];
  if (box.dataset.id !== String(id)) {
    box.dataset.id = id;
    image.removeAttribute("src");
    image.onerror = () => image.removeAttribute("src");
    show(image, thumbnail(id));
    const code = mapData.labels[index];
    name.textContent = code === null ? `item ${id}` : mapData.names[code];
  }
  box.hidden = false;
  const field = $("map").getBoundingClientRect();
  box.style.left = `${Math.max(2, Math.min(field.width - box.offsetWidth - 2, x - box.offsetWidth / 2))}px`;
  box.style.top = `${y > field.height / 2 ? y - box.offsetHeight - 12 : y + 12}px`;
};

// ---------------------------------------------------------------------------------------------- why

let explained = null;

const loaded = (source) =>
  new Promise((done, fail) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = () => fail(new Fault("the image cannot be shown"));
    if (source instanceof Blob) image.src = URL.createObjectURL(source);
    else show(image, source);
  });

const explain = async (item) => {
  const file = current.kind === "upload" ? uploads.get(current.id) : null;
  const query = current.id;
  explained = null;
  $("why-lead").textContent = "Looking at both …";
  $("why-legend").hidden = true;
  $("why-query-name").textContent = file ? file.name : $("query-title").textContent;
  $("why-item-name").textContent = titleOf(item);
  document.querySelector(".pair").hidden = false;
  document.querySelector(".pair").classList.add("busy");
  if (!$("why").open) $("why").showModal();
  try {
    const images = await Promise.all([loaded(file ?? picture(query)), loaded(picture(item.id))]);
    const shape = common(images);
    ["why-query", "why-item"].forEach((id, place) => overlay($(id), images[place], shape, null, 1, 1));
    let body = JSON.stringify({ query, item: item.id });
    if (file) {
      body = new FormData();
      body.set("image", file);
      body.set("item", item.id);
    }
    const headers = file ? {} : { "Content-Type": "application/json" };
    const told = await ask("/api/why", { method: "POST", body, headers });
    explained = { told, images };
    const lead = $("why-lead");
    lead.textContent = "Their similarity is ";
    lead.append(make("b", "", told.similarity.toFixed(3)), ". Each heat-map is that number, shared out over the places of its image: warm places speak for the other image, cold ones against it, and together they sum to it exactly.");
    $("why-legend").hidden = false;
    drawWhy();
  } catch (error) {
    document.querySelector(".pair").hidden = !(error instanceof Fault) || error.status === 0;
    $("why-lead").textContent = error instanceof Fault ? error.message : "Something went wrong on this page.";
  }
  document.querySelector(".pair").classList.remove("busy");
};

const drawWhy = () => {
  if (!explained || !$("why").open) return;
  const { told, images } = explained;
  const most = largest(told.query.places, told.item.places);
  const strength = $("heat").value / 100;
  overlay($("why-query"), images[0], common(images), told.query, most, strength);
  overlay($("why-item"), images[1], common(images), told.item, most, strength);
};

$("heat").addEventListener("input", drawWhy);
addEventListener("resize", drawWhy);
$("why").addEventListener("click", (event) => event.target === $("why") && $("why").close());

// ---------------------------------------------------------------------------------------------- images from outside

const take = (file) => {
  if (!file) return;
  if (about && !about.model) return alarm("This collection has no model that could look at images: start from one of its own.");
  if (about && file.size > about.limits.upload) {
    return alarm(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB, and at most ${about.limits.upload / 1e6} MB can be looked at: make it smaller.`);
  }
  const id = uploads.size + 1;
  uploads.set(id, file);
  go({ kind: "upload", id });
};

const alarm = (text) => {
  $("alarm").hidden = false;
  $("alarm").firstElementChild.textContent = text;
  $("again").hidden = true;
  window.scrollTo({ top: 0 });
};

$("file").addEventListener("change", () => {
  take($("file").files[0]);
  $("file").value = "";
});
$("another").addEventListener("click", () => $("file").click());
$("back").addEventListener("click", () => history.back());
$("again").addEventListener("click", () => render());

let inside = 0;
const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragenter", (event) => {
  if (!carries(event)) return;
  inside++;
  $("veil").hidden = false;
});
addEventListener("dragleave", (event) => {
  if (carries(event) && --inside <= 0) $("veil").hidden = true;
});
addEventListener("dragover", (event) => carries(event) && event.preventDefault());
addEventListener("drop", (event) => {
  inside = 0;
  $("veil").hidden = true;
  if (!carries(event)) return;
  event.preventDefault();
  take(event.dataTransfer.files[0]);
});
addEventListener("paste", (event) => {
  const [file] = event.clipboardData?.files ?? [];
  if (file) {
    event.preventDefault();
    take(file);
  } else if (!event.target.closest?.("input")) {
    alarm("The clipboard has no image.");
  }
});

// ---------------------------------------------------------------------------------------------- filter and keys

$("tools").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ where: $("where").value.trim() });
});
$("where-clear").addEventListener("click", () => {
  $("where").value = "";
  go({ where: "" });
  $("where").focus();
});
$("where").addEventListener("input", () => ($("where-clear").hidden = !$("where").value));
$("k").addEventListener("change", () => go({ k: $("k").value }));
$("rerank").addEventListener("change", () => go({ rerank: $("rerank").value }));
$("exact").addEventListener("change", () => go({ exact: $("exact").checked }));

$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // what follows # is where we are
  $("found").focus();
});

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (document.querySelector("dialog[open]") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    $("where").focus();
    $("where").select();
  } else if (event.key === "Escape" && typing) {
    event.target.blur();
  } else if (event.key === "Escape" && current.kind !== "home") {
    go({ kind: "home" });
  }
});

const sample = { text: ' == ""', number: " >= ", bool: "" };
const insert = (name, kind) => {
  const box = $("where");
  const plain = /^[A-Za-z_]\w*$/.test(name) ? name : `column(${JSON.stringify(name)})`;
  const joined = box.value.trim() ? `${box.value.trim()} and ` : "";
  box.value = joined + plain + sample[kind];
  box.focus();
  const end = box.value.length - (kind === "text" ? 1 : 0);
  box.setSelectionRange(end, end);
  $("where-clear").hidden = false;
};

const example = (fields) => {
  const own = Object.entries(fields).filter(([name]) => !["label", "path", "id"].includes(name));
  const year = own.find(([, kind]) => kind === "number");
  return `filter, such as  label == "…"${year ? ` and ${year[0]} >= …` : '  or  like(path, "*2021*")'}`;
};

const begin = async () => {
  const told = await ask("/api/about");
  $("name").textContent = told.name;
  const share = told.near?.recall == null ? "" : ` (${(100 * told.near.recall).toFixed(1)}% of the nearest)`;
  const near = told.near ? `approximate search${share}` : "exact search";
  $("facts").textContent = [`${number(told.items)} images`, told.model?.name, near].filter(Boolean).join(" · ");
  $("where").placeholder = example(told.fields);
  $("exact-label").hidden = !told.near || current.kind === "home";
  $("chips").replaceChildren(
    ...Object.entries(told.fields).map(([name, kind]) => {
      const chip = make("button", "", name);
      chip.type = "button";
      chip.title = `filter by ${name}, a ${kind}`;
      chip.addEventListener("click", () => insert(name, kind));
      return chip;
    }),
  );
  if (!told.model) {
    $("drop").classList.add("off");
    $("file").disabled = true;
    $("drop").querySelector("strong").textContent = "No model, no images";
    $("drop-hint").textContent = "this collection holds vectors alone: start from one of its pictures";
  }
  return told;
};

// Something gray until there are pictures.
$("found").replaceChildren(
  ...Array.from({ length: 18 }, () => {
    const blank = make("li", "blank");
    blank.append(make("div", "picture"), make("div", "named"));
    return blank;
  }),
);
if (matchMedia("(max-width: 900px)").matches) $("map-card").open = false;
addEventListener("hashchange", render);
render();
