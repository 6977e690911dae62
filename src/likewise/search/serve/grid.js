// Pictures in a grid: cards, and keys that move among them.
import { show } from "./ask.js";

export const make = (kind, className, text) => {
  const element = document.createElement(kind);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

export const number = (value) => value.toLocaleString("en");
export const filename = (path) => path.split(/[\\/]/).pop();
export const titleOf = (item) => item.label ?? filename(item.path);

let version = "";
export const setVersion = (now) => (version = now);
export const thumbnail = (id) => `/api/items/${id}/thumbnail?v=${version}`;
export const picture = (id) => `/api/items/${id}/image`;

// A name with line breaks allowed after separators.
export const breakable = (element, text) => {
  element.append(...text.split(/(?<=[_\-./\\])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part])));
  return element;
};

// Show the first of several addresses that is an image; if none is, mark the frame with a class.
export const showFirst = (image, frame, addresses) => {
  const [next, ...rest] = addresses;
  frame.classList.toggle("none", next === undefined);
  if (next === undefined) return;
  image.onerror = () => showFirst(image, frame, rest);
  show(image, next);
};

const FULL = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M12 3h5v5M17 3l-6 6M8 17H3v-5M3 17l6-6"/></svg>';

// uses: { address(item), why(item) or null, original(item) }; label: the label of the query
const cardOf = (item, uses, label) => {
  const [card, link, frame, image] = [make("li"), make("a"), make("div", "picture"), make("img")];
  Object.assign(image, { alt: "", loading: "lazy", decoding: "async" });
  frame.append(image);
  showFirst(image, frame, [thumbnail(item.id), picture(item.id)]);
  link.href = uses.address(item);
  link.dataset.id = item.id;
  const parts = [titleOf(item), item.label === null ? "" : filename(item.path)];
  if (item.score !== undefined) {
    const score = make("span", "score");
    score.append(make("span", "", item.score.toFixed(3)), make("i"));
    score.style.setProperty("--score", Math.max(0, Math.min(1, item.score)));
    frame.append(score);
    parts.push(`similarity ${item.score.toFixed(2)}`);
  }
  link.setAttribute("aria-label", parts.filter(Boolean).join(", "));
  link.title = item.path;
  const [named, title] = [make("div", "named"), breakable(make("strong"), titleOf(item))];
  if (item.label !== null && item.label === label) title.prepend(make("span", "same", "✓ "));
  named.append(title);
  if (item.label !== null) named.append(breakable(make("small"), filename(item.path)));
  link.append(frame, named);
  const full = make("button", "full");
  full.type = "button";
  full.innerHTML = FULL;
  full.title = "Full size (O)";
  full.setAttribute("aria-label", `Show ${titleOf(item)} in full size`);
  full.addEventListener("click", () => uses.original(item));
  card.append(link, full);
  if (item.score !== undefined && uses.why) {
    const why = make("button", "why", "why?");
    why.type = "button";
    why.setAttribute("aria-label", `Why is ${titleOf(item)} alike?`);
    why.addEventListener("click", () => uses.why(item));
    card.append(why);
  }
  return card;
};

// A list of pictures: Tab reaches one link, and arrow keys move to the others.
export class Grid {
  constructor(list) {
    this.list = list;
    this.items = [];
    this.uses = null;
    list.addEventListener("focusin", (event) => {
      const place = this.links().indexOf(event.target);
      if (place >= 0) this.rove(place, false);
    });
    list.addEventListener("keydown", (event) => this.key(event));
  }

  links() {
    return [...this.list.querySelectorAll("a")];
  }

  fill(items, uses, label) {
    [this.items, this.uses] = [items, uses];
    this.list.replaceChildren(...items.map((item) => cardOf(item, uses, label)));
    this.rove(0, false);
  }

  append(items) {
    const first = this.items.length;
    this.items = [...this.items, ...items];
    this.list.append(...items.map((item) => cardOf(item, this.uses)));
    this.rove(first);
  }

  rove(place, focus = true) {
    this.links().forEach((link, index) => (link.tabIndex = index === place ? 0 : -1));
    if (focus) this.links()[place]?.focus();
  }

  key(event) {
    const all = this.links();
    const place = all.indexOf(event.target.closest("li")?.querySelector("a"));
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const top = all[0].getBoundingClientRect().top;
    const columns = Math.max(1, all.filter((each) => Math.abs(each.getBoundingClientRect().top - top) < 4).length);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -place, End: all.length - 1 - place };
    const item = this.items[place];
    if (event.key in steps) {
      event.preventDefault();
      this.rove(Math.max(0, Math.min(all.length - 1, place + steps[event.key])));
    } else if (event.key.toLowerCase() === "w" && item?.score !== undefined && this.uses.why) {
      this.uses.why(item);
    } else if (event.key.toLowerCase() === "o" && item) {
      event.stopPropagation(); // otherwise the page shows the query
      this.uses.original(item);
    }
  }
}
