"use strict";
// The page: losses side by side, settings, motion and texts.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const { asked, make, picker, slider } = Controls;
  const { TURN } = Batch;
  // milliseconds of a 16 ms frame after which no further point of a curve is started
  const FRAME = { playing: 6, still: 12 };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const DEFAULTS = { preset: "clusters", classes: 4, each: 6, seed: 1, speed: 1, arrows: 1, radial: false, motion: "own", selected: 0 };
  const state = { ...DEFAULTS, playing: false };
  const lanes = []; // {lane, root, …}: what is computed, and where it is shown
  let angles = null; // where the batch began

  // ---- lanes

  const addLane = () => {
    const root = $("#lane").content.firstElementChild.cloneNode(true);
    const choice = $("#picker").content.firstElementChild.cloneNode(true);
    const panel = { root, choice, lane: null, hovered: -1, ring: $(".ring canvas", root), scatter: $(".scatter canvas", root), heat: $(".heat canvas", root), trace: $(".trace canvas", root) };
    lanes.push(panel);
    $("#lanes").append(root);
    $("#pickers").append(choice);
    $(".label", choice).textContent = lanes.length === 1 ? "Loss" : "Beside it";
    picker(choice, () => panel.lane && panel.lane.name, (name) => setLoss(panel, name));
    $(".remove", choice).addEventListener("click", () => {
      setLoss(panel, null);
      $(".chosen", choice).focus();
    });
    $(".which", root).addEventListener("change", (event) => {
      panel.lane.view = +event.target.value;
      panel.range = null;
      reselect();
      refresh();
    });
    for (const name of ["ring", "scatter", "heat", "trace"]) Draw.watch(panel[name], () => refresh());
    Hands.circle(panel, does);
    Hands.matrix(panel, does);
    return panel;
  };
  const active = () => lanes.filter((panel) => panel.lane);

  const setLoss = (panel, name, values = null) => {
    if (name !== null && active().length) restart(); // losses start from the same points
    panel.lane = name === null ? null : new Batch.Lane(name, labels(), state.classes);
    const { root, choice, lane } = panel;
    root.hidden = !lane;
    choice.classList.toggle("unused", !lane);
    $("h2", root).textContent = name ?? "";
    $(".chosen", choice).textContent = name ?? "another loss …";
    $(".remove", choice).hidden = !lane || panel === lanes[0];
    if (lane) {
      if (values) lane.values = values;
      lane.place(angles, state.seed);
      $(".about p", root).replaceChildren(...Formula.sentence([lane.loss.about, lane.loss.cite].filter(Boolean).join(" ")));
      $(".formula", root).replaceChildren(...(lane.loss.formula ? [Formula.block(lane.loss.formula)] : []));
      $(".formula", root).hidden = !lane.loss.formula;
      sliders(panel);
    }
    document.body.classList.toggle("two", active().length > 1);
    $("#motion-field").hidden = active().length < 2;
    rates();
    if (lane) settled();
    else changed();
  };

  const sliders = (panel) => {
    const { lane, root } = panel;
    const box = $(".tune", root);
    box.replaceChildren();
    const free = (spec) => !spec.choices || spec.choices.length > 1;
    if (!lane.loss.parameters.some(free)) box.append(make("p", { className: "note", textContent: "This loss has no hyper-parameters." }));
    lane.loss.parameters.forEach((spec, at) => {
      if (!free(spec)) return;
      const place = make("div");
      box.append(place);
      slider(place, spec, () => lane.values[at], (value) => {
        const centers = lane.centers;
        lane.values[at] = value;
        lane.version++;
        if (lane.centers === centers) return changed();
        lane.placeProxies();
        settled();
      });
    });
  };

  const labels = () => Batch.labelsOf(state.classes, state.each);

  // A new batch; the same places in every lane.
  const newBatch = (start = null) => {
    angles = start || Batch.anglesOf(state.preset, state.classes, state.each, state.seed);
    for (const { lane } of active()) {
      lane.labels = labels();
      lane.classes = state.classes;
      lane.groups = null;
      lane.place(angles, state.seed);
    }
    if (state.selected >= angles.length) state.selected = 0;
    rates();
    settled();
  };

  // The learning rate: the fastest point turns by 1.5° in the first step of the loss with its defaults.
  const rates = () => {
    for (const panel of active()) {
      const start = new Batch.Lane(panel.lane.name, labels(), state.classes);
      start.place(Batch.anglesOf(state.preset, state.classes, state.each, state.seed), state.seed);
      start.measure();
      const fastest = start.derivatives.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
      panel.rate = fastest > 1e-9 ? +(TURN / 240 / fastest).toPrecision(1) : 1;
    }
  };

  // A manual change: the playback ends, and the current positions are the new start.
  const settled = () => {
    for (const panel of active()) {
      panel.past = [];
      panel.values = [];
      panel.scale = 0;
      panel.curves = {};
      panel.range = null;
    }
    reselect();
    changed();
  };
  const changed = () => {
    for (const panel of active()) panel.scale = 0;
    remember();
    refresh();
  };
  const reselect = () => {
    for (const panel of active()) {
      if (!panel.lane.groups || panel.lane.measured !== panel.lane.version) panel.lane.measure();
      const { lane } = panel;
      panel.partners = lane.partners(lane.groups[lane.view], selectedIn(lane));
      panel.curves = {};
      panel.at = 0;
    }
  };
  const selectedIn = (lane) => (state.selected < lane.count ? state.selected : 0);
  const select = (item) => {
    state.selected = item;
    reselect();
    remember();
    refresh();
  };

  // ---- motion

  const step = () => {
    let far = 0;
    for (const panel of active()) {
      const { lane } = panel;
      if (lane.measured !== lane.version) lane.measure();
      panel.past.push([Float64Array.from(lane.angles), Float64Array.from(lane.proxies)]);
      panel.values.push(lane.value);
      if (panel.past.length > 4000) for (const list of [panel.past, panel.values]) list.splice(1, 1);
      far = Math.max(far, lane.step(panel.rate * state.speed));
    }
    if (state.motion === "first") active().forEach(({ lane }, at) => at && lane.angles.set(lanes[0].lane.angles));
    steps++;
    return far;
  };
  let steps = 0;

  const moveBack = (panel, points, proxies) => {
    panel.lane.angles.set(points);
    if (proxies && proxies.length === panel.lane.proxies.length) panel.lane.proxies.set(proxies);
    panel.lane.version++;
  };
  const back = () => {
    pause();
    for (const panel of active()) {
      if (!panel.past.length) continue;
      panel.values.pop();
      moveBack(panel, ...panel.past.pop());
    }
    steps = Math.max(0, steps - 1);
    remember();
    refresh();
  };
  const restart = () => {
    pause();
    for (const panel of active()) {
      moveBack(panel, angles, panel.past.length ? panel.past[0][1] : null);
      [panel.past, panel.values] = [[], []];
    }
    steps = 0;
    remember();
    refresh();
  };
  const once = () => {
    pause();
    step();
    remember();
    refresh();
  };
  const pause = () => play(false);
  const play = (on) => {
    if (state.playing === on) return;
    state.playing = on;
    $("#play").textContent = on ? "Pause" : "Play";
    $("#play").setAttribute("aria-pressed", on);
    if (!on) {
      remember();
      tell(`Paused after ${steps} steps. ${Words.value(lanes[0].lane)}`);
    }
    refresh();
  };

  // ---- a frame

  let waiting = false;
  let stale = true;
  let told = 0;
  let stepped = 0;
  let later = 0;
  const refresh = () => {
    stale = true;
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(frame);
    }
  };
  const frame = () => {
    waiting = false;
    const began = performance.now();
    if (state.playing && (!calm.matches || began - stepped > 240)) advance(began);
    if (stale) {
      for (const panel of active()) if (panel.lane.measured !== panel.lane.version) panel.lane.measure();
      if (!state.playing || began - told > 120) {
        told = began;
        words();
      }
    }
    stale = false;
    const unfinished = curves(began);
    for (const panel of active()) draw(panel);
    if (state.playing) {
      clearTimeout(later);
      if (calm.matches) later = setTimeout(refresh, 250);
      else refresh();
    } else if (unfinished) refresh();
  };

  // One step per frame; with reduced motion, fifteen steps at a time, four times a second.
  const advance = (now) => {
    stepped = now;
    let far = step();
    for (let more = 1; calm.matches && more < 15; more++) {
      for (const panel of active()) panel.lane.measure();
      far = step();
    }
    if (far < 1e-6) {
      pause();
      tell("The points have stopped: there are no forces along the circle.");
    }
  };

  // Each point of a curve costs one run, so curves are computed in the remaining time and refined.
  const curves = (began) => {
    let unfinished = false;
    for (const panel of active()) {
      const { lane } = panel;
      const pairs = Object.entries(panel.partners || {});
      const samples = lane.count <= 60 ? 180 : 90; // one every two degrees, or every four
      if (!pairs.length) continue;
      for (const [name] of pairs) panel.curves[name] ??= Object.assign(Array(samples).fill(null), { versions: new Float64Array(samples).fill(-1) });
      const fresh = () => pairs.every(([name]) => panel.curves[name].versions.every((each) => each === lane.version));
      let cost = panel.cost || 0;
      for (let count = 0; count < samples * pairs.length && !fresh(); count++) {
        const now = performance.now();
        const late = now - began + (state.playing ? cost : 0) > (state.playing ? FRAME.playing : FRAME.still);
        if (late && (state.playing || count)) break;
        const at = (Math.floor(panel.at / pairs.length) * 37) % samples; // all round, then between
        const [name, pair] = pairs[panel.at % pairs.length];
        panel.at++;
        const list = panel.curves[name];
        if (list.versions[at] === lane.version) continue;
        list[at] = lane.weightAt(pair, lane.angle(pair.item) + (TURN * at) / samples);
        list.versions[at] = lane.version;
        cost = panel.cost = performance.now() - now;
      }
      for (const [name] of pairs)
        panel.curves[name].versions.forEach((each, at) => {
          if (lane.version - each > 150) panel.curves[name][at] = null; // outdated
        });
      unfinished ||= !fresh();
    }
    return unfinished;
  };

  const draw = (panel) => {
    const { lane } = panel;
    const selected = selectedIn(lane);
    const largest = lane.derivatives.reduce((most, each) => Math.max(most, Math.abs(each)), 1e-12);
    if (!panel.scale || largest > 1.6 * panel.scale) panel.scale = largest;
    const scene = {
      ...state,
      selected,
      scale: panel.scale,
      partners: panel.partners || {},
      curves: panel.curves || {},
      pulls: lane.pulls(selected),
      shares: lane.shares(selected),
      label: Words.nameOf(lane, selected),
      focused: document.activeElement === panel.ring,
      hovered: panel.hovered >= 0 && panel.hovered < lane.count ? [panel.hovered, Words.nameOf(lane, panel.hovered)] : null,
      axis: Words.axis(lane),
    };
    Draw.circle(panel.ring, lane, scene);
    panel.range = Draw.scatter(panel.scatter, lane, scene, panel.range);
    Draw.heat(panel.heat, lane, scene);
    Draw.trace(panel.trace, [...panel.values, lane.value]);
  };

  // ---- texts

  const tell = (text) => ($("#status").textContent = text);
  const words = () => {
    $("#count").textContent = `step ${steps}`;
    $("#batch-words").textContent = `${state.classes} ${state.classes === 1 ? "class" : "classes"} of ${state.each}`;
    for (const panel of active()) {
      const { lane, root } = panel;
      const selected = selectedIn(lane);
      $(".says", root).replaceChildren(...Words.about(lane, panel.rate * state.speed));
      panel.told = Words.point(lane, selected);
      $(".ring figcaption", root).textContent = panel.told;
      $(".trace figcaption", root).textContent = Words.history(panel.values, lane.value);
      $(".curve-words", root).textContent = Words.curves(lane, panel.partners);
      panel.ring.setAttribute("aria-label", `${Words.batch(lane)} ${panel.told}`);
      panel.scatter.setAttribute("aria-label", $(".says", root).textContent);
      panel.heat.setAttribute("aria-label", Words.matrix(lane));
      choices(panel);
    }
    const [first, second] = active();
    $("#together").hidden = !second;
    if (second) $("#together").replaceChildren(...Words.together(first.lane, second.lane));
  };

  // Which of several matrices is shown.
  const choices = (panel) => {
    const select = $(".which", panel.root);
    const names = panel.lane.groups.map((group) => group.name);
    if (select.dataset.names !== names.join()) {
      select.dataset.names = names.join();
      select.replaceChildren(...names.map((name, at) => make("option", { value: at, textContent: name })));
    }
    select.value = panel.lane.view;
    select.hidden = names.length < 2;
  };

  // ---- input

  // Manually set points are the same in every lane; proxies belong to one loss.
  const turnTo = (panel, item, angle) => {
    if (item < angles.length) for (const { lane } of active()) lane.turn(item, angle);
    else panel.lane.turn(item, angle);
    steps = 0;
    angles = Float64Array.from(lanes[0].lane.angles);
    refresh();
  };

  const everywhere = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || $("#keys").open) return;
    const field = event.target.closest && event.target.closest("input, select, textarea, [role=listbox]");
    const keyed = { "?": () => $("#keys").showModal(), "+": once, "=": once, "-": back, "−": back, 0: restart, s: shuffle };
    if (event.key === " " && !field && !(event.target.closest && event.target.closest("button, summary, a"))) play(!state.playing);
    else if (!field && keyed[event.key]) keyed[event.key]();
    else return;
    event.preventDefault();
  };

  // ---- links: the whole state behind the #

  const linked = () => {
    const said = new URLSearchParams();
    active().forEach(({ lane }, at) => {
      said.set(at ? "beside" : "loss", lane.name);
      lane.loss.parameters.forEach((spec, which) => {
        if (lane.values[which] !== spec.value) said.set(`${at ? "beside." : ""}${spec.name}`, +lane.values[which].toPrecision(6));
      });
    });
    for (const name of ["preset", "classes", "each", "seed", "speed", "arrows", "motion"]) if (state[name] !== DEFAULTS[name]) said.set(name, state[name]);
    if (state.radial) said.set("radial", 1);
    if (state.selected) said.set("point", state.selected);
    const start = Batch.anglesOf(state.preset, state.classes, state.each, state.seed);
    if (angles.some((each, at) => Math.abs(each - start[at]) > 1e-9)) said.set("points", Array.from(angles, (each) => +((((each * 360) / TURN) % 360).toFixed(2))).join(" "));
    return `#${said}`;
  };
  let remembering = 0;
  const remember = () => {
    clearTimeout(remembering);
    remembering = setTimeout(() => {
      if (!state.playing) history.replaceState(null, "", linked());
    }, 250);
  };

  const whole = (said, name, least, most) => {
    const value = said.has(name) ? Math.round(+said.get(name)) : DEFAULTS[name];
    return Number.isFinite(value) ? Math.min(most, Math.max(least, value)) : DEFAULTS[name];
  };
  const within = (said, name, least, most) => (Number.isFinite(+said.get(name)) && said.has(name) ? Math.min(most, Math.max(least, +said.get(name))) : DEFAULTS[name]);
  const restore = () => {
    const said = new URLSearchParams(location.hash.slice(1));
    pause();
    steps = 0;
    state.preset = said.get("preset") in Batch.PRESETS ? said.get("preset") : DEFAULTS.preset;
    state.classes = whole(said, "classes", 1, 20);
    state.each = Math.min(whole(said, "each", 1, 50), Math.floor(Batch.MOST / state.classes));
    state.seed = whole(said, "seed", 0, 100);
    state.speed = within(said, "speed", 0.05, 20);
    state.arrows = within(said, "arrows", 0.25, 4);
    state.radial = said.has("radial");
    state.motion = said.get("motion") === "first" ? "first" : "own";
    const points = (said.get("points") || "").split(/[\s,]+/).map((each) => (+each * TURN) / 360);
    const start = points.length === state.classes * state.each && points.every(Number.isFinite) ? Float64Array.from(points) : null;
    state.selected = 0;
    for (const panel of lanes) panel.lane = null;
    newBatch(start);
    const names = [said.get("loss") ?? asked[0] ?? (LENS["Multi-similarity"] ? "Multi-similarity" : Object.keys(LENS)[0]), said.get("beside") ?? (said.has("loss") ? null : asked[1] ?? null)];
    const unknown = names.filter((name) => name !== null && !(name in LENS));
    lanes.forEach((panel, at) => {
      const name = names[at] in LENS ? names[at] : at ? null : Object.keys(LENS)[0];
      const values = name && LENS[name].parameters.map((spec) => {
        const key = `${at ? "beside." : ""}${spec.name}`;
        const value = said.has(key) ? +said.get(key) : NaN;
        if (!Number.isFinite(value)) return spec.value;
        const inside = Math.min(spec.most, Math.max(spec.least, value));
        return spec.choices ? spec.choices.reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a)) : spec.whole ? Math.round(inside) : inside;
      });
      setLoss(panel, name, values);
    });
    const point = Math.round(+said.get("point"));
    select(point > 0 && active().some(({ lane }) => point < lane.count) ? point : 0);
    for (const show of shown) show();
    if (unknown.length) tell(`There is no loss ${unknown.join(" or ")} on this page.`);
  };

  // ---- what is common to all lanes

  const shown = [];
  const common = () => {
    const batch = (name) => (value) => {
      state[name] = value;
      const other = name === "classes" ? "each" : "classes";
      state[other] = Math.min(state[other], Math.floor(Batch.MOST / value));
      steps = 0;
      newBatch();
      for (const show of shown) show();
    };
    const set = (name, value) => {
      state[name] = value;
      steps = 0;
      newBatch();
    };
    const whole = { whole: true, log: false };
    shown.push(slider($("#classes"), { label: "Classes", name: "classes", value: DEFAULTS.classes, least: 1, most: 20, ...whole }, () => state.classes, batch("classes")));
    shown.push(slider($("#each"), { label: "Points per class", name: "each", value: DEFAULTS.each, least: 1, most: 50, ...whole }, () => state.each, batch("each")));
    shown.push(slider($("#seed"), { label: "Seed", name: "seed", value: DEFAULTS.seed, least: 0, most: 100, ...whole }, () => state.seed, (value) => set("seed", value)));
    shown.push(slider($("#speed"), { label: "Step size ×", name: "speed", value: 1, least: 0.05, most: 20, log: true }, () => state.speed, (value) => {
      state.speed = value;
      changed();
    }));
    shown.push(slider($("#arrows"), { label: "Length of arrows ×", name: "arrows", value: 1, least: 0.25, most: 4, log: true }, () => state.arrows, (value) => {
      state.arrows = value;
      changed();
    }));
    const preset = $("#preset");
    preset.append(...Object.entries(Batch.PRESETS).map(([value, textContent]) => make("option", { value, textContent })));
    preset.addEventListener("change", () => set("preset", preset.value));
    $("#shuffle").addEventListener("click", shuffle);
    $("#radial").addEventListener("change", (event) => {
      state.radial = event.target.checked;
      changed();
    });
    $("#motion").addEventListener("change", (event) => {
      state.motion = event.target.value;
      changed();
    });
    shown.push(() => {
      preset.value = state.preset;
      $("#radial").checked = state.radial;
      $("#motion").value = state.motion;
    });
  };
  const shuffle = () => {
    state.seed = (state.seed + 1) % 101;
    steps = 0;
    newBatch();
    for (const show of shown) show();
  };

  const does = { refresh, select, selectedIn, settled, tell, turnTo };
  const start = () => {
    Draw.restyle();
    angles = Batch.anglesOf(state.preset, state.classes, state.each, state.seed);
    common();
    addLane();
    addLane();
    const opensPlain = !location.hash && !asked.length; // no loss requested: perhaps the first visit
    $("#batch").open = matchMedia("(min-width: 761px)").matches;
    restore();
    $("#play").addEventListener("click", () => play(!state.playing));
    $("#step").addEventListener("click", once);
    $("#back").addEventListener("click", back);
    $("#restart").addEventListener("click", restart);
    $("#help").addEventListener("click", () => $("#keys").showModal());
    $("#link").addEventListener("click", async () => {
      history.replaceState(null, "", linked());
      try {
        await navigator.clipboard.writeText(location.href);
        $("#link").textContent = "Copied";
      } catch {
        $("#link").textContent = "Link is in the address bar";
      }
      setTimeout(() => ($("#link").textContent = "Copy link"), 2000);
    });
    addEventListener("keydown", everywhere);
    addEventListener("hashchange", restore);
    const showState = (hash) => {
      history.replaceState(null, "", hash);
      restore();
    };
    Guide.start(showState, opensPlain);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      Draw.restyle();
      refresh();
    });
  };
  start();
})();
