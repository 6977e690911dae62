"use strict";
// Sentences about a loss, a point and a pair.
const Words = (() => {
  const { make } = Controls;
  const { short } = Draw;
  const SIMILARITIES = {
    cosine: "cosine",
    dot: "inner product",
    euclidean: "minus the distance",
    squared_euclidean: "minus the squared distance",
    snr: "minus the noise-to-signal ratio",
  };

  const letter = (own) => String.fromCharCode(65 + own);
  const strong = (text) => make("b", { textContent: text });
  const percent = (share) => `${+(100 * share).toPrecision(share < 0.0995 ? 1 : share > 0.99 && share < 1 ? 3 : 2)}%`;
  const degrees = (angle) => ((Math.round((angle * 180) / Math.PI) % 360) + 360) % 360;
  const signed = (value) => value.toFixed(2).replace("-", "−");

  const nameOf = (lane, item) => {
    const n = lane.angles.length;
    const own = letter(lane.classOf(item));
    if (item < n) return `${own}${(item % (n / lane.classes)) + 1}`;
    return lane.centers > 1 ? `proxy ${own}${((item - n) % lane.centers) + 1}` : `proxy ${own}`;
  };

  const value = (lane) => `${lane.name} is ${short(lane.value)}.`;
  const axis = (lane) => `similarity (${SIMILARITIES[lane.loss.similarity] || lane.loss.similarity})`;
  const batch = (lane) => {
    const proxies = lane.proxies.length ? ` and ${lane.proxies.length} proxies` : "";
    return `${lane.name}: ${lane.angles.length} points of ${lane.classes} classes${proxies}.`;
  };
  const matrix = (lane) => {
    const group = lane.groups[lane.view];
    return group ? `The weight of every pair, ${group.name}: one row per anchor, sorted by class` : "There are no pairs";
  };

  const about = (lane, rate) => {
    const group = lane.groups[lane.view];
    const parts = ["The loss is ", strong(short(lane.value)), "."];
    const found = group && Batch.spread(group);
    if (found && found.pairs) {
      parts.push(" Of ", strong(found.pairs.toLocaleString("en")), " pairs ", strong(percent(found.zero)), " have no weight");
      if (found.total > 0) parts.push("; the heaviest tenth carries ", strong(percent(found.heaviest)), " of all weight");
      parts.push(".");
      if (found.odd > 0) parts.push(" ", strong(percent(found.odd)), " have the wrong sign: positives are pushed apart, or negatives pulled together.");
    } else parts.push(" It has no pairs on this batch.");
    parts.push(" The gradient's norm is ", strong(short(Batch.norm(lane.derivatives))), "; the learning rate is ", strong(short(rate)), ".");
    if (!lane.loss.exact) parts.push(" Part of this gradient does not depend on similarities, so the weights do not explain all of it.");
    return parts;
  };

  // The forces of positive and of negative pairs on a point.
  const point = (lane, item) => {
    const { near, far } = lane.shares(item);
    const where = `${nameOf(lane, item)} at ${degrees(lane.angle(item))}°`;
    const does = (force) => (Math.abs(force) > 1e-12 ? `turn it ${force > 0 ? "counter-clockwise" : "clockwise"} (${short(Math.abs(force))})` : "exert no force");
    if (Math.abs(near) <= 1e-12 && Math.abs(far) <= 1e-12) return `${where}: no force along the circle.`;
    return `${where}: positive pairs ${does(near)}, negative pairs ${does(far)}.`;
  };

  const pair = (lane, group, row, column) => {
    const at = row * group.n + column;
    const named = (side, place) => (side === "classes" ? `class ${letter(place)}` : nameOf(lane, lane.itemOf(side, place, 0)));
    const weight = group.kinds[at] ? `weight ${short(-group.kinds[at] * group.derivatives[at])}` : "itself";
    return `${named(group.rows, row)} with ${named(group.columns, column)}: similarity ${signed(group.s[at])}, ${weight}`;
  };

  const curves = (lane, partners) => {
    const pairs = Object.values(partners || {});
    if (!pairs.length) return "";
    return `lines: ${nameOf(lane, pairs[0].item)} with ${pairs.map((each) => nameOf(lane, each.other)).join(" and ")}, as the latter moves around`;
  };

  const history = (values, now) => {
    if (!values.length) return "Loss over steps";
    return `Loss over steps: from ${short(values[0])} to ${short(now)} in ${values.length}`;
  };

  // Agreement of two losses; if their points differ, the second is evaluated on the points of the first.
  const together = (first, second) => {
    const same = first.angles.every((each, at) => Math.abs(each - second.angles[at]) < 1e-9);
    let derivatives = second.derivatives;
    if (!same) {
      const kept = second.angles;
      second.angles = first.angles;
      derivatives = second.alongCircle(second.run().gradient, second.x, null);
      second.angles = kept;
    }
    const cosine = Batch.cosine(first.derivatives, derivatives);
    const means = [[0.95, "almost the same direction"], [0.7, "much the same direction"], [0.3, "partly the same direction"], [-0.3, "hardly related"], [-2, "against each other"]];
    const where = same ? "on this batch" : "on the points of the first, which differ from the second's,";
    const known = Number.isFinite(cosine);
    return [
      `The cosine between the gradients of ${first.name} and ${second.name} ${where} is `,
      strong(known ? signed(cosine) : "none"),
      known ? `: ${means.find(([least]) => cosine > least)[1]}.` : ": one of them is zero.",
    ];
  };

  return { about, axis, batch, curves, history, matrix, nameOf, pair, point, together, value };
})();
