"use strict";
// Computation without drawing: batches on the circle, a loss on a batch, and statistics of its weights.
const Batch = (() => {
  const TURN = 2 * Math.PI;
  const MOST = 200;
  const NEGLIGIBLE = 1e-6; // weights below this fraction of the largest count as zero

  const PRESETS = {
    random: "Random",
    clusters: "Clusters",
    hard: "A hard batch",
    outlier: "One outlier",
    collapsed: "Collapsed",
  };

  // A small generator (mulberry32), so that a link always shows the same batch.
  const chance = (seed) => {
    let state = (seed * 2654435761 + 1013904223) >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  };
  const normal = (draw) => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(TURN * draw());

  const labelsOf = (classes, each) => Int32Array.from({ length: classes * each }, (_, at) => Math.floor(at / each));

  // Where the points of a batch stand, class by class.
  const anglesOf = (preset, classes, each, seed) => {
    const draw = chance(seed);
    const first = TURN * draw();
    const wide = TURN / classes;
    const angles = Float64Array.from({ length: classes * each }, (_, at) => {
      const own = Math.floor(at / each);
      if (preset === "random") return TURN * draw();
      if (preset === "collapsed") return first + 0.06 * normal(draw);
      // classes in turn all round the circle: every point has neighbors of other classes
      if (preset === "hard") return first + (TURN * ((at % each) * classes + own + 0.5 * normal(draw))) / (classes * each);
      return first + wide * own + Math.min(0.16 * wide, 0.25) * normal(draw);
    });
    if (preset === "outlier") angles[0] = first + wide * Math.floor(classes / 2) + (classes > 1 ? 0 : Math.PI);
    return angles;
  };

  // Proxies start near their classes: at some distance from the mean direction of the class.
  const proxiesOf = (angles, labels, classes, centers, seed) => {
    const draw = chance(seed + 7919);
    return Float64Array.from({ length: classes * centers }, (_, at) => {
      let [x, y] = [0, 0];
      for (let i = 0; i < angles.length; i++)
        if (labels[i] === Math.floor(at / centers)) [x, y] = [x + Math.cos(angles[i]), y + Math.sin(angles[i])];
      return Math.atan2(y, x) + 0.45 * normal(draw);
    });
  };

  const vectors = (angles, into) => {
    for (let i = 0; i < angles.length; i++) {
      into[2 * i] = Math.cos(angles[i]);
      into[2 * i + 1] = Math.sin(angles[i]);
    }
    return into;
  };

  // Which side of a matrix is what; rows of proxies against samples are turned, so that samples come first.
  const sides = (between) => {
    const [first, second] = between.split(" against ");
    const kind = (side) => (side.startsWith("proxies") ? "proxies" : side.startsWith("classes") ? "classes" : "samples");
    const turned = kind(first) === "proxies" && kind(second) === "samples";
    return turned ? ["samples", "proxies", true] : [kind(first), kind(second), false];
  };

  const nameOf = (matrix) => sides(matrix.between).slice(0, 2).join(" against ");

  // One lane of the page: a loss, its hyper-parameters, its points, and what it does to them.
  class Lane {
    constructor(name, labels, classes) {
      Object.assign(this, { name, loss: LENS[name], labels, classes, view: 0 });
      this.values = this.loss.parameters.map((each) => each.value);
    }

    get centers() {
      const at = this.loss.parameters.findIndex((each) => each.name === "centers");
      return this.loss.centers && at >= 0 ? this.values[at] : this.loss.centers;
    }

    place(angles, seed) {
      this.angles = Float64Array.from(angles);
      this.seed = seed;
      this.placeProxies();
    }

    placeProxies() {
      this.proxies = proxiesOf(this.angles, this.labels, this.classes, this.centers, this.seed);
      this.x = new Float64Array(2 * this.angles.length);
      this.p = new Float64Array(2 * this.proxies.length);
      this.version = (this.version || 0) + 1;
    }

    get count() {
      return this.angles.length + this.proxies.length;
    }

    angle(item) {
      const n = this.angles.length;
      return item < n ? this.angles[item] : this.proxies[item - n];
    }

    turn(item, angle) {
      const n = this.angles.length;
      if (item < n) this.angles[item] = angle;
      else this.proxies[item - n] = angle;
      this.version++;
    }

    classOf(item) {
      const n = this.angles.length;
      return item < n ? this.labels[item] : Math.floor((item - n) / this.centers);
    }

    run() {
      vectors(this.angles, this.x);
      vectors(this.proxies, this.p);
      const proxies = this.centers ? this.p : null;
      return this.loss.run(this.x, this.labels, this.angles.length, 2, proxies, this.classes, this.values);
    }

    // Run, and store the results.
    measure() {
      const made = this.run();
      this.value = made.value;
      this.groups = this.gathered(made);
      this.view = Math.min(this.view, Math.max(0, this.groups.length - 1));
      this.derivatives = this.alongCircle(made.gradient, this.x, this.derivatives);
      this.proxyDerivatives = made.proxyGradient ? this.alongCircle(made.proxyGradient, this.p, this.proxyDerivatives) : null;
      this.radial = this.awayFromCenter(made.gradient, this.x, this.radial);
      this.proxyRadial = made.proxyGradient ? this.awayFromCenter(made.proxyGradient, this.p, this.proxyRadial) : null;
      this.measured = this.version;
    }

    // dL/dangle of every point: the gradient along the tangent.
    alongCircle(gradient, x, into) {
      const n = x.length / 2;
      if (!into || into.length !== n) into = new Float64Array(n);
      for (let i = 0; i < n; i++) into[i] = gradient[2 * i + 1] * x[2 * i] - gradient[2 * i] * x[2 * i + 1];
      return into;
    }

    awayFromCenter(gradient, x, into) {
      const n = x.length / 2;
      if (!into || into.length !== n) into = new Float64Array(n);
      for (let i = 0; i < n; i++) into[i] = gradient[2 * i] * x[2 * i] + gradient[2 * i + 1] * x[2 * i + 1];
      return into;
    }

    // The matrices by what they compare, samples first; where one was made several times, its derivatives are added.
    gathered(made) {
      const found = new Map();
      for (const matrix of made.matrices) {
        const [rows, columns, turned] = sides(matrix.between);
        const [m, n] = turned ? [matrix.columns, matrix.rows] : [matrix.rows, matrix.columns];
        const name = nameOf(matrix);
        let group = found.get(name);
        const add = group !== undefined;
        if (!add) {
          const old = (this.groups || []).find((each) => each.name === name && each.m === m && each.n === n);
          group = old || { name, rows, columns, m, n, s: new Float64Array(m * n), derivatives: new Float64Array(m * n) };
          group.kinds = this.kinds(group);
          found.set(name, group);
        }
        for (let i = 0; i < m; i++)
          for (let j = 0; j < n; j++) {
            const [to, from] = [i * n + j, turned ? j * m + i : i * n + j];
            group.s[to] = matrix.s[from];
            group.derivatives[to] = matrix.derivatives[from] + (add ? group.derivatives[to] : 0);
          }
      }
      return [...found.values()].sort((a, b) => (a.rows === "proxies") - (b.rows === "proxies"));
    }

    // 1 for a positive pair, −1 for a negative one, 0 for a point and itself.
    kinds(group) {
      const key = [this.angles.length, this.classes, this.centers, this.labels.length].join();
      if (group.kinds && group.key === key) return group.kinds;
      group.key = key;
      const kinds = new Int8Array(group.m * group.n);
      for (let i = 0; i < group.m; i++)
        for (let j = 0; j < group.n; j++) {
          const own = group.rows === group.columns && i === j;
          const same = this.ownerOf(group.rows, i) === this.ownerOf(group.columns, j);
          kinds[i * group.n + j] = own ? 0 : same ? 1 : -1;
        }
      return kinds;
    }

    ownerOf(side, at) {
      return side === "samples" ? this.labels[at] : side === "classes" ? at : Math.floor(at / this.centers);
    }

    // The points that stand for a row or a column: of a class that is pooled, its nearest center.
    itemOf(side, at, near) {
      const n = this.angles.length;
      if (side === "samples") return at;
      if (side === "proxies") return n + at;
      let best = n + at * this.centers;
      for (let k = 1; k < this.centers; k++) {
        const item = n + at * this.centers + k;
        if (Math.cos(this.angle(item) - near) > Math.cos(this.angle(best) - near)) best = item;
      }
      return best;
    }

    // How hard the selected point and every other are pulled together (above zero) or pushed apart (below).
    pulls(item) {
      const pulls = new Float64Array(this.count);
      for (const group of this.groups)
        this.around(group, item, (at, other) => {
          pulls[other] -= group.derivatives[at];
        });
      return pulls;
    }

    // Every entry of a matrix that is about a point, with the other point that it is about.
    around(group, item, see) {
      const near = this.angle(item);
      const n = this.angles.length;
      const place = (side) => (side === "samples" ? (item < n ? item : -1) : side === "proxies" ? item - n : -1);
      const [row, column] = [place(group.rows), place(group.columns)];
      if (row >= 0) for (let j = 0; j < group.n; j++) if (group.kinds[row * group.n + j]) see(row * group.n + j, this.itemOf(group.columns, j, near));
      if (column >= 0) for (let i = 0; i < group.m; i++) if (group.kinds[i * group.n + column]) see(i * group.n + column, this.itemOf(group.rows, i, near));
    }

    // The force along the circle on one point, from positive pairs and from negative ones.  Similarities that are a
    // function of the angle have a formula; for others the point is turned a little, to see what changes.
    shares(item) {
      const whole = item < this.angles.length ? -this.derivatives[item] : this.proxyDerivatives ? -this.proxyDerivatives[item - this.angles.length] : 0;
      const fits = ([near, far]) => Math.abs(near + far - whole) <= 1e-6 * (Math.abs(near) + Math.abs(far)) + 1e-12;
      let shares = this.sharesByFormula(item);
      if (!shares || !fits(shares)) shares = this.sharesByTurning(item);
      return { near: shares[0], far: shares[1], whole };
    }

    sharesByFormula(item) {
      const turning = TURNING[this.loss.similarity];
      if (!turning) return null;
      let [near, far] = [0, 0];
      for (const group of this.groups)
        this.around(group, item, (at, other) => {
          const part = -group.derivatives[at] * turning(this.angle(other) - this.angle(item));
          if (group.kinds[at] > 0) near += part;
          else far += part;
        });
      return [near, far];
    }

    sharesByTurning(item) {
      const [before, version, small] = [this.angle(item), this.version, 1e-4];
      const places = this.groups.map((group) => {
        const list = [];
        this.around(group, item, (at) => list.push(at));
        return list.length ? list : [...group.kinds.keys()]; // proxies may be compared through the samples
      });
      const seen = [small, -small].map((by) => {
        this.turn(item, before + by);
        const made = this.run();
        return this.groups.map(({ name, m, n }, which) => {
          const matrix = made.matrices.find((each) => nameOf(each) === name);
          const turned = sides(matrix.between)[2];
          return places[which].map((at) => matrix.s[turned ? (at % n) * m + Math.floor(at / n) : at]);
        });
      });
      this.turn(item, before);
      this.version = version;
      let [near, far] = [0, 0];
      this.groups.forEach(({ kinds, derivatives }, which) =>
        places[which].forEach((at, k) => {
          const part = (-derivatives[at] * (seen[0][which][k] - seen[1][which][k])) / (2 * small);
          if (kinds[at] > 0) near += part;
          else if (kinds[at] < 0) far += part;
        }),
      );
      return [near, far];
    }

    // The similarity and the weight of one pair if its second point stood elsewhere, all else fixed.
    weightAt(pair, angle) {
      const before = this.angle(pair.other);
      const version = this.version;
      this.turn(pair.other, angle);
      const made = this.run();
      this.turn(pair.other, before);
      this.version = version;
      let [s, derivative] = [0, 0];
      for (const matrix of made.matrices) {
        if (nameOf(matrix) !== pair.name) continue;
        const at = sides(matrix.between)[2] ? pair.column * matrix.columns + pair.row : pair.row * matrix.columns + pair.column;
        s = matrix.s[at];
        derivative += matrix.derivatives[at];
      }
      return [s, pair.kind > 0 ? -derivative : derivative];
    }

    // Of a point: the nearest of its class and the nearest of another, as entries of a matrix.
    partners(group, item) {
      if (!group) return {};
      const n = this.angles.length;
      const sided = group.rows === "proxies" && item < n ? n + this.classOf(item) * this.centers : item;
      const best = {};
      this.around(group, sided, (at, other) => {
        const [row, column] = [Math.floor(at / group.n), at % group.n];
        const kind = group.kinds[at];
        const name = kind > 0 ? "near" : "far";
        const close = Math.cos(this.angle(other) - this.angle(sided));
        // a class that is pooled has no one point that could be moved
        if (group.columns !== "classes" && (!best[name] || close > best[name].close + 1e-12))
          best[name] = { name: group.name, row, column, kind, item: sided, other, close };
      });
      return best;
    }

    // One step of gradient descent, back onto the circle.
    step(rate) {
      let far = 0;
      const move = (angles, derivatives) => {
        for (let i = 0; i < angles.length; i++) {
          const by = Math.atan(-rate * derivatives[i]);
          angles[i] += by;
          far = Math.max(far, Math.abs(by));
        }
      };
      move(this.angles, this.derivatives);
      if (this.proxyDerivatives) move(this.proxies, this.proxyDerivatives);
      this.version++;
      return far;
    }
  }

  const TURNING = {
    cosine: Math.sin,
    dot: Math.sin,
    squared_euclidean: (by) => 2 * Math.sin(by),
    euclidean: (by) => Math.sin(by) / (Math.sqrt(2 - 2 * Math.cos(by)) || Infinity),
  };

  // The k largest of a list, added up, without sorting it; the list is rearranged.
  const sumOfLargest = (list, k) => {
    let [low, high] = [0, list.length - 1];
    while (low < high) {
      const middle = list[(low + high) >> 1];
      let [i, j] = [low, high];
      while (i <= j) {
        while (list[i] > middle) i++;
        while (list[j] < middle) j--;
        if (i <= j) {
          [list[i], list[j]] = [list[j], list[i]];
          i++;
          j--;
        }
      }
      if (k - 1 <= j) high = j;
      else if (k - 1 >= i) low = i;
      else break;
    }
    let sum = 0;
    for (let i = 0; i < k; i++) sum += list[i];
    return sum;
  };

  // How the weight is spread: the same numbers as likewise.analysis.Recorder writes.
  const spread = (group) => {
    let [pairs, largest, total] = [0, 0, 0];
    const sizes = new Float64Array(group.kinds.length);
    for (let at = 0; at < group.kinds.length; at++)
      if (group.kinds[at]) {
        const size = Math.abs(group.derivatives[at]);
        sizes[pairs++] = size;
        total += size;
        if (size > largest) largest = size;
      }
    let [zero, odd] = [0, 0];
    for (let at = 0; at < group.kinds.length; at++) {
      if (!group.kinds[at]) continue;
      if (Math.abs(group.derivatives[at]) <= NEGLIGIBLE * largest) zero++;
      else if (group.derivatives[at] * group.kinds[at] > 0) odd++;
    }
    const tenth = Math.ceil(0.1 * pairs);
    const heaviest = total > 0 ? sumOfLargest(sizes.subarray(0, pairs), tenth) / total : NaN;
    return { pairs, zero: zero / pairs, odd: odd / pairs, heaviest, tenth, largest, total };
  };

  const norm = (list) => Math.sqrt(list.reduce((sum, each) => sum + each * each, 0));
  const cosine = (a, b) => a.reduce((sum, each, at) => sum + each * b[at], 0) / (norm(a) * norm(b));

  return { Lane, MOST, PRESETS, TURN, anglesOf, labelsOf, spread, norm, cosine, chance };
})();
