"use strict";
// Controls: sliders with number fields, and the searchable list of losses.
const Controls = (() => {
  const { short } = Draw;
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const readable = (name) => name.replaceAll("_", " ").replace("miner.", "miner's ");

  // ---- sliders: a range, a number, and the way back to the default

  let made = 0;
  const slider = (place, spec, get, set) => {
    const id = `s${made++}`;
    const logarithmic = spec.log && spec.least > 0;
    const choices = spec.choices && [...spec.choices].sort((a, b) => a - b);
    const nearest = (value) => choices.reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a));
    const fits = (value) => {
      const inside = Math.min(spec.most, Math.max(spec.least, value));
      return choices ? nearest(value) : spec.whole ? Math.round(inside) : inside;
    };
    const steps = choices ? choices.length - 1 : spec.whole && !logarithmic ? spec.most - spec.least : 1000;
    const toValue = (at) => {
      if (choices) return choices[at];
      const value = logarithmic ? spec.least * (spec.most / spec.least) ** (at / steps) : spec.least + ((spec.most - spec.least) * at) / steps;
      return fits(+value.toPrecision(3));
    };
    const toPlace = (value) => {
      if (choices) return choices.indexOf(nearest(value));
      return steps * (logarithmic ? Math.log(value / spec.least) / Math.log(spec.most / spec.least) : (value - spec.least) / (spec.most - spec.least));
    };
    const range = make("input", { type: "range", id, min: 0, max: steps, step: 1, title: spec.help || "" });
    const field = make("input", { type: "number", step: "any", min: spec.least, max: spec.most, inputMode: "decimal" });
    field.setAttribute("aria-label", `${spec.label || readable(spec.name)}, as a number`);
    const reset = make("button", { type: "button", className: "reset", textContent: "↺", title: `Back to ${short(spec.value)}` });
    reset.setAttribute("aria-label", `${spec.label || readable(spec.name)}: back to ${short(spec.value)}`);
    const label = make("label", { htmlFor: id, textContent: spec.label || readable(spec.name) });
    if (spec.help && spec.help !== label.textContent) label.append(make("small", { textContent: spec.help }));
    const show = () => {
      const value = get();
      range.value = toPlace(value);
      range.setAttribute("aria-valuetext", short(value));
      if (document.activeElement !== field) field.value = +value.toPrecision(4);
      reset.classList.toggle("same", value === spec.value);
      reset.tabIndex = value === spec.value ? -1 : 0;
    };
    const put = (value) => {
      set(value);
      show();
    };
    range.addEventListener("input", () => put(toValue(+range.value)));
    field.addEventListener("input", () => field.value !== "" && Number.isFinite(+field.value) && put(fits(+field.value)));
    field.addEventListener("blur", show);
    reset.addEventListener("click", () => put(spec.value));
    place.classList.add("slider");
    place.replaceChildren(label, range, field, reset);
    show();
    return show;
  };

  // ---- the list of losses, with a search

  const plain = {}; // of each class of losses, the name of the one without a miner
  for (const [name, loss] of Object.entries(LENS)) if (!plain[loss.kind] || name.length < plain[loss.kind].length) plain[loss.kind] = name;
  const asked = JSON.parse(document.body.dataset.first); // names that the page was written for
  const GROUPS = [
    ["asked for", (name) => asked.includes(name)],
    ["pairs", (name, loss) => !loss.centers && plain[loss.kind] === name],
    ["proxies", (name, loss) => loss.centers > 0],
    ["with a miner", () => true],
  ];

  const picker = (box, current, choose) => {
    const [button, menu, input, list] = [".chosen", ".menu", ".menu input", ".options"].map((each) => box.querySelector(each));
    list.id = `options-${made++}`;
    input.setAttribute("aria-controls", list.id);
    let active = null;
    const options = [];
    const mark = (option) => {
      if (active) active.setAttribute("aria-selected", false);
      active = option;
      if (!option) return input.removeAttribute("aria-activedescendant");
      option.setAttribute("aria-selected", true);
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    };
    const left = new Set(Object.keys(LENS));
    for (const [title, belongs] of GROUPS) {
      const names = [...left].filter((name) => belongs(name, LENS[name]));
      if (!names.length) continue;
      const group = make("div");
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", title);
      group.append(make("span", { className: "title", textContent: title, ariaHidden: true }));
      for (const name of names) {
        left.delete(name);
        const option = make("div", { id: `option-${made++}` }, make("b", { textContent: name }), make("small", { textContent: Formula.plain(LENS[name].about || "") }));
        option.setAttribute("role", "option");
        option.dataset.name = name;
        option.words = [name, LENS[name].kind, LENS[name].about].join(" ").toLowerCase();
        option.addEventListener("click", () => pick(option));
        options.push(option);
        group.append(option);
      }
      list.append(group);
    }
    const shown = () => options.filter((each) => !each.hidden);
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const each of options) each.hidden = !words.every((word) => each.words.includes(word));
      for (const group of list.children) group.hidden = !group.querySelector("[role=option]:not([hidden])");
      // names that start with the text come before names that contain it
      mark(shown().find((each) => each.dataset.name.toLowerCase().startsWith(input.value.toLowerCase().trim())) || shown()[0] || null);
    };
    const close = (back) => {
      menu.hidden = true;
      button.setAttribute("aria-expanded", false);
      if (back) button.focus();
    };
    const pick = (option) => {
      close(true);
      choose(option.dataset.name);
    };
    button.addEventListener("click", () => {
      if (!menu.hidden) return close(true);
      menu.hidden = false;
      button.setAttribute("aria-expanded", true);
      input.value = "";
      filter();
      mark(options.find((each) => each.dataset.name === current()) || shown()[0]);
      input.focus();
    });
    input.addEventListener("input", filter);
    input.addEventListener("keydown", (event) => {
      const all = shown();
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && all.length) mark(all[(all.indexOf(active) + step + all.length) % all.length]);
      else if (event.key === "Enter" && active) pick(active);
      else if (event.key === "Escape") close(true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    box.addEventListener("focusout", (event) => !box.contains(event.relatedTarget) && event.relatedTarget && close(false));
    document.addEventListener("pointerdown", (event) => !box.contains(event.target) && close(false));
  };

  return { asked, make, picker, slider };
})();
