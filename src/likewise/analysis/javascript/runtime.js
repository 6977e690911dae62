// What generated losses share: arrays that are used again, places in sorted rows, sorting.

const floats = [], bytes = [];
// an array of at least this size; the next call of any loss writes into it again
const F = (slot, size) => {
  let found = floats[slot];
  if (found === undefined || found.length < size) floats[slot] = found = new Float64Array(size);
  return found;
};
const U = (slot, size) => {
  let found = bytes[slot];
  if (found === undefined || found.length < size) bytes[slot] = found = new Uint8Array(size);
  return found;
};
// an array of exactly this size that one loss keeps for its results
const R = (own, slot, size) => {
  let found = own[slot];
  if (found === undefined || found.length !== size) own[slot] = found = new Float64Array(size);
  return found;
};

// a loss with code of its own for some values of some parameters: the nearest of them
const choose = (places, choices, versions) => (x, labels, n, d, proxies, classes, parameters) => {
  let version = 0;
  places.forEach((place, k) => {
    const wanted = parameters[place], known = choices[k];
    let nearest = 0;
    for (let i = 1; i < known.length; i++) {
      if (Math.abs(known[i] - wanted) < Math.abs(known[nearest] - wanted)) nearest = i;
    }
    version = version * known.length + nearest;
  });
  return versions[version](x, labels, n, d, proxies, classes, parameters);
};

// how many of the sorted entries from..to are below a value, and how many are not above it; halved without a branch,
// which no processor could foresee
function below(sorted, from, to, value) {
  let low = from, size = to - from;
  while (size > 1) {
    const half = size >>> 1;
    low += half & -((sorted[low + half - 1] < value) | 0);
    size -= half;
  }
  return size === 1 ? low - from + ((sorted[low] < value) | 0) : 0;
}
function notAbove(sorted, from, to, value) {
  let low = from, size = to - from;
  while (size > 1) {
    const half = size >>> 1;
    low += half & -((sorted[low + half - 1] <= value) | 0);
    size -= half;
  }
  return size === 1 ? low - from + ((sorted[low] <= value) | 0) : 0;
}

// a product of matrices, each given by its first entry and its steps; what is zero is left out
let places = new Int32Array(0), factors = new Float64Array(0);
function multiply(out, left, l0, li, lk, right, r0, rk, rj, rows, inner, columns) {
  if (places.length < columns) {
    places = new Int32Array(columns);
    factors = new Float64Array(4 * columns);
  }
  out.fill(0, 0, rows * columns);
  let k = 0;
  while (k < inner) {
    const together = k + 4 <= inner ? packed(right, r0 + k * rk, rk, rj, columns) : 0;
    if (together === 4) {
      // four rows without zeros at once: each entry of the result is read and written a quarter as often
      for (let i = 0, at = l0 + k * lk, to = 0; i < rows; i++, at += li, to += columns) {
        const a = left[at], b = left[at + lk], c = left[at + 2 * lk], d = left[at + 3 * lk];
        const some = ((a !== 0) | 0) + ((b !== 0) | 0) + ((c !== 0) | 0) + ((d !== 0) | 0);
        if (some === 0) continue;
        if (some === 1) {
          const only = a + b + c + d;
          for (let j = 0, f = a !== 0 ? 0 : b !== 0 ? 1 : c !== 0 ? 2 : 3; j < columns; j++, f += 4) out[to + j] += only * factors[f];
          continue;
        }
        for (let j = 0, f = 0; j < columns; j++, f += 4) {
          out[to + j] += a * factors[f] + b * factors[f + 1] + (c * factors[f + 2] + d * factors[f + 3]);
        }
      }
      k += 4;
      continue;
    }
    let count = 0;
    for (let j = 0, at = r0 + k * rk; j < columns; j++, at += rj) {
      const entry = right[at];
      if (entry !== 0) {
        places[count] = j;
        factors[count++] = entry;
      }
    }
    for (let i = 0, at = l0 + k * lk, to = 0; count > 0 && i < rows; i++, at += li, to += columns) {
      const entry = left[at];
      if (entry !== 0) for (let j = 0; j < count; j++) out[to + places[j]] += entry * factors[j];
    }
    k++;
  }
}
// write four rows side by side, up to the first that has a zero; how many were written
function packed(right, from, rk, rj, columns) {
  for (let row = 0; row < 4; row++) {
    for (let j = 0, at = from + row * rk; j < columns; j++, at += rj) {
      const entry = right[at];
      if (entry === 0) return row;
      factors[4 * j + row] = entry;
    }
  }
  return 4;
}

const modulo = (a, b) => {
  const rest = a % b;
  return rest !== 0 && (rest < 0) !== (b < 0) ? rest + b : rest;
};
const toEven = (a) => {
  const rounded = Math.round(a);
  return rounded - a === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
};

let spareKeys = new Float64Array(0), spareOrder = new Float64Array(0);
const spare = (size) => {
  if (spareKeys.length < size) {
    spareKeys = new Float64Array(size);
    spareOrder = new Float64Array(size);
  }
};
// sort keys[0..size) and what belongs to them, ascending and stable: short runs by insertion, then merged
function sortTogether(keys, order, size) {
  const RUN = 12;
  for (let start = 0; start < size; start += RUN) {
    const end = Math.min(start + RUN, size);
    for (let i = start + 1; i < end; i++) {
      const key = keys[i], other = order[i];
      let j = i - 1;
      while (j >= start && keys[j] > key) {
        keys[j + 1] = keys[j];
        order[j + 1] = order[j];
        j--;
      }
      keys[j + 1] = key;
      order[j + 1] = other;
    }
  }
  spare(size);
  let from = keys, fromOrder = order, to = spareKeys, toOrder = spareOrder;
  for (let width = RUN; width < size; width *= 2) {
    for (let start = 0; start < size; start += 2 * width) {
      const middle = Math.min(start + width, size), end = Math.min(start + 2 * width, size);
      let left = start, right = middle;
      for (let k = start; k < end; k++) {
        if (left < middle && (right >= end || from[left] <= from[right])) {
          to[k] = from[left];
          toOrder[k] = fromOrder[left++];
        } else {
          to[k] = from[right];
          toOrder[k] = fromOrder[right++];
        }
      }
    }
    [from, fromOrder, to, toOrder] = [to, toOrder, from, fromOrder];
  }
  if (from !== keys) {
    for (let k = 0; k < size; k++) {
      keys[k] = from[k];
      order[k] = fromOrder[k];
    }
  }
}

// the same for many: by sixteen bits at a time of what doubles are made of, turned so that their order is that of numbers
const counts = new Uint32Array(65536);
function sortMany(keys, order, size) {
  spare(size);
  let words = new Uint32Array(keys.buffer, keys.byteOffset, 2 * size), spareWords = new Uint32Array(spareKeys.buffer, 0, 2 * size);
  let from = order, to = spareOrder;
  for (let k = 0; k < size; k++) {
    keys[k] += 0; // minus zero is zero
    const high = words[2 * k + 1], flip = high >>> 31 ? 0xffffffff : 0;
    words[2 * k] ^= flip;
    words[2 * k + 1] = high ^ (flip | 0x80000000);
  }
  for (let digit = 0; digit < 4; digit++) {
    const word = digit >> 1, shift = 16 * (digit & 1);
    counts.fill(0);
    for (let k = 0; k < size; k++) counts[(words[2 * k + word] >>> shift) & 0xffff]++;
    if (counts[(words[word] >>> shift) & 0xffff] === size) continue;
    for (let digits = 0, before = 0; digits < 65536; digits++) {
      const here = counts[digits];
      counts[digits] = before;
      before += here;
    }
    for (let k = 0; k < size; k++) {
      const place = counts[(words[2 * k + word] >>> shift) & 0xffff]++;
      spareWords[2 * place] = words[2 * k];
      spareWords[2 * place + 1] = words[2 * k + 1];
      to[place] = from[k];
    }
    [words, spareWords, from, to] = [spareWords, words, to, from];
  }
  if (from !== order) for (let k = 0; k < size; k++) order[k] = from[k];
  const back = new Uint32Array(keys.buffer, keys.byteOffset, 2 * size);
  for (let k = 0; k < size; k++) {
    const low = words[2 * k], high = words[2 * k + 1], flip = high >>> 31 ? 0 : 0xffffffff;
    back[2 * k] = low ^ flip;
    back[2 * k + 1] = high ^ (flip | 0x80000000);
  }
}

let rowKeys = new Float64Array(0), rowOrder = new Float64Array(0);
// the first `kept` of each row in order: their values, their places, or both; of equal ones the first comes first
function sortRows(source, rows, columns, kept, values, order, descending) {
  if (rowKeys.length < columns) {
    rowKeys = new Float64Array(columns);
    rowOrder = new Float64Array(columns);
  }
  const sign = descending ? -1 : 1;
  const whole = rowKeys.subarray(0, columns);
  for (let row = 0; row < rows; row++) {
    const start = row * columns, put = row * kept;
    for (let k = 0; k < columns; k++) rowKeys[k] = sign * source[start + k];
    if (order === null) whole.sort();
    else {
      for (let k = 0; k < columns; k++) rowOrder[k] = k;
      (columns > 4000 ? sortMany : sortTogether)(rowKeys, rowOrder, columns);
      for (let k = 0; k < kept; k++) order[put + k] = rowOrder[k];
    }
    if (values !== null) for (let k = 0; k < kept; k++) values[put + k] = sign * rowKeys[k];
  }
}
