"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const box = document.querySelector("#all");
  if (!box || !box.querySelector("tbody")) return;

  // The complete table: sorted by a click on a heading, filtered by words or by column=value.
  const body = box.querySelector("tbody");
  const heads = all("thead th", box);
  const input = box.querySelector("input");
  const told = box.querySelector(".told");
  const names = heads.map((head) => head.dataset.name);
  const plain = (text) => text.trim().toLowerCase().replaceAll('"', "");
  const rows = [...body.rows].map((row, at) => {
    const cells = [...row.cells].map((cell) => {
      const value = cell.querySelector("[data-value]");
      return plain(value ? value.textContent : cell.textContent);
    });
    const numbers = [...row.cells].map((cell) => (cell.dataset.n ? +cell.dataset.n : null));
    return { row, at, cells, numbers, text: cells.join(" ") };
  });
  const blank = (text) => text === "" || text === "–";
  // on paper, where the headings are gone, each cell says what it is
  for (const each of rows) {
    [...each.row.cells].forEach((cell, at) => {
      cell.dataset.label = heads[at].textContent.trim();
      cell.classList.toggle("unknown", blank(each.cells[at]));
    });
  }

  const sort = (column, down) => {
    const sign = down ? -1 : 1;
    const order = [...rows].sort((a, b) => {
      const [x, y] = [a.numbers[column], b.numbers[column]];
      if (x !== null && y !== null) return sign * (x - y) || a.at - b.at;
      const [s, t] = [a.cells[column], b.cells[column]];
      // what is not known comes last, either way
      if (blank(s) !== blank(t)) return blank(s) ? 1 : -1;
      return sign * s.localeCompare(t, "en", { numeric: true }) || a.at - b.at;
    });
    body.append(...order.map((each) => each.row));
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, at) => {
    head.querySelector("button").addEventListener("click", () => {
      // numbers are asked for from the highest, names from the first
      const now = head.getAttribute("aria-sort");
      sort(at, now ? now === "ascending" : head.classList.contains("number"));
    });
  });

  const filter = () => {
    const terms = [...input.value.matchAll(/([^\s="]+)=("[^"]*"|\S*)|"([^"]*)"|(\S+)/g)].map((found) => {
      const column = found[1] === undefined ? -1 : names.indexOf(found[1].toLowerCase());
      if (column >= 0) return (each) => each.cells[column] === plain(found[2]);
      const word = plain(found[3] ?? found[0]);
      return (each) => each.text.includes(word);
    });
    let shown = 0;
    for (const each of rows) {
      each.row.hidden = !terms.every((fits) => fits(each));
      shown += !each.row.hidden;
    }
    told.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
  };
  box.classList.add("alive");
  input.addEventListener("input", filter);
  filter();
  for (const link of all("[data-filter]")) {
    link.addEventListener("click", () => {
      input.value = link.dataset.filter;
      filter();
    });
  }

  // On paper nothing is left out.
  addEventListener("beforeprint", () => rows.forEach((each) => (each.row.hidden = false)));
  addEventListener("afterprint", filter);
})();
