// Generated from the losses themselves by python -m likewise.analysis.script; do not edit.
// run(x, labels, n, d, proxies, classes, parameters): the arrays that it returns are written again by the next
// call of the same loss.
const LENS = (() => {
"use strict";
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
function k00bc1993(n0,f0,f1,f2){for(let i=0;i<5;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k00e1b49b(n0,n1,x0,f0,f1,f2,f3,f4){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<2;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;const t5=t4+k;const t6=f2[t3];f0[t3]=((f1[t5]*t6)+((f3[t3]-(t6*f4[t5]))/x0));}}}}
function k0127506b(n0,n1,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0+j;a+=((u0[t1] !== 0)?f0[t1]:0);f1[t1]=a;}}}
function k012e6646(n0,n1,f0,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=50*i;for(let j=0;j<50;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k016fde26(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((t2===y0[j])?-Infinity:f1[t1]);}}}
function k0173c754(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]*t2);}}}
function k019ec0af(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n0;k++){a+=(f0[(t0+k)]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k01eba492(n0,x0,f0,f1,f2,u0,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=(f1[i]>0)?x0:0;for(let j=0;j<n0;j++){const t1=t0+j;const t4=((i===j)?false:(t2===y0[j]))?t3:0;const t5=f2[t1];f0[t1]=((u0[t1] !== 0)?t4:((t4*t5)/(t5+1)));}}}
function k02c2c940(n0,n1,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=4*i;for(let j=0;j<2;j++){const t2=t1+(n1*j);const t5=t4+(2*j);for(let k=0;k<2;k++){let a=0;const t3=t1+(n1*k);for(let l=0;l<n1;l++){a+=(f0[(t2+l)]*f0[(t3+l)]);}f1[(t5+k)]=a;}}}}
function k04daf7ed(n0,f0,f1){for(let i=0;i<(n0**2);i++){f0[f1[i]]=i;}}
function k052b94c0(n0,f0,f1){const t0=n0*5;for(let i=0;i<(n0*5);i++){const t1=t0*i;const t3=n0*i;for(let j=0;j<n0;j++){let a=0;const t2=t1+(5*j);for(let k=0;k<5;k++){a+=f0[(t2+k)];}f1[(t3+j)]=a;}}}
function k059b705d(n0,n1,n2,f0,f1,f2){const t0=n0*2;for(let i=0;i<(n0*2);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k05b262dc(n0,x0,x1,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!(i===j))?(x0*(f1[t1]+x1)):-Infinity);}}}
function k05ff6051(n0,n1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];const t3=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t4=((t2===j)?f1[t1]:-Infinity)-t3;f0[t1]=Math.exp(((t4<=-80)?-Infinity:t4));}}}
function k06076112(n0,n1,f0,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*3);j++){u0[(t1+f0[(t1+j)])]=1;}}}
function k06d66bd9(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<(n0*5);i++){const t0=n1*i;const t2=f3[i];const t3=f4[i];const t4=f5[i];const t5=(t4<2.2250738585072014e-308)?Infinity:t4;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]+((-f2[t1])*t2))/t3)/t5);}}}
function k0708704b(n0,f0,f1){let a=0;for(let i=0;i<((n0**2)+1);i++){a+=f0[i];f1[i]=a;}}
function k071cce81(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,f0[(t0+j)]);}f1[i]=a;}}
function k0724b1e6(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=((((i===j)?false:(t0===y0[j]))&&(Math.abs(f0[(t1+j)])>1.7763568394002505e-15))?1:0);}f1[i]=a;}}
function k072df0b2(f0,f1){let a=0;for(let i=0;i<201;i++){a+=f0[i];f1[i]=a;}}
function k07f7b137(n0,f0){let a=0;for(let i=0;i<n0;i++){a+=((f0[i]>-1)?1:0);}return a;}
function k08403603(n0,n1,x0,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];const t3=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t4=((!(t2===j))?(x0*f1[t1]):-Infinity)-t3;f0[t1]=Math.exp(((t4<=-80)?-Infinity:t4));}}}
function k0a1d799d(x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2/x3));return a;}
function k0a4c292d(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f1[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(t2-(f2[t1]/x0));}}}
function k0a77395f(n0,f0,f1,f2,f3){for(let i=0;i<3;i++){const t0=n0*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k0a7efe2e(n0,f0){let a=0;for(let i=0;i<n0;i++){a+=((f0[i]>0)?1:0);}return a;}
function k0b3b94d8(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=51*i;for(let j=0;j<51;j++){const t1=t0+j;const t2=f1[t1];const t3=f2[t1]+t2;f0[t1]=(t2/((t3>0)?t3:1));}}}
function k0b94d2a2(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){f0[i]=((Math.log(Math.max(f1[i],1))+Math.max(f2[i],-1.7976931348623157e+308))-(Math.log(Math.max(f3[i],1))+Math.max(f4[i],-1.7976931348623157e+308)));}}
function k0bf249ac(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*3);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function k0c5a0d61(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.exp(f1[t1]);}}}
function k0c74e3df(x0,f0,f1){for(let i=0;i<5;i++){let a=0;a+=(f0[i]*((Math.floor((i/5))!==-100)?x0:0));f1[i]=a;}}
function k0c9981c4(n0,f0,f1){for(let i=0;i<(n0**2);i++){f0[i]=(-f1[i]);}}
function k0cef63f5(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(-((u0[t1] !== 0)?f1[t1]:0));}}}
function k0d240772(n0,n1,n2,f0,f1,f2){const t2=n1*5;for(let i=0;i<n0;i++){const t0=n2*i;const t3=t2*i;for(let j=0;j<(n1*5);j++){let a=0;const t1=n2*j;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t3+j)]=a;}}}
function k0d2cf40f(n0,x0,x1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=t2===y0[j];f0[t1]=(((f1[t1]<=0)?0:((!t3)?x0:0))+(-((f2[t1]<=0)?0:(((i===j)?false:t3)?x1:0))));}}}
function k0dd5ceed(n0,n1,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]/x0);}}}
function k0e7156ba(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=4*i;for(let j=0;j<2;j++){const t1=t0+(2*j);for(let k=0;k<2;k++){const t2=t1+k;const t3=2.00001-(f1[t2]*2);f0[t2]=((-((t3>=1e-12)?(((((k-j)>=1)&&true)?x0:0)/(Math.sqrt(Math.max(t3,1e-12))*2)):0))*2);}}}}
function k0ea6e51b(n0,n1,f0,f1,f2){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;const t3=t1+(10*j);for(let k=0;k<10;k++){a+=(f0[(t2+(n1*k))]*f1[(t3+k)]);}f2[(t4+j)]=a;}}}
function k0efdf812(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.floor(f1[t1]),9);}}}
function k0fdc05ac(n0,f0,f1,f2){const t2=(n0**2)+1;for(let i=0;i<n0;i++){const t0=n0*i;const t3=f1[i]*t2;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(t3+f2[t1]);}}}
function k1054755a(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=202*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function k10674a6a(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<(n0*2);i++){const t0=n1*i;const t2=f3[i];const t3=f4[i];const t4=f5[i];const t5=(t4<2.2250738585072014e-308)?Infinity:t4;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]+((-f2[t1])*t2))/t3)/t5);}}}
function k10b74715(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=51+(102*i);const t1=51*i;for(let j=0;j<51;j++){a+=(f0[(t0+j)]*f1[(t1+j)]);}f2[i]=a;}}
function k122d4f27(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?21:0));}}}
function k127ea941(n0,x0,x1,f0,f1){const t0=x0*x1;for(let i=0;i<n0;i++){f0[i]=(t0*Math.sign(f1[i]));}}
function k12893c0c(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i]/n1;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]-t2);}}}
function k12d62e7f(n0,x0,f0){let a=0;for(let i=0;i<n0;i++){a+=((Math.abs((x0*Math.abs(f0[i])))>1.7763568394002505e-15)?1:0);}return a;}
function k1321596f(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f1[i]<=(f2[i]*2.220446049250313e-16);for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(t2?0:f3[t1]);}}}
function k136d43d2(n0,n1,f0,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=200*i;for(let j=0;j<200;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k13fa7bbc(n0,x0,f0,f1,f2,f3,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=f1[i];const t4=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((((i===j)?false:(t2===y0[j]))?t3:0)+(f2[t1]*t4))/x0);}}}
function k149577a1(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=21+(42*i);const t1=21*i;for(let j=0;j<21;j++){a+=(f0[(t0+j)]*f1[(t1+j)]);}f2[i]=a;}}
function k14cda391(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=42*i;const t1=21*i;for(let j=0;j<21;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function k151b8e2d(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n0;k++){a+=(f0[(i+(n0*k))]*f1[(j+(n1*k))]);}f2[(t0+j)]=a;}}}
function k156284ae(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=202*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function k157a35e0(n0,x0,x1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=202*i;for(let j=0;j<101;j++){a+=((f0[(t0+j)]/x0)*(f1[j]/x1));}f2[i]=a;}}
function k15ef7403(n0,n1,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(5*j);for(let k=0;k<5;k++){a=Math.max(a,f0[(t2+k)]);}f1[(t3+j)]=a;}}}
function k16245d49(f0,f1){for(let i=0;i<5;i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function k1641d4fb(n0,x0,f0){for(let i=0;i<(n0*5);i++){f0[i]=((Math.floor((i/5))!==-100)?x0:0);}}
function k167a6b97(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=25*i;for(let j=0;j<5;j++){const t1=t0+(5*j);for(let k=0;k<5;k++){a+=((((k-j)>=1)&&true)?Math.sqrt(Math.max((2.00001-(f0[(t1+k)]*2)),1e-12)):0);}}}return a;}
function k17502cf7(n0,n1,x0,x1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t3=((i===y0[j])?(x0*(f1[t1]-x1)):-Infinity)-t2;f0[t1]=Math.exp(((t3<=-80)?-Infinity:t3));}}}
function k1776ea66(f0){let a=0;for(let i=0;i<5;i++){const t0=Math.floor((i/5));const t1=t0!==-100;a+=(t1?(-f0[((t1?t0:0)+i)]):0);}return a;}
function k17b308d3(n0,f0,f1){const t0=(n0**2)+1;for(let i=0;i<n0;i++){f0[i]=(f1[i]*t0);}}
function k17c670cb(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]+1);}}}
function k18618b8e(n0,f0,f1,f2,f3){for(let i=0;i<3;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function k18b32011(n0,n1,f0,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t1=200*i;for(let j=0;j<200;j++){u0[(t0+f0[(t1+j)])]=1;}}}
function k18fff7be(n0,n1,f0,f1,f2){const t0=n0*2;for(let i=0;i<(n0*2);i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*2);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k19bb8e12(n0,n1,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)*x0);}}}
function k19c7b6b3(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function k1a5c2147(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){f0[i]=((f1[i]+f2[i])*x0);}}
function k1ab41854(n0,f0,f1,f2){for(let i=0;i<3;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k1ac67fba(n0,n1,f0,f1,f2){const t0=n0*5;for(let i=0;i<(n0*5);i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*5);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k1af1a156(n0,n1,f0,f1,f2){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<2;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=(f1[t3]/f2[(t4+k)]);}}}}
function k1b08cc46(n0,f0,f1,f2){for(let i=0;i<3;i++){const t0=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<3;k++){a+=(f0[(i+(3*k))]*f1[(j+(n0*k))]);}f2[(t0+j)]=a;}}}
function k1b52dfe1(n0,f0,f1,f2,u0){let a=0;for(let i=0;i<n0;i++){a+=((f0[i]>0)?((u0[i] !== 0)?f1[i]:Math.log1p(f2[i])):0);}return a;}
function k1ce101b1(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=102*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function k1d1be652(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=11*i;for(let j=0;j<11;j++){const t1=t0+j;const t2=f1[t1];const t3=f2[t1]+t2;f0[t1]=(t2/((t3>0)?t3:1));}}}
function k1d496455(n0,x0,f0,f1,f2,f3){for(let i=0;i<n0;i++){f0[i]=((f1[i]<=0)?0:(((f2[i]>0)&&(f3[i]>0))?x0:0));}}
function k1dc48617(n0,x0,f0,f1,u0,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=-f0[i];for(let j=0;j<n0;j++){const t1=t0+j;u0[t1]=((!(t2===y0[j]))&&(t3<(f1[t1]+x0)))?1:0;}}}
function k1e19da8e(n0,f0,f1,f2){for(let i=0;i<(n0*5);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=Math.exp((f0[(t0+j)]-t1));}f2[i]=a;}}
function k1eb90d9b(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0+j;a+=f0[t1];f1[t1]=a;}}}
function k1ebffb85(n0,n1,n2,f0,f1,f2){const t0=n2*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n2*3);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k1ed521c5(n0,x0,x1,f0,f1,f2,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;const t3=x0*(x1-f0[t2]);a+=(((i===j)?false:(t0===y0[j]))?((t3>50)?t3:Math.log1p(f1[t2])):0);}f2[i]=a;}}
function k1f1a1299(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*5);i++){const t0=n1*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k1f7dc074(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=6+(12*i);const t1=6*i;for(let j=0;j<6;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function k201fe2fb(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){let a=0;const t0=f0[i];const t1=11+(12*i);const t3=6*i;const t4=5+t3;for(let j=0;j<6;j++){const t2=-1*j;const t5=t4+t2;const t6=f2[t5]+f3[t5];a+=(((t0*f1[(t1+t2)])/((t6>0)?t6:1))+f4[t5]);f5[(t3+j)]=a;}}}
function k204beb9f(n0,n1,f0,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=50*i;for(let j=0;j<50;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k20ab153e(n0,n1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];const t3=f1[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((!(t2===j))?(t3*f2[t1]):-Infinity);}}}
function k20f5381d(n0,n1,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;for(let k=0;k<2;k++){a+=f0[(t2+(n1*k))];}f1[(t3+j)]=a;}}}
function k21c6612b(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2*2;const t4=(t3*((t3*t2)-1))-t2;f0[t1]=((t2<-0.4999999999999998)?(t4-4):((t2<0.5000000000000001)?((-t4)-2):t4));}}}
function k21f3edaa(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?11:0));}}}
function k227208b8(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=5*i;const t2=f1[i];for(let j=0;j<5;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?t2:0);}}}
function k228420db(f0,f1){let a=0;for(let i=0;i<101;i++){a+=f0[i];f1[i]=a;}}
function k2385f24a(n0,f0,f1,f2){for(let i=0;i<3;i++){const t0=3*i;const t1=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<3;k++){a+=(f0[(t0+k)]*f1[(j+(n0*k))]);}f2[(t1+j)]=a;}}}
function k23c4534e(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0+j;a+=(f0[t1]*f1[t1]);f2[t1]=a;}}}
function k240fb989(f0,f1){let a=0;for(let i=0;i<21;i++){a+=f0[i];f1[i]=a;}}
function k24295e8b(n0,x0,f0){let a=0;for(let i=0;i<n0;i++){a+=(x0*f0[i]);}return a;}
function k269d6336(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.max(((f1[t1]+1)*100),0),200);f0[t1]=(t2-Math.min(Math.floor(t2),199));}}}
function k27675df6(n0,f0,f1,f2){for(let i=0;i<n0;i++){f0[i]=(Math.log(Math.max(f1[i],1))+Math.max(f2[i],-1.7976931348623157e+308));}}
function k27915afc(n0,x0,x1,x2,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f1[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=f2[t1];f0[t1]=(t2-(x0*((x1*t3)+(x2*((((1-t3)*(t3+1))>0)?f3[t1]:0)))));}}}
function k2799ef1a(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;const t2=n0*i;for(let j=0;j<n0;j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t2+j)]=a;}}}
function k2927902d(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=51+(102*i);const t1=51*i;for(let j=0;j<51;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function k29684dab(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;for(let j=0;j<n0;j++){a+=(-f0[(i+(n0*j))]);}f1[i]=a;}}
function k29852407(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=Infinity,b=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=(!((i===j)?false:(t0===y0[j])))?Infinity:f0[(t1+j)];if(t2<a){a=t2;b=j;}}f1[i]=b;}}
function k298797d2(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=402*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(f1[t1]+1)*100;const t4=f4[t1];f0[t1]=((((t2>=0)&&(t2<=200))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*100);}}}
function k29d55863(n0,u0,y0){for(let i=0;i<n0;i++){const t0=3*i;const t1=y0[i]===0;for(let j=0;j<3;j++){u0[(t0+j)]=t1?1:0;}}}
function k2aa48d11(n0,f0,f1,f2,f3){for(let i=0;i<5;i++){const t0=n0*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k2acb34e4(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=((t2*2)*t2)-1;f0[t1]=((t2<6.123233995736766e-17)?((-t3)-2):t3);}}}
function k2ae3d3e3(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k2af88b1a(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=(1-t2)*(t2+1);f0[t1]=Math.sqrt(((t3>0)?t3:1));}}}
function k2b08fd5c(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=22*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(-f1[t1])*2.5;const t4=f4[t1];f0[t1]=(-((((t2>=0)&&(t2<=10))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*2.5));}}}
function k2b912cc0(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;const t1=f1[i];for(let j=0;j<n1;j++){a+=(f0[(t0+j)]*t1);}f2[i]=a;}}
function k2bcda2e9(x0,f0,f1){let a=0;for(let i=0;i<21;i++){a+=(f0[(20+(-1*i))]/x0);f1[i]=a;}}
function k2c7b9f94(n0,n1,n2,f0,f1,f2){const t0=n0*5;for(let i=0;i<(n0*5);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k2cd18001(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]<=0)?0:(x0*f2[t1]));}}}
function k2cd7fc93(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.floor(f1[t1]),4);}}}
function k2d464378(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=f2[i];f0[i]=((((f1[i]>0)&&(t0>0))?x0:0)/Math.max(t0,1));}}
function k2d841c04(n0,n1,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,((i===y0[j])?(x0*(f0[(t0+j)]-x1)):-Infinity));}f1[i]=a;}}
function k2d84cdfb(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f1[i];const t3=!((((t2===t2)?1:0)*((Math.abs(t2)!==Infinity)?1:0))!==0);for(let j=0;j<n0;j++){const t1=t0+j;const t4=f1[j];const t5=t2>=t4;const t6=t5?t2:t4;f0[t1]=Math.max((((t3&&(t2===t4))?t2:(t6+Math.log1p(Math.exp(((t5?t4:t2)-t6)))))-f2[t1]),0);}}}
function k2d87db43(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]*2);}}}
function k2db67e14(n0,n1,n2,f0,f1,f2){const t0=n2*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n2*2);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k2ddb76ee(n0,n1,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(2*j);for(let k=0;k<2;k++){a=Math.max(a,f0[(t2+k)]);}f1[(t3+j)]=a;}}}
function k2e990d4a(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=12*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(-f1[t1])*1.25;const t4=f4[t1];f0[t1]=(-((((t2>=0)&&(t2<=5))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*1.25));}}}
function k2ee02a4f(n0,n1,n2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n2*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=n2*j;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t2+j)]=a;}}}
function k2f730769(n0,n1,f0,f1){for(let i=0;i<(n0*5);i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function k300af670(n0,f0,f1){for(let i=0;i<21;i++){let a=0;const t0=21+i;for(let j=0;j<n0;j++){a+=f0[(t0+(42*j))];}f1[i]=a;}}
function k306cdf0e(n0,f0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n0;j++){a+=(((i===j)?false:(t0===y0[j]))?1:0);}f0[i]=a;}}
function k30943abe(n0,x0,f0){for(let i=0;i<(n0*3);i++){f0[i]=((Math.floor((i/3))!==-100)?x0:0);}}
function k30c3071b(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((!(t0===y0[j]))&&(Math.abs(f0[(t1+j)])>1.7763568394002505e-15))?1:0);}f1[i]=a;}}
function k31e3a8b0(n0,n1,f0,f1,f2){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;const t3=t1+(5*j);for(let k=0;k<5;k++){a+=(f0[(t2+(n1*k))]*f1[(t3+k)]);}f2[(t4+j)]=a;}}}
function k31fc781d(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=n0+t0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(below(f1,t0,t2,f2[t1])-1);}}}
function k32122366(n0,n1,f0,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=5*i;for(let j=0;j<5;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k3250c194(n0,f0){let a=0;for(let i=0;i<n0;i++){a+=(f0[i]/2);}return a;}
function k32f6f300(n0,f0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n0;j++){a+=((!(t0===y0[j]))?1:0);}f0[i]=a;}}
function k333d4e40(n0,n1,x0,x1,x2,x3,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<n0;i++){const t0=n1*i;const t7=f4[i];const t11=f7[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f2[t1];const t3=1-t2;const t4=t2+1;const t5=(t3*t4)>0;const t6=t2<x0;const t8=(f3[t1]*t7)*x1;const t9=t6?0:t8;const t10=t5?((t5?((-t9)*x2):0)/(f5[t1]*2)):0;f0[t1]=(((f1[t1]===t2)?1:0)*((((((t10*t3)+(-(t10*t4)))+(t9*x3))+(t6?t8:0))+((f6[t1]*t11)*x1))/f8[t1]));}}}
function k3347b849(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<(n0*5);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function k336d5417(n0,f0){let a=0;for(let i=0;i<(n0*3);i++){const t0=Math.floor((i/3));const t1=t0!==-100;a+=(t1?(-f0[((n0*i)+(t1?t0:0))]):0);}return a;}
function k3392bcc9(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]*f2[t1])*f3[t1]);}}}
function k33ac8c0b(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f3[i];const t3=f4[i];const t4=f5[i];const t5=(t4<2.2250738585072014e-308)?Infinity:t4;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]+((-f2[t1])*t2))/t3)/t5);}}}
function k341e67f0(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.max(((f1[t1]+1)*50),0),100);f0[t1]=(t2-Math.min(Math.floor(t2),99));}}}
function k347f556d(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]-t2)-t3);}}}
function k34b7ace5(n0,f0,f1,f2,f3,f4,f5){let a=0;for(let i=0;i<n0;i++){a+=(((f0[i]>0)&&(f1[i]>0))?((Math.log(Math.max(f2[i],1))+Math.max(f3[i],-1.7976931348623157e+308))-(Math.log(Math.max(f4[i],1))+Math.max(f5[i],-1.7976931348623157e+308))):0);}return a;}
function k34d27624(n0,n1,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f2[t1];f0[t1]=((f1[t1]*t2)+((f3[t1]-(t2*f4[t1]))/x0));}}}
function k35465069(n0,x0,x1,f0,f1,f2,u0){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=x0*(f0[t1]-x1);a+=((u0[t1] !== 0)?((t2>50)?t2:Math.log1p(f1[t1])):0);}f2[i]=a;}}
function k3574cc7c(n0,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n0;j++){if((!(t0===y0[j])))a=1;}u0[i]=a;}}
function k35f96163(n0,n1,u0,u1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0+j;if((u0[t1] !== 0))a=1;u1[t1]=a;}}}
function k36695bf1(x0,f0,f1){let a=0;for(let i=0;i<201;i++){a+=(f0[(200+(-1*i))]/x0);f1[i]=a;}}
function k36c6ffee(n0,f0,f1,f2,f3,f4){for(let i=0;i<(n0*2);i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)-(Math.exp(f3[t1])*t3));}}}
function k371e3f6c(n0,x0,x1,x2,f0,f1,f2,f3,f4,f5,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];const t5=f2[i];const t8=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];const t4=t3===y0[j];const t6=(!t4)?t5:0;const t7=f3[t1];const t9=((i===j)?false:t4)?t8:0;const t10=f5[t1];f0[t1]=(((((x0*(t2-x1))>50)?t6:((t6*t7)/(t7+1)))*x0)+(-((((x2*(x1-t2))>50)?t9:((t9*t10)/(t10+1)))*x2)));}}}
function k3761c0e9(n0,n1,x0,x1,f0,f1,f2,f3){const t2=x0*x1;for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((t2*(f1[t1]*2))+f2[t1])+f3[t1]);}}}
function k37684c84(n0,x0,f0,f1){for(let i=0;i<n0;i++){f0[i]=(x0/Math.max(f1[i],1));}}
function k389e428c(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?51:0));}}}
function k38a15e5a(f0,f1){for(let i=0;i<5;i++){let a=-Infinity;a=Math.max(a,f0[i]);f1[i]=a;}}
function k38ab71c2(n0,n1,f0,f1,f2,f3){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<5;j++){const t2=t1+(n1*j);const t5=t1+j;for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=((f1[(t4+k)]*f2[(t5+(5*k))])*f3[t3]);}}}}
function k38e415b1(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];const t3=(1-t2)*(t2+1);f0[t1]=Math.sqrt(((t3>0)?t3:1));}}}
function k3923d5fd(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.exp((x0*(f1[t1]-1)));}}}
function k39ae9a1a(n0,f0,f1){const t0=n0*2;for(let i=0;i<(n0*2);i++){const t1=t0*i;const t3=n0*i;for(let j=0;j<n0;j++){let a=0;const t2=t1+(2*j);for(let k=0;k<2;k++){a+=f0[(t2+k)];}f1[(t3+j)]=a;}}}
function k3a39a58c(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=42*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function k3b218b7f(n0,x0,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=n0+t0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((i===j)?false:(t2===y0[j]))?(n0-notAbove(f1,t0,t3,(f2[t1]-x0))):0);}}}
function k3b78e1e5(n0,n1,f0,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t1=50*i;for(let j=0;j<50;j++){u0[(t0+f0[(t1+j)])]=1;}}}
function k3c0d7624(n0,x0,x1,f0,f1){for(let i=0;i<101;i++){let a=0;for(let j=0;j<n0;j++){a+=((f0[(i+(202*j))]/x0)*x1);}f1[i]=a;}}
function k3c2cb8cf(n0,n1,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=25*i;for(let j=0;j<5;j++){const t2=t1+(n1*j);const t5=t4+(5*j);for(let k=0;k<5;k++){let a=0;const t3=t1+(n1*k);for(let l=0;l<n1;l++){a+=(f0[(t2+l)]*f0[(t3+l)]);}f1[(t5+k)]=a;}}}}
function k3ca19dde(f0){for(let i=0;i<5;i++){const t0=Math.floor((i/5));f0[(((t0!==-100)?t0:0)+i)]=-1;}}
function k3dbc56d2(n0,f0,f1,f2,f3){for(let i=0;i<(n0*5);i++){const t0=n0*i;const t2=f2[i];const t3=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]-t2)-t3);}}}
function k3f206873(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=(t2===0)?1:t2;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]/t3);}}}
function k3f93ac6b(n0,x0,x1,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.exp((x0*(f1[t1]-x1)));}}}
function k40178356(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=i*n0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(t2+f1[(t0+f2[t1])]);}}}
function k403062d9(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=f1[i];for(let j=0;j<n0;j++){a+=(f0[(i+(n0*j))]/(Math.exp((f1[j]-t0))+1));}f2[i]=a;}}
function k41513754(n0,n1,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*5);j++){const t2=t1+j;f0[t2]=f1[t2];}}}
function k4258708e(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!(t2===y0[j]))?(x0*(f1[t1]-x1)):-Infinity);}}}
function k4269dfe5(n0,f0,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;u0[t1]=(f0[t1]>0)?1:0;}}}
function k42737cab(n0,f0,f1,f2){const t1=n0**2;for(let i=0;i<n0;i++){const t0=(i*n0)+f1[i];f0[(t0<0?t0+t1:t0)]+=f2[i];}}
function k42b94269(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]+t2);}}}
function k4316d81b(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((i===j)?false:(t2===y0[j]))?(x0*(f1[t1]-x1)):-Infinity);}}}
function k434b5aa7(n0,n1,f0,f1,f2,f3){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){const t2=t1+(5*j);const t5=t4+j;const t6=f2[t5];const t7=f3[t5];for(let k=0;k<5;k++){const t3=t2+k;f0[t3]=(((f1[t3]===t6)?1:0)*t7);}}}}
function k44632f43(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function k4511c845(n0,f0,f1){for(let i=0;i<(n0*10);i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function k4528b2bc(n0,n1,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*2);j++){f0[(t1+j)]=f1[((t1+(n1*(j%2)))+Math.floor(j/2))];}}}
function k45aaaec4(n0,f0,f1){for(let i=0;i<5;i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function k46000deb(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.floor(f1[t1]),19);}}}
function k462ff651(n0,f0,f1,f2,f3,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=n0+t0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((!(t2===y0[j]))?below(f1,t0,t3,f2[t1]):0)-f3[t1]);}}}
function k46d876e4(n0,n1,f0,f1,f2){for(let i=0;i<3;i++){const t0=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<n1;k++){a+=(f0[(i+(3*k))]*f1[(j+(n0*k))]);}f2[(t0+j)]=a;}}}
function k47535619(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((!(t0===y0[j]))&&(Math.abs(Math.max((f0[(t1+j)]-x0),0))>1.7763568394002505e-15))?1:0);}f1[i]=a;}}
function k484960e7(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=Math.max((f0[(t1+j)]-x0),0);a+=((!(t0===y0[j]))?(t2*t2):0);}f1[i]=a;}}
function k4851509a(n0,n1,u0,y0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=y0[i];for(let j=0;j<(n1*5);j++){u0[(t1+j)]=(t2===Math.floor(j/5))?1:0;}}}
function k486a0fb4(n0,f0,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=u0[i] !== 0;for(let j=0;j<n0;j++){a+=((((i===j)?false:(t0===y0[j]))&&t1)?1:0);}f0[i]=a;}}
function k488a59a3(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!(t2===y0[j]))?(x0+f1[t1]):-Infinity);}}}
function k48e4de52(n0,f0,f1,f2,f3,f4){const t2=n0**2;for(let i=0;i<n0;i++){const t0=n0*i;const t3=f2[i];const t4=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(below(f1,0,t2,(t3+f3[t1]))+t4);}}}
function k49c33ad0(n0,n1,f0,f1){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*10);j++){f0[(t1+j)]=f1[((t1+(n1*(j%10)))+Math.floor(j/10))];}}}
function k4a09290b(n0,n1,x0,f0,f1,f2,f3,f4){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<5;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;const t5=t4+k;const t6=f2[t3];f0[t3]=((f1[t5]*t6)+((f3[t3]-(t6*f4[t5]))/x0));}}}}
function k4ac75bc5(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/n0)));return a;}
function k4b8b418d(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t1=t0+j;a=Math.max(a,f0[t1]);f1[t1]=a;}}}
function k4bd541eb(n0,f0,f1){for(let i=0;i<n0;i++){f0[i]=Math.log(f1[i]);}}
function k4c589992(n0,n1,f0,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=200*i;for(let j=0;j<200;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k4ccd4117(n0,f0,f1,y0){for(let i=0;i<n0;i++){f0[i]=below(f1,0,n0,y0[i]);}}
function k4d2a8049(n0,n1,f0,f1,f2,f3,f4,f5,f6){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f4[i];const t3=f5[i];const t4=f6[i];const t5=(t4<2.2250738585072014e-308)?Infinity:t4;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((((f1[t1]+f2[t1])+((-f3[t1])*t2))/t3)/t5);}}}
function k4dd3011f(n0,n1,f0,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=8*i;for(let j=0;j<8;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k4df26392(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((i===j)?false:(t0===y0[j]))?Math.max((x0-f0[(t1+j)]),0):0);}f1[i]=a;}}
function k4e2cfa54(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=3*i;const t2=f1[i];for(let j=0;j<3;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?t2:0);}}}
function k4e415a92(n0,f0,u0){for(let i=0;i<n0;i++){u0[i]=(f0[i]>50)?1:0;}}
function k4e533f3b(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*3);i++){const t0=n1*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k4ea4d36f(n0,n1,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t1=t0+j;a=Math.max(a,(f0[t1]/x0));f1[t1]=a;}}}
function k4f72298e(n0,n1,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2===j)?(x0*(f1[t1]-x1)):-Infinity);}}}
function k4f8a2d9c(n0,n1,x0,f0,f1,f2,u0,u1){const t2=-x0;for(let i=0;i<n0;i++){const t0=n1*i;const t3=f2[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?(((u1[t1] !== 0)?t2:0)+(f1[t1]*t3)):0);}}}
function k501da157(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){f0[i]=((Math.log(Math.max(f1[i],1))+Math.max(f2[i],-1.7976931348623157e+308))+(Math.log(Math.max(f3[i],1))+Math.max(f4[i],-1.7976931348623157e+308)));}}
function k50e03aec(n0,f0){let a=0;for(let i=0;i<(n0**2);i++){a+=f0[i];}return a;}
function k519576fc(n0,f0,f1){for(let i=0;i<(n0*2);i++){f0[i]=Math.log(f1[i]);}}
function k51b728ba(n0,n1,f0,f1,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(3*j);for(let k=0;k<3;k++){const t3=t2+k;a+=((u0[t3] !== 0)?f0[t3]:0);}f1[(t4+j)]=a;}}}
function k5248dd26(f0){for(let i=0;i<3;i++){const t0=Math.floor((i/3));f0[(((t0!==-100)?t0:0)+i)]=-1;}}
function k5274e1d7(x0,f0,f1,f2,f3){for(let i=0;i<5;i++){f0[i]=((f1[i]*((Math.floor((i/5))!==-100)?x0:0))-(Math.exp(f2[i])*f3[i]));}}
function k54194542(f0,f1,f2,f3){for(let i=0;i<3;i++){f0[i]=((f1[i]-f2[i])-Math.log(f3[i]));}}
function k54545d6e(n0,f0,f1,f2){const t1=n0**2;for(let i=0;i<(n0**2);i++){const t0=f1[i];f0[(t0<0?t0+t1:t0)]+=f2[i];}}
function k547edc9d(n0,x0,x1,f0,f1,f2,u0){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=x0*(x1-f0[t1]);a+=((u0[t1] !== 0)?((t2>50)?t2:Math.log1p(f1[t1])):0);}f2[i]=a;}}
function k54b1d3b5(n0,n1,x0,x1,x2,x3,f0,f1,f2,f3,f4,f5,f6){for(let i=0;i<n0;i++){const t0=n1*i;const t7=f3[i];const t11=f6[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=1-t2;const t4=t2+1;const t5=(t3*t4)>0;const t6=t2<x0;const t8=(f2[t1]*t7)*x1;const t9=t6?0:t8;const t10=t5?((t5?((-t9)*x2):0)/(f4[t1]*2)):0;f0[t1]=(((((t10*t3)+(-(t10*t4)))+(t9*x3))+(t6?t8:0))+((f5[t1]*t11)*x1));}}}
function k54d6e83e(n0,n1,u0,y0){for(let i=0;i<n0;i++){const t0=y0[i];const t2=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0===j;for(let k=0;k<2;k++){if(t1)a=1;}u0[(t2+j)]=a;}}}
function k55bae7b2(n0,n1,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t3=((u0[t1] !== 0)?f1[t1]:-Infinity)-t2;f0[t1]=Math.exp(((t3<=-80)?-Infinity:t3));}}}
function k561939b7(n0,n1,f0,f1,f2,f3){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){const t2=t1+(3*j);const t5=t4+j;const t6=f2[t5];const t7=f3[t5];for(let k=0;k<3;k++){const t3=t2+k;f0[t3]=(((f1[t3]===t6)?1:0)*t7);}}}}
function k574719a8(f0,f1){for(let i=0;i<3;i++){let a=0;const t0=3*i;for(let j=0;j<3;j++){a+=f0[(t0+j)];}f1[i]=a;}}
function k5753ab1e(n0,n1,f0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n1;j++){a+=((t0===j)?1:0);}f0[i]=a;}}
function k575cea64(n0,n1,f0,f1,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(2*j);for(let k=0;k<2;k++){const t3=t2+k;a+=((u0[t3] !== 0)?f0[t3]:0);}f1[(t4+j)]=a;}}}
function k57a0513e(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=202*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(f1[t1]+1)*50;const t4=f4[t1];f0[t1]=((((t2>=0)&&(t2<=100))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*50);}}}
function k5854a218(n0,n1,f0,f1,f2){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<5;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=(f1[t3]/f2[(t4+k)]);}}}}
function k58b11a92(x0,f0,f1){let a=0;for(let i=0;i<51;i++){a+=(f0[(50+(-1*i))]/x0);f1[i]=a;}}
function k5931ba6f(n0,x0,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=f1[i];f0[i]=(((u0[i] !== 0)?x0:((x0*t0)/(t0+1)))/Math.max(f2[i],1));}}
function k594721d5(n0,f0,f1){for(let i=0;i<3;i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function k596bad59(n0,f0,f1,f2){let a=0;for(let i=0;i<n0;i++){a+=(((f0[i]>0)&&(f1[i]>0))?f2[i]:0);}return a;}
function k59a15b2e(n0,x0,f0,f1,f2,u0){const t0=-x0;for(let i=0;i<n0;i++){f0[i]=(((u0[i] !== 0)?t0:0)+(f1[i]*(x0/Math.max(f2[i],1))));}}
function k59c66d30(n0,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=((u0[i] !== 0)?f1[i]:-Infinity)-Math.max(f2[i],-1.7976931348623157e+308);f0[i]=Math.exp(((t0<=-80)?-Infinity:t0));}}
function k59c8e9f3(n0,n1,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=y0[i];const t1=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,((t0===j)?f0[(t1+j)]:-Infinity));}f1[i]=a;}}
function k5a233ef6(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.max(((-f1[t1])*1.25),0),5);}}}
function k5b056b46(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((i===j)?false:(t2===y0[j]))?(x0-(x1*f1[t1])):-Infinity);}}}
function k5b47642d(n0,n1,f0,f1){for(let i=0;i<(n0*2);i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function k5b86be98(n0,n1,f0,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=5*i;for(let j=0;j<5;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k5bb8d67c(n0,x0,f0,f1,f2,f3){for(let i=0;i<n0;i++){f0[i]=((-(((f1[i]>0)&&(f2[i]>0))?x0:0))/Math.max(f3[i],1));}}
function k5c3b5e65(n0,n1,f0,f1,f2){const t0=n0*3;for(let i=0;i<(n0*3);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*3);k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k5ccdacee(n0,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i]===0;for(let j=0;j<3;j++){if(t0)a=1;}u0[i]=a;}}
function k5d130b4f(n0,f0,f1,f2){let a=0;for(let i=0;i<((n0+(n0**2))+1);i++){a+=(f0[i]+f1[i]);f2[i]=a;}}
function k5e44a388(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=21*i;const t1=20+t0;for(let j=0;j<21;j++){a+=f0[(t1+(-1*j))];f1[(t0+j)]=a;}}}
function k5e64716d(n0,n1,n2,f0,f1,f2){const t0=n0*3;for(let i=0;i<(n0*3);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k5eaa94ab(n0,f0){let a=0;for(let i=0;i<(n0*2);i++){const t0=Math.floor((i/2));const t1=t0!==-100;a+=(t1?(-f0[((n0*i)+(t1?t0:0))]):0);}return a;}
function k5f3e124a(n0,f0,f1){for(let i=0;i<201;i++){let a=0;const t0=201+i;for(let j=0;j<n0;j++){a+=f0[(t0+(402*j))];}f1[i]=a;}}
function k5ffa3584(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=102*i;const t1=51*i;const t2=50+t1;const t4=f2[i];const t5=-51+t1;const t6=101+t1;for(let j=0;j<102;j++){const t3=-1*j;f0[(t0+j)]=((((j>=0)&&(j<51))?f1[(t2+t3)]:0)+(((j>=51)&&(j<102))?((t4*f3[(t5+j)])+f4[(t6+t3)]):0));}}}
function k6049679a(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){const t8=n1*10;for(let i=0;i<(n0*10);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=i%10;const t9=t8*Math.floor(i/10);const t10=(n1*t7)+t9;const t11=t7+t9;const t12=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[(t10+j)]+f7[(t11+(10*j))])+(t2*t12))/t4)/t6));}}}
function k605991e4(n0,n1,f0,f1,f2){for(let i=0;i<(n0*3);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k605ec57c(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=(f0[(t0+j)]/(Math.exp((f1[j]-t1))+1));}f2[i]=a;}}
function k60cf505e(n0,x0,x1,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)*x0)+((f3[t1]*t3)*x1));}}}
function k60e2f2fe(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=11*i;const t4=f3[i];const t5=11+(22*i);for(let j=0;j<11;j++){const t1=t0+j;const t2=f1[t1]+f2[t1];const t3=t2>0;f0[t1]=(t3?((-(t4*f4[(t5+j)]))*(f5[t1]/(t3?t2:1))):0);}}}
function k62255c2f(n0,x0,f0,f1,u0,u1){for(let i=0;i<n0;i++){f0[i]=((f1[i]<=0)?0:(x0*(((u0[i] !== 0)&&(u1[i] !== 0))?1:0)));}}
function k624506c5(n0,f0,f1,f2){const t2=n0**2;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=below(f1,0,t2,f2[t1]);}}}
function k63359b6c(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]-(f2[j]/n0));}}}
function k63396afc(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<(n0*3);i++){const t0=n1*i;const t2=f3[i];const t3=f4[i];const t4=f5[i];const t5=(t4<2.2250738585072014e-308)?Infinity:t4;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]+((-f2[t1])*t2))/t3)/t5);}}}
function k64045cb5(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=11+(22*i);const t1=11*i;for(let j=0;j<11;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function k648d25fd(x0,f0,f1){let a=0;for(let i=0;i<101;i++){a+=(f0[(100+(-1*i))]/x0);f1[i]=a;}}
function k64ef80fd(n0,f0,f1,f2){for(let i=0;i<(n0*5);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=(f0[(t0+j)]*t1);}f2[i]=a;}}
function k6502d5ab(n0,n1,x0,x1,x2,x3,x4,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;const t3=f1[t1];f0[t1]=((t2===j)?(x0*((t3<x1)?(t3-x2):((x3*t3)-(x4*((((1-t3)*(t3+1))>0)?f2[t1]:0))))):-Infinity);}}}
function k65438492(n0,n1,f0,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*2);j++){u0[(t1+f0[(t1+j)])]=1;}}}
function k65ed79ae(n0,n1,f0,f1,f2,f3){const t2=n1*10;for(let i=0;i<(n0*10);i++){let a=0;const t0=n1*i;const t1=i%10;const t3=t2*Math.floor(i/10);const t4=(n1*t1)+t3;const t5=t1+t3;for(let j=0;j<n1;j++){a+=(f0[(t0+j)]*(f1[(t4+j)]+f2[(t5+(10*j))]));}f3[i]=a;}}
function k6624815b(f0,f1,f2,f3){for(let i=0;i<5;i++){f0[i]=((f1[i]-f2[i])-Math.log(f3[i]));}}
function k662c091d(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,((!(t0===y0[j]))?f0[(t1+j)]:-Infinity));}f1[i]=a;}}
function k6648f7e4(n0,n1,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2===j)?(x0*f1[t1]):-Infinity);}}}
function k672dcbbd(n0,n1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((!(t2===j))?f1[t1]:-Infinity);}}}
function k67d609b4(n0,n1,f0,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=50*i;for(let j=0;j<50;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k67d99b99(n0,f0,f1){for(let i=0;i<(n0*3);i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function k67fb7442(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]+f2[t1]);}}}
function k683d82c5(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){let a=0;const t1=t0+j;a+=f0[t1];f1[t1]=a;}}}
function k684c3e80(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.floor(Math.min(Math.max(((f1[t1]+1)*50),0),100)),99);f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?101:0));}}}
function k68626d00(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n1*i;const t6=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2<0.7071067811865476;const t4=t2<6.123233995736766e-17;const t5=t2<-0.7071067811865475;const t7=f2[t1]*t6;const t8=t5?0:t7;const t9=t4?0:t8;const t10=(((t3?0:t9)+(-(t3?t9:0)))+(t4?t8:0))+(-(t5?t7:0));const t11=t2*2;const t12=t10*t11;const t13=(-t10)+(t12*t11);f0[t1]=((((((-t12)+(t13*t11))+((t13*t2)*2))+((t12*((t11*t2)-1))*2))+((t10*f4[t1])*2))+(f5[t1]*t6));}}}
function k68c8c6d5(n0,f0,f1){for(let i=0;i<n0;i++){f0[i]=Math.exp(f1[i]);}}
function k68d688cb(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f1[i];const t4=f3[i];const t5=f4[i];const t6=f5[i];const t7=(t6<2.2250738585072014e-308)?Infinity:t6;const t8=f7[i];for(let j=0;j<n1;j++){const t1=t0+j;const t3=-f2[t1];f0[t1]=((((t2+(t3*t4))/t5)/t7)+(((f6[t1]+(t3*t8))/t5)/t7));}}}
function k6910fe02(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<n0;i++){const t0=n1*i;const t3=f4[i];const t4=f5[i];const t5=f6[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f3[t1];f0[t1]=(((((f1[t1]+f2[t1])+(t2*t3))/t4)/t6)+(((f7[t1]+(t2*t7))/t4)/t6));}}}
function k696e8183(n0,f0,f1){for(let i=0;i<(n0*3);i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,f0[(t0+j)]);}f1[i]=a;}}
function k69bdd8c3(n0,x0,x1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=t2===y0[j];f0[t1]=(((f1[t1]+(-f2[t1]))+((!t3)?x0:0))+(((i===j)?false:t3)?x1:0));}}}
function k6a9f6575(n0,n1,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;for(let k=0;k<5;k++){a+=f0[(t2+(n1*k))];}f1[(t3+j)]=a;}}}
function k6ad8cf75(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2*2;const t4=(t3*f2[t1])-((t3*t2)-1);const t5=-t4;f0[t1]=((t2<-0.7071067811865475)?(t5-6):((t2<6.123233995736766e-17)?(t4-4):((t2<0.7071067811865476)?(t5-2):t4)));}}}
function k6b2b8d1f(n0,f0,f1){for(let i=0;i<n0;i++){const t0=202*i;for(let j=0;j<202;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function k6b2dd37d(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){a+=(-f0[(t0+j)]);}}return a;}
function k6b68d3cb(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){const t8=n1*5;for(let i=0;i<(n0*5);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=i%5;const t9=t8*Math.floor(i/5);const t10=(n1*t7)+t9;const t11=t7+t9;const t12=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[(t10+j)]+f7[(t11+(5*j))])+(t2*t12))/t4)/t6));}}}
function k6b6ac5e3(n0,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=-f1[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?0:(-((t2+(f2[t1]*2))-f1[j])));}}}
function k6bc3c875(n0,x0,f0,f1,u0,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=f1[i];for(let j=0;j<n0;j++){const t1=t0+j;u0[t1]=(((i===j)?false:(t2===y0[j]))&&((f0[t1]-x0)<t3))?1:0;}}}
function k6c007fc2(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){f0[i]=((Math.log(Math.max(f1[i],1))+Math.max(f2[i],-1.7976931348623157e+308))-f3[i]);}}
function k6c353db9(n0,n1,u0,u1){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(3*j);for(let k=0;k<3;k++){if((u0[(t2+k)] !== 0))a=1;}u1[(t3+j)]=a;}}}
function k6c3d5ccd(n0,f0,f1,u0){for(let i=0;i<n0;i++){let a=0;const t0=3*i;for(let j=0;j<3;j++){const t1=t0+j;a+=((u0[t1] !== 0)?f0[t1]:0);}f1[i]=a;}}
function k6c8bcf36(n0,f0,f1,f2,f3,f4,f5){const t0=n0**2;const t1=f1[t0];const t3=t0+1;const t5=(n0+t0)+1;for(let i=0;i<t0;i++){const t2=f2[i];const t4=f4[i];const t6=f5[i];f0[i]=(((t1-f1[(t2<0?t2+t3:t2)])-f3[(t4<0?t4+t5:t4)])+f3[(t6<0?t6+t5:t6)]);}}
function k6dbb3315(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f1[i];const t3=u0[i] !== 0;const t4=Math.sqrt(f3[i]);const t5=f6[i];const t6=f7[i];const t7=f8[i];const t8=(t7<2.2250738585072014e-308)?Infinity:t7;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2*(t3?0:(f2[t1]/t4)))+(((f4[t1]+((-f5[t1])*t5))/t6)/t8));}}}
function k6e28d72c(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.max(((f1[t1]+1)*25),0),50);f0[t1]=(t2-Math.min(Math.floor(t2),49));}}}
function k6e336d28(n0,n1,f0,f1,f2){for(let i=0;i<(n0*5);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k6edb98de(n0,u0,u1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t1=y0[i];const t2=u1[i] !== 0;for(let j=0;j<n0;j++){u0[(t0+j)]=(((i===j)?false:(t1===y0[j]))&&(t2||(u1[j] !== 0)))?1:0;}}}
function k6f7cce59(n0,n1,u0,y0){for(let i=0;i<n0;i++){const t0=y0[i];const t2=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0===j;for(let k=0;k<5;k++){if(t1)a=1;}u0[(t2+j)]=a;}}}
function k6fc1a4d9(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=102*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(-f1[t1])*12.5;const t4=f4[t1];f0[t1]=(-((((t2>=0)&&(t2<=50))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*12.5));}}}
function k701abe81(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t1=y0[i];for(let j=0;j<n0;j++){f0[f1[(t0+j)]]+=((!(t1===y0[j]))?1:0);}}}
function k701dd387(x0,f0,f1){for(let i=0;i<3;i++){let a=0;a+=(f0[i]*((Math.floor((i/3))!==-100)?x0:0));f1[i]=a;}}
function k7177de57(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]*2);}}}
function k719e3dc7(n0,f0,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t1=y0[i];for(let j=0;j<n0;j++){const t2=t1===y0[j];f0[(t0+j)]=((((i===j)?false:t2)||(!t2))?1:0);}}}
function k71a38771(n0,n1,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=y0[i];const t1=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,((!(t0===j))?(x0*f0[(t1+j)]):-Infinity));}f1[i]=a;}}
function k71ab157c(n0,x0,f0,f1,f2,f3,u0){for(let i=0;i<n0;i++){const t0=((f1[i]>0)&&(f2[i]>0))?x0:0;const t1=f3[i];f0[i]=((u0[i] !== 0)?t0:((t0*t1)/(t1+1)));}}
function k72222f67(n0,n1,f0,f1,f2){for(let i=0;i<5;i++){const t0=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<n1;k++){a+=(f0[(i+(5*k))]*f1[(j+(n0*k))]);}f2[(t0+j)]=a;}}}
function k7241393c(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=12*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function k72799fff(n0,n1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];const t3=f1[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2===j)?(t3*f2[t1]):-Infinity);}}}
function k72e070b2(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t1=y0[i];const t2=(f1[i]>=0)?x0:0;for(let j=0;j<n0;j++){f0[(t0+j)]=(((i===j)?false:(t1===y0[j]))?t2:0);}}}
function k74c5f17c(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(x0*f1[t1]);}}}
function k74de847c(n0,f0,f1){for(let i=0;i<(n0*2);i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function k751cf7df(n0,f0,f1,f2){for(let i=0;i<(n0**2);i++){f0[i]=(f1[i]*f2[i]);}}
function k7520f553(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){a+=f0[(t0+j)];}f1[i]=a;}}
function k752a1cc0(n0,x0,f0,f1,f2,f3,f4,f5,f6,f7,f8,y0){const t3=n0**2;const t4=n0+t3;for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((((!(t2===y0[j]))?((f1[(t4+(-1*f2[t1]))]+f1[(t4+(-1*f3[t1]))])+f4[(t3+(-1*f5[t1]))]):0)+((-f6[t1])*f7[t1]))+(x0*f8[t1]));}}}
function k758ed9e4(x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*x3));return a;}
function k75a806c1(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k75c0b1e8(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=402*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function k76eff2be(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=3*i;const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<3;k++){a+=(f0[(t0+k)]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function k76f135de(n0,x0,x1,x2,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t8=f5[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];const t3=1-t2;const t4=t2+1;const t5=(t3*t4)>0;const t6=(-f2[t1])*x0;const t7=t5?((t5?(t6*x1):0)/(f3[t1]*2)):0;f0[t1]=((((t7*t3)+(-(t7*t4)))+(t6*x2))+((f4[t1]*t8)*x0));}}}
function k7702a001(n0,f0,f1){for(let i=0;i<(n0*5);i++){f0[i]=Math.log(f1[i]);}}
function k7713b3bb(n0,x0,f0,f1,f2,f3){for(let i=0;i<n0;i++){f0[i]=((((f1[i]>0)&&(f2[i]>0))?x0:0)/Math.max(f3[i],1));}}
function k77dafc0f(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=((t2*2)*f2[t1])-f3[t1];const t4=-t3;f0[t1]=((t2<-0.8090169943749473)?(t3-8):((t2<-0.30901699437494734)?(t4-6):((t2<0.30901699437494745)?(t3-4):((t2<0.8090169943749475)?(t4-2):t3))));}}}
function k781f4016(n0,n1,u0,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t1=y0[i];for(let j=0;j<n1;j++){u0[(t0+j)]=(t1===j)?1:0;}}}
function k782789b7(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){a+=f0[(t0+j)];}f1[i]=a;}}
function k785bd0c0(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=i*n0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max(((f1[f2[t1]]-f1[(t2+j)])+x0),0);}}}
function k7865d3f2(x0,x1){let a=0;for(let i=0;i<2;i++){a+=((i<1)?x0:x1);}return a;}
function k78872e7c(n0,f0,u0){for(let i=0;i<n0;i++){u0[i]=(Math.sqrt(f0[i])===0)?1:0;}}
function k78a1077e(n0,n1,f0,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t1=5*i;for(let j=0;j<5;j++){u0[(t0+f0[(t1+j)])]=1;}}}
function k78a29440(x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/3)));return a;}
function k78a9a7fd(n0,n1,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=Math.exp(((f1[t1]/x0)-f2[t1]));}}}
function k78fa656c(n0,n1,u0,y0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=y0[i];for(let j=0;j<(n1*2);j++){u0[(t1+j)]=(t2===Math.floor(j/2))?1:0;}}}
function k793b960a(n0,x0,x1,f0,f1){const t2=x0+x1;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max((t2+f1[t1]),0);}}}
function k794df069(n0,n1,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)+(f3[t1]*t3))/x0);}}}
function k795891a0(n0,f0,f1,u0){for(let i=0;i<n0;i++){let a=0;const t0=5*i;for(let j=0;j<5;j++){const t1=t0+j;a+=((u0[t1] !== 0)?f0[t1]:0);}f1[i]=a;}}
function k79959e10(n0,n1,f0,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=200*i;for(let j=0;j<200;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function k79c9e72d(n0,n1,u0,u1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(2*j);for(let k=0;k<2;k++){if((u0[(t2+k)] !== 0))a=1;}u1[(t3+j)]=a;}}}
function k7a032bb2(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity,b=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=(t0===y0[j])?-Infinity:f0[(t1+j)];if(t2>a){a=t2;b=j;}}f1[i]=b;}}
function k7a4c3f36(n0,f0,f1,f2){for(let i=0;i<(n0*2);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=(f0[(t0+j)]*t1);}f2[i]=a;}}
function k7a8bc186(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=22*i;const t1=11*i;const t2=10+t1;const t4=f2[i];const t5=-11+t1;const t6=21+t1;for(let j=0;j<22;j++){const t3=-1*j;f0[(t0+j)]=((((j>=0)&&(j<11))?f1[(t2+t3)]:0)+(((j>=11)&&(j<22))?((t4*f3[(t5+j)])+f4[(t6+t3)]):0));}}}
function k7a957cec(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/(n0*2))));return a;}
function k7b670818(n0,f0,f1,f2){const t1=(n0+(n0**2))+1;for(let i=0;i<(n0**2);i++){const t0=f1[i];f0[(t0<0?t0+t1:t0)]+=f2[i];}}
function k7bc59596(n0,x0,x1,f0,f1,f2,u0){const t0=x0/x1;for(let i=0;i<n0;i++){const t1=f1[i];f0[i]=(((u0[i] !== 0)?t0:((t0*t1)/(t1+1)))/Math.max(f2[i],1));}}
function k7bf5f92e(n0,n1,x0,f0,f1,f2){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<2;j++){const t2=t1+(n1*j);const t3=t1+j;for(let k=0;k<n1;k++){f0[(t2+k)]=Math.exp(((f1[(t3+(2*k))]/x0)-f2[(t4+k)]));}}}}
function k7bf73873(n0,x0,x1){let a=0;const t0=x0!==0;const t1=x1!==0;for(let i=0;i<n0;i++){a+=(((((i===0)&&true)&&t0)&&t1)?1:0);}return a;}
function k7c3832b6(n0,x0,f0,f1){let a=0;for(let i=0;i<n0;i++){a+=Math.max((f0[i]+(x0*f1[i])),0);}return a;}
function k7c92a0e6(n0,f0,u0){for(let i=0;i<n0;i++){const t0=3*i;for(let j=0;j<3;j++){u0[(t0+f0[(t0+j)])]=1;}}}
function k7c9c0038(n0,x0,f0){for(let i=0;i<n0;i++){f0[i]=((Math.floor(i)!==-100)?x0:0);}}
function k7c9ec4cb(n0,n1,n2,f0,f1,f2){const t0=n2*10;for(let i=0;i<n0;i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n2*10);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k7cbc6866(n0,u0,u1){for(let i=0;i<n0;i++){let a=0;const t0=5*i;for(let j=0;j<5;j++){if((u0[(t0+j)] !== 0))a=1;}u1[i]=a;}}
function k7ce19741(n0,n1,f0,f1,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<(n1*2);j++){const t2=t1+j;f0[t2]=((u0[t2] !== 0)?f1[(t3+Math.floor(j/2))]:0);}}}
function k7cf3552d(n0,x0,x1,f0,f1,f2,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;const t3=x0*(f0[t2]-x1);a+=((!(t0===y0[j]))?((t3>50)?t3:Math.log1p(f1[t2])):0);}f2[i]=a;}}
function k7d0e395b(n0,f0){let a=0;for(let i=0;i<n0;i++){a+=f0[i];}return a;}
function k7d8d8604(n0,n1,f0,f1,f2){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(2*j);const t4=t3+j;const t5=f1[t4];for(let k=0;k<2;k++){a+=((f0[(t2+k)]===t5)?1:0);}f2[t4]=a;}}}
function k7dabb690(n0,n1,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((!(i===y0[j]))?(x0*(f1[t1]+x1)):-Infinity);}}}
function k7de33230(n0,f0,f1,f2,f3,f4){let a=0;for(let i=0;i<n0;i++){const t0=f0[i];a+=(((t0>0)&&(f1[i]>0))?((Math.log(Math.max(f2[i],1))+Math.max(f3[i],-1.7976931348623157e+308))-(f4[i]/Math.max(t0,1))):0);}return a;}
function k7dfe8507(n0,n1,n2,f0,f1,f2){const t2=n1*3;for(let i=0;i<n0;i++){const t0=n2*i;const t3=t2*i;for(let j=0;j<(n1*3);j++){let a=0;const t1=n2*j;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t3+j)]=a;}}}
function k7e98e2dc(n0,n1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]+(((t2===j)?1:0)*4));}}}
function k7e99130c(n0,n1,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n1*i;const t2=-f1[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2+(f2[t1]*2))-f3[j]);}}}
function k7f1c0a1a(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n0;j++){const t1=t0+j;const t3=f1[t1]-t2;f0[t1]=Math.exp(((t3<=-80)?-Infinity:t3));}}}
function k7f8133c4(n0,n1,f0,f1,u0){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=((u0[t1] !== 0)?f0[t1]:0);}f1[i]=a;}}
function k80580d3b(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){let a=0;const t0=f0[i];const t1=41+(42*i);const t3=21*i;const t4=20+t3;for(let j=0;j<21;j++){const t2=-1*j;const t5=t4+t2;const t6=f2[t5]+f3[t5];a+=(((t0*f1[(t1+t2)])/((t6>0)?t6:1))+f4[t5]);f5[(t3+j)]=a;}}}
function k80d21767(f0,f1){for(let i=0;i<3;i++){let a=-Infinity;a=Math.max(a,f0[i]);f1[i]=a;}}
function k81203f59(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=100*i;for(let j=0;j<10;j++){const t1=t0+(10*j);for(let k=0;k<10;k++){a+=((((k-j)>=1)&&true)?Math.sqrt(Math.max((2.00001-(f0[(t1+k)]*2)),1e-12)):0);}}}return a;}
function k818eeb88(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*2);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function k82c148bd(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=21*i;for(let j=0;j<21;j++){const t1=t0+j;const t2=f1[t1];const t3=f2[t1]+t2;f0[t1]=(t2/((t3>0)?t3:1));}}}
function k83135b73(n0,f0,f1){for(let i=0;i<(n0*2);i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,f0[(t0+j)]);}f1[i]=a;}}
function k83241a4e(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;a+=f0[i];f1[i]=a;}}
function k8383afc4(n0,n1,f0,f1,f2,f3,f4,f5,f6){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f1[i]<=(f2[i]*2.220446049250313e-16);const t3=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(t2?0:(((t3*(f4[t1]*2))+f5[t1])+f6[t1]));}}}
function k83960010(n0,n1,f0,y0){for(let i=0;i<n0;i++){let a=0;for(let j=0;j<n1;j++){a+=((i===y0[j])?1:0);}f0[i]=a;}}
function k839e2c42(n0,n1,f0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n1;j++){a+=((!(t0===j))?1:0);}f0[i]=a;}}
function k83c9c6ec(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/(n0*90))));return a;}
function k84a22ef7(n0,n1,f0,f1,f2,f3){const t2=n1*5;for(let i=0;i<(n0*5);i++){let a=0;const t0=n1*i;const t1=i%5;const t3=t2*Math.floor(i/5);const t4=(n1*t1)+t3;const t5=t1+t3;for(let j=0;j<n1;j++){a+=(f0[(t0+j)]*(f1[(t4+j)]+f2[(t5+(5*j))]));}f3[i]=a;}}
function k84e038da(n0,f0,f1){for(let i=0;i<n0;i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function k8524bb83(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=12*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function k85c1b1b3(f0,f1){for(let i=0;i<3;i++){const t0=3*i;const t1=f1[i];for(let j=0;j<3;j++){f0[(t0+j)]=t1;}}}
function k85e2a69f(n0,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];for(let j=0;j<n0;j++){if(((i===j)?false:(t0===y0[j])))a=1;}u0[i]=a;}}
function k8631b4fe(n0,n1,x0,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(5*j);for(let k=0;k<5;k++){a=Math.max(a,(f0[(t2+k)]/x0));}f1[(t3+j)]=a;}}}
function k8706f4f9(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=f1[t1];f0[t1]=((!(t2===y0[j]))?((x0*Math.max((t3+x1),0))*(t3-x1)):-Infinity);}}}
function k872e737f(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;const t2=f2[i];const t3=(t2===0)?1:t2;for(let j=0;j<n0;j++){const t1=t0+j;a+=((-f0[t1])*(f1[t1]/t3));}f3[i]=a;}}
function k874d8e26(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){let a=0;const t0=f0[i];const t1=101+(102*i);const t3=51*i;const t4=50+t3;for(let j=0;j<51;j++){const t2=-1*j;const t5=t4+t2;const t6=f2[t5]+f3[t5];a+=(((t0*f1[(t1+t2)])/((t6>0)?t6:1))+f4[t5]);f5[(t3+j)]=a;}}}
function k878030b3(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=25*i;for(let j=0;j<5;j++){const t1=t0+(5*j);for(let k=0;k<5;k++){const t2=t1+k;const t3=2.00001-(f1[t2]*2);f0[t2]=((-((t3>=1e-12)?(((((k-j)>=1)&&true)?x0:0)/(Math.sqrt(Math.max(t3,1e-12))*2)):0))*2);}}}}
function k87c0931e(n0,f0,f1,f2,f3){for(let i=0;i<(n0*2);i++){const t0=n0*i;const t2=f2[i];const t3=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]-t2)-t3);}}}
function k8898a7cd(n0,f0,f1){for(let i=0;i<(n0*3);i++){f0[i]=Math.log(f1[i]);}}
function k8903300e(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=5*i;for(let j=0;j<5;j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t2+j)]=a;}}}
function k8939fe36(n0,x0,f0,f1){const t0=n0**2;let a=0;for(let i=0;i<(t0+1);i++){const t1=t0+(-1*i);a+=(f0[t1]+((t1===t0)?x0:0));f1[i]=a;}}
function k89dd19b2(n0,n1,f0,f1,f2){const t0=n0*3;for(let i=0;i<(n0*3);i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*3);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function k8c9350de(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=11+(22*i);const t1=11*i;for(let j=0;j<11;j++){a+=(f0[(t0+j)]*f1[(t1+j)]);}f2[i]=a;}}
function k8c9cb9ea(n0,x0,x1,f0,f1,f2,f3,u0,u1){let a=0;for(let i=0;i<n0;i++){a+=((((u0[i] !== 0)?f0[i]:Math.log1p(f1[i]))/x0)+(((u1[i] !== 0)?f2[i]:Math.log1p(f3[i]))/x1));}return a;}
function k8ddbe26a(n0,n1,f0,f1,f2){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t3=100*i;for(let j=0;j<n1;j++){const t2=t1+j;const t5=t1+(10*j);for(let k=0;k<10;k++){let a=0;const t4=t3+k;for(let l=0;l<10;l++){a+=(f0[(t2+(n1*l))]*f1[(t4+(10*l))]);}f2[(t5+k)]=a;}}}}
function k8e62c957(n0,x0,f0,f1,f2,f3,f4,f5,f6,f7,y0){const t1=n0**2;const t2=f0[t1];const t6=t1+1;const t8=(n0+t1)+1;for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t3=n0*i;for(let j=0;j<n0;j++){const t4=t3+j;const t5=f1[t4];const t7=f3[t4];const t9=f4[t4];a+=(((i===j)?false:(t0===y0[j]))?((((t2-f0[(t5<0?t5+t6:t5)])-f2[(t7<0?t7+t8:t7)])+f2[(t9<0?t9+t8:t9)])-(f5[t4]*(f6[t4]-x0))):0);}f7[i]=a;}}
function k8eb87ee7(n0,f0,f1,u0){for(let i=0;i<n0;i++){let a=-Infinity;a=Math.max(a,((u0[i] !== 0)?f0[i]:-Infinity));f1[i]=a;}}
function k8ebbcbca(n0,f0,f1,f2,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;a+=(((i===j)?false:(t0===y0[j]))?((u0[t2] !== 0)?f0[t2]:Math.log1p(f1[t2])):0);}f2[i]=a;}}
function k8ef562f8(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=6*i;const t4=f3[i];const t5=6+(12*i);for(let j=0;j<6;j++){const t1=t0+j;const t2=f1[t1]+f2[t1];const t3=t2>0;f0[t1]=(t3?((-(t4*f4[(t5+j)]))*(f5[t1]/(t3?t2:1))):0);}}}
function k8f2be0fe(n0,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)+(f3[t1]*t3))*x0);}}}
function k8f4ed05d(n0,n1,f0,f1){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=100*i;for(let j=0;j<10;j++){const t2=t1+(n1*j);const t5=t4+(10*j);for(let k=0;k<10;k++){let a=0;const t3=t1+(n1*k);for(let l=0;l<n1;l++){a+=(f0[(t2+l)]*f0[(t3+l)]);}f1[(t5+k)]=a;}}}}
function k8f6dbff2(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=51*i;const t4=f3[i];const t5=51+(102*i);for(let j=0;j<51;j++){const t1=t0+j;const t2=f1[t1]+f2[t1];const t3=t2>0;f0[t1]=(t3?((-(t4*f4[(t5+j)]))*(f5[t1]/(t3?t2:1))):0);}}}
function k8f6ef864(n0,n1,f0,f1,y0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=y0[i];for(let j=0;j<(n1*5);j++){const t2=t1+j;f0[t2]=(f1[t2]+(((t3===Math.floor(j/5))?1:0)*4));}}}
function k8f7d1b48(n0,x0,f0){let a=0;for(let i=0;i<n0;i++){a+=(x0*Math.abs(f0[i]));}return a;}
function k8fd8b89e(n0,f0,u0){for(let i=0;i<n0;i++){const t0=5*i;for(let j=0;j<5;j++){u0[(t0+f0[(t0+j)])]=1;}}}
function k8fda4f38(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=t2===y0[j];f0[t1]=((((i===j)?false:t3)||(!t3))?(f1[t1]/x0):-Infinity);}}}
function k90e407f6(n0,u0,u1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t1=y0[i];const t2=u1[i] !== 0;for(let j=0;j<n0;j++){u0[(t0+j)]=(!(((i===j)?false:(t1===y0[j]))&&t2))?1:0;}}}
function k910e8154(n0,n1,x0,x1,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)*x0)+((f3[t1]*t3)*x1));}}}
function k915a1455(x0,x1,x2,x3,x4,x5){let a=0;a+=(((x0/x1)+(x2/x3))+(x4/x5));return a;}
function k91964742(f0,f1){for(let i=0;i<5;i++){const t0=5*i;const t1=f1[i];for(let j=0;j<5;j++){f0[(t0+j)]=t1;}}}
function k928db683(n0,x0,x1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=102*i;for(let j=0;j<51;j++){a+=((f0[(t0+j)]/x0)*(f1[j]/x1));}f2[i]=a;}}
function k93b81019(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*2);i++){const t0=n1*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function k93d59cf0(n0,x0,f0,f1,f2,f3,u0){for(let i=0;i<n0;i++){const t0=(f1[i]>0)?x0:0;const t1=f2[i];f0[i]=(((u0[i] !== 0)?t0:((t0*t1)/(t1+1)))/Math.max(f3[i],1));}}
function k93d7be10(n0,n1,f0,f1,u0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<(n1*3);j++){const t2=t1+j;f0[t2]=((u0[t2] !== 0)?f1[(t3+Math.floor(j/3))]:0);}}}
function k93e0f4e8(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=22*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function k9484557b(n0,f0,f1,f2){for(let i=0;i<n0;i++){f0[i]=(f1[i]/Math.max(f2[i],1));}}
function k948b6667(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=6+(12*i);const t1=6*i;for(let j=0;j<6;j++){a+=(f0[(t0+j)]*f1[(t1+j)]);}f2[i]=a;}}
function k9494c2be(n0,x0,f0,f1,u0){const t3=x0/2;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];f0[t1]=((t2<=0)?0:((((u0[t1] !== 0)?t3:0)*0.5)*(t2*2)));}}}
function k94bfe903(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.floor(Math.min(Math.max(((f1[t1]+1)*10),0),20)),19);f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?21:0));}}}
function k94c36a9f(n0,n1,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)*x0)+((f3[t1]*t3)*x0));}}}
function k94f08ef0(n0,u0,u1){for(let i=0;i<n0;i++){let a=0;const t0=3*i;for(let j=0;j<3;j++){if((u0[(t0+j)] !== 0))a=1;}u1[i]=a;}}
function k957de67a(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function k95de3b32(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!((i===j)?false:(t2===y0[j])))?Infinity:(f1[t1]-x0));}}}
function k96710b8e(n0,n1,f0,f1,f2){for(let i=0;i<(n0*10);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k96e1abb9(n0,n1,u0,y0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t2=y0[i];for(let j=0;j<(n1*3);j++){u0[(t1+j)]=(t2===Math.floor(j/3))?1:0;}}}
function k96edc58c(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=21*i;const t4=f3[i];const t5=21+(42*i);for(let j=0;j<21;j++){const t1=t0+j;const t2=f1[t1]+f2[t1];const t3=t2>0;f0[t1]=(t3?((-(t4*f4[(t5+j)]))*(f5[t1]/(t3?t2:1))):0);}}}
function k978301da(f0,f1,f2){for(let i=0;i<3;i++){let a=0;a+=Math.exp((f0[i]-f1[i]));f2[i]=a;}}
function k978d122d(n0,x0,x1,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max(((x0-f1[t1])-x1),0);}}}
function k980e5b8a(n0,n1,n2,f0,f1,f2){const t2=n1*10;for(let i=0;i<n0;i++){const t0=n2*i;const t3=t2*i;for(let j=0;j<(n1*10);j++){let a=0;const t1=n2*j;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t3+j)]=a;}}}
function k983525e5(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function k98f0de46(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=22*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function k996565f7(n0,f0,u0){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){a+=((u0[(t0+j)] !== 0)?1:0);}f0[i]=a;}}
function k999a05f3(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f1[i]===0;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(t2?0:f2[t1]);}}}
function k99be3962(n0,n1,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2===j)?(f1[t1]/x0):-Infinity);}}}
function k99d68265(n0,f0,f1){const t0=n0*2;for(let i=0;i<(n0*2);i++){const t1=t0*i;const t2=n0*i;for(let j=0;j<(n0*2);j++){f0[(t1+j)]=f1[(t2+Math.floor(j/2))];}}}
function k9a937c0c(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.max((x0-f1[t1]),0);f0[t1]=((t2<=0)?0:((((i===j)?false:(t3===y0[j]))?x1:0)*(t2*2)));}}}
function k9aaf1886(n0,n1,x0,x1,x2,x3,f0,f1,f2,f3,f4,f5,f6,f7){for(let i=0;i<n0;i++){const t0=n1*i;const t7=f3[i];const t11=f6[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=1-t2;const t4=t2+1;const t5=(t3*t4)>0;const t6=t2<x0;const t8=(f2[t1]*t7)*x1;const t9=t6?0:t8;const t10=t5?((t5?((-t9)*x2):0)/(f4[t1]*2)):0;f0[t1]=((((((t10*t3)+(-(t10*t4)))+(t9*x3))+(t6?t8:0))+((f5[t1]*t11)*x1))/f7[t1]);}}}
function k9b48a144(n0,n1,n2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(i+(n0*k))]*f1[(j+(n1*k))]);}f2[(t0+j)]=a;}}}
function k9c6e64e3(n0,n1,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];const t3=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t4=((!(t2===j))?f1[t1]:-Infinity)-t3;f0[t1]=Math.exp(((t4<=-80)?-Infinity:t4));}}}
function k9cff832b(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=51*i;const t1=50+t0;for(let j=0;j<51;j++){a+=f0[(t1+(-1*j))];f1[(t0+j)]=a;}}}
function k9d1e2913(n0,n1,f0,f1){const t2=n0*2;for(let i=0;i<(n0*2);i++){const t0=n1*i;const t3=t2*i;for(let j=0;j<(n0*2);j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t3+j)]=a;}}}
function k9d4183c8(n0,n1,n2,f0,f1,f2){const t2=n1*2;for(let i=0;i<n0;i++){const t0=n2*i;const t3=t2*i;for(let j=0;j<(n1*2);j++){let a=0;const t1=n2*j;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t3+j)]=a;}}}
function k9db83df3(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=21+(42*i);const t1=21*i;for(let j=0;j<21;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function k9fbdf9f2(n0,f0,f1,f2,f3){for(let i=0;i<5;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function ka2719e75(n0,n1,f0,f1,f2){const t0=n0*2;for(let i=0;i<(n0*2);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*2);k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function ka2deab37(n0,n1,u0,y0){for(let i=0;i<n0;i++){const t0=y0[i];const t1=n1*i;for(let j=0;j<n1;j++){let a=0;if((t0===j))a=1;u0[(t1+j)]=a;}}}
function ka34684f7(n0,f0,f1){for(let i=0;i<n0;i++){f0[i]=f1[i];}}
function ka3c355cd(n0,n1,f0,f1,f2){for(let i=0;i<(n0*10);i++){let a=0;const t0=n1*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n1;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function ka4ad1a01(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=100*i;for(let j=0;j<10;j++){const t1=t0+(10*j);for(let k=0;k<10;k++){const t2=t1+k;const t3=2.00001-(f1[t2]*2);f0[t2]=((-((t3>=1e-12)?(((((k-j)>=1)&&true)?x0:0)/(Math.sqrt(Math.max(t3,1e-12))*2)):0))*2);}}}}
function ka4fce9c0(n0,n1,n2,f0,f1,f2){const t0=n0*10;for(let i=0;i<(n0*10);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function ka5d859ff(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){a+=(-f0[(t0+j)]);}f1[i]=a;}}
function ka613e60b(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?6:0));}}}
function ka6e3294a(n0,f0,f1,f2){let a=0;const t0=n0+(n0**2);for(let i=0;i<((n0+(n0**2))+1);i++){const t1=t0+(-1*i);a+=(f0[t1]+f1[t1]);f2[i]=a;}}
function ka6f0b9dd(n0,n1,x0,f0,f1,f2,u0){const t2=-x0;for(let i=0;i<n0;i++){const t0=n1*i;const t3=f2[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((u0[t1] !== 0)?t2:0)+(f1[t1]*t3));}}}
function ka73d6f2c(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f1[i];const t3=-t2;const t4=(t2===0)?1:t2;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((t3+(f2[t1]*2))-f1[j])/t4);}}}
function ka73dd07f(n0,n1,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((!(t2===j))?(f1[t1]/x0):-Infinity);}}}
function ka7c444bc(n0,n1,f0,f1){for(let i=0;i<(n0*3);i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function kaa5adde5(n0,n1,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((!(t2===j))?(x0*f1[t1]):-Infinity);}}}
function kaaef5afa(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/(n0*20))));return a;}
function kac381200(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=42*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(f1[t1]+1)*10;const t4=f4[t1];f0[t1]=((((t2>=0)&&(t2<=20))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*10);}}}
function kac486688(n0,n1,n2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n2*i;const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<n2;k++){a+=(f0[(t0+k)]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function kac59d4e6(n0,n1,f0,f1){const t2=n0*5;for(let i=0;i<(n0*5);i++){const t0=n1*i;const t3=t2*i;for(let j=0;j<(n0*5);j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t3+j)]=a;}}}
function kac9a921f(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/(n0*3))));return a;}
function kace75744(n0,n1,x0,f0,f1,f2){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<5;j++){const t2=t1+(n1*j);const t3=t1+j;for(let k=0;k<n1;k++){f0[(t2+k)]=Math.exp(((f1[(t3+(5*k))]/x0)-f2[(t4+k)]));}}}}
function kad7d3f97(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=Math.max(f2[i],-1.7976931348623157e+308);for(let j=0;j<n1;j++){const t1=t0+j;const t3=f1[t1]-t2;f0[t1]=Math.exp(((t3<=-80)?-Infinity:t3));}}}
function kad9d15cf(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=0;for(let j=0;j<n1;j++){a+=f0[(i+(n0*j))];}f1[i]=a;}}
function kae5d2891(f0,f1){let a=0;for(let i=0;i<51;i++){a+=f0[i];f1[i]=a;}}
function kae698681(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.max(((-f1[t1])*12.5),0),50);}}}
function kaec619c8(x0,f0,f1,f2,f3){for(let i=0;i<3;i++){f0[i]=((f1[i]*((Math.floor((i/3))!==-100)?x0:0))-(Math.exp(f2[i])*f3[i]));}}
function kaf15f6b0(n0,f0,f1){for(let i=0;i<(n0*5);i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,f0[(t0+j)]);}f1[i]=a;}}
function kafb06cc2(n0,n1,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=y0[i];const t1=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,((!(t0===j))?f0[(t1+j)]:-Infinity));}f1[i]=a;}}
function kafb2114d(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=22*i;const t1=11*i;for(let j=0;j<11;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function kafc5197d(n0,f0,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;u0[t1]=(f0[t1]>50)?1:0;}}}
function kb06b152b(n0,f0,f1,f2){for(let i=0;i<5;i++){const t0=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<5;k++){a+=(f0[(i+(5*k))]*f1[(j+(n0*k))]);}f2[(t0+j)]=a;}}}
function kb1016400(n0,f0,f1){for(let i=0;i<n0;i++){const t0=i<0?i+n0:i;const t1=n0*i;for(let j=0;j<n0;j++){f0[t0]+=f1[(t1+j)];}}}
function kb1264524(n0,x0,x1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=42*i;for(let j=0;j<21;j++){a+=((f0[(t0+j)]/x0)*(f1[j]/x1));}f2[i]=a;}}
function kb18049a4(n0,n1,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2<6.123233995736766e-17;const t5=f2[t1]*t4;const t6=(t3?0:t5)+(-(t3?t5:0));f0[t1]=(((t6*(t2*2))+((t6*t2)*2))+(f4[t1]*t4));}}}
function kb1a4b13e(n0,f0,f1,f2){for(let i=0;i<(n0*3);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=(f0[(t0+j)]*t1);}f2[i]=a;}}
function kb232151b(n0,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)*x0)+((-(f3[t1]*t3))*x0));}}}
function kb239a554(n0,n1,u0,y0){for(let i=0;i<n0;i++){const t0=y0[i];const t2=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0===j;for(let k=0;k<3;k++){if(t1)a=1;}u0[(t2+j)]=a;}}}
function kb25d69dc(n0,x0,x1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=402*i;for(let j=0;j<201;j++){a+=((f0[(t0+j)]/x0)*(f1[j]/x1));}f2[i]=a;}}
function kb2b51330(n0,f0,f1){for(let i=0;i<n0;i++){const t0=42*i;for(let j=0;j<42;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kb3a66dfb(n0,f0,f1,f2,f3,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((((f1[t1]>=0)&&(f2[(t0+f3[t1])]>-Infinity))&&((i===j)?false:(t2===y0[j])))?1:0);}}}
function kb3ded2f2(n0,n1,f0,f1,f2,f3){const t2=n1*2;for(let i=0;i<(n0*2);i++){let a=0;const t0=n1*i;const t1=i%2;const t3=t2*Math.floor(i/2);const t4=(n1*t1)+t3;const t5=t1+t3;for(let j=0;j<n1;j++){a+=(f0[(t0+j)]*(f1[(t4+j)]+f2[(t5+(2*j))]));}f3[i]=a;}}
function kb45602a1(n0,f0,f1){for(let i=0;i<(n0*5);i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function kb46228d2(n0,n1,f0,u0){for(let i=0;i<n0;i++){const t0=n1*i;const t1=8*i;for(let j=0;j<8;j++){u0[(t0+f0[(t1+j)])]=1;}}}
function kb504581a(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((-f1[t1])+(f2[t1]*t2));}}}
function kb636f482(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(f1[t1]-f2[t1]);}}}
function kb70ea80f(n0,n1,f0,f1,f2){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;const t3=t1+(2*j);for(let k=0;k<2;k++){a+=(f0[(t2+(n1*k))]*f1[(t3+k)]);}f2[(t4+j)]=a;}}}
function kb7426661(n0,f0,f1){for(let i=0;i<n0;i++){const t0=i<0?i+n0:i;const t1=n0*i;for(let j=0;j<n0;j++){f0[t0]+=((Math.abs(f1[(t1+j)])>1.7763568394002505e-15)?1:0);}}}
function kb7595e08(n0,u0,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i]===0;for(let j=0;j<5;j++){if(t0)a=1;}u0[i]=a;}}
function kb76d3204(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){a+=f0[(t0+j)];}}return a;}
function kb7715ada(n0,x0,x1,f0,f1,f2,f3,f4,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f3[t1];f0[t1]=((((-f1[t1])*x0)+((f2[t1]*t2)*x1))+((((t3===y0[j])?0:f4[t1])*t2)*x1));}}}
function kb795a55a(n0,n1,x0,f0,f1){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(10*j);for(let k=0;k<10;k++){a=Math.max(a,(f0[(t2+k)]/x0));}f1[(t3+j)]=a;}}}
function kb7c5a2b1(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=6*i;const t1=5+t0;for(let j=0;j<6;j++){a+=f0[(t1+(-1*j))];f1[(t0+j)]=a;}}}
function kb97241c7(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((i===j)?false:(t0===y0[j]))?f0[(t1+j)]:0);}f1[i]=a;}}
function kb9c96732(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=42*i;const t1=21*i;const t2=20+t1;const t4=f2[i];const t5=-21+t1;const t6=41+t1;for(let j=0;j<42;j++){const t3=-1*j;f0[(t0+j)]=((((j>=0)&&(j<21))?f1[(t2+t3)]:0)+(((j>=21)&&(j<42))?((t4*f3[(t5+j)])+f4[(t6+t3)]):0));}}}
function kba0a4c73(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!(t2===y0[j]))?(x0*f1[t1]):-Infinity);}}}
function kba406873(n0,x0,x1,x2,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=-f1[i];for(let j=0;j<n0;j++){const t1=t0+j;const t4=f2[t1];f0[t1]=(((!(t2===y0[j]))&&(t3<(t4+x0)))?(x1*(t4-x2)):-Infinity);}}}
function kba460200(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<(n0*2);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function kba6643d5(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=12*i;const t1=6*i;const t2=5+t1;const t4=f2[i];const t5=-6+t1;const t6=11+t1;for(let j=0;j<12;j++){const t3=-1*j;f0[(t0+j)]=((((j>=0)&&(j<6))?f1[(t2+t3)]:0)+(((j>=6)&&(j<12))?((t4*f3[(t5+j)])+f4[(t6+t3)]):0));}}}
function kba6a4532(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=4*i;for(let j=0;j<2;j++){const t1=t0+(2*j);for(let k=0;k<2;k++){a+=((((k-j)>=1)&&true)?Math.sqrt(Math.max((2.00001-(f0[(t1+k)]*2)),1e-12)):0);}}}return a;}
function kbabaaa61(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,(((i===j)?false:(t0===y0[j]))?(-f0[(t1+j)]):-Infinity));}f1[i]=a;}}
function kbadb5843(n0,f0,f1,u0,u1){for(let i=0;i<n0;i++){f0[i]=(f1[i]*(((u0[i] !== 0)&&(u1[i] !== 0))?1:0));}}
function kbae90c62(n0,n1,f0,f1,f2,f3,f4,f5,f6){for(let i=0;i<n0;i++){const t0=n1*i;const t7=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2<0.8090169943749475;const t4=t2<0.30901699437494745;const t5=t2<-0.30901699437494734;const t6=t2<-0.8090169943749473;const t8=f2[t1]*t7;const t9=t6?0:t8;const t10=t5?0:t9;const t11=t4?0:t10;const t12=((((t3?0:t11)+(-(t3?t11:0)))+(t4?t10:0))+(-(t5?t9:0)))+(t6?t8:0);const t13=t2*2;const t14=t12*t13;const t15=(-t12)+(t14*t13);const t16=(-t14)+(t15*t13);f0[t1]=(((((((-t15)+(t16*t13))+((t16*t2)*2))+((t15*((t13*t2)-1))*2))+((t14*f4[t1])*2))+((t12*f5[t1])*2))+(f6[t1]*t7));}}}
function kbb66aeae(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.max(((-f1[t1])*5),0),20);}}}
function kbb9893d2(n0,f0,f1,f2,f3,f4){for(let i=0;i<(n0*5);i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)-(Math.exp(f3[t1])*t3));}}}
function kbba854eb(n0,f0,f1){for(let i=0;i<3;i++){const t0=n0*i;const t2=3*i;for(let j=0;j<3;j++){let a=0;const t1=n0*j;for(let k=0;k<n0;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t2+j)]=a;}}}
function kbbd6bb86(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=102*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function kbbf92eef(n0,n1,f0,f1,f2){const t2=n1*5;for(let i=0;i<n0;i++){const t0=25*i;const t3=t2*i;for(let j=0;j<5;j++){const t1=t0+(5*j);const t5=t3+(n1*j);for(let k=0;k<n1;k++){let a=0;const t4=t3+k;for(let l=0;l<5;l++){a+=(f0[(t1+l)]*f1[(t4+(n1*l))]);}f2[(t5+k)]=a;}}}}
function kbc894081(f0,f1){for(let i=0;i<3;i++){f0[i]=Math.max(Math.sqrt(f1[i]),1);}}
function kbc8e63b3(n0,n1,f0,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*5);j++){u0[(t1+f0[(t1+j)])]=1;}}}
function kbcbf0992(n0,x0,x1,x2,x3,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t4=f5[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=f3[t1];f0[t1]=(((f1[t1]*t2)*(x0*Math.max((t3+x1),0)))+((f4[t1]*t4)*(x2*Math.max((x3-t3),0))));}}}
function kbcf69241(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){const t2=Math.max((x0-f0[(t1+j)]),0);a+=(((i===j)?false:(t0===y0[j]))?(t2*t2):0);}f1[i]=a;}}
function kbd46ef39(n0,n1,n2,f0,f1,f2){const t0=n2*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n2*5);k++){a+=(f0[(t1+k)]*f1[(j+(n1*k))]);}f2[(t2+j)]=a;}}}
function kbd78c6ba(n0,f0,f1,f2){for(let i=0;i<(n0*3);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=Math.exp((f0[(t0+j)]-t1));}f2[i]=a;}}
function kbd8968b8(n0,f0,f1,f2,u0,u1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=u0[i] !== 0;const t2=n0*i;for(let j=0;j<n0;j++){const t3=t2+j;a+=((((i===j)?false:(t0===y0[j]))&&t1)?((u1[t3] !== 0)?f0[t3]:Math.log1p(f1[t3])):0);}f2[i]=a;}}
function kbdbdad31(n0,f0,f1,f2,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[f1[t1]]+=((!(t2===y0[j]))?f2[t1]:0);}}}
function kbdca9abe(n0,x0,f0,f1,f2,f3,f4,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t4=x0*f2[i];const t5=x0*f4[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=t2===y0[j];f0[t1]=(((f1[t1]<=0)?0:((!t3)?t4:0))+(-((f3[t1]<=0)?0:(((i===j)?false:t3)?t5:0))));}}}
function kbdf6dca2(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2*2;f0[t1]=((t3*f2[t1])-((t3*t2)-1));}}}
function kbe02de97(n0,n1,f0,f1,f2){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(3*j);const t4=t3+j;const t5=f1[t4];for(let k=0;k<3;k++){a+=((f0[(t2+k)]===t5)?1:0);}f2[t4]=a;}}}
function kc06362e1(n0,x0,x1,x2,x3,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];const t4=t3===y0[j];f0[t1]=(((Math.max((t2-x0),0)<=0)?0:((!t4)?x1:0))+(-((Math.max((x2-t2),0)<=0)?0:(((i===j)?false:t4)?x3:0))));}}}
function kc0bf9bef(n0,n1,f0,f1,f2){for(let i=0;i<(n0*2);i++){let a=0;const t0=n1*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n1;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function kc10a3843(n0,x0,x1,x2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=202*i;for(let j=0;j<202;j++){f0[(t0+j)]=((((j>=0)&&(j<101))?((x0*(f1[j]/x1))/x2):0)+(((j>=101)&&(j<202))?f2[(201+(-1*j))]:0));}}}
function kc2a88bb6(n0,f0){for(let i=0;i<(n0*2);i++){const t0=Math.floor((i/2));f0[((n0*i)+((t0!==-100)?t0:0))]=-1;}}
function kc3337102(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=11*i;const t1=10+t0;for(let j=0;j<11;j++){a+=f0[(t1+(-1*j))];f1[(t0+j)]=a;}}}
function kc3968dec(n0,n1,u0,u1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(5*j);for(let k=0;k<5;k++){if((u0[(t2+k)] !== 0))a=1;}u1[(t3+j)]=a;}}}
function kc3d80fd8(n0,f0,f1,f2){for(let i=0;i<5;i++){const t0=5*i;const t1=n0*i;for(let j=0;j<n0;j++){let a=0;for(let k=0;k<5;k++){a+=(f0[(t0+k)]*f1[(j+(n0*k))]);}f2[(t1+j)]=a;}}}
function kc4123148(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)-(Math.exp(f3[t1])*t3));}}}
function kc4ab50b2(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i]/n1;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]+t2);}}}
function kc56d6faa(n0,f0,f1,f2){for(let i=0;i<n0;i++){f0[i]=((-f1[i])/Math.max(f2[i],1));}}
function kc65f3f3d(n0,f0,f1){for(let i=0;i<n0;i++){f0[(i<0?i+n0:i)]+=f1[i];}}
function kc6ed8627(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.max(((-f1[t1])*2.5),0),10);}}}
function kc6f5509f(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((i===j)?false:(t0===y0[j]))?(f0[(t1+j)]/x0):0);}f1[i]=a;}}
function kc7cbab05(n0,f0,f1){const t0=n0*5;for(let i=0;i<(n0*5);i++){const t1=t0*i;const t2=n0*i;for(let j=0;j<(n0*5);j++){f0[(t1+j)]=f1[(t2+Math.floor(j/5))];}}}
function kc7ccf64a(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=f1[i];f0[i]=((((t0>0)&&(f2[i]>0))?x0:0)/Math.max(t0,1));}}
function kc7ebad38(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.floor(Math.min(Math.max(((f1[t1]+1)*100),0),200)),199);f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?201:0));}}}
function kc7f6bd48(n0,x0,x1,f0,f1){for(let i=0;i<21;i++){let a=0;for(let j=0;j<n0;j++){a+=((f0[(i+(42*j))]/x0)*x1);}f1[i]=a;}}
function kc841c4a4(n0,x0,f0,f1,u0,u1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];const t3=u1[i] !== 0;for(let j=0;j<n0;j++){const t1=t0+j;const t4=(((i===j)?false:(t2===y0[j]))&&t3)?x0:0;const t5=f1[t1];f0[t1]=((u0[t1] !== 0)?t4:((t4*t5)/(t5+1)));}}}
function kc85602ab(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=((!(t0===y0[j]))?f0[(t1+j)]:0);}f1[i]=a;}}
function kc9d2036f(n0,f0,f1,f2,f3){for(let i=0;i<(n0*3);i++){const t0=n0*i;const t2=f2[i];const t3=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]-t2)-t3);}}}
function kca4da10d(n0,f0,f1,u0){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=f0[t1];a+=((u0[t1] !== 0)?((t2*t2)*0.5):0);}f1[i]=a;}}
function kca907023(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){f0[i]=(((f1[i]>=-1000000)?(f2[i]+f3[i]):0)/Math.max(f4[i],1));}}
function kcac057a0(n0,f0,f1,f2,f3){let a=0;for(let i=0;i<n0;i++){const t0=f0[i];const t1=f1[i];a+=(((t0>0)&&(t1>0))?((f2[i]/Math.max(t0,1))+(f3[i]/Math.max(t1,1))):0);}return a;}
function kcbb296e4(n0,n1,f0,f1){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+j;for(let k=0;k<10;k++){a+=f0[(t2+(n1*k))];}f1[(t3+j)]=a;}}}
function kcbf820fb(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kcc18ad5c(n0,f0,f1,f2){for(let i=0;i<(n0*2);i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=Math.exp((f0[(t0+j)]-t1));}f2[i]=a;}}
function kcc1c30f4(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.max(((f1[t1]+1)*10),0),20);f0[t1]=(t2-Math.min(Math.floor(t2),19));}}}
function kcc48b4f7(n0,f0,f1){for(let i=0;i<n0;i++){const t0=12*i;for(let j=0;j<12;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kccb888b7(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=(((!(t0===y0[j]))&&(f0[(t1+j)]>0))?1:0);}f1[i]=a;}}
function kcd45c349(n0,n1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n1*i;const t2=y0[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((t2===j)?f1[t1]:-Infinity);}}}
function kcda27b0b(n0,x0,x1,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.exp((x0*(x1-f1[t1])));}}}
function kcdebbd15(n0,n1,f0,f1,f2){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(5*j);const t4=t3+j;const t5=f1[t4];for(let k=0;k<5;k++){a+=((f0[(t2+k)]===t5)?1:0);}f2[t4]=a;}}}
function kce21b958(n0,n1,f0,f1){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*3);j++){const t2=t1+j;f0[t2]=f1[t2];}}}
function kcf114152(n0,n1,f0,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=8*i;for(let j=0;j<8;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function kcf6f9ca2(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=3*i;const t2=((y0[i]===0)?1:0)*4;for(let j=0;j<3;j++){const t1=t0+j;f0[t1]=(f1[t1]+t2);}}}
function kcfcd3c7e(n0,x0,f0){for(let i=0;i<(n0*2);i++){f0[i]=((Math.floor((i/2))!==-100)?x0:0);}}
function kcffb7a1d(n0,f0,f1,f2){const t1=(n0**2)+1;for(let i=0;i<(n0**2);i++){const t0=f1[i];f0[(t0<0?t0+t1:t0)]+=f2[i];}}
function kd05f38ae(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.sqrt(((u0[t1] !== 0)?f1[t1]:1));}}}
function kd096e3ff(n0,x0,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=(f1[i]>0)?x0:0;const t1=f2[i];f0[i]=((u0[i] !== 0)?t0:((t0*t1)/(t1+1)));}}
function kd0b37410(n0,n1,f0,f1,u0){for(let i=0;i<n0;i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a=Math.max(a,((u0[t1] !== 0)?f0[t1]:-Infinity));}f1[i]=a;}}
function kd0f8f497(n0,f0,f1){for(let i=0;i<101;i++){let a=0;const t0=101+i;for(let j=0;j<n0;j++){a+=f0[(t0+(202*j))];}f1[i]=a;}}
function kd17820b8(n0,x0,x1,x2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=102*i;for(let j=0;j<102;j++){f0[(t0+j)]=((((j>=0)&&(j<51))?((x0*(f1[j]/x1))/x2):0)+(((j>=51)&&(j<102))?f2[(101+(-1*j))]:0));}}}
function kd1971f67(n0,n1,f0,f1,f2){for(let i=0;i<(n0*3);i++){let a=0;const t0=n1*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n1;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function kd1c2f79d(n0,n1,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=f0[(t0+j)];a+=(t1*t1);}f1[i]=a;}}
function kd203f338(n0,n1,f0,f1){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*5);j++){f0[(t1+j)]=f1[((t1+(n1*(j%5)))+Math.floor(j/5))];}}}
function kd2553272(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){const t8=n1*2;for(let i=0;i<(n0*2);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=i%2;const t9=t8*Math.floor(i/2);const t10=(n1*t7)+t9;const t11=t7+t9;const t12=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[(t10+j)]+f7[(t11+(2*j))])+(t2*t12))/t4)/t6));}}}
function kd2e6b6d8(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=102*i;const t1=51*i;for(let j=0;j<51;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function kd3a8f485(n0,n1,f0,u0){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){u0[(t0+f0[(t0+j)])]=1;}}}
function kd3e43f68(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=6*i;for(let j=0;j<6;j++){const t1=t0+j;const t2=f1[t1];const t3=f2[t1]+t2;f0[t1]=(t2/((t3>0)?t3:1));}}}
function kd47d2660(n0,x0,x1,f0,f1){for(let i=0;i<201;i++){let a=0;for(let j=0;j<n0;j++){a+=((f0[(i+(402*j))]/x0)*x1);}f1[i]=a;}}
function kd4921ce0(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=402*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*(1-f3[t2]));}}}
function kd5b8583e(n0,x0,x1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((Math.log(f1[t1])+x0)-(x1*f2[t1]));}}}
function kd6860ed1(n0,x0,f0,f1){for(let i=0;i<n0;i++){f0[i]=(x0*Math.sqrt(f1[i]));}}
function kd6d54d06(n0,x0,x1,f0,f1){for(let i=0;i<51;i++){let a=0;for(let j=0;j<n0;j++){a+=((f0[(i+(102*j))]/x0)*x1);}f1[i]=a;}}
function kd6f8156c(n0,n1,f0,f1,f2){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=25*i;for(let j=0;j<n1;j++){const t2=t1+j;const t5=t1+(5*j);for(let k=0;k<5;k++){let a=0;const t4=t3+k;for(let l=0;l<5;l++){a+=(f0[(t2+(n1*l))]*f1[(t4+(5*l))]);}f2[(t5+k)]=a;}}}}
function kd73768c2(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=((((i===j)?false:(t0===y0[j]))&&(Math.abs(Math.max((x0-f0[(t1+j)]),0))>1.7763568394002505e-15))?1:0);}f1[i]=a;}}
function kd7642b14(n0,n1,f0,f1,y0){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t3=y0[i];for(let j=0;j<(n1*3);j++){const t2=t1+j;f0[t2]=(f1[t2]+(((t3===Math.floor(j/3))?1:0)*4));}}}
function kd7989773(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.min(Math.floor(Math.min(Math.max(((f1[t1]+1)*25),0),50)),49);f0[t1]=(Math.trunc(((t2===Infinity)?1.7976931348623157e+308:((t2===-Infinity)?-1.7976931348623157e+308:((t2!==t2)?0:t2))))+(((i===j)?false:(t3===y0[j]))?51:0));}}}
function kd83f9e36(n0,f0,f1){for(let i=0;i<n0;i++){const t0=102*i;for(let j=0;j<102;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kd89ddd54(n0,f0){for(let i=0;i<(n0*3);i++){const t0=Math.floor((i/3));f0[((n0*i)+((t0!==-100)?t0:0))]=-1;}}
function kd8c64e24(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=Math.exp((f0[(t0+j)]-t1));}f2[i]=a;}}
function kd927e8cc(n0,f0,f1,f2,f3){const t2=n0**2;const t4=t2+1;for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t3=f2[j];f0[t1]=(below(f1,0,t2,((t3*t4)+f3[t1]))+t3);}}}
function kd934bf84(n0,f0,f1){for(let i=0;i<n0;i++){const t0=22*i;for(let j=0;j<22;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kd96268c7(n0,x0,x1,x2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=402*i;for(let j=0;j<402;j++){f0[(t0+j)]=((((j>=0)&&(j<201))?((x0*(f1[j]/x1))/x2):0)+(((j>=201)&&(j<402))?f2[(401+(-1*j))]:0));}}}
function kd989dc50(f0,f1){for(let i=0;i<5;i++){let a=0;const t0=5*i;for(let j=0;j<5;j++){a+=f0[(t0+j)];}f1[i]=a;}}
function kdab806fe(n0,n1,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)+(f3[t1]*t3));}}}
function kdaf18935(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(f1[t1]/f2[t1]);}}}
function kdba0f4ce(n0,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<5;i++){const t0=n0*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function kdc15c4fc(n0,n1,f0,f1,f2){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<10;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=(f1[t3]/f2[(t4+k)]);}}}}
function kdcf3c1f7(n0,n1,f0,f1,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<(n1*5);j++){const t2=t1+j;f0[t2]=((u0[t2] !== 0)?f1[(t3+Math.floor(j/5))]:0);}}}
function kdd6df0c3(n0,n1,f0,f1){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2*2;f0[t1]=((t3*((t3*t2)-1))-t2);}}}
function kdde56754(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<n0;i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function kde128d06(n0,n1,f0,f1,f2){for(let i=0;i<(n0*2);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*f1[t1]);}f2[i]=a;}}
function kde44f58f(n0,f0,f1,u0){let a=0;for(let i=0;i<n0;i++){a+=((u0[i] !== 0)?f0[i]:Math.log1p(f1[i]));}return a;}
function kde9bb2a7(n0,x0,x1,x2,f0,f1,f2,f3,f4,f5,u0,u1){for(let i=0;i<n0;i++){const t0=n0*i;const t3=f2[i];const t6=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=f1[t1];const t4=(u0[t1] !== 0)?t3:0;const t5=f3[t1];const t7=(u1[t1] !== 0)?t6:0;const t8=f5[t1];f0[t1]=(((((x0*(t2-x1))>50)?t4:((t4*t5)/(t5+1)))*x0)+(-((((x2*(x1-t2))>50)?t7:((t7*t8)/(t8+1)))*x2)));}}}
function kdf7e5433(n0,f0,f1){for(let i=0;i<5;i++){const t0=n0*i;const t2=5*i;for(let j=0;j<5;j++){let a=0;const t1=n0*j;for(let k=0;k<n0;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t2+j)]=a;}}}
function ke02f74f4(n0,f0,f1){for(let i=0;i<n0;i++){let a=-Infinity;const t0=n0*i;for(let j=0;j<n0;j++){a=Math.max(a,f0[(t0+j)]);}f1[i]=a;}}
function ke1bd4ea2(n0,n1,f0,f1,f2,f3){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){const t2=t1+(2*j);const t5=t4+j;const t6=f2[t5];const t7=f3[t5];for(let k=0;k<2;k++){const t3=t2+k;f0[t3]=(((f1[t3]===t6)?1:0)*t7);}}}}
function ke1ca517b(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((t2===y0[j])?0:f1[t1]);}}}
function ke24d7ebf(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){f0[i]=Math.max(((Math.log(Math.max(f1[i],1))+Math.max(f2[i],-1.7976931348623157e+308))+(Math.log(Math.max(f3[i],1))+Math.max(f4[i],-1.7976931348623157e+308))),0);}}
function ke3137bf4(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n1*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n1;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function ke3334c62(n0,n1,f0,f1){const t2=n0*3;for(let i=0;i<(n0*3);i++){const t0=n1*i;const t3=t2*i;for(let j=0;j<(n0*3);j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f0[(t1+k)]);}f1[(t3+j)]=a;}}}
function ke33d6775(n0,x0,x1,x2,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t3=f1[t1];f0[t1]=(((i===j)?false:(t2===y0[j]))?((x0*Math.max((x1-t3),0))*(t3-x2)):-Infinity);}}}
function ke373b627(x0){let a=0;a+=x0;return a;}
function ke3b9521c(n0,n1,f0,f1,f2,f3){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<2;j++){const t2=t1+(n1*j);const t5=t1+j;for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=((f1[(t4+k)]*f2[(t5+(2*k))])*f3[t3]);}}}}
function ke3f61156(n0,n1,f0,f1,f2){const t2=n1*2;for(let i=0;i<n0;i++){const t0=4*i;const t3=t2*i;for(let j=0;j<2;j++){const t1=t0+(2*j);const t5=t3+(n1*j);for(let k=0;k<n1;k++){let a=0;const t4=t3+k;for(let l=0;l<2;l++){a+=(f0[(t1+l)]*f1[(t4+(n1*l))]);}f2[(t5+k)]=a;}}}}
function ke430c223(n0,n1,f0,f1,f2){for(let i=0;i<(n0*5);i++){let a=0;const t0=n1*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n1;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function ke45b0eab(n0,x0,x1,x2,f0,f1,f2){for(let i=0;i<n0;i++){const t0=42*i;for(let j=0;j<42;j++){f0[(t0+j)]=((((j>=0)&&(j<21))?((x0*(f1[j]/x1))/x2):0)+(((j>=21)&&(j<42))?f2[(41+(-1*j))]:0));}}}
function ke4a612d3(n0,x0,x1,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?(x0*(f1[t1]-x1)):-Infinity);}}}
function ke54632f8(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max((x0+f1[t1]),0);}}}
function ke583c1ab(n0,x0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=i*n0;f0[i]=Math.max(((f1[(t0+f2[i])]-f1[(t0+f3[i])])+x0),0);}}
function ke6779464(n0,n1,f0,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t2=8*i;for(let j=0;j<8;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function ke77a1e96(n0,x0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f3[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((-f1[t1])+(f2[t1]*t2))/x0);}}}
function ke77c7591(n0,f0,f1){let a=0;for(let i=0;i<n0;i++){a+=((f0[i]>0)?f1[i]:0);}return a;}
function ke7934a64(x0,x1,x2){let a=0;a+=((x0/x1)+(x2*0));return a;}
function ke7e0088c(n0,n1,f0,f1,u0){const t0=n1*5;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<n1;j++){let a=0;const t2=t1+(5*j);for(let k=0;k<5;k++){const t3=t2+k;a+=((u0[t3] !== 0)?f0[t3]:0);}f1[(t4+j)]=a;}}}
function ke8903774(n0,x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/(n0*5))));return a;}
function ke910c053(n0,u0,y0){for(let i=0;i<n0;i++){const t0=5*i;const t1=y0[i]===0;for(let j=0;j<5;j++){u0[(t0+j)]=t1?1:0;}}}
function ke918f494(n0,f0,f1){for(let i=0;i<n0;i++){f0[(i<0?i+n0:i)]+=((Math.abs(f1[i])>1.7763568394002505e-15)?1:0);}}
function ke9a2eda8(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=42*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(-f1[t1])*5;const t4=f4[t1];f0[t1]=(-((((t2>=0)&&(t2<=20))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*5));}}}
function ke9abe772(n0,f0,f1,f2){for(let i=0;i<n0;i++){let a=0;const t0=n0*i;const t1=f1[i];for(let j=0;j<n0;j++){a+=(f0[(t0+j)]*t1);}f2[i]=a;}}
function ke9d9ab61(x0,x1){let a=0;a+=(x0/x1);return a;}
function kea9c00ac(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*5);i++){let a=0;const t0=n1*i;for(let j=0;j<n1;j++){const t1=t0+j;a+=(f0[t1]*(f1[t1]+f2[t1]));}f3[i]=a;}}
function keac05487(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f0[i];const t3=-t2;for(let j=0;j<n0;j++){const t1=t0+j;const t4=f0[j];u0[t1]=((-((t3+(f1[t1]*2))-t4))<=((t2+t4)*8.881784197001252e-16))?1:0;}}}
function kead68b08(n0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){f0[i]=(f1[i]+(((f2[i]===0)?0:f3[i])+(-f4[i])));}}
function keb5e48a3(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max(f1[t1],0);}}}
function kebed5b49(n0,n1,f0,f1,f2){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=4*i;for(let j=0;j<n1;j++){const t2=t1+j;const t5=t1+(2*j);for(let k=0;k<2;k++){let a=0;const t4=t3+k;for(let l=0;l<2;l++){a+=(f0[(t2+(n1*l))]*f1[(t4+(2*l))]);}f2[(t5+k)]=a;}}}}
function kec159b6c(n0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=-f1[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((t2+(f2[t1]*2))-f1[j]);}}}
function kec2752e4(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=(((i===j)?false:(t2===y0[j]))?(x0*f1[t1]):-Infinity);}}}
function kec3d3616(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){let a=0;const t0=f0[i];const t1=21+(22*i);const t3=11*i;const t4=10+t3;for(let j=0;j<11;j++){const t2=-1*j;const t5=t4+t2;const t6=f2[t5]+f3[t5];a+=(((t0*f1[(t1+t2)])/((t6>0)?t6:1))+f4[t5]);f5[(t3+j)]=a;}}}
function kec6a66e1(n0,f0,f1){const t0=n0*3;for(let i=0;i<(n0*3);i++){const t1=t0*i;const t3=n0*i;for(let j=0;j<n0;j++){let a=0;const t2=t1+(3*j);for(let k=0;k<3;k++){a+=f0[(t2+k)];}f1[(t3+j)]=a;}}}
function kec708d88(n0,f0,f1){for(let i=0;i<n0;i++){f0[i]=Math.max(f1[i],-1000000);}}
function kec86d62a(n0,n1,x0,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(2*j);for(let k=0;k<2;k++){a=Math.max(a,(f0[(t2+k)]/x0));}f1[(t3+j)]=a;}}}
function kec8a1999(n0,n1,f0,f1){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;for(let j=0;j<(n1*2);j++){const t2=t1+j;f0[t2]=f1[t2];}}}
function kecad48f3(n0,f0,f1,f2){for(let i=0;i<3;i++){let a=0;const t0=n0*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n0;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function kecc5dfb6(n0,f0,f1,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?1:f1[t1]);}}}
function ked07f7cf(n0,f0){let a=0;for(let i=0;i<(n0*5);i++){const t0=Math.floor((i/5));const t1=t0!==-100;a+=(t1?(-f0[((n0*i)+(t1?t0:0))]):0);}return a;}
function keddbbe6a(x0,x1,x2,x3){let a=0;a+=((x0/x1)+(x2*(x3/5)));return a;}
function kee139c58(n0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=((((i===j)?false:(t0===y0[j]))&&(f0[(t1+j)]>0))?1:0);}f1[i]=a;}}
function kee1616f9(f0){let a=0;for(let i=0;i<3;i++){const t0=Math.floor((i/3));const t1=t0!==-100;a+=(t1?(-f0[((t1?t0:0)+i)]):0);}return a;}
function kee601aca(n0,f0,f1,f2,f3){let a=0;for(let i=0;i<n0;i++){a+=((f0[i]*f1[i])+(f2[i]*f3[i]));}return a;}
function kee655452(n0,n1,f0,f1,f2,f3){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<10;j++){const t2=t1+(n1*j);const t5=t1+j;for(let k=0;k<n1;k++){const t3=t2+k;f0[t3]=((f1[(t4+k)]*f2[(t5+(10*k))])*f3[t3]);}}}}
function kee72eb17(n0,n1,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f1[i]+(-f2[i]);for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((t2*(f3[t1]*2))+f4[t1])+f5[t1]);}}}
function kee735488(n0,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<3;i++){const t0=n0*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function keec7f32d(n0,x0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.max(((-f1[t1])-x0),0);}}}
function keeeef15b(n0,f0){let a=0;for(let i=0;i<n0;i++){a+=Math.max(f0[i],0);}return a;}
function keef152cd(n0,f0,f1){for(let i=0;i<n0;i++){let a=0;const t0=12*i;const t1=6*i;for(let j=0;j<6;j++){a+=f0[(t0+j)];f1[(t1+j)]=a;}}}
function kef243c11(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=f1[i];f0[i]=((-(((t0>0)&&(f2[i]>0))?x0:0))/Math.max(t0,1));}}
function kefa66cfb(n0,f0,f1,f2,u0){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((u0[t1] !== 0)?0:(f1[t1]/f2[t1]));}}}
function kf006d179(n0,n1,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t5=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=f1[t1];const t3=t2<0.5000000000000001;const t4=t2<-0.4999999999999998;const t6=f2[t1]*t5;const t7=t4?0:t6;const t8=((t3?0:t7)+(-(t3?t7:0)))+(t4?t6:0);const t9=t2*2;const t10=t8*t9;f0[t1]=(((((-t8)+(t10*t9))+((t10*t2)*2))+((t8*((t9*t2)-1))*2))+(f4[t1]*t5));}}}
function kf0393f1d(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;for(let j=0;j<n1;j++){let a=0;const t1=t0+j;a+=((f0[t1]===f1[t1])?1:0);f2[t1]=a;}}}
function kf09d3482(n0,x0,x1,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t3=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;const t2=Math.max((f1[t1]-x0),0);f0[t1]=((t2<=0)?0:(((!(t3===y0[j]))?x1:0)*(t2*2)));}}}
function kf162cf06(n0,n1,f0,f1,f2,f3){for(let i=0;i<(n0*10);i++){const t0=n1*i;const t2=f2[i];const t3=(t2<2.2250738585072014e-308)?Infinity:t2;const t4=f3[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=((f1[t1]/t3)/t4);}}}
function kf1e76dc4(n0,n1,f0,u0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t2=5*i;for(let j=0;j<5;j++){u0[(t1+f0[(t2+j)])]=1;}}}
function kf20cc82a(n0,f0,f1,u0){for(let i=0;i<n0;i++){let a=0;a+=((u0[i] !== 0)?f0[i]:0);f1[i]=a;}}
function kf241d603(n0,f0,f1,f2,u0,u1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=u1[t1] !== 0;f0[t1]=(-((u0[t1] !== 0)?0:(t2?((t2?(-f1[t1]):0)/(f2[t1]*2)):0)));}}}
function kf3115fb7(n0,f0,f1,f2,f3,f4){for(let i=0;i<(n0*3);i++){const t0=n0*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)-(Math.exp(f3[t1])*t3));}}}
function kf3992980(n0,n1,f0,f1,f2,f3,f4,f5,f6,f7,f8){for(let i=0;i<(n0*3);i++){const t0=n1*i;const t3=f3[i];const t4=f4[i];const t5=f5[i];const t6=(t5<2.2250738585072014e-308)?Infinity:t5;const t7=f8[i];for(let j=0;j<n1;j++){const t1=t0+j;const t2=-f2[t1];f0[t1]=((((f1[t1]+(t2*t3))/t4)/t6)+((((f6[t1]+f7[t1])+(t2*t7))/t4)/t6));}}}
function kf3dddd1d(n0,f0,f1,f2,f3){for(let i=0;i<n0;i++){const t0=42*i;const t1=n0*i;for(let j=0;j<n0;j++){const t2=t1+j;f0[(t0+f1[t2])]+=(f2[t2]*f3[t2]);}}}
function kf4856082(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){let a=0;const t0=y0[i];const t1=n0*i;for(let j=0;j<n0;j++){a+=((!(t0===y0[j]))?Math.max((f0[(t1+j)]-x0),0):0);}f1[i]=a;}}
function kf502c410(n0,n1,f0,f1,f2){const t0=n0*5;for(let i=0;i<(n0*5);i++){const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<(n0*5);k++){a+=(f0[(i+(t0*k))]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function kf517b63d(n0,f0,f1){let a=0;for(let i=0;i<n0;i++){a+=(((f0[i]>0)&&(f1[i]>0))?1:0);}return a;}
function kf5a6ed20(n0,f0,f1){let a=0;for(let i=0;i<n0;i++){a+=(f0[i]/Math.max(f1[i],1));}return a;}
function kf5bcdd26(n0,f0,f1){for(let i=0;i<51;i++){let a=0;const t0=51+i;for(let j=0;j<n0;j++){a+=f0[(t0+(102*j))];}f1[i]=a;}}
function kf5e4a0ad(f0,f1,f2){for(let i=0;i<5;i++){let a=0;a+=Math.exp((f0[i]-f1[i]));f2[i]=a;}}
function kf6c9c086(n0,f0){for(let i=0;i<n0;i++){const t0=Math.floor(i);f0[((n0*i)+((t0!==-100)?t0:0))]=-1;}}
function kf6ccb173(n0,n1,f0,f1){const t0=n1*3;for(let i=0;i<n0;i++){const t1=t0*i;const t3=n1*i;for(let j=0;j<n1;j++){let a=-Infinity;const t2=t1+(3*j);for(let k=0;k<3;k++){a=Math.max(a,f0[(t2+k)]);}f1[(t3+j)]=a;}}}
function kf6e48481(n0,f0){for(let i=0;i<n0;i++){let a=0;for(let j=0;j<n0;j++){const t0=i===j;a+=((t0?false:t0)?1:0);}f0[i]=a;}}
function kf7201135(n0,n1,f0,f1){for(let i=0;i<(n0*10);i++){let a=-Infinity;const t0=n1*i;for(let j=0;j<n1;j++){a=Math.max(a,Math.abs(f0[(t0+j)]));}f1[i]=a;}}
function kf7533817(n0,n1,f0,f1,f2){const t2=n1*10;for(let i=0;i<n0;i++){const t0=100*i;const t3=t2*i;for(let j=0;j<10;j++){const t1=t0+(10*j);const t5=t3+(n1*j);for(let k=0;k<n1;k++){let a=0;const t4=t3+k;for(let l=0;l<10;l++){a+=(f0[(t1+l)]*f1[(t4+(n1*l))]);}f2[(t5+k)]=a;}}}}
function kf755e385(n0,f0){for(let i=0;i<(n0*5);i++){const t0=Math.floor((i/5));f0[((n0*i)+((t0!==-100)?t0:0))]=-1;}}
function kf77b919f(n0,f0,f1,f2){const t1=n0**2;const t3=t1+1;for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];const t4=below(f1,0,t1,((t2+1)*t3))+t2;for(let j=0;j<n0;j++){f0[(t0+j)]=t4;}}}
function kf79432b5(n0,n1,x0,f0,f1,f2,f3,f4){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<10;j++){const t2=t1+(n1*j);for(let k=0;k<n1;k++){const t3=t2+k;const t5=t4+k;const t6=f2[t3];f0[t3]=((f1[t5]*t6)+((f3[t3]-(t6*f4[t5]))/x0));}}}}
function kf7a57626(n0,n1,x0,f0,f1,f2){const t0=n1*10;for(let i=0;i<n0;i++){const t1=t0*i;const t4=n1*i;for(let j=0;j<10;j++){const t2=t1+(n1*j);const t3=t1+j;for(let k=0;k<n1;k++){f0[(t2+k)]=Math.exp(((f1[(t3+(10*k))]/x0)-f2[(t4+k)]));}}}}
function kf8bb4a2b(n0,f0,f1){const t2=n0**2;for(let i=0;i<n0;i++){const t0=i*n0;const t3=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[(t1<0?t1+t2:t1)]+=(-f1[(t3+j)]);}}}
function kf989d104(n0,n1,x0,f0,f1,f2,f3,f4){for(let i=0;i<n0;i++){const t0=n1*i;const t2=f2[i];const t3=f4[i];for(let j=0;j<n1;j++){const t1=t0+j;f0[t1]=(((f1[t1]*t2)+(f3[t1]*t3))*x0);}}}
function kf9d38fdf(n0,f0,f1,f2,f3,f4,f5){for(let i=0;i<n0;i++){const t0=n0*i;const t3=102*i;for(let j=0;j<n0;j++){const t1=t0+j;const t2=(f1[t1]+1)*25;const t4=f4[t1];f0[t1]=((((t2>=0)&&(t2<=50))?((f2[(t3+f3[t1])]*t4)+(-(f2[(t3+f5[t1])]*t4))):0)*25);}}}
function kfadb7cf5(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=5*i;const t1=n1*i;for(let j=0;j<n1;j++){let a=0;for(let k=0;k<5;k++){a+=(f0[(t0+k)]*f1[(j+(n1*k))]);}f2[(t1+j)]=a;}}}
function kfafa0e25(n0,f0,f1,f2){const t1=n0**2;for(let i=0;i<n0;i++){const t0=(i*n0)+f1[i];f0[(t0<0?t0+t1:t0)]+=(-f2[i]);}}
function kfb745d5a(n0,f0,f1){for(let i=0;i<n0;i++){const t0=402*i;for(let j=0;j<402;j++){const t1=t0+j;f0[t1]=f1[t1];}}}
function kfb79ae2a(n0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=5*i;const t2=((y0[i]===0)?1:0)*4;for(let j=0;j<5;j++){const t1=t0+j;f0[t1]=(f1[t1]+t2);}}}
function kfc3dbd63(n0,f0,f1,f2,f3,u0){let a=0;for(let i=0;i<n0;i++){a+=(((f0[i]>0)&&(f1[i]>0))?((u0[i] !== 0)?f2[i]:Math.log1p(f3[i])):0);}return a;}
function kfcd0264b(n0,x0,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n0*i;const t2=f2[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((f1[t1]*t2)*x0);}}}
function kfdcaa326(n0,f0){let a=0;for(let i=0;i<n0;i++){const t0=Math.floor(i);const t1=t0!==-100;a+=(t1?(-f0[((n0*i)+(t1?t0:0))]):0);}return a;}
function kfe075832(n0,f0,f1,f2){for(let i=0;i<5;i++){let a=0;const t0=n0*i;const t1=f1[i];const t2=(t1<2.2250738585072014e-308)?Infinity:t1;for(let j=0;j<n0;j++){const t3=f0[(t0+j)]/t2;a+=(t3*t3);}f2[i]=a;}}
function kfe08d6b9(n0,f0,f1){const t0=n0*3;for(let i=0;i<(n0*3);i++){const t1=t0*i;const t2=n0*i;for(let j=0;j<(n0*3);j++){f0[(t1+j)]=f1[(t2+Math.floor(j/3))];}}}
function kfe4c51a4(n0,n1,f0,f1,f2){for(let i=0;i<n0;i++){const t0=n1*i;const t2=3*i;for(let j=0;j<3;j++){let a=0;const t1=n1*j;for(let k=0;k<n1;k++){a+=(f0[(t0+k)]*f1[(t1+k)]);}f2[(t2+j)]=a;}}}
function kfe7feeda(n0,x0,f0,f1,y0){for(let i=0;i<n0;i++){const t0=n0*i;const t2=y0[i];for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=((!(t2===y0[j]))?(f1[t1]/x0):-Infinity);}}}
function kfe9712a3(n0,n1,f0,f1,y0){const t0=n1*2;for(let i=0;i<n0;i++){const t1=t0*i;const t3=y0[i];for(let j=0;j<(n1*2);j++){const t2=t1+j;f0[t2]=(f1[t2]+(((t3===Math.floor(j/2))?1:0)*4));}}}
function kfec8e0cd(n0){let a=0;for(let i=0;i<n0;i++){a+=1;}return a;}
function kffcded2d(n0,f0,f1){for(let i=0;i<n0;i++){const t0=n0*i;for(let j=0;j<n0;j++){const t1=t0+j;f0[t1]=Math.min(Math.floor(f1[t1]),49);}}}
function r00a3512b(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b25=R(own,2,(c*n));
const b28=R(own,3,(d*n));
const b31=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,c);
k957de67a(c, d, p, b5);
const b6=F(6,c);
ke3137bf4(c, d, p, b5, b6);
const b7=F(7,c);
k84e038da(c, b7, b6);
const b8=F(8,(c*d));
k2ae3d3e3(c, d, b8, p, b5, b7);
k2ee02a4f(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
ka73dd07f(n, c, h[0], b10, b9, y);
const b11=F(2,n);
k071cce81(n, c, b10, b11);
const b12=F(10,(c*n));
kad7d3f97(n, c, b12, b10, b11);
const b13=F(11,n);
k782789b7(n, c, b12, b13);
const b14=F(9,(c*n));
k99be3962(n, c, h[0], b14, b9, y);
const b15=F(12,n);
k071cce81(n, c, b14, b15);
const b16=F(13,(c*n));
kad7d3f97(n, c, b16, b14, b15);
const b17=F(14,n);
k782789b7(n, c, b16, b17);
const b18=F(15,n);
k0b94d2a2(n, b18, b13, b11, b17, b15);
const b19=F(2,n);
ka34684f7(n, b19, b18);
const b20=U(0,n);
k4e415a92(n, b19, b20);
const b21=F(12,n);
k68c8c6d5(n, b21, b19);
const v22=k1b52dfe1(n, b0, b18, b21, b20);
const v23=k0a7efe2e(n, b0);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b22=F(2,n);
kd096e3ff(n, v26, b22, b0, b21, b20);
const b23=F(15,n);
kc56d6faa(n, b23, b22, b17);
const b24=F(0,n);
k9484557b(n, b24, b22, b13);
k794df069(n, c, h[0], b25, b16, b23, b12, b24);
const b26=F(16,(d*n));
kac486688(n, d, c, b25, b8, b26);
const b27=F(12,n);
k75a806c1(n, d, b4, b26, b27);
k33ac8c0b(n, d, b28, b26, b4, b27, b3, b1);
const b29=F(17,(c*d));
k9b48a144(c, d, n, b25, b4, b29);
const b30=F(6,c);
k75a806c1(c, d, b8, b29, b30);
k33ac8c0b(c, d, b31, b29, b8, b30, b7, b5);
return {value:v25,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b9,slopes:b25}],gradient:b28,proxyGradient:b31};
}
function r00d216bd(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*10));
const b34=R(own,2,((c*n)*10));
const b37=R(own,3,(d*n));
const b44=R(own,4,((c*d)*10));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*10));
kf7201135(c, d, p, b5);
const b6=F(6,(c*10));
ka3c355cd(c, d, p, b5, b6);
const b7=F(7,(c*10));
k4511c845(c, b7, b6);
const b8=F(8,((c*d)*10));
kf162cf06(c, d, b8, p, b5, b7);
k980e5b8a(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
kb795a55a(n, c, h[2], b9, b10);
const b11=F(10,((c*n)*10));
kf7a57626(n, c, h[2], b11, b9, b10);
const b12=F(9,(c*n));
kcbb296e4(n, c, b11, b12);
const b13=F(11,((c*n)*10));
kdc15c4fc(n, c, b13, b11, b12);
const b14=F(9,(c*n));
k0ea6e51b(n, c, b13, b9, b14);
const b15=F(2,n);
k71a38771(n, c, h[1], b14, b15, y);
const b16=F(12,(c*n));
k08403603(n, c, h[1], b16, b14, b15, y);
const b17=F(13,n);
k782789b7(n, c, b16, b17);
const b18=F(14,(c*n));
k4f72298e(n, c, h[1], h[3], b18, b14, y);
const b19=F(15,n);
k071cce81(n, c, b18, b19);
const b20=F(9,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(16,n);
k782789b7(n, c, b20, b21);
const b22=F(17,n);
k0b94d2a2(n, b22, b17, b15, b21, b19);
const b23=F(2,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(15,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const b26=F(18,(c*100));
k8f4ed05d(c, d, b8, b26);
const v30=k81203f59(c, b26);
const v31=ke373b627(v30);
const v32=k83c9c6ec(c, v26, v28, h[4], v31);
const v33=(1/v28);
const b27=F(2,n);
kd096e3ff(n, v33, b27, b0, b25, b24);
const b28=F(17,n);
kc56d6faa(n, b28, b27, b21);
const b29=F(0,n);
k9484557b(n, b29, b27, b17);
const b30=F(14,(c*n));
k94c36a9f(n, c, h[1], b30, b20, b28, b16, b29);
const b31=F(10,((c*n)*10));
kee655452(n, c, b31, b30, b9, b13);
const b32=F(9,(c*n));
kcbb296e4(n, c, b31, b32);
const b33=F(19,((c*n)*10));
kf79432b5(n, c, h[2], b33, b30, b13, b31, b32);
k49c33ad0(n, c, b34, b33);
const b35=F(20,(d*n));
k7c9ec4cb(n, d, c, b34, b8, b35);
const b36=F(15,n);
k75a806c1(n, d, b4, b35, b36);
k33ac8c0b(n, d, b37, b35, b4, b36, b3, b1);
const b38=F(21,((c*d)*10));
ka4fce9c0(c, d, n, b34, b4, b38);
const b39=F(6,(c*10));
k96710b8e(c, d, b8, b38, b39);
const v47=(h[4]/(c*90));
const b40=F(22,(c*100));
ka4ad1a01(c, v47, b40, b26);
const b41=F(23,((c*d)*10));
kf7533817(c, d, b40, b8, b41);
const b42=F(24,((c*d)*10));
k8ddbe26a(c, d, b8, b40, b42);
const b43=F(25,(c*10));
k65ed79ae(c, d, b8, b41, b42, b43);
k6049679a(c, d, b44, b38, b8, b39, b7, b5, b41, b42, b43);
return {value:v32,matrices:[{between:"samples against proxies",rows:n,columns:(c*10),s:b9,slopes:b34}],gradient:b37,proxyGradient:b44};
}
function r00da20c4(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*5));
const b29=R(own,2,((c*n)*5));
const b32=R(own,3,(d*n));
const b35=R(own,4,((c*d)*5));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*5));
k2f730769(c, d, p, b5);
const b6=F(6,(c*5));
ke430c223(c, d, p, b5, b6);
const b7=F(7,(c*5));
kb45602a1(c, b7, b6);
const b8=F(8,((c*d)*5));
k1f1a1299(c, d, b8, p, b5, b7);
k0d240772(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
k15ef7403(n, c, b9, b10);
const b11=F(2,n);
k71a38771(n, c, h[2], b10, b11, y);
const b12=F(10,(c*n));
k08403603(n, c, h[2], b12, b10, b11, y);
const b13=F(11,n);
k782789b7(n, c, b12, b13);
const v14=(h[1]*0.017453292519943295);
const v15=Math.cos(v14);
const v16=(-v15);
const v17=Math.sin(v14);
const v18=(v14*v17);
const b14=F(12,(c*n));
k2af88b1a(n, c, b14, b10);
const b15=F(13,(c*n));
k6502d5ab(n, c, h[2], v16, v18, v15, v17, b15, b10, b14, y);
const b16=F(14,n);
k071cce81(n, c, b15, b16);
const b17=F(15,(c*n));
kad7d3f97(n, c, b17, b15, b16);
const b18=F(16,n);
k782789b7(n, c, b17, b18);
const b19=F(17,n);
k0b94d2a2(n, b19, b13, b11, b18, b16);
const b20=F(2,n);
ka34684f7(n, b20, b19);
const b21=U(0,n);
k4e415a92(n, b20, b21);
const b22=F(14,n);
k68c8c6d5(n, b22, b20);
const v28=k1b52dfe1(n, b0, b19, b22, b21);
const v29=k0a7efe2e(n, b0);
const v30=Math.max(v29,1);
const v31=ke9d9ab61(v28, v30);
const v32=(1/v30);
const b23=F(2,n);
kd096e3ff(n, v32, b23, b0, b22, b21);
const b24=F(17,n);
kc56d6faa(n, b24, b23, b18);
const b25=F(0,n);
k9484557b(n, b25, b23, b13);
const b26=F(13,(c*n));
kcdebbd15(n, c, b9, b10, b26);
const b27=F(18,(c*n));
k9aaf1886(n, c, v16, h[2], v17, v15, b27, b10, b17, b24, b14, b12, b25, b26);
const b28=F(19,((c*n)*5));
k434b5aa7(n, c, b28, b9, b10, b27);
k41513754(n, c, b29, b28);
const b30=F(20,(d*n));
kbd46ef39(n, d, c, b29, b8, b30);
const b31=F(14,n);
k75a806c1(n, d, b4, b30, b31);
k33ac8c0b(n, d, b32, b30, b4, b31, b3, b1);
const b33=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b29, b4, b33);
const b34=F(6,(c*5));
k6e336d28(c, d, b8, b33, b34);
k06d66bd9(c, d, b35, b33, b8, b34, b7, b5);
return {value:v31,matrices:[{between:"samples against proxies",rows:n,columns:(c*5),s:b9,slopes:b29}],gradient:b32,proxyGradient:b35};
}
function r07c48747(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b25=R(own,2,(c*n));
const b28=R(own,3,(d*n));
const b31=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,c);
k957de67a(c, d, p, b5);
const b6=F(6,c);
ke3137bf4(c, d, p, b5, b6);
const b7=F(7,c);
k84e038da(c, b7, b6);
const b8=F(8,(c*d));
k2ae3d3e3(c, d, b8, p, b5, b7);
k2ee02a4f(n, c, d, b4, b8, b9);
const b10=F(2,n);
k71a38771(n, c, h[1], b9, b10, y);
const b11=F(9,(c*n));
k08403603(n, c, h[1], b11, b9, b10, y);
const b12=F(10,n);
k782789b7(n, c, b11, b12);
const v13=(h[0]*0.017453292519943295);
const v14=Math.cos(v13);
const v15=(-v14);
const v16=Math.sin(v13);
const v17=(v13*v16);
const b13=F(11,(c*n));
k2af88b1a(n, c, b13, b9);
const b14=F(12,(c*n));
k6502d5ab(n, c, h[1], v15, v17, v14, v16, b14, b9, b13, y);
const b15=F(13,n);
k071cce81(n, c, b14, b15);
const b16=F(14,(c*n));
kad7d3f97(n, c, b16, b14, b15);
const b17=F(15,n);
k782789b7(n, c, b16, b17);
const b18=F(16,n);
k0b94d2a2(n, b18, b12, b10, b17, b15);
const b19=F(2,n);
ka34684f7(n, b19, b18);
const b20=U(0,n);
k4e415a92(n, b19, b20);
const b21=F(13,n);
k68c8c6d5(n, b21, b19);
const v27=k1b52dfe1(n, b0, b18, b21, b20);
const v28=k0a7efe2e(n, b0);
const v29=Math.max(v28,1);
const v30=ke9d9ab61(v27, v29);
const v31=(1/v29);
const b22=F(2,n);
kd096e3ff(n, v31, b22, b0, b21, b20);
const b23=F(16,n);
kc56d6faa(n, b23, b22, b17);
const b24=F(0,n);
k9484557b(n, b24, b22, b12);
k54b1d3b5(n, c, v15, h[1], v16, v14, b25, b9, b16, b23, b13, b11, b24);
const b26=F(17,(d*n));
kac486688(n, d, c, b25, b8, b26);
const b27=F(13,n);
k75a806c1(n, d, b4, b26, b27);
k33ac8c0b(n, d, b28, b26, b4, b27, b3, b1);
const b29=F(18,(c*d));
k9b48a144(c, d, n, b25, b4, b29);
const b30=F(6,c);
k75a806c1(c, d, b8, b29, b30);
k33ac8c0b(c, d, b31, b29, b8, b30, b7, b5);
return {value:v30,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b9,slopes:b25}],gradient:b28,proxyGradient:b31};
}
function r09d252cb(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*25));
const b30=R(own,2,((c**2)*25));
const b8=R(own,3,((c*n)*5));
const b33=R(own,4,((c*n)*5));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*5));
k2f730769(c, d, p, b4);
const b5=F(5,(c*5));
ke430c223(c, d, p, b4, b5);
const b6=F(6,(c*5));
kb45602a1(c, b6, b5);
const b7=F(7,((c*d)*5));
k1f1a1299(c, d, b7, p, b4, b6);
k0d240772(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*5));
k8f6ef864(n, c, b9, b8, y);
const b10=F(9,(n*8));
sortRows(b9,n,(c*5),8,null,b10,true);
const b11=U(0,((c*n)*5));
k4851509a(n, c, b11, y);
ke6779464(n, c, b10, b11);
const b12=U(1,(c*n));
kc3968dec(n, c, b11, b12);
const b13=F(10,(c*n));
ke7e0088c(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k6f7cce59(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kac59d4e6(c, d, b7, b20);
const b21=F(15,((c**2)*5));
k052b94c0(c, b20, b21);
const b22=F(5,(c*5));
kaf15f6b0(c, b21, b22);
const b23=F(16,(c*5));
k1e19da8e(c, b21, b22, b23);
const b24=F(17,(c*5));
k7702a001(c, b24, b23);
const b25=F(18,((c**2)*5));
k3dbc56d2(c, b25, b21, b22, b24);
const v30=ked07f7cf(c, b25);
const v31=ke8903774(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*5));
b26.fill(0,0,((c**2)*5));
kf755e385(c, b26);
const v34=(h[2]/(c*5));
const b27=F(16,(c*5));
k1641d4fb(c, v34, b27);
const b28=F(5,(c*5));
k64ef80fd(c, b26, b27, b28);
const b29=F(19,((c**2)*5));
kbb9893d2(c, b29, b26, b27, b25, b28);
kc7cbab05(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
kdcf3c1f7(n, c, b33, b32, b11);
const b34=F(20,(d*n));
kbd46ef39(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b33, b3, b37);
const b38=F(17,(c*5));
k6e336d28(c, d, b7, b37, b38);
const b39=F(22,((c*d)*5));
kf502c410(c, d, b30, b7, b39);
const b40=F(23,((c*d)*5));
k1ac67fba(c, d, b30, b7, b40);
const b41=F(16,(c*5));
kea9c00ac(c, d, b7, b39, b40, b41);
k3347b849(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*5),columns:(c*5),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*5),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r127172b5(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*25));
const b30=R(own,2,((c**2)*25));
const b8=R(own,3,((c*n)*5));
const b33=R(own,4,((c*n)*5));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*5));
k2f730769(c, d, p, b4);
const b5=F(5,(c*5));
ke430c223(c, d, p, b4, b5);
const b6=F(6,(c*5));
kb45602a1(c, b6, b5);
const b7=F(7,((c*d)*5));
k1f1a1299(c, d, b7, p, b4, b6);
k0d240772(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*5));
k8f6ef864(n, c, b9, b8, y);
const b10=F(9,(n*50));
sortRows(b9,n,(c*5),50,null,b10,true);
const b11=U(0,((c*n)*5));
k4851509a(n, c, b11, y);
k012e6646(n, c, b10, b11);
const b12=U(1,(c*n));
kc3968dec(n, c, b11, b12);
const b13=F(10,(c*n));
ke7e0088c(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k6f7cce59(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kac59d4e6(c, d, b7, b20);
const b21=F(15,((c**2)*5));
k052b94c0(c, b20, b21);
const b22=F(5,(c*5));
kaf15f6b0(c, b21, b22);
const b23=F(16,(c*5));
k1e19da8e(c, b21, b22, b23);
const b24=F(17,(c*5));
k7702a001(c, b24, b23);
const b25=F(18,((c**2)*5));
k3dbc56d2(c, b25, b21, b22, b24);
const v30=ked07f7cf(c, b25);
const v31=ke8903774(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*5));
b26.fill(0,0,((c**2)*5));
kf755e385(c, b26);
const v34=(h[2]/(c*5));
const b27=F(16,(c*5));
k1641d4fb(c, v34, b27);
const b28=F(5,(c*5));
k64ef80fd(c, b26, b27, b28);
const b29=F(19,((c**2)*5));
kbb9893d2(c, b29, b26, b27, b25, b28);
kc7cbab05(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
kdcf3c1f7(n, c, b33, b32, b11);
const b34=F(20,(d*n));
kbd46ef39(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b33, b3, b37);
const b38=F(17,(c*5));
k6e336d28(c, d, b7, b37, b38);
const b39=F(22,((c*d)*5));
kf502c410(c, d, b30, b7, b39);
const b40=F(23,((c*d)*5));
k1ac67fba(c, d, b30, b7, b40);
const b41=F(16,(c*5));
kea9c00ac(c, d, b7, b39, b40, b41);
k3347b849(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*5),columns:(c*5),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*5),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r1577076b(own,x,y,n,d,p,c,h){
const b5=R(own,1,(n**2));
const b20=R(own,2,(n**2));
const b24=R(own,3,(d*n));
const b0=F(0,n);
k32f6f300(n, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
k2799ef1a(n, d, b4, b5);
const b6=F(5,(n**2));
kfe7feeda(n, h[0], b6, b5, y);
const b7=F(2,n);
ke02f74f4(n, b6, b7);
const b8=F(6,(n**2));
k7f1c0a1a(n, b8, b6, b7);
const b9=F(7,n);
k7520f553(n, b8, b9);
const b10=F(8,n);
k27675df6(n, b10, b9, b7);
const b11=F(5,(n**2));
k0a4c292d(n, h[0], b11, b10, b5);
const b12=F(9,(n**2));
k19c7b6b3(n, b12, b11);
const b13=U(0,(n**2));
kafc5197d(n, b12, b13);
const b14=F(10,(n**2));
k0c5a0d61(n, b14, b12);
const b15=F(2,n);
k8ebbcbca(n, b11, b14, b15, b13, y);
const v16=ke77c7591(n, b0, b15);
const b16=F(8,n);
k306cdf0e(n, b16, y);
const v18=ke77c7591(n, b0, b16);
const v19=Math.max(v18,1);
const v20=ke9d9ab61(v16, v19);
const v21=(1/v19);
const b17=F(9,(n**2));
k01eba492(n, v21, b17, b0, b14, b13, y);
const b18=F(2,n);
k7520f553(n, b17, b18);
const b19=F(8,n);
k9484557b(n, b19, b18, b9);
ke77a1e96(n, h[0], b20, b17, b8, b19);
const b21=F(11,(d*n));
k019ec0af(n, d, b20, b4, b21);
const b22=F(12,(d*n));
k151b8e2d(n, d, b20, b4, b22);
const b23=F(0,n);
k44632f43(n, d, b4, b21, b22, b23);
k4d2a8049(n, d, b24, b21, b22, b4, b23, b3, b1);
return {value:v20,matrices:[{between:"samples against samples",rows:n,columns:n,s:b5,slopes:b20}],gradient:b24,proxyGradient:null};
}
function r15c50c94(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b13=R(own,2,(n**2));
const b17=R(own,3,(d*n));
const v0=(1-h[0]);
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(1,n);
kb97241c7(n, b4, b5, y);
const v7=k7d0e395b(n, b5);
const b6=F(1,n);
k306cdf0e(n, b6, y);
const v9=k7d0e395b(n, b6);
const v10=Math.max(v9,1);
const v11=(v0*(v7/v10));
const b7=F(1,n);
kbcf69241(n, v11, b4, b7, y);
const v13=k7d0e395b(n, b7);
const v14=(h[1]+1);
const b8=F(1,n);
kc85602ab(n, b4, b8, y);
const v16=k7d0e395b(n, b8);
const b9=F(1,n);
k32f6f300(n, b9, y);
const v18=k7d0e395b(n, b9);
const v19=Math.max(v18,1);
const v20=(v14*(v16/v19));
const b10=F(1,n);
k484960e7(n, v20, b4, b10, y);
const v22=k7d0e395b(n, b10);
const v23=k0a1d799d(v13, v10, v22, v19);
const v24=(1/v19);
const b11=F(4,(n**2));
kf09d3482(n, v20, v24, b11, b4, y);
const v26=(1/v10);
const b12=F(5,(n**2));
k9a937c0c(n, v11, v26, b12, b4, y);
const v28=k6b2dd37d(n, b11);
const v29=((v28*v14)/v19);
const v30=kb76d3204(n, b12);
const v31=((v30*v0)/v10);
k69bdd8c3(n, v29, v31, b13, b11, b12, y);
const b14=F(6,(d*n));
k019ec0af(n, d, b13, b3, b14);
const b15=F(7,(d*n));
k151b8e2d(n, d, b13, b3, b15);
const b16=F(1,n);
k44632f43(n, d, b3, b14, b15, b16);
k4d2a8049(n, d, b17, b14, b15, b3, b16, b2, b0);
return {value:v23,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b13}],gradient:b17,proxyGradient:null};
}
function r1971166d(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*9));
const b30=R(own,2,((c**2)*9));
const b8=R(own,3,((c*n)*3));
const b33=R(own,4,((c*n)*3));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*3));
ka7c444bc(c, d, p, b4);
const b5=F(5,(c*3));
kd1971f67(c, d, p, b4, b5);
const b6=F(6,(c*3));
k67d99b99(c, b6, b5);
const b7=F(7,((c*d)*3));
k4e533f3b(c, d, b7, p, b4, b6);
k7dfe8507(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*3));
kd7642b14(n, c, b9, b8, y);
const b10=F(9,(n*5));
sortRows(b9,n,(c*3),5,null,b10,true);
const b11=U(0,((c*n)*3));
k96e1abb9(n, c, b11, y);
k5b86be98(n, c, b10, b11);
const b12=U(1,(c*n));
k6c353db9(n, c, b11, b12);
const b13=F(10,(c*n));
k51b728ba(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
kb239a554(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
ke3334c62(c, d, b7, b20);
const b21=F(15,((c**2)*3));
kec6a66e1(c, b20, b21);
const b22=F(5,(c*3));
k696e8183(c, b21, b22);
const b23=F(16,(c*3));
kbd78c6ba(c, b21, b22, b23);
const b24=F(17,(c*3));
k8898a7cd(c, b24, b23);
const b25=F(18,((c**2)*3));
kc9d2036f(c, b25, b21, b22, b24);
const v30=k336d5417(c, b25);
const v31=kac9a921f(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*3));
b26.fill(0,0,((c**2)*3));
kd89ddd54(c, b26);
const v34=(h[2]/(c*3));
const b27=F(16,(c*3));
k30943abe(c, v34, b27);
const b28=F(5,(c*3));
kb1a4b13e(c, b26, b27, b28);
const b29=F(19,((c**2)*3));
kf3115fb7(c, b29, b26, b27, b25, b28);
kfe08d6b9(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k93d7be10(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k1ebffb85(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*3));
k5e64716d(c, d, n, b33, b3, b37);
const b38=F(17,(c*3));
k605991e4(c, d, b7, b37, b38);
const b39=F(22,((c*d)*3));
k5c3b5e65(c, d, b30, b7, b39);
const b40=F(23,((c*d)*3));
k89dd19b2(c, d, b30, b7, b40);
const b41=F(16,(c*3));
k0bf249ac(c, d, b7, b39, b40, b41);
kf3992980(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*3),columns:(c*3),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*3),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r20a73c92(own,x,y,n,d,p,c,h){
const b20=R(own,1,25);
const b28=R(own,2,25);
const b8=R(own,3,(n*5));
const b30=R(own,4,(n*5));
const b33=R(own,5,(d*n));
const b39=R(own,6,(d*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,5);
k45aaaec4(d, p, b4);
const b5=F(5,5);
kfe075832(d, p, b4, b5);
const b6=F(6,5);
k16245d49(b6, b5);
const b7=F(7,(d*5));
k2aa48d11(d, b7, p, b4, b6);
k8903300e(n, d, b3, b7, b8);
const b9=F(8,(n*5));
kfb79ae2a(n, b9, b8, y);
const b10=F(9,(n*5));
sortRows(b9,n,5,5,null,b10,true);
const b11=U(0,(n*5));
ke910c053(n, b11, y);
k8fd8b89e(n, b10, b11);
const b12=U(1,n);
k7cbc6866(n, b11, b12);
const b13=F(1,n);
k795891a0(n, b8, b13, b11);
const b14=F(10,n);
k8eb87ee7(n, b13, b14, b12);
const b15=F(11,n);
k59c66d30(n, b15, b13, b14, b12);
const b16=F(12,n);
k83241a4e(n, b15, b16);
const b17=U(1,n);
kb7595e08(n, b17, y);
const b18=F(13,n);
kf20cc82a(n, b13, b18, b17);
const b19=F(1,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kdf7e5433(d, b7, b20);
const b21=F(5,5);
kd989dc50(b20, b21);
const b22=F(14,5);
k38a15e5a(b21, b22);
const b23=F(15,5);
kf5e4a0ad(b21, b22, b23);
const b24=F(16,5);
k6624815b(b24, b21, b22, b23);
const v29=k1776ea66(b24);
const v30=keddbbe6a(v21, v23, h[2], v29);
const b25=F(5,5);
b25.fill(0,0,5);
k3ca19dde(b25);
const v33=(h[2]/5);
const b26=F(14,5);
k0c74e3df(v33, b25, b26);
const b27=F(15,5);
k5274e1d7(v33, b27, b25, b24, b26);
k91964742(b28, b27);
const v37=(1/v23);
const b29=F(10,n);
k59a15b2e(n, v37, b29, b15, b16, b17);
k227208b8(n, b30, b29, b11);
const b31=F(17,(d*n));
kfadb7cf5(n, d, b30, b7, b31);
const b32=F(13,n);
k75a806c1(n, d, b3, b31, b32);
k33ac8c0b(n, d, b33, b31, b3, b32, b2, b0);
const b34=F(18,(d*5));
k72222f67(d, n, b30, b3, b34);
const b35=F(5,5);
k00bc1993(d, b7, b34, b35);
const b36=F(19,(d*5));
kb06b152b(d, b28, b7, b36);
const b37=F(20,(d*5));
kc3d80fd8(d, b28, b7, b37);
const b38=F(16,5);
k9fbdf9f2(d, b7, b36, b37, b38);
kdba0f4ce(d, b39, b34, b7, b35, b6, b4, b36, b37, b38);
return {value:v30,matrices:[{between:"proxies against proxies",rows:5,columns:5,s:b20,slopes:b28},{between:"samples against proxies",rows:n,columns:5,s:b8,slopes:b30}],gradient:b33,proxyGradient:b39};
}
function r21b979fa(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b28=R(own,2,(c*n));
const b17=R(own,3,(c**2));
const b30=R(own,4,(c**2));
const b33=R(own,5,(d*n));
const b39=R(own,6,(c*d));
const b0=F(0,c);
k83960010(c, n, b0, y);
const v1=(-h[1]);
const b1=F(1,c);
k957de67a(c, d, p, b1);
const b2=F(2,c);
ke3137bf4(c, d, p, b1, b2);
const b3=F(3,c);
k84e038da(c, b3, b2);
const b4=F(4,(c*d));
k2ae3d3e3(c, d, b4, p, b1, b3);
const b5=F(5,n);
k957de67a(n, d, x, b5);
const b6=F(6,n);
ke3137bf4(n, d, x, b5, b6);
const b7=F(7,n);
k84e038da(n, b7, b6);
const b8=F(8,(d*n));
k2ae3d3e3(n, d, b8, x, b5, b7);
k2ee02a4f(c, n, d, b4, b8, b9);
const b10=F(2,c);
k2d841c04(c, n, v1, h[0], b9, b10, y);
const b11=F(9,(c*n));
k17502cf7(c, n, v1, h[0], b11, b9, b10, y);
const b12=F(10,c);
k782789b7(c, n, b11, b12);
const b13=F(11,c);
k27675df6(c, b13, b12, b10);
const b14=F(2,c);
ka34684f7(c, b14, b13);
const b15=U(0,c);
k4e415a92(c, b14, b15);
const b16=F(12,c);
k68c8c6d5(c, b16, b14);
const v18=k1b52dfe1(c, b0, b13, b16, b15);
const v19=k0a7efe2e(c, b0);
const v20=Math.max(v19,1);
const v21=(v18/v20);
k2799ef1a(c, d, b4, b17);
const b18=F(13,(c**2));
k05b262dc(c, h[1], h[0], b18, b17);
const b19=F(2,c);
ke02f74f4(c, b18, b19);
const b20=F(14,(c**2));
k7f1c0a1a(c, b20, b18, b19);
const b21=F(11,c);
k7520f553(c, b20, b21);
const b22=F(15,c);
k27675df6(c, b22, b21, b19);
const b23=F(2,c);
ka34684f7(c, b23, b22);
const b24=U(1,c);
k4e415a92(c, b23, b24);
const b25=F(16,c);
k68c8c6d5(c, b25, b23);
const v31=kde44f58f(c, b22, b25, b24);
const b26=F(2,c);
kf6e48481(c, b26);
const v33=k07f7b137(c, b26);
const v34=Math.max(v33,1);
const v35=(v31/v34);
const v36=k7865d3f2(v21, v35);
const v37=ke373b627(v36);
const v38=(1/v20);
const b27=F(15,c);
k93d59cf0(c, v38, b27, b0, b16, b12, b15);
k19bb8e12(c, n, v1, b28, b11, b27);
const v41=(1/v34);
const b29=F(2,c);
k5931ba6f(c, v41, b29, b25, b21, b24);
kfcd0264b(c, h[1], b30, b20, b29);
const b31=F(17,(d*n));
k9b48a144(n, d, c, b28, b4, b31);
const b32=F(6,n);
k75a806c1(n, d, b8, b31, b32);
k33ac8c0b(n, d, b33, b31, b8, b32, b7, b5);
const b34=F(18,(c*d));
k019ec0af(c, d, b30, b4, b34);
const b35=F(19,(c*d));
k151b8e2d(c, d, b30, b4, b35);
const b36=F(0,c);
k44632f43(c, d, b4, b34, b35, b36);
const b37=F(20,(c*d));
kac486688(c, d, n, b28, b8, b37);
const b38=F(12,c);
k75a806c1(c, d, b4, b37, b38);
k6910fe02(c, d, b39, b34, b35, b4, b36, b3, b1, b37, b38);
return {value:v37,matrices:[{between:"proxies against samples",rows:c,columns:n,s:b9,slopes:b28},{between:"proxies against proxies",rows:c,columns:c,s:b17,slopes:b30}],gradient:b33,proxyGradient:b39};
}
function r22a2d5b9(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*25));
const b30=R(own,2,((c**2)*25));
const b8=R(own,3,((c*n)*5));
const b33=R(own,4,((c*n)*5));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*5));
k2f730769(c, d, p, b4);
const b5=F(5,(c*5));
ke430c223(c, d, p, b4, b5);
const b6=F(6,(c*5));
kb45602a1(c, b6, b5);
const b7=F(7,((c*d)*5));
k1f1a1299(c, d, b7, p, b4, b6);
k0d240772(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*5));
k8f6ef864(n, c, b9, b8, y);
const b10=F(9,((c*n)*5));
sortRows(b9,n,(c*5),(c*5),null,b10,true);
const b11=U(0,((c*n)*5));
k4851509a(n, c, b11, y);
kbc8e63b3(n, c, b10, b11);
const b12=U(1,(c*n));
kc3968dec(n, c, b11, b12);
const b13=F(10,(c*n));
ke7e0088c(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k6f7cce59(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kac59d4e6(c, d, b7, b20);
const b21=F(15,((c**2)*5));
k052b94c0(c, b20, b21);
const b22=F(5,(c*5));
kaf15f6b0(c, b21, b22);
const b23=F(16,(c*5));
k1e19da8e(c, b21, b22, b23);
const b24=F(17,(c*5));
k7702a001(c, b24, b23);
const b25=F(18,((c**2)*5));
k3dbc56d2(c, b25, b21, b22, b24);
const v30=ked07f7cf(c, b25);
const v31=ke8903774(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*5));
b26.fill(0,0,((c**2)*5));
kf755e385(c, b26);
const v34=(h[2]/(c*5));
const b27=F(16,(c*5));
k1641d4fb(c, v34, b27);
const b28=F(5,(c*5));
k64ef80fd(c, b26, b27, b28);
const b29=F(19,((c**2)*5));
kbb9893d2(c, b29, b26, b27, b25, b28);
kc7cbab05(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
kdcf3c1f7(n, c, b33, b32, b11);
const b34=F(20,(d*n));
kbd46ef39(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b33, b3, b37);
const b38=F(17,(c*5));
k6e336d28(c, d, b7, b37, b38);
const b39=F(22,((c*d)*5));
kf502c410(c, d, b30, b7, b39);
const b40=F(23,((c*d)*5));
k1ac67fba(c, d, b30, b7, b40);
const b41=F(16,(c*5));
kea9c00ac(c, d, b7, b39, b40, b41);
k3347b849(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*5),columns:(c*5),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*5),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r251c2865(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k016fde26(n, b5, b4, y);
const b7=F(5,(n**2));
const b6=F(6,(n**2));
sortRows(b5,n,n,n,b7,b6,false);
const b8=F(4,(n**2));
k31fc781d(n, b8, b7, b4);
const b9=F(7,(n**2));
keb5e48a3(n, b9, b8);
const b10=F(8,(n**2));
k40178356(n, b10, b6, b9);
const b11=F(6,(n**2));
k785bd0c0(n, h[0], b11, b4, b10);
const b12=F(9,(n**2));
kb3a66dfb(n, b12, b8, b7, b9, y);
const b13=F(4,(n**2));
k751cf7df(n, b13, b11, b12);
const b14=F(1,n);
b14.fill(0,0,n);
kb1016400(n, b14, b13);
const v15=k7d0e395b(n, b14);
const b15=F(1,n);
b15.fill(0,0,n);
kb7426661(n, b15, b13);
const v18=k7d0e395b(n, b15);
const v19=Math.max(v18,1);
const v20=ke9d9ab61(v15, v19);
const v21=(1/v19);
const b16=F(5,(n**2));
k2cd18001(n, v21, b16, b11, b12);
const b17=F(7,(n**2));
b17.fill(0,0,(n**2));
k54545d6e(n, b17, b10, b16);
const b18=F(4,(n**2));
b18.fill(0,0,(n**2));
kf8bb4a2b(n, b18, b16);
k67fb7442(n, b19, b17, b18);
const b20=F(10,(d*n));
k019ec0af(n, d, b19, b3, b20);
const b21=F(11,(d*n));
k151b8e2d(n, d, b19, b3, b21);
const b22=F(1,n);
k44632f43(n, d, b3, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b3, b22, b2, b0);
return {value:v20,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b19}],gradient:b23,proxyGradient:null};
}
function r2730c239(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
kd7989773(n, b5, b4, y);
const b6=F(5,(n**2));
k719e3dc7(n, b6, y);
const b7=F(6,(n**2));
k6e28d72c(n, b7, b4);
const b8=F(7,(n*102));
b8.fill(0,0,(n*102));
k1ce101b1(n, b8, b5, b6, b7);
const b9=F(8,(n**2));
k17c670cb(n, b9, b5);
const b10=F(9,(n*102));
kd83f9e36(n, b10, b8);
kbbd6bb86(n, b10, b9, b6, b7);
const b11=F(1,n);
k32f6f300(n, b11, y);
const v14=k7d0e395b(n, b11);
const v15=Math.max(v14,1);
const b12=F(10,51);
kf5bcdd26(n, b10, b12);
const b13=F(11,51);
kae5d2891(b12, b13);
const b14=F(1,n);
k306cdf0e(n, b14, y);
const v19=k7d0e395b(n, b14);
const v20=Math.max(v19,1);
const b15=F(1,n);
k928db683(n, v15, v20, b10, b13, b15);
const v22=k7d0e395b(n, b15);
const v23=((v19>0)?1:0);
const v24=((v14>0)?1:0);
const v25=k7bf73873(n, v23, v24);
const v26=Math.max(v25,1);
const v27=ke9d9ab61(v22, v26);
const v28=(1/v26);
const b16=F(10,51);
kd6d54d06(n, v15, v28, b10, b16);
const b17=F(12,51);
k58b11a92(v20, b16, b17);
const b18=F(7,(n*102));
kd17820b8(n, v28, v20, v15, b18, b13, b17);
kf9d38fdf(n, b19, b4, b18, b9, b6, b5);
const b20=F(13,(d*n));
k019ec0af(n, d, b19, b3, b20);
const b21=F(14,(d*n));
k151b8e2d(n, d, b19, b3, b21);
const b22=F(1,n);
k44632f43(n, d, b3, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b3, b22, b2, b0);
return {value:v27,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b19}],gradient:b23,proxyGradient:null};
}
function r28db8f6d(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*9));
const b30=R(own,2,((c**2)*9));
const b8=R(own,3,((c*n)*3));
const b33=R(own,4,((c*n)*3));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*3));
ka7c444bc(c, d, p, b4);
const b5=F(5,(c*3));
kd1971f67(c, d, p, b4, b5);
const b6=F(6,(c*3));
k67d99b99(c, b6, b5);
const b7=F(7,((c*d)*3));
k4e533f3b(c, d, b7, p, b4, b6);
k7dfe8507(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*3));
kd7642b14(n, c, b9, b8, y);
const b10=F(9,((c*n)*3));
sortRows(b9,n,(c*3),(c*3),null,b10,true);
const b11=U(0,((c*n)*3));
k96e1abb9(n, c, b11, y);
k06076112(n, c, b10, b11);
const b12=U(1,(c*n));
k6c353db9(n, c, b11, b12);
const b13=F(10,(c*n));
k51b728ba(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
kb239a554(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
ke3334c62(c, d, b7, b20);
const b21=F(15,((c**2)*3));
kec6a66e1(c, b20, b21);
const b22=F(5,(c*3));
k696e8183(c, b21, b22);
const b23=F(16,(c*3));
kbd78c6ba(c, b21, b22, b23);
const b24=F(17,(c*3));
k8898a7cd(c, b24, b23);
const b25=F(18,((c**2)*3));
kc9d2036f(c, b25, b21, b22, b24);
const v30=k336d5417(c, b25);
const v31=kac9a921f(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*3));
b26.fill(0,0,((c**2)*3));
kd89ddd54(c, b26);
const v34=(h[2]/(c*3));
const b27=F(16,(c*3));
k30943abe(c, v34, b27);
const b28=F(5,(c*3));
kb1a4b13e(c, b26, b27, b28);
const b29=F(19,((c**2)*3));
kf3115fb7(c, b29, b26, b27, b25, b28);
kfe08d6b9(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k93d7be10(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k1ebffb85(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*3));
k5e64716d(c, d, n, b33, b3, b37);
const b38=F(17,(c*3));
k605991e4(c, d, b7, b37, b38);
const b39=F(22,((c*d)*3));
k5c3b5e65(c, d, b30, b7, b39);
const b40=F(23,((c*d)*3));
k89dd19b2(c, d, b30, b7, b40);
const b41=F(16,(c*3));
k0bf249ac(c, d, b7, b39, b40, b41);
kf3992980(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*3),columns:(c*3),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*3),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r2e1ec150(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k94bfe903(n, b5, b4, y);
const b6=F(5,(n**2));
k719e3dc7(n, b6, y);
const b7=F(6,(n**2));
kcc1c30f4(n, b7, b4);
const b8=F(7,(n*42));
b8.fill(0,0,(n*42));
k3a39a58c(n, b8, b5, b6, b7);
const b9=F(8,(n**2));
k17c670cb(n, b9, b5);
const b10=F(9,(n*42));
kb2b51330(n, b10, b8);
kf3dddd1d(n, b10, b9, b6, b7);
const b11=F(1,n);
k32f6f300(n, b11, y);
const v14=k7d0e395b(n, b11);
const v15=Math.max(v14,1);
const b12=F(10,21);
k300af670(n, b10, b12);
const b13=F(11,21);
k240fb989(b12, b13);
const b14=F(1,n);
k306cdf0e(n, b14, y);
const v19=k7d0e395b(n, b14);
const v20=Math.max(v19,1);
const b15=F(1,n);
kb1264524(n, v15, v20, b10, b13, b15);
const v22=k7d0e395b(n, b15);
const v23=((v19>0)?1:0);
const v24=((v14>0)?1:0);
const v25=k7bf73873(n, v23, v24);
const v26=Math.max(v25,1);
const v27=ke9d9ab61(v22, v26);
const v28=(1/v26);
const b16=F(10,21);
kc7f6bd48(n, v15, v28, b10, b16);
const b17=F(12,21);
k2bcda2e9(v20, b16, b17);
const b18=F(7,(n*42));
ke45b0eab(n, v28, v20, v15, b18, b13, b17);
kac381200(n, b19, b4, b18, b9, b6, b5);
const b20=F(13,(d*n));
k019ec0af(n, d, b19, b3, b20);
const b21=F(14,(d*n));
k151b8e2d(n, d, b19, b3, b21);
const b22=F(1,n);
k44632f43(n, d, b3, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b3, b22, b2, b0);
return {value:v27,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b19}],gradient:b23,proxyGradient:null};
}
function r2e8c9225(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*4));
const b30=R(own,2,((c**2)*4));
const b8=R(own,3,((c*n)*2));
const b33=R(own,4,((c*n)*2));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*2));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*2));
k5b47642d(c, d, p, b4);
const b5=F(5,(c*2));
kc0bf9bef(c, d, p, b4, b5);
const b6=F(6,(c*2));
k74de847c(c, b6, b5);
const b7=F(7,((c*d)*2));
k93b81019(c, d, b7, p, b4, b6);
k9d4183c8(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*2));
kfe9712a3(n, c, b9, b8, y);
const b10=F(9,(n*50));
sortRows(b9,n,(c*2),50,null,b10,true);
const b11=U(0,((c*n)*2));
k78fa656c(n, c, b11, y);
k67d609b4(n, c, b10, b11);
const b12=U(1,(c*n));
k79c9e72d(n, c, b11, b12);
const b13=F(10,(c*n));
k575cea64(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k54d6e83e(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k9d1e2913(c, d, b7, b20);
const b21=F(15,((c**2)*2));
k39ae9a1a(c, b20, b21);
const b22=F(5,(c*2));
k83135b73(c, b21, b22);
const b23=F(16,(c*2));
kcc18ad5c(c, b21, b22, b23);
const b24=F(17,(c*2));
k519576fc(c, b24, b23);
const b25=F(18,((c**2)*2));
k87c0931e(c, b25, b21, b22, b24);
const v30=k5eaa94ab(c, b25);
const v31=k7a957cec(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*2));
b26.fill(0,0,((c**2)*2));
kc2a88bb6(c, b26);
const v34=(h[2]/(c*2));
const b27=F(16,(c*2));
kcfcd3c7e(c, v34, b27);
const b28=F(5,(c*2));
k7a4c3f36(c, b26, b27, b28);
const b29=F(19,((c**2)*2));
k36c6ffee(c, b29, b26, b27, b25, b28);
k99d68265(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k7ce19741(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k2db67e14(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*2));
k059b705d(c, d, n, b33, b3, b37);
const b38=F(17,(c*2));
kde128d06(c, d, b7, b37, b38);
const b39=F(22,((c*d)*2));
ka2719e75(c, d, b30, b7, b39);
const b40=F(23,((c*d)*2));
k18fff7be(c, d, b30, b7, b40);
const b41=F(16,(c*2));
k818eeb88(c, d, b7, b39, b40, b41);
kba460200(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*2),columns:(c*2),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*2),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r2f82a6c9(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*4));
const b30=R(own,2,((c**2)*4));
const b8=R(own,3,((c*n)*2));
const b33=R(own,4,((c*n)*2));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*2));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*2));
k5b47642d(c, d, p, b4);
const b5=F(5,(c*2));
kc0bf9bef(c, d, p, b4, b5);
const b6=F(6,(c*2));
k74de847c(c, b6, b5);
const b7=F(7,((c*d)*2));
k93b81019(c, d, b7, p, b4, b6);
k9d4183c8(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*2));
kfe9712a3(n, c, b9, b8, y);
const b10=F(9,(n*5));
sortRows(b9,n,(c*2),5,null,b10,true);
const b11=U(0,((c*n)*2));
k78fa656c(n, c, b11, y);
kf1e76dc4(n, c, b10, b11);
const b12=U(1,(c*n));
k79c9e72d(n, c, b11, b12);
const b13=F(10,(c*n));
k575cea64(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k54d6e83e(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k9d1e2913(c, d, b7, b20);
const b21=F(15,((c**2)*2));
k39ae9a1a(c, b20, b21);
const b22=F(5,(c*2));
k83135b73(c, b21, b22);
const b23=F(16,(c*2));
kcc18ad5c(c, b21, b22, b23);
const b24=F(17,(c*2));
k519576fc(c, b24, b23);
const b25=F(18,((c**2)*2));
k87c0931e(c, b25, b21, b22, b24);
const v30=k5eaa94ab(c, b25);
const v31=k7a957cec(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*2));
b26.fill(0,0,((c**2)*2));
kc2a88bb6(c, b26);
const v34=(h[2]/(c*2));
const b27=F(16,(c*2));
kcfcd3c7e(c, v34, b27);
const b28=F(5,(c*2));
k7a4c3f36(c, b26, b27, b28);
const b29=F(19,((c**2)*2));
k36c6ffee(c, b29, b26, b27, b25, b28);
k99d68265(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k7ce19741(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k2db67e14(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*2));
k059b705d(c, d, n, b33, b3, b37);
const b38=F(17,(c*2));
kde128d06(c, d, b7, b37, b38);
const b39=F(22,((c*d)*2));
ka2719e75(c, d, b30, b7, b39);
const b40=F(23,((c*d)*2));
k18fff7be(c, d, b30, b7, b40);
const b41=F(16,(c*2));
k818eeb88(c, d, b7, b39, b40, b41);
kba460200(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*2),columns:(c*2),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*2),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r33038e4f(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b27=R(own,2,(n**2));
const b31=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(1,n);
k662c091d(n, b4, b5, y);
const b6=U(0,(n**2));
k6bc3c875(n, h[3], b4, b5, b6, y);
const v7=(-h[0]);
const b7=F(4,(n**2));
ke4a612d3(n, v7, h[2], b7, b4, b6);
const b8=F(1,n);
ke02f74f4(n, b7, b8);
const b9=F(5,(n**2));
k7f1c0a1a(n, b9, b7, b8);
const b10=F(6,n);
k7520f553(n, b9, b10);
const b11=F(7,n);
k27675df6(n, b11, b10, b8);
const b12=F(1,n);
ka34684f7(n, b12, b11);
const b13=U(1,n);
k4e415a92(n, b12, b13);
const b14=F(8,n);
k68c8c6d5(n, b14, b12);
const b15=F(1,n);
kbabaaa61(n, b4, b15, y);
const b16=F(4,(n**2));
kba406873(n, h[3], h[1], h[2], b16, b15, b4, y);
const b17=F(1,n);
ke02f74f4(n, b16, b17);
const b18=F(9,(n**2));
k7f1c0a1a(n, b18, b16, b17);
const b19=F(10,n);
k7520f553(n, b18, b19);
const b20=F(11,n);
k27675df6(n, b20, b19, b17);
const b21=F(1,n);
ka34684f7(n, b21, b20);
const b22=U(2,n);
k4e415a92(n, b21, b22);
const b23=F(12,n);
k68c8c6d5(n, b23, b21);
const v25=k8c9cb9ea(n, h[0], h[1], b11, b14, b20, b23, b13, b22);
const b24=F(1,n);
k996565f7(n, b24, b6);
const v27=k07f7b137(n, b24);
const v28=Math.max(v27,1);
const v29=ke9d9ab61(v25, v28);
const v30=(1/v28);
const b25=F(7,n);
k7bc59596(n, v30, h[1], b25, b23, b19, b22);
const b26=F(11,n);
k7bc59596(n, v30, h[0], b26, b14, b10, b13);
k60cf505e(n, h[1], v7, b27, b18, b25, b9, b26);
const b28=F(13,(d*n));
k019ec0af(n, d, b27, b3, b28);
const b29=F(14,(d*n));
k151b8e2d(n, d, b27, b3, b29);
const b30=F(1,n);
k44632f43(n, d, b3, b28, b29, b30);
k4d2a8049(n, d, b31, b28, b29, b3, b30, b2, b0);
return {value:v29,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b27}],gradient:b31,proxyGradient:null};
}
function r3686a3a5(own,x,y,n,d,p,c,h){
const b11=R(own,1,(c*n));
const b32=R(own,2,(c*n));
const b39=R(own,3,(d*n));
const b42=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
kd1c2f79d(n, d, x, b1);
const b2=F(2,n);
kd6860ed1(n, h[1], b2, b1);
const b3=F(3,n);
k957de67a(n, d, x, b3);
const b4=F(4,n);
ke3137bf4(n, d, x, b3, b4);
const b5=F(5,n);
k84e038da(n, b5, b4);
const b6=F(6,(d*n));
k2ae3d3e3(n, d, b6, x, b3, b5);
const b7=F(7,c);
k957de67a(c, d, p, b7);
const b8=F(8,c);
ke3137bf4(c, d, p, b7, b8);
const b9=F(9,c);
k84e038da(c, b9, b8);
const b10=F(10,(c*d));
k2ae3d3e3(c, d, b10, p, b7, b9);
k2ee02a4f(n, c, d, b6, b10, b11);
const b12=F(11,(c*n));
k20ab153e(n, c, b12, b2, b11, y);
const b13=F(4,n);
k071cce81(n, c, b12, b13);
const b14=F(12,(c*n));
kad7d3f97(n, c, b14, b12, b13);
const b15=F(13,n);
k782789b7(n, c, b14, b15);
const b16=F(11,(c*n));
kdd6df0c3(n, c, b16, b11);
const b17=F(14,(c*n));
kbdf6dca2(n, c, b17, b11, b16);
const b18=F(15,(c*n));
k77dafc0f(n, c, b18, b11, b17, b16);
const b19=F(16,(c*n));
k72799fff(n, c, b19, b2, b18, y);
const b20=F(17,n);
k071cce81(n, c, b19, b20);
const b21=F(18,(c*n));
kad7d3f97(n, c, b21, b19, b20);
const b22=F(19,n);
k782789b7(n, c, b21, b22);
const b23=F(20,n);
k0b94d2a2(n, b23, b15, b13, b22, b20);
const b24=F(4,n);
ka34684f7(n, b24, b23);
const b25=U(0,n);
k4e415a92(n, b24, b25);
const b26=F(17,n);
k68c8c6d5(n, b26, b24);
const v27=k1b52dfe1(n, b0, b23, b26, b25);
const v28=k0a7efe2e(n, b0);
const v29=Math.max(v28,1);
const v30=ke9d9ab61(v27, v29);
const v31=(1/v29);
const b27=F(4,n);
kd096e3ff(n, v31, b27, b0, b26, b25);
const b28=F(20,n);
kc56d6faa(n, b28, b27, b22);
const b29=F(16,(c*n));
k0173c754(n, c, b29, b21, b28);
const b30=F(0,n);
k9484557b(n, b30, b27, b15);
const b31=F(18,(c*n));
k0173c754(n, c, b31, b14, b30);
kbae90c62(n, c, b32, b11, b29, b2, b16, b17, b31);
const b33=F(17,n);
k75a806c1(n, c, b29, b18, b33);
const b34=F(19,n);
k75a806c1(n, c, b31, b11, b34);
const b35=F(20,n);
k1a5c2147(n, h[1], b35, b33, b34);
const b36=U(0,n);
k78872e7c(n, b1, b36);
const b37=F(21,(d*n));
kac486688(n, d, c, b32, b10, b37);
const b38=F(4,n);
k75a806c1(n, d, b6, b37, b38);
k6dbb3315(n, d, b39, b35, x, b1, b37, b6, b38, b5, b3, b36);
const b40=F(22,(c*d));
k9b48a144(c, d, n, b32, b6, b40);
const b41=F(8,c);
k75a806c1(c, d, b10, b40, b41);
k33ac8c0b(c, d, b42, b40, b10, b41, b9, b7);
return {value:v30,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b11,slopes:b32}],gradient:b39,proxyGradient:b42};
}
function r380e25a5(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b33=R(own,2,(c*n));
const b36=R(own,3,(d*n));
const b39=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,c);
k957de67a(c, d, p, b5);
const b6=F(6,c);
ke3137bf4(c, d, p, b5, b6);
const b7=F(7,c);
k84e038da(c, b7, b6);
const b8=F(8,(c*d));
k2ae3d3e3(c, d, b8, p, b5, b7);
k2ee02a4f(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
k4ea4d36f(n, c, h[2], b9, b10);
const b11=F(10,(c*n));
k78a9a7fd(n, c, h[2], b11, b9, b10);
const b12=F(9,(c*n));
k1eb90d9b(n, c, b11, b12);
const b13=F(11,(c*n));
kdaf18935(n, c, b13, b11, b12);
const b14=F(10,(c*n));
k23c4534e(n, c, b13, b9, b14);
const b15=F(2,n);
k71a38771(n, c, h[1], b14, b15, y);
const b16=F(9,(c*n));
k08403603(n, c, h[1], b16, b14, b15, y);
const b17=F(12,n);
k782789b7(n, c, b16, b17);
const b18=F(13,(c*n));
k4f72298e(n, c, h[1], h[3], b18, b14, y);
const b19=F(14,n);
k071cce81(n, c, b18, b19);
const b20=F(10,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(15,n);
k782789b7(n, c, b20, b21);
const b22=F(16,n);
k0b94d2a2(n, b22, b17, b15, b21, b19);
const b23=F(2,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(14,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const v29=ke7934a64(v26, v28, h[4]);
const v30=(1/v28);
const b26=F(2,n);
kd096e3ff(n, v30, b26, b0, b25, b24);
const b27=F(16,n);
kc56d6faa(n, b27, b26, b21);
const b28=F(0,n);
k9484557b(n, b28, b26, b17);
const b29=F(13,(c*n));
k94c36a9f(n, c, h[1], b29, b20, b27, b16, b28);
const b30=F(10,(c*n));
k3392bcc9(n, c, b30, b29, b9, b13);
const b31=F(9,(c*n));
k1eb90d9b(n, c, b30, b31);
const b32=F(17,(c*n));
k34d27624(n, c, h[2], b32, b29, b13, b30, b31);
kcbf820fb(n, c, b33, b32);
const b34=F(18,(d*n));
kac486688(n, d, c, b33, b8, b34);
const b35=F(14,n);
k75a806c1(n, d, b4, b34, b35);
k33ac8c0b(n, d, b36, b34, b4, b35, b3, b1);
const b37=F(19,(c*d));
k9b48a144(c, d, n, b33, b4, b37);
const b38=F(6,c);
k75a806c1(c, d, b8, b37, b38);
k33ac8c0b(c, d, b39, b37, b8, b38, b7, b5);
return {value:v29,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b9,slopes:b33}],gradient:b36,proxyGradient:b39};
}
function r3cf51b9d(own,x,y,n,d,p,c,h){
const b2=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b22=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
k2799ef1a(n, d, x, b2);
const b3=F(2,(n**2));
kba0a4c73(n, h[1], b3, b2, y);
const b4=F(3,n);
ke02f74f4(n, b3, b4);
const b5=F(4,(n**2));
k7f1c0a1a(n, b5, b3, b4);
const b6=F(5,n);
k7520f553(n, b5, b6);
const v7=(-h[1]);
const b7=F(2,(n**2));
kec2752e4(n, v7, b7, b2, y);
const b8=F(6,n);
ke02f74f4(n, b7, b8);
const b9=F(7,(n**2));
k7f1c0a1a(n, b9, b7, b8);
const b10=F(8,n);
k7520f553(n, b9, b10);
const b11=F(9,n);
k501da157(n, b11, b6, b4, b10, b8);
const b12=F(3,n);
ka34684f7(n, b12, b11);
const b13=U(0,n);
k4e415a92(n, b12, b13);
const b14=F(6,n);
k68c8c6d5(n, b14, b12);
const v16=kfc3dbd63(n, b0, b1, b11, b14, b13);
const v17=kf517b63d(n, b0, b1);
const v18=Math.max(v17,1);
const b15=F(3,n);
kd1c2f79d(n, d, x, b15);
const v20=k24295e8b(n, h[0], b15);
const v21=k07f7b137(n, b0);
const v22=Math.max(v21,1);
const v23=k0a1d799d(v16, v18, v20, v22);
const v24=(1/v18);
const b16=F(9,n);
k71ab157c(n, v24, b16, b0, b1, b14, b13);
const b17=F(3,n);
k9484557b(n, b17, b16, b10);
const b18=F(0,n);
k9484557b(n, b18, b16, b6);
k60cf505e(n, v7, h[1], b19, b9, b17, b5, b18);
const v29=(1/v22);
const b20=F(10,(d*n));
k019ec0af(n, d, b19, x, b20);
const b21=F(11,(d*n));
k151b8e2d(n, d, b19, x, b21);
k3761c0e9(n, d, v29, h[0], b22, x, b20, b21);
return {value:v23,matrices:[{between:"samples against samples",rows:n,columns:n,s:b2,slopes:b19}],gradient:b22,proxyGradient:null};
}
function r3e056021(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b49=R(own,2,(n**2));
const b53=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k95de3b32(n, h[0], b5, b4, y);
const b6=F(5,(n**2));
sortRows(b5,n,n,n,b6,null,false);
const b7=F(4,(n**2));
k016fde26(n, b7, b4, y);
const b8=F(6,(n**2));
sortRows(b7,n,n,n,b8,null,false);
const b9=F(4,(n**2));
k3b218b7f(n, h[0], b9, b8, b4, y);
const b10=F(6,(n**2));
k462ff651(n, b10, b6, b4, b9, y);
const b11=F(1,n);
k983525e5(n, b10, b4, b11);
const b12=F(7,n);
k7520f553(n, b9, b12);
const v13=k7c3832b6(n, h[0], b11, b12);
const v14=k7d0e395b(n, b12);
const v15=Math.max(v14,1);
const b13=F(5,(n**2));
k95de3b32(n, h[1], b13, b4, y);
const b14=F(4,(n**2));
const b15=F(8,(n**2));
sortRows(b13,1,(n**2),(n**2),b14,b15,false);
const b16=F(5,(n**2));
k624506c5(n, b16, b14, b4);
const b17=F(9,((n**2)+1));
b17.fill(0,0,((n**2)+1));
kbdbdad31(n, b17, b16, b4, y);
const b18=F(10,((n**2)+1));
k0708704b(n, b17, b18);
const b19=F(4,(n**2));
b19.fill(0,0,(n**2));
k04daf7ed(n, b19, b15);
const b20=F(1,n);
sortRows(y,1,n,n,b20,null,false);
const b21=F(7,n);
k4ccd4117(n, b21, b20, y);
const b22=F(8,(n**2));
k0fdc05ac(n, b22, b21, b19);
const b23=F(11,(n**2));
const b24=F(12,(n**2));
sortRows(b22,1,(n**2),(n**2),b23,b24,false);
const b25=F(1,n);
k17b308d3(n, b25, b21);
const b26=F(8,(n**2));
k48e4de52(n, b26, b23, b25, b16, b21);
const b27=F(13,((n+(n**2))+1));
b27.fill(0,0,((n+(n**2))+1));
kbdbdad31(n, b27, b26, b4, y);
const b28=F(14,(n**2));
kd927e8cc(n, b28, b23, b21, b16);
const b29=F(15,((n+(n**2))+1));
b29.fill(0,0,((n+(n**2))+1));
kbdbdad31(n, b29, b28, b4, y);
const b30=F(16,((n+(n**2))+1));
k5d130b4f(n, b27, b29, b30);
const b31=F(17,(n**2));
kf77b919f(n, b31, b23, b21);
const b32=F(11,(n**2));
b32.fill(0,0,(n**2));
k04daf7ed(n, b32, b24);
const b33=F(12,(n**2));
k42b94269(n, b33, b32, b21);
const b34=F(9,((n**2)+1));
b34.fill(0,0,((n**2)+1));
k701abe81(n, b34, b16, y);
const b35=F(18,((n**2)+1));
k0708704b(n, b34, b35);
const b36=F(13,((n+(n**2))+1));
b36.fill(0,0,((n+(n**2))+1));
k701abe81(n, b36, b26, y);
const b37=F(15,((n+(n**2))+1));
b37.fill(0,0,((n+(n**2))+1));
k701abe81(n, b37, b28, y);
const b38=F(19,((n+(n**2))+1));
k5d130b4f(n, b36, b37, b38);
const b39=F(11,(n**2));
k6c8bcf36(n, b39, b35, b19, b38, b31, b33);
const b40=F(1,n);
k8e62c957(n, h[1], b18, b19, b30, b31, b33, b39, b4, b40, y);
const v50=keeeef15b(n, b40);
const b41=F(7,n);
kb97241c7(n, b39, b41, y);
const v52=k7d0e395b(n, b41);
const v53=Math.max(v52,1);
const v54=k0a1d799d(v13, v15, v50, v53);
const v55=(1/v53);
const b42=F(20,(n**2));
k72e070b2(n, v55, b42, b40, y);
const b43=F(13,((n+(n**2))+1));
b43.fill(0,0,((n+(n**2))+1));
k7b670818(n, b43, b33, b42);
const b44=F(12,(n**2));
k0c9981c4(n, b44, b42);
const b45=F(15,((n+(n**2))+1));
b45.fill(0,0,((n+(n**2))+1));
k7b670818(n, b45, b31, b44);
const b46=F(19,((n+(n**2))+1));
ka6e3294a(n, b43, b45, b46);
const b47=F(9,((n**2)+1));
b47.fill(0,0,((n**2)+1));
kcffb7a1d(n, b47, b19, b44);
const v65=k50e03aec(n, b42);
const b48=F(18,((n**2)+1));
k8939fe36(n, v65, b47, b48);
const v67=(1/v15);
k752a1cc0(n, v67, b49, b46, b28, b26, b48, b16, b42, b39, b10, y);
const b50=F(21,(d*n));
k019ec0af(n, d, b49, b3, b50);
const b51=F(22,(d*n));
k151b8e2d(n, d, b49, b3, b51);
const b52=F(7,n);
k44632f43(n, d, b3, b50, b51, b52);
k4d2a8049(n, d, b53, b50, b51, b3, b52, b2, b0);
return {value:v54,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b49}],gradient:b53,proxyGradient:null};
}
function r3eae9537(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b25=R(own,2,(n**2));
const b30=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(1,n);
kd1c2f79d(n, d, b3, b4);
const b5=F(4,(n**2));
k2799ef1a(n, d, b3, b5);
kec159b6c(n, b6, b4, b5);
const b7=F(4,(n**2));
k5a233ef6(n, b7, b6);
const b8=F(5,(n**2));
k2cd7fc93(n, b8, b7);
const b9=F(6,(n**2));
ka613e60b(n, b9, b8, y);
const b10=F(7,(n**2));
k719e3dc7(n, b10, y);
const b11=F(8,(n**2));
kb636f482(n, b11, b7, b8);
const b12=F(9,(n*12));
b12.fill(0,0,(n*12));
k8524bb83(n, b12, b9, b10, b11);
const b13=F(4,(n**2));
k17c670cb(n, b13, b9);
const b14=F(10,(n*12));
kcc48b4f7(n, b14, b12);
k7241393c(n, b14, b13, b10, b11);
const b15=F(11,(n*6));
keef152cd(n, b14, b15);
const b16=F(12,(n*6));
k1f7dc074(n, b14, b16);
const b17=F(13,(n*6));
kd3e43f68(n, b17, b15, b16);
const b18=F(1,n);
k948b6667(n, b14, b17, b18);
const b19=F(14,n);
k306cdf0e(n, b19, y);
const v22=kf5a6ed20(n, b18, b19);
const v23=k0a7efe2e(n, b19);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b20=F(1,n);
k37684c84(n, v26, b20, b19);
const b21=F(15,(n*6));
k8ef562f8(n, b21, b16, b15, b20, b14, b17);
const b22=F(16,(n*6));
k201fe2fb(n, b20, b14, b16, b15, b21, b22);
const b23=F(12,(n*6));
kb7c5a2b1(n, b21, b23);
const b24=F(9,(n*12));
kba6643d5(n, b24, b22, b20, b17, b23);
k2e990d4a(n, b25, b6, b24, b13, b10, b9);
const b26=F(5,(n**2));
k7177de57(n, b26, b25);
const b27=F(17,(d*n));
k019ec0af(n, d, b26, b3, b27);
const b28=F(18,(d*n));
k151b8e2d(n, d, b26, b3, b28);
const b29=F(14,n);
k44632f43(n, d, b3, b27, b28, b29);
k4d2a8049(n, d, b30, b27, b28, b3, b29, b2, b0);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b25}],gradient:b30,proxyGradient:null};
}
function r41d36dac(own,x,y,n,d,p,c,h){
const b8=R(own,1,(n**2));
const b24=R(own,2,(n**2));
const b29=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
const b6=F(3,n);
kd1c2f79d(n, d, b5, b6);
const b7=F(6,(n**2));
k2799ef1a(n, d, b5, b7);
kec159b6c(n, b8, b6, b7);
const b9=F(6,(n**2));
kba0a4c73(n, h[0], b9, b8, y);
const b10=F(3,n);
ke02f74f4(n, b9, b10);
const b11=F(7,(n**2));
k7f1c0a1a(n, b11, b9, b10);
const b12=F(8,n);
k7520f553(n, b11, b12);
const b13=F(6,(n**2));
kec2752e4(n, h[0], b13, b8, y);
const b14=F(9,n);
ke02f74f4(n, b13, b14);
const b15=F(10,(n**2));
k7f1c0a1a(n, b15, b13, b14);
const b16=F(11,n);
k7520f553(n, b15, b16);
const b17=F(12,n);
k0b94d2a2(n, b17, b12, b10, b16, b14);
const b18=F(3,n);
ka34684f7(n, b18, b17);
const b19=U(0,n);
k4e415a92(n, b18, b19);
const b20=F(9,n);
k68c8c6d5(n, b20, b18);
const v21=kfc3dbd63(n, b0, b1, b17, b20, b19);
const v22=kf517b63d(n, b0, b1);
const v23=Math.max(v22,1);
const v24=ke9d9ab61(v21, v23);
const v25=(1/v23);
const b21=F(3,n);
k71ab157c(n, v25, b21, b0, b1, b20, b19);
const b22=F(12,n);
kc56d6faa(n, b22, b21, b16);
const b23=F(0,n);
k9484557b(n, b23, b21, b12);
k8f2be0fe(n, h[0], b24, b15, b22, b11, b23);
const b25=F(6,(n**2));
k7177de57(n, b25, b24);
const b26=F(13,(d*n));
k019ec0af(n, d, b25, b5, b26);
const b27=F(14,(d*n));
k151b8e2d(n, d, b25, b5, b27);
const b28=F(1,n);
k44632f43(n, d, b5, b26, b27, b28);
k4d2a8049(n, d, b29, b26, b27, b5, b28, b4, b2);
return {value:v24,matrices:[{between:"samples against samples",rows:n,columns:n,s:b8,slopes:b24}],gradient:b29,proxyGradient:null};
}
function r43af0eb3(own,x,y,n,d,p,c,h){
const b20=R(own,1,(c**2));
const b30=R(own,2,(c**2));
const b8=R(own,3,(c*n));
const b32=R(own,4,(c*n));
const b35=R(own,5,(d*n));
const b41=R(own,6,(c*d));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,c);
k957de67a(c, d, p, b4);
const b5=F(5,c);
ke3137bf4(c, d, p, b4, b5);
const b6=F(6,c);
k84e038da(c, b6, b5);
const b7=F(7,(c*d));
k2ae3d3e3(c, d, b7, p, b4, b6);
k2ee02a4f(n, c, d, b3, b7, b8);
const b9=F(8,(c*n));
k7e98e2dc(n, c, b9, b8, y);
const b10=F(9,(n*8));
sortRows(b9,n,c,8,null,b10,true);
const b11=U(0,(c*n));
k781f4016(n, c, b11, y);
kb46228d2(n, c, b10, b11);
const b12=U(1,(c*n));
k35f96163(n, c, b11, b12);
const b13=F(8,(c*n));
k0127506b(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(10,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(11,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
ka2deab37(n, c, b17, y);
const b18=F(12,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(13,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k2799ef1a(c, d, b7, b20);
const b21=F(14,(c**2));
k683d82c5(c, b20, b21);
const b22=F(5,c);
ke02f74f4(c, b21, b22);
const b23=F(15,c);
kd8c64e24(c, b21, b22, b23);
const b24=F(16,c);
k4bd541eb(c, b24, b23);
const b25=F(17,(c**2));
k347f556d(c, b25, b21, b22, b24);
const v30=kfdcaa326(c, b25);
const v31=k4ac75bc5(c, v21, v23, h[2], v30);
const b26=F(14,(c**2));
b26.fill(0,0,(c**2));
kf6c9c086(c, b26);
const v34=(h[2]/c);
const b27=F(15,c);
k7c9c0038(c, v34, b27);
const b28=F(5,c);
ke9abe772(c, b26, b27, b28);
const b29=F(18,(c**2));
kc4123148(c, b29, b26, b27, b25, b28);
k19c7b6b3(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
k4f8a2d9c(n, c, v39, b32, b15, b31, b11, b17);
const b33=F(19,(d*n));
kac486688(n, d, c, b32, b7, b33);
const b34=F(12,n);
k75a806c1(n, d, b3, b33, b34);
k33ac8c0b(n, d, b35, b33, b3, b34, b2, b0);
const b36=F(20,(c*d));
k9b48a144(c, d, n, b32, b3, b36);
const b37=F(16,c);
k75a806c1(c, d, b7, b36, b37);
const b38=F(21,(c*d));
k151b8e2d(c, d, b30, b7, b38);
const b39=F(22,(c*d));
k019ec0af(c, d, b30, b7, b39);
const b40=F(15,c);
k44632f43(c, d, b7, b38, b39, b40);
kdde56754(c, d, b41, b36, b7, b37, b6, b4, b38, b39, b40);
return {value:v31,matrices:[{between:"proxies against proxies",rows:c,columns:c,s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:c,s:b8,slopes:b32}],gradient:b35,proxyGradient:b41};
}
function r4421e948(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*4));
const b30=R(own,2,((c**2)*4));
const b8=R(own,3,((c*n)*2));
const b33=R(own,4,((c*n)*2));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*2));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*2));
k5b47642d(c, d, p, b4);
const b5=F(5,(c*2));
kc0bf9bef(c, d, p, b4, b5);
const b6=F(6,(c*2));
k74de847c(c, b6, b5);
const b7=F(7,((c*d)*2));
k93b81019(c, d, b7, p, b4, b6);
k9d4183c8(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*2));
kfe9712a3(n, c, b9, b8, y);
const b10=F(9,((c*n)*2));
sortRows(b9,n,(c*2),(c*2),null,b10,true);
const b11=U(0,((c*n)*2));
k78fa656c(n, c, b11, y);
k65438492(n, c, b10, b11);
const b12=U(1,(c*n));
k79c9e72d(n, c, b11, b12);
const b13=F(10,(c*n));
k575cea64(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k54d6e83e(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k9d1e2913(c, d, b7, b20);
const b21=F(15,((c**2)*2));
k39ae9a1a(c, b20, b21);
const b22=F(5,(c*2));
k83135b73(c, b21, b22);
const b23=F(16,(c*2));
kcc18ad5c(c, b21, b22, b23);
const b24=F(17,(c*2));
k519576fc(c, b24, b23);
const b25=F(18,((c**2)*2));
k87c0931e(c, b25, b21, b22, b24);
const v30=k5eaa94ab(c, b25);
const v31=k7a957cec(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*2));
b26.fill(0,0,((c**2)*2));
kc2a88bb6(c, b26);
const v34=(h[2]/(c*2));
const b27=F(16,(c*2));
kcfcd3c7e(c, v34, b27);
const b28=F(5,(c*2));
k7a4c3f36(c, b26, b27, b28);
const b29=F(19,((c**2)*2));
k36c6ffee(c, b29, b26, b27, b25, b28);
k99d68265(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k7ce19741(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k2db67e14(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*2));
k059b705d(c, d, n, b33, b3, b37);
const b38=F(17,(c*2));
kde128d06(c, d, b7, b37, b38);
const b39=F(22,((c*d)*2));
ka2719e75(c, d, b30, b7, b39);
const b40=F(23,((c*d)*2));
k18fff7be(c, d, b30, b7, b40);
const b41=F(16,(c*2));
k818eeb88(c, d, b7, b39, b40, b41);
kba460200(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*2),columns:(c*2),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*2),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r49c709df(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*4));
const b30=R(own,2,((c**2)*4));
const b8=R(own,3,((c*n)*2));
const b33=R(own,4,((c*n)*2));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*2));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*2));
k5b47642d(c, d, p, b4);
const b5=F(5,(c*2));
kc0bf9bef(c, d, p, b4, b5);
const b6=F(6,(c*2));
k74de847c(c, b6, b5);
const b7=F(7,((c*d)*2));
k93b81019(c, d, b7, p, b4, b6);
k9d4183c8(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*2));
kfe9712a3(n, c, b9, b8, y);
const b10=F(9,(n*8));
sortRows(b9,n,(c*2),8,null,b10,true);
const b11=U(0,((c*n)*2));
k78fa656c(n, c, b11, y);
kcf114152(n, c, b10, b11);
const b12=U(1,(c*n));
k79c9e72d(n, c, b11, b12);
const b13=F(10,(c*n));
k575cea64(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k54d6e83e(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k9d1e2913(c, d, b7, b20);
const b21=F(15,((c**2)*2));
k39ae9a1a(c, b20, b21);
const b22=F(5,(c*2));
k83135b73(c, b21, b22);
const b23=F(16,(c*2));
kcc18ad5c(c, b21, b22, b23);
const b24=F(17,(c*2));
k519576fc(c, b24, b23);
const b25=F(18,((c**2)*2));
k87c0931e(c, b25, b21, b22, b24);
const v30=k5eaa94ab(c, b25);
const v31=k7a957cec(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*2));
b26.fill(0,0,((c**2)*2));
kc2a88bb6(c, b26);
const v34=(h[2]/(c*2));
const b27=F(16,(c*2));
kcfcd3c7e(c, v34, b27);
const b28=F(5,(c*2));
k7a4c3f36(c, b26, b27, b28);
const b29=F(19,((c**2)*2));
k36c6ffee(c, b29, b26, b27, b25, b28);
k99d68265(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k7ce19741(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k2db67e14(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*2));
k059b705d(c, d, n, b33, b3, b37);
const b38=F(17,(c*2));
kde128d06(c, d, b7, b37, b38);
const b39=F(22,((c*d)*2));
ka2719e75(c, d, b30, b7, b39);
const b40=F(23,((c*d)*2));
k18fff7be(c, d, b30, b7, b40);
const b41=F(16,(c*2));
k818eeb88(c, d, b7, b39, b40, b41);
kba460200(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*2),columns:(c*2),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*2),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r540f7db6(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b13=R(own,2,(n**2));
const b17=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k95de3b32(n, h[0], b5, b4, y);
const b6=F(5,(n**2));
sortRows(b5,n,n,n,b6,null,false);
const b7=F(4,(n**2));
k016fde26(n, b7, b4, y);
const b8=F(6,(n**2));
sortRows(b7,n,n,n,b8,null,false);
const b9=F(4,(n**2));
k3b218b7f(n, h[0], b9, b8, b4, y);
const b10=F(6,(n**2));
k462ff651(n, b10, b6, b4, b9, y);
const b11=F(1,n);
k983525e5(n, b10, b4, b11);
const b12=F(7,n);
k7520f553(n, b9, b12);
const v13=k7c3832b6(n, h[0], b11, b12);
const v14=k7d0e395b(n, b12);
const v15=Math.max(v14,1);
const v16=ke9d9ab61(v13, v15);
const v17=(1/v15);
k74c5f17c(n, v17, b13, b10);
const b14=F(8,(d*n));
k019ec0af(n, d, b13, b3, b14);
const b15=F(9,(d*n));
k151b8e2d(n, d, b13, b3, b15);
const b16=F(1,n);
k44632f43(n, d, b3, b14, b15, b16);
k4d2a8049(n, d, b17, b14, b15, b3, b16, b2, b0);
return {value:v16,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b13}],gradient:b17,proxyGradient:null};
}
function r574b17d2(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
k2799ef1a(n, d, b5, b6);
const b7=F(6,(n**2));
k5b056b46(n, h[0], h[1], b7, b6, y);
const b8=F(3,n);
ke02f74f4(n, b7, b8);
const b9=F(7,(n**2));
k7f1c0a1a(n, b9, b7, b8);
const b10=F(8,n);
k7520f553(n, b9, b10);
const b11=F(6,(n**2));
kba0a4c73(n, h[1], b11, b6, y);
const b12=F(9,n);
ke02f74f4(n, b11, b12);
const b13=F(10,(n**2));
k7f1c0a1a(n, b13, b11, b12);
const b14=F(11,n);
k7520f553(n, b13, b14);
const b15=F(12,n);
ke24d7ebf(n, b15, b10, b8, b14, b12);
const v16=k596bad59(n, b0, b1, b15);
const v17=kf517b63d(n, b0, b1);
const v18=Math.max(v17,1);
const v19=ke9d9ab61(v16, v18);
const v20=(1/v18);
const b16=F(3,n);
k1d496455(n, v20, b16, b15, b0, b1);
const b17=F(9,n);
k9484557b(n, b17, b16, b14);
const b18=F(12,n);
k9484557b(n, b18, b16, b10);
kb232151b(n, h[1], b19, b13, b17, b9, b18);
const b20=F(13,(d*n));
k019ec0af(n, d, b19, b5, b20);
const b21=F(14,(d*n));
k151b8e2d(n, d, b19, b5, b21);
const b22=F(0,n);
k44632f43(n, d, b5, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b5, b22, b4, b2);
return {value:v19,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b19}],gradient:b23,proxyGradient:null};
}
function r57e8aa0c(own,x,y,n,d,p,c,h){
const b5=R(own,1,(n**2));
const b21=R(own,2,(n**2));
const b25=R(own,3,(d*n));
const b0=F(0,n);
k32f6f300(n, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
k2799ef1a(n, d, b4, b5);
const b6=F(5,(n**2));
kba0a4c73(n, h[1], b6, b5, y);
const b7=F(2,n);
ke02f74f4(n, b6, b7);
const b8=F(6,(n**2));
k7f1c0a1a(n, b8, b6, b7);
const b9=F(7,n);
k7520f553(n, b8, b9);
const b10=F(8,n);
k27675df6(n, b10, b9, b7);
const v11=(h[0]*0.017453292519943295);
const v12=Math.cos(v11);
const v13=Math.sin(v11);
const b11=F(5,(n**2));
k38e415b1(n, b11, b5);
const b12=F(9,(n**2));
k27915afc(n, h[1], v12, v13, b12, b10, b5, b11);
const b13=F(10,(n**2));
k19c7b6b3(n, b13, b12);
const b14=U(0,(n**2));
kafc5197d(n, b13, b14);
const b15=F(11,(n**2));
k0c5a0d61(n, b15, b13);
const b16=F(2,n);
k8ebbcbca(n, b12, b15, b16, b14, y);
const v20=ke77c7591(n, b0, b16);
const b17=F(8,n);
k306cdf0e(n, b17, y);
const v22=ke77c7591(n, b0, b17);
const v23=Math.max(v22,1);
const v24=ke9d9ab61(v20, v23);
const v25=(1/v23);
const b18=F(10,(n**2));
k01eba492(n, v25, b18, b0, b15, b14, y);
const b19=F(2,n);
k7520f553(n, b18, b19);
const b20=F(8,n);
k9484557b(n, b20, b19, b9);
k76f135de(n, h[1], v13, v12, b21, b5, b18, b11, b8, b20);
const b22=F(12,(d*n));
k019ec0af(n, d, b21, b4, b22);
const b23=F(13,(d*n));
k151b8e2d(n, d, b21, b4, b23);
const b24=F(0,n);
k44632f43(n, d, b4, b22, b23, b24);
k4d2a8049(n, d, b25, b22, b23, b4, b24, b3, b1);
return {value:v24,matrices:[{between:"samples against samples",rows:n,columns:n,s:b5,slopes:b21}],gradient:b25,proxyGradient:null};
}
function r5b79a5b8(own,x,y,n,d,p,c,h){
const b20=R(own,1,9);
const b28=R(own,2,9);
const b8=R(own,3,(n*3));
const b30=R(own,4,(n*3));
const b33=R(own,5,(d*n));
const b39=R(own,6,(d*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,3);
k594721d5(d, p, b4);
const b5=F(5,3);
kecad48f3(d, p, b4, b5);
const b6=F(6,3);
kbc894081(b6, b5);
const b7=F(7,(d*3));
k0a77395f(d, b7, p, b4, b6);
kfe4c51a4(n, d, b3, b7, b8);
const b9=F(8,(n*3));
kcf6f9ca2(n, b9, b8, y);
const b10=F(9,(n*3));
sortRows(b9,n,3,3,null,b10,true);
const b11=U(0,(n*3));
k29d55863(n, b11, y);
k7c92a0e6(n, b10, b11);
const b12=U(1,n);
k94f08ef0(n, b11, b12);
const b13=F(1,n);
k6c3d5ccd(n, b8, b13, b11);
const b14=F(10,n);
k8eb87ee7(n, b13, b14, b12);
const b15=F(11,n);
k59c66d30(n, b15, b13, b14, b12);
const b16=F(12,n);
k83241a4e(n, b15, b16);
const b17=U(1,n);
k5ccdacee(n, b17, y);
const b18=F(13,n);
kf20cc82a(n, b13, b18, b17);
const b19=F(1,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kbba854eb(d, b7, b20);
const b21=F(5,3);
k574719a8(b20, b21);
const b22=F(14,3);
k80d21767(b21, b22);
const b23=F(15,3);
k978301da(b21, b22, b23);
const b24=F(16,3);
k54194542(b24, b21, b22, b23);
const v29=kee1616f9(b24);
const v30=k78a29440(v21, v23, h[2], v29);
const b25=F(5,3);
b25.fill(0,0,3);
k5248dd26(b25);
const v33=(h[2]/3);
const b26=F(14,3);
k701dd387(v33, b25, b26);
const b27=F(15,3);
kaec619c8(v33, b27, b25, b24, b26);
k85c1b1b3(b28, b27);
const v37=(1/v23);
const b29=F(10,n);
k59a15b2e(n, v37, b29, b15, b16, b17);
k4e2cfa54(n, b30, b29, b11);
const b31=F(17,(d*n));
k76eff2be(n, d, b30, b7, b31);
const b32=F(13,n);
k75a806c1(n, d, b3, b31, b32);
k33ac8c0b(n, d, b33, b31, b3, b32, b2, b0);
const b34=F(18,(d*3));
k46d876e4(d, n, b30, b3, b34);
const b35=F(5,3);
k1ab41854(d, b7, b34, b35);
const b36=F(19,(d*3));
k1b08cc46(d, b28, b7, b36);
const b37=F(20,(d*3));
k2385f24a(d, b28, b7, b37);
const b38=F(16,3);
k18618b8e(d, b7, b36, b37, b38);
kee735488(d, b39, b34, b7, b35, b6, b4, b36, b37, b38);
return {value:v30,matrices:[{between:"proxies against proxies",rows:3,columns:3,s:b20,slopes:b28},{between:"samples against proxies",rows:n,columns:3,s:b8,slopes:b30}],gradient:b33,proxyGradient:b39};
}
function r5c6d1dd7(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b24=R(own,2,(c*n));
const b27=R(own,3,(d*n));
const b30=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,c);
k957de67a(c, d, p, b5);
const b6=F(6,c);
ke3137bf4(c, d, p, b5, b6);
const b7=F(7,c);
k84e038da(c, b7, b6);
const b8=F(8,(c*d));
k2ae3d3e3(c, d, b8, p, b5, b7);
k2ee02a4f(n, c, d, b4, b8, b9);
const b10=F(2,n);
k71a38771(n, c, h[1], b9, b10, y);
const b11=F(9,(c*n));
k08403603(n, c, h[1], b11, b9, b10, y);
const b12=F(10,n);
k782789b7(n, c, b11, b12);
const b13=F(11,(c*n));
k4f72298e(n, c, h[1], h[0], b13, b9, y);
const b14=F(12,n);
k071cce81(n, c, b13, b14);
const b15=F(13,(c*n));
kad7d3f97(n, c, b15, b13, b14);
const b16=F(14,n);
k782789b7(n, c, b15, b16);
const b17=F(15,n);
k0b94d2a2(n, b17, b12, b10, b16, b14);
const b18=F(2,n);
ka34684f7(n, b18, b17);
const b19=U(0,n);
k4e415a92(n, b18, b19);
const b20=F(12,n);
k68c8c6d5(n, b20, b18);
const v21=k1b52dfe1(n, b0, b17, b20, b19);
const v22=k0a7efe2e(n, b0);
const v23=Math.max(v22,1);
const v24=ke9d9ab61(v21, v23);
const v25=(1/v23);
const b21=F(2,n);
kd096e3ff(n, v25, b21, b0, b20, b19);
const b22=F(15,n);
kc56d6faa(n, b22, b21, b16);
const b23=F(0,n);
k9484557b(n, b23, b21, b12);
k94c36a9f(n, c, h[1], b24, b15, b22, b11, b23);
const b25=F(16,(d*n));
kac486688(n, d, c, b24, b8, b25);
const b26=F(12,n);
k75a806c1(n, d, b4, b25, b26);
k33ac8c0b(n, d, b27, b25, b4, b26, b3, b1);
const b28=F(17,(c*d));
k9b48a144(c, d, n, b24, b4, b28);
const b29=F(6,c);
k75a806c1(c, d, b8, b28, b29);
k33ac8c0b(c, d, b30, b28, b8, b29, b7, b5);
return {value:v24,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b9,slopes:b24}],gradient:b27,proxyGradient:b30};
}
function r5e163b30(own,x,y,n,d,p,c,h){
const b20=R(own,1,(c**2));
const b30=R(own,2,(c**2));
const b8=R(own,3,(c*n));
const b32=R(own,4,(c*n));
const b35=R(own,5,(d*n));
const b41=R(own,6,(c*d));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,c);
k957de67a(c, d, p, b4);
const b5=F(5,c);
ke3137bf4(c, d, p, b4, b5);
const b6=F(6,c);
k84e038da(c, b6, b5);
const b7=F(7,(c*d));
k2ae3d3e3(c, d, b7, p, b4, b6);
k2ee02a4f(n, c, d, b3, b7, b8);
const b9=F(8,(c*n));
k7e98e2dc(n, c, b9, b8, y);
const b10=F(9,(n*5));
sortRows(b9,n,c,5,null,b10,true);
const b11=U(0,(c*n));
k781f4016(n, c, b11, y);
k78a1077e(n, c, b10, b11);
const b12=U(1,(c*n));
k35f96163(n, c, b11, b12);
const b13=F(8,(c*n));
k0127506b(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(10,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(11,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
ka2deab37(n, c, b17, y);
const b18=F(12,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(13,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k2799ef1a(c, d, b7, b20);
const b21=F(14,(c**2));
k683d82c5(c, b20, b21);
const b22=F(5,c);
ke02f74f4(c, b21, b22);
const b23=F(15,c);
kd8c64e24(c, b21, b22, b23);
const b24=F(16,c);
k4bd541eb(c, b24, b23);
const b25=F(17,(c**2));
k347f556d(c, b25, b21, b22, b24);
const v30=kfdcaa326(c, b25);
const v31=k4ac75bc5(c, v21, v23, h[2], v30);
const b26=F(14,(c**2));
b26.fill(0,0,(c**2));
kf6c9c086(c, b26);
const v34=(h[2]/c);
const b27=F(15,c);
k7c9c0038(c, v34, b27);
const b28=F(5,c);
ke9abe772(c, b26, b27, b28);
const b29=F(18,(c**2));
kc4123148(c, b29, b26, b27, b25, b28);
k19c7b6b3(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
k4f8a2d9c(n, c, v39, b32, b15, b31, b11, b17);
const b33=F(19,(d*n));
kac486688(n, d, c, b32, b7, b33);
const b34=F(12,n);
k75a806c1(n, d, b3, b33, b34);
k33ac8c0b(n, d, b35, b33, b3, b34, b2, b0);
const b36=F(20,(c*d));
k9b48a144(c, d, n, b32, b3, b36);
const b37=F(16,c);
k75a806c1(c, d, b7, b36, b37);
const b38=F(21,(c*d));
k151b8e2d(c, d, b30, b7, b38);
const b39=F(22,(c*d));
k019ec0af(c, d, b30, b7, b39);
const b40=F(15,c);
k44632f43(c, d, b7, b38, b39, b40);
kdde56754(c, d, b41, b36, b7, b37, b6, b4, b38, b39, b40);
return {value:v31,matrices:[{between:"proxies against proxies",rows:c,columns:c,s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:c,s:b8,slopes:b32}],gradient:b35,proxyGradient:b41};
}
function r60574cc6(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*3));
const b29=R(own,2,((c*n)*3));
const b32=R(own,3,(d*n));
const b35=R(own,4,((c*d)*3));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*3));
ka7c444bc(c, d, p, b5);
const b6=F(6,(c*3));
kd1971f67(c, d, p, b5, b6);
const b7=F(7,(c*3));
k67d99b99(c, b7, b6);
const b8=F(8,((c*d)*3));
k4e533f3b(c, d, b8, p, b5, b7);
k7dfe8507(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
kf6ccb173(n, c, b9, b10);
const b11=F(2,n);
k71a38771(n, c, h[2], b10, b11, y);
const b12=F(10,(c*n));
k08403603(n, c, h[2], b12, b10, b11, y);
const b13=F(11,n);
k782789b7(n, c, b12, b13);
const v14=(h[1]*0.017453292519943295);
const v15=Math.cos(v14);
const v16=(-v15);
const v17=Math.sin(v14);
const v18=(v14*v17);
const b14=F(12,(c*n));
k2af88b1a(n, c, b14, b10);
const b15=F(13,(c*n));
k6502d5ab(n, c, h[2], v16, v18, v15, v17, b15, b10, b14, y);
const b16=F(14,n);
k071cce81(n, c, b15, b16);
const b17=F(15,(c*n));
kad7d3f97(n, c, b17, b15, b16);
const b18=F(16,n);
k782789b7(n, c, b17, b18);
const b19=F(17,n);
k0b94d2a2(n, b19, b13, b11, b18, b16);
const b20=F(2,n);
ka34684f7(n, b20, b19);
const b21=U(0,n);
k4e415a92(n, b20, b21);
const b22=F(14,n);
k68c8c6d5(n, b22, b20);
const v28=k1b52dfe1(n, b0, b19, b22, b21);
const v29=k0a7efe2e(n, b0);
const v30=Math.max(v29,1);
const v31=ke9d9ab61(v28, v30);
const v32=(1/v30);
const b23=F(2,n);
kd096e3ff(n, v32, b23, b0, b22, b21);
const b24=F(17,n);
kc56d6faa(n, b24, b23, b18);
const b25=F(0,n);
k9484557b(n, b25, b23, b13);
const b26=F(13,(c*n));
kbe02de97(n, c, b9, b10, b26);
const b27=F(18,(c*n));
k9aaf1886(n, c, v16, h[2], v17, v15, b27, b10, b17, b24, b14, b12, b25, b26);
const b28=F(19,((c*n)*3));
k561939b7(n, c, b28, b9, b10, b27);
kce21b958(n, c, b29, b28);
const b30=F(20,(d*n));
k1ebffb85(n, d, c, b29, b8, b30);
const b31=F(14,n);
k75a806c1(n, d, b4, b30, b31);
k33ac8c0b(n, d, b32, b30, b4, b31, b3, b1);
const b33=F(21,((c*d)*3));
k5e64716d(c, d, n, b29, b4, b33);
const b34=F(6,(c*3));
k605991e4(c, d, b8, b33, b34);
k63396afc(c, d, b35, b33, b8, b34, b7, b5);
return {value:v31,matrices:[{between:"samples against proxies",rows:n,columns:(c*3),s:b9,slopes:b29}],gradient:b32,proxyGradient:b35};
}
function r6436ff5a(own,x,y,n,d,p,c,h){
const b20=R(own,1,(c**2));
const b30=R(own,2,(c**2));
const b8=R(own,3,(c*n));
const b32=R(own,4,(c*n));
const b35=R(own,5,(d*n));
const b41=R(own,6,(c*d));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,c);
k957de67a(c, d, p, b4);
const b5=F(5,c);
ke3137bf4(c, d, p, b4, b5);
const b6=F(6,c);
k84e038da(c, b6, b5);
const b7=F(7,(c*d));
k2ae3d3e3(c, d, b7, p, b4, b6);
k2ee02a4f(n, c, d, b3, b7, b8);
const b9=F(8,(c*n));
k7e98e2dc(n, c, b9, b8, y);
const b10=F(9,(n*200));
sortRows(b9,n,c,200,null,b10,true);
const b11=U(0,(c*n));
k781f4016(n, c, b11, y);
k18b32011(n, c, b10, b11);
const b12=U(1,(c*n));
k35f96163(n, c, b11, b12);
const b13=F(8,(c*n));
k0127506b(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(10,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(11,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
ka2deab37(n, c, b17, y);
const b18=F(12,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(13,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k2799ef1a(c, d, b7, b20);
const b21=F(14,(c**2));
k683d82c5(c, b20, b21);
const b22=F(5,c);
ke02f74f4(c, b21, b22);
const b23=F(15,c);
kd8c64e24(c, b21, b22, b23);
const b24=F(16,c);
k4bd541eb(c, b24, b23);
const b25=F(17,(c**2));
k347f556d(c, b25, b21, b22, b24);
const v30=kfdcaa326(c, b25);
const v31=k4ac75bc5(c, v21, v23, h[2], v30);
const b26=F(14,(c**2));
b26.fill(0,0,(c**2));
kf6c9c086(c, b26);
const v34=(h[2]/c);
const b27=F(15,c);
k7c9c0038(c, v34, b27);
const b28=F(5,c);
ke9abe772(c, b26, b27, b28);
const b29=F(18,(c**2));
kc4123148(c, b29, b26, b27, b25, b28);
k19c7b6b3(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
k4f8a2d9c(n, c, v39, b32, b15, b31, b11, b17);
const b33=F(19,(d*n));
kac486688(n, d, c, b32, b7, b33);
const b34=F(12,n);
k75a806c1(n, d, b3, b33, b34);
k33ac8c0b(n, d, b35, b33, b3, b34, b2, b0);
const b36=F(20,(c*d));
k9b48a144(c, d, n, b32, b3, b36);
const b37=F(16,c);
k75a806c1(c, d, b7, b36, b37);
const b38=F(21,(c*d));
k151b8e2d(c, d, b30, b7, b38);
const b39=F(22,(c*d));
k019ec0af(c, d, b30, b7, b39);
const b40=F(15,c);
k44632f43(c, d, b7, b38, b39, b40);
kdde56754(c, d, b41, b36, b7, b37, b6, b4, b38, b39, b40);
return {value:v31,matrices:[{between:"proxies against proxies",rows:c,columns:c,s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:c,s:b8,slopes:b32}],gradient:b35,proxyGradient:b41};
}
function r6a40eb4e(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*2));
const b34=R(own,2,((c*n)*2));
const b37=R(own,3,(d*n));
const b44=R(own,4,((c*d)*2));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*2));
k5b47642d(c, d, p, b5);
const b6=F(6,(c*2));
kc0bf9bef(c, d, p, b5, b6);
const b7=F(7,(c*2));
k74de847c(c, b7, b6);
const b8=F(8,((c*d)*2));
k93b81019(c, d, b8, p, b5, b7);
k9d4183c8(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
kec86d62a(n, c, h[2], b9, b10);
const b11=F(10,((c*n)*2));
k7bf5f92e(n, c, h[2], b11, b9, b10);
const b12=F(9,(c*n));
k20f5381d(n, c, b11, b12);
const b13=F(11,((c*n)*2));
k1af1a156(n, c, b13, b11, b12);
const b14=F(9,(c*n));
kb70ea80f(n, c, b13, b9, b14);
const b15=F(2,n);
k71a38771(n, c, h[1], b14, b15, y);
const b16=F(12,(c*n));
k08403603(n, c, h[1], b16, b14, b15, y);
const b17=F(13,n);
k782789b7(n, c, b16, b17);
const b18=F(14,(c*n));
k4f72298e(n, c, h[1], h[3], b18, b14, y);
const b19=F(15,n);
k071cce81(n, c, b18, b19);
const b20=F(9,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(16,n);
k782789b7(n, c, b20, b21);
const b22=F(17,n);
k0b94d2a2(n, b22, b17, b15, b21, b19);
const b23=F(2,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(15,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const b26=F(18,(c*4));
k02c2c940(c, d, b8, b26);
const v30=kba6a4532(c, b26);
const v31=ke373b627(v30);
const v32=k7a957cec(c, v26, v28, h[4], v31);
const v33=(1/v28);
const b27=F(2,n);
kd096e3ff(n, v33, b27, b0, b25, b24);
const b28=F(17,n);
kc56d6faa(n, b28, b27, b21);
const b29=F(0,n);
k9484557b(n, b29, b27, b17);
const b30=F(14,(c*n));
k94c36a9f(n, c, h[1], b30, b20, b28, b16, b29);
const b31=F(10,((c*n)*2));
ke3b9521c(n, c, b31, b30, b9, b13);
const b32=F(9,(c*n));
k20f5381d(n, c, b31, b32);
const b33=F(19,((c*n)*2));
k00e1b49b(n, c, h[2], b33, b30, b13, b31, b32);
k4528b2bc(n, c, b34, b33);
const b35=F(20,(d*n));
k2db67e14(n, d, c, b34, b8, b35);
const b36=F(15,n);
k75a806c1(n, d, b4, b35, b36);
k33ac8c0b(n, d, b37, b35, b4, b36, b3, b1);
const b38=F(21,((c*d)*2));
k059b705d(c, d, n, b34, b4, b38);
const b39=F(6,(c*2));
kde128d06(c, d, b8, b38, b39);
const v47=(h[4]/(c*2));
const b40=F(22,(c*4));
k0e7156ba(c, v47, b40, b26);
const b41=F(23,((c*d)*2));
ke3f61156(c, d, b40, b8, b41);
const b42=F(24,((c*d)*2));
kebed5b49(c, d, b8, b40, b42);
const b43=F(25,(c*2));
kb3ded2f2(c, d, b8, b41, b42, b43);
kd2553272(c, d, b44, b38, b8, b39, b7, b5, b41, b42, b43);
return {value:v32,matrices:[{between:"samples against proxies",rows:n,columns:(c*2),s:b9,slopes:b34}],gradient:b37,proxyGradient:b44};
}
function r6b1e71b9(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b21=R(own,2,(n**2));
const b25=R(own,3,(d*n));
const b0=U(0,n);
k3574cc7c(n, b0, y);
const b1=U(1,(n**2));
k90e407f6(n, b1, b0, y);
const v2_0=Math.tan((h[0]*0.017453292519943295));const v2=(v2_0*v2_0);
const v3=(v2*4);
const b2=F(0,n);
k957de67a(n, d, x, b2);
const b3=F(1,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(2,n);
k84e038da(n, b4, b3);
const b5=F(3,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
k2799ef1a(n, d, b5, b6);
const b7=F(4,(n**2));
k3923d5fd(n, v3, b7, b6);
const b8=F(5,(n**2));
ke1ca517b(n, b8, b7, y);
const b9=F(6,(n**2));
multiply(b9,b8,0,n,1,b7,0,1,n,n,n,n);
const b10=F(7,(n**2));
kecc5dfb6(n, b10, b9, b1);
const v13=(v3*2);
const v14=((v2+1)*2);
const b11=F(6,(n**2));
kd5b8583e(n, v13, v14, b11, b10, b6);
const b12=F(8,(n**2));
k19c7b6b3(n, b12, b11);
const b13=U(2,(n**2));
kafc5197d(n, b12, b13);
const b14=F(9,(n**2));
k0c5a0d61(n, b14, b12);
const b15=F(1,n);
kbd8968b8(n, b11, b14, b15, b0, b13, y);
const v20=k7d0e395b(n, b15);
const b16=F(1,n);
k486a0fb4(n, b16, b0, y);
const v22=k7d0e395b(n, b16);
const v23=Math.max(v22,1);
const v24=ke9d9ab61(v20, v23);
const v25=(1/v23);
const b17=F(8,(n**2));
kc841c4a4(n, v25, b17, b14, b13, b0, y);
const b18=F(6,(n**2));
kefa66cfb(n, b18, b17, b10, b1);
const b19=F(9,(n**2));
multiply(b19,b18,0,1,n,b8,0,n,1,n,n,n);
const b20=F(7,(n**2));
multiply(b20,b18,0,n,1,b7,0,n,1,n,n,n);
kb7715ada(n, v14, v3, b21, b17, b19, b7, b20, y);
const b22=F(10,(d*n));
k019ec0af(n, d, b21, b5, b22);
const b23=F(11,(d*n));
k151b8e2d(n, d, b21, b5, b23);
const b24=F(1,n);
k44632f43(n, d, b5, b22, b23, b24);
k4d2a8049(n, d, b25, b22, b23, b5, b24, b4, b2);
return {value:v24,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b21}],gradient:b25,proxyGradient:null};
}
function r6ba044a4(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*25));
const b30=R(own,2,((c**2)*25));
const b8=R(own,3,((c*n)*5));
const b33=R(own,4,((c*n)*5));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*5));
k2f730769(c, d, p, b4);
const b5=F(5,(c*5));
ke430c223(c, d, p, b4, b5);
const b6=F(6,(c*5));
kb45602a1(c, b6, b5);
const b7=F(7,((c*d)*5));
k1f1a1299(c, d, b7, p, b4, b6);
k0d240772(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*5));
k8f6ef864(n, c, b9, b8, y);
const b10=F(9,(n*200));
sortRows(b9,n,(c*5),200,null,b10,true);
const b11=U(0,((c*n)*5));
k4851509a(n, c, b11, y);
k4c589992(n, c, b10, b11);
const b12=U(1,(c*n));
kc3968dec(n, c, b11, b12);
const b13=F(10,(c*n));
ke7e0088c(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k6f7cce59(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kac59d4e6(c, d, b7, b20);
const b21=F(15,((c**2)*5));
k052b94c0(c, b20, b21);
const b22=F(5,(c*5));
kaf15f6b0(c, b21, b22);
const b23=F(16,(c*5));
k1e19da8e(c, b21, b22, b23);
const b24=F(17,(c*5));
k7702a001(c, b24, b23);
const b25=F(18,((c**2)*5));
k3dbc56d2(c, b25, b21, b22, b24);
const v30=ked07f7cf(c, b25);
const v31=ke8903774(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*5));
b26.fill(0,0,((c**2)*5));
kf755e385(c, b26);
const v34=(h[2]/(c*5));
const b27=F(16,(c*5));
k1641d4fb(c, v34, b27);
const b28=F(5,(c*5));
k64ef80fd(c, b26, b27, b28);
const b29=F(19,((c**2)*5));
kbb9893d2(c, b29, b26, b27, b25, b28);
kc7cbab05(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
kdcf3c1f7(n, c, b33, b32, b11);
const b34=F(20,(d*n));
kbd46ef39(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b33, b3, b37);
const b38=F(17,(c*5));
k6e336d28(c, d, b7, b37, b38);
const b39=F(22,((c*d)*5));
kf502c410(c, d, b30, b7, b39);
const b40=F(23,((c*d)*5));
k1ac67fba(c, d, b30, b7, b40);
const b41=F(16,(c*5));
kea9c00ac(c, d, b7, b39, b40, b41);
k3347b849(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*5),columns:(c*5),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*5),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r6c055d88(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b25=R(own,2,(n**2));
const b30=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(1,n);
kd1c2f79d(n, d, b3, b4);
const b5=F(4,(n**2));
k2799ef1a(n, d, b3, b5);
kec159b6c(n, b6, b4, b5);
const b7=F(4,(n**2));
kc6ed8627(n, b7, b6);
const b8=F(5,(n**2));
k0efdf812(n, b8, b7);
const b9=F(6,(n**2));
k21f3edaa(n, b9, b8, y);
const b10=F(7,(n**2));
k719e3dc7(n, b10, y);
const b11=F(8,(n**2));
kb636f482(n, b11, b7, b8);
const b12=F(9,(n*22));
b12.fill(0,0,(n*22));
k93e0f4e8(n, b12, b9, b10, b11);
const b13=F(4,(n**2));
k17c670cb(n, b13, b9);
const b14=F(10,(n*22));
kd934bf84(n, b14, b12);
k98f0de46(n, b14, b13, b10, b11);
const b15=F(11,(n*11));
kafb2114d(n, b14, b15);
const b16=F(12,(n*11));
k64045cb5(n, b14, b16);
const b17=F(13,(n*11));
k1d1be652(n, b17, b15, b16);
const b18=F(1,n);
k8c9350de(n, b14, b17, b18);
const b19=F(14,n);
k306cdf0e(n, b19, y);
const v22=kf5a6ed20(n, b18, b19);
const v23=k0a7efe2e(n, b19);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b20=F(1,n);
k37684c84(n, v26, b20, b19);
const b21=F(15,(n*11));
k60e2f2fe(n, b21, b16, b15, b20, b14, b17);
const b22=F(16,(n*11));
kec3d3616(n, b20, b14, b16, b15, b21, b22);
const b23=F(12,(n*11));
kc3337102(n, b21, b23);
const b24=F(9,(n*22));
k7a8bc186(n, b24, b22, b20, b17, b23);
k2b08fd5c(n, b25, b6, b24, b13, b10, b9);
const b26=F(5,(n**2));
k7177de57(n, b26, b25);
const b27=F(17,(d*n));
k019ec0af(n, d, b26, b3, b27);
const b28=F(18,(d*n));
k151b8e2d(n, d, b26, b3, b28);
const b29=F(14,n);
k44632f43(n, d, b3, b27, b28, b29);
k4d2a8049(n, d, b30, b27, b28, b3, b29, b2, b0);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b25}],gradient:b30,proxyGradient:null};
}
function r6c83641e(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k684c3e80(n, b5, b4, y);
const b6=F(5,(n**2));
k719e3dc7(n, b6, y);
const b7=F(6,(n**2));
k341e67f0(n, b7, b4);
const b8=F(7,(n*202));
b8.fill(0,0,(n*202));
k1054755a(n, b8, b5, b6, b7);
const b9=F(8,(n**2));
k17c670cb(n, b9, b5);
const b10=F(9,(n*202));
k6b2b8d1f(n, b10, b8);
k156284ae(n, b10, b9, b6, b7);
const b11=F(1,n);
k32f6f300(n, b11, y);
const v14=k7d0e395b(n, b11);
const v15=Math.max(v14,1);
const b12=F(10,101);
kd0f8f497(n, b10, b12);
const b13=F(11,101);
k228420db(b12, b13);
const b14=F(1,n);
k306cdf0e(n, b14, y);
const v19=k7d0e395b(n, b14);
const v20=Math.max(v19,1);
const b15=F(1,n);
k157a35e0(n, v15, v20, b10, b13, b15);
const v22=k7d0e395b(n, b15);
const v23=((v19>0)?1:0);
const v24=((v14>0)?1:0);
const v25=k7bf73873(n, v23, v24);
const v26=Math.max(v25,1);
const v27=ke9d9ab61(v22, v26);
const v28=(1/v26);
const b16=F(10,101);
k3c0d7624(n, v15, v28, b10, b16);
const b17=F(12,101);
k648d25fd(v20, b16, b17);
const b18=F(7,(n*202));
kc10a3843(n, v28, v20, v15, b18, b13, b17);
k57a0513e(n, b19, b4, b18, b9, b6, b5);
const b20=F(13,(d*n));
k019ec0af(n, d, b19, b3, b20);
const b21=F(14,(d*n));
k151b8e2d(n, d, b19, b3, b21);
const b22=F(1,n);
k44632f43(n, d, b3, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b3, b22, b2, b0);
return {value:v27,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b19}],gradient:b23,proxyGradient:null};
}
function r6d2707ee(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b28=R(own,2,(c*n));
const b31=R(own,3,(d*n));
const b34=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,c);
k957de67a(c, d, p, b5);
const b6=F(6,c);
ke3137bf4(c, d, p, b5, b6);
const b7=F(7,c);
k84e038da(c, b7, b6);
const b8=F(8,(c*d));
k2ae3d3e3(c, d, b8, p, b5, b7);
k2ee02a4f(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
k4b8b418d(n, c, b9, b10);
const b11=F(2,n);
k71a38771(n, c, h[2], b10, b11, y);
const b12=F(10,(c*n));
k08403603(n, c, h[2], b12, b10, b11, y);
const b13=F(11,n);
k782789b7(n, c, b12, b13);
const v14=(h[1]*0.017453292519943295);
const v15=Math.cos(v14);
const v16=(-v15);
const v17=Math.sin(v14);
const v18=(v14*v17);
const b14=F(12,(c*n));
k2af88b1a(n, c, b14, b10);
const b15=F(13,(c*n));
k6502d5ab(n, c, h[2], v16, v18, v15, v17, b15, b10, b14, y);
const b16=F(14,n);
k071cce81(n, c, b15, b16);
const b17=F(15,(c*n));
kad7d3f97(n, c, b17, b15, b16);
const b18=F(16,n);
k782789b7(n, c, b17, b18);
const b19=F(17,n);
k0b94d2a2(n, b19, b13, b11, b18, b16);
const b20=F(2,n);
ka34684f7(n, b20, b19);
const b21=U(0,n);
k4e415a92(n, b20, b21);
const b22=F(14,n);
k68c8c6d5(n, b22, b20);
const v28=k1b52dfe1(n, b0, b19, b22, b21);
const v29=k0a7efe2e(n, b0);
const v30=Math.max(v29,1);
const v31=ke9d9ab61(v28, v30);
const v32=(1/v30);
const b23=F(2,n);
kd096e3ff(n, v32, b23, b0, b22, b21);
const b24=F(17,n);
kc56d6faa(n, b24, b23, b18);
const b25=F(0,n);
k9484557b(n, b25, b23, b13);
const b26=F(13,(c*n));
kf0393f1d(n, c, b9, b10, b26);
const b27=F(18,(c*n));
k333d4e40(n, c, v16, h[2], v17, v15, b27, b9, b10, b17, b24, b14, b12, b25, b26);
kcbf820fb(n, c, b28, b27);
const b29=F(19,(d*n));
kac486688(n, d, c, b28, b8, b29);
const b30=F(14,n);
k75a806c1(n, d, b4, b29, b30);
k33ac8c0b(n, d, b31, b29, b4, b30, b3, b1);
const b32=F(20,(c*d));
k9b48a144(c, d, n, b28, b4, b32);
const b33=F(6,c);
k75a806c1(c, d, b8, b32, b33);
k33ac8c0b(c, d, b34, b32, b8, b33, b7, b5);
return {value:v31,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b9,slopes:b28}],gradient:b31,proxyGradient:b34};
}
function r6dd06e48(own,x,y,n,d,p,c,h){
const b11=R(own,1,(c*n));
const b31=R(own,2,(c*n));
const b38=R(own,3,(d*n));
const b41=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
kd1c2f79d(n, d, x, b1);
const b2=F(2,n);
kd6860ed1(n, h[1], b2, b1);
const b3=F(3,n);
k957de67a(n, d, x, b3);
const b4=F(4,n);
ke3137bf4(n, d, x, b3, b4);
const b5=F(5,n);
k84e038da(n, b5, b4);
const b6=F(6,(d*n));
k2ae3d3e3(n, d, b6, x, b3, b5);
const b7=F(7,c);
k957de67a(c, d, p, b7);
const b8=F(8,c);
ke3137bf4(c, d, p, b7, b8);
const b9=F(9,c);
k84e038da(c, b9, b8);
const b10=F(10,(c*d));
k2ae3d3e3(c, d, b10, p, b7, b9);
k2ee02a4f(n, c, d, b6, b10, b11);
const b12=F(11,(c*n));
k20ab153e(n, c, b12, b2, b11, y);
const b13=F(4,n);
k071cce81(n, c, b12, b13);
const b14=F(12,(c*n));
kad7d3f97(n, c, b14, b12, b13);
const b15=F(13,n);
k782789b7(n, c, b14, b15);
const b16=F(11,(c*n));
kdd6df0c3(n, c, b16, b11);
const b17=F(14,(c*n));
k6ad8cf75(n, c, b17, b11, b16);
const b18=F(15,(c*n));
k72799fff(n, c, b18, b2, b17, y);
const b19=F(16,n);
k071cce81(n, c, b18, b19);
const b20=F(17,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(18,n);
k782789b7(n, c, b20, b21);
const b22=F(19,n);
k0b94d2a2(n, b22, b15, b13, b21, b19);
const b23=F(4,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(16,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const v29=ke9d9ab61(v26, v28);
const v30=(1/v28);
const b26=F(4,n);
kd096e3ff(n, v30, b26, b0, b25, b24);
const b27=F(19,n);
kc56d6faa(n, b27, b26, b21);
const b28=F(15,(c*n));
k0173c754(n, c, b28, b20, b27);
const b29=F(0,n);
k9484557b(n, b29, b26, b15);
const b30=F(17,(c*n));
k0173c754(n, c, b30, b14, b29);
k68626d00(n, c, b31, b11, b28, b2, b16, b30);
const b32=F(16,n);
k75a806c1(n, c, b28, b17, b32);
const b33=F(18,n);
k75a806c1(n, c, b30, b11, b33);
const b34=F(19,n);
k1a5c2147(n, h[1], b34, b32, b33);
const b35=U(0,n);
k78872e7c(n, b1, b35);
const b36=F(20,(d*n));
kac486688(n, d, c, b31, b10, b36);
const b37=F(4,n);
k75a806c1(n, d, b6, b36, b37);
k6dbb3315(n, d, b38, b34, x, b1, b36, b6, b37, b5, b3, b35);
const b39=F(21,(c*d));
k9b48a144(c, d, n, b31, b6, b39);
const b40=F(8,c);
k75a806c1(c, d, b10, b39, b40);
k33ac8c0b(c, d, b41, b39, b10, b40, b9, b7);
return {value:v29,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b11,slopes:b31}],gradient:b38,proxyGradient:b41};
}
function r71d4fd29(own,x,y,n,d,p,c,h){
const b13=R(own,1,(n**2));
const b21=R(own,2,(n**2));
const b30=R(own,3,(d*n));
const b0=F(0,n);
k32f6f300(n, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,d);
kad9d15cf(d, n, b4, b5);
const b6=F(6,(d*n));
k63359b6c(n, d, b6, b4, b5);
const b7=F(2,n);
kd1c2f79d(n, d, b6, b7);
const b8=F(7,(n**2));
k2799ef1a(n, d, b6, b8);
const b9=U(0,(n**2));
keac05487(n, b7, b8, b9);
const b10=F(8,(n**2));
k6b6ac5e3(n, b10, b7, b8, b9);
const b11=U(1,(n**2));
k4269dfe5(n, b10, b11);
const b12=F(7,(n**2));
kd05f38ae(n, b12, b10, b11);
k0cef63f5(n, b13, b12, b11);
const b14=F(8,(n**2));
k978d122d(n, h[0], h[1], b14, b13);
const b15=F(2,n);
kb97241c7(n, b14, b15, y);
const b16=F(9,n);
k306cdf0e(n, b16, y);
const b17=F(10,(n**2));
k793b960a(n, h[0], h[1], b17, b13);
const b18=F(11,n);
kc85602ab(n, b17, b18, y);
const v19=kee601aca(n, b0, b15, b16, b18);
const b19=F(2,n);
kee139c58(n, b14, b19, y);
const b20=F(11,n);
kccb888b7(n, b17, b20, y);
const v22=kee601aca(n, b0, b19, b16, b20);
const v23=Math.max(v22,1);
const v24=ke373b627(h[1]);
const v25=k758ed9e4(v19, v23, h[2], v24);
const v26=(1/v23);
kbdca9abe(n, v26, b21, b17, b16, b14, b0, y);
const b22=F(10,(n**2));
kf241d603(n, b22, b21, b12, b9, b11);
const b23=F(2,n);
k29684dab(n, b22, b23);
const b24=F(11,n);
k7520f553(n, b22, b24);
const b25=F(8,(n**2));
k7177de57(n, b25, b22);
const b26=F(12,(d*n));
k019ec0af(n, d, b25, b6, b26);
const b27=F(13,(d*n));
k151b8e2d(n, d, b25, b6, b27);
const b28=F(14,(d*n));
kee72eb17(n, d, b28, b23, b24, b6, b26, b27);
const b29=F(9,n);
k75a806c1(n, d, b4, b28, b29);
k33ac8c0b(n, d, b30, b28, b4, b29, b3, b1);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b13,slopes:b21}],gradient:b30,proxyGradient:null};
}
function r73132063(own,x,y,n,d,p,c,h){
const b14=R(own,1,(n**2));
const b28=R(own,2,(n**2));
const b37=R(own,3,(d*n));
const b0=U(0,n);
k3574cc7c(n, b0, y);
const b1=U(1,(n**2));
k6edb98de(n, b1, b0, y);
const b2=F(0,n);
k957de67a(n, d, x, b2);
const b3=F(1,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(2,n);
k84e038da(n, b4, b3);
const b5=F(3,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
const b6=F(4,d);
kad9d15cf(d, n, b5, b6);
const b7=F(5,(d*n));
k63359b6c(n, d, b7, b5, b6);
const b8=F(1,n);
kd1c2f79d(n, d, b7, b8);
const b9=F(6,(n**2));
k2799ef1a(n, d, b7, b9);
const b10=U(2,(n**2));
keac05487(n, b8, b9, b10);
const b11=F(7,(n**2));
k6b6ac5e3(n, b11, b8, b9, b10);
const b12=U(3,(n**2));
k4269dfe5(n, b11, b12);
const b13=F(6,(n**2));
kd05f38ae(n, b13, b11, b12);
k0cef63f5(n, b14, b13, b12);
const b15=F(7,(n**2));
k488a59a3(n, h[0], b15, b14, y);
const b16=F(1,n);
ke02f74f4(n, b15, b16);
const b17=F(8,(n**2));
k7f1c0a1a(n, b17, b15, b16);
const b18=F(9,n);
k7520f553(n, b17, b18);
const b19=F(10,n);
k27675df6(n, b19, b18, b16);
const b20=F(1,n);
kec708d88(n, b20, b19);
const b21=F(7,(n**2));
k2d84cdfb(n, b21, b20, b14);
const b22=F(11,n);
kca4da10d(n, b21, b22, b1);
const v23=k3250c194(n, b22);
const b23=F(11,n);
k996565f7(n, b23, b1);
const v25=k3250c194(n, b23);
const v26=Math.max(v25,1);
const v27=ke9d9ab61(v23, v26);
const v28=(1/v26);
const b24=F(12,(n**2));
k9494c2be(n, v28, b24, b21, b1);
const b25=F(11,n);
k403062d9(n, b24, b20, b25);
const b26=F(13,n);
k605ec57c(n, b24, b20, b26);
const b27=F(1,n);
kca907023(n, b27, b19, b25, b26, b18);
kb504581a(n, b28, b24, b17, b27);
const b29=F(7,(n**2));
kf241d603(n, b29, b28, b13, b10, b12);
const b30=F(10,n);
k29684dab(n, b29, b30);
const b31=F(11,n);
k7520f553(n, b29, b31);
const b32=F(12,(n**2));
k7177de57(n, b32, b29);
const b33=F(14,(d*n));
k019ec0af(n, d, b32, b7, b33);
const b34=F(15,(d*n));
k151b8e2d(n, d, b32, b7, b34);
const b35=F(16,(d*n));
kee72eb17(n, d, b35, b30, b31, b7, b33, b34);
const b36=F(13,n);
k75a806c1(n, d, b5, b35, b36);
k33ac8c0b(n, d, b37, b35, b5, b36, b4, b2);
return {value:v27,matrices:[{between:"samples against samples",rows:n,columns:n,s:b14,slopes:b28}],gradient:b37,proxyGradient:null};
}
function r78874091(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b13=R(own,2,(n**2));
const b17=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
k2799ef1a(n, d, b5, b6);
const b7=F(6,(n**2));
kcda27b0b(n, h[0], h[2], b7, b6);
const b8=F(3,n);
k1ed521c5(n, h[0], h[2], b6, b7, b8, y);
const b9=F(7,(n**2));
k3f93ac6b(n, h[1], h[2], b9, b6);
const b10=F(8,n);
k7cf3552d(n, h[1], h[2], b6, b9, b10, y);
const v11=kcac057a0(n, b0, b1, b8, b10);
const v12=kf517b63d(n, b0, b1);
const v13=Math.max(v12,1);
const v14=ke9d9ab61(v11, v13);
const v15=(1/v13);
const b11=F(3,n);
k2d464378(n, v15, b11, b0, b1);
const b12=F(8,n);
kc7ccf64a(n, v15, b12, b0, b1);
k371e3f6c(n, h[1], h[2], h[0], b13, b6, b11, b9, b12, b7, y);
const b14=F(9,(d*n));
k019ec0af(n, d, b13, b5, b14);
const b15=F(10,(d*n));
k151b8e2d(n, d, b13, b5, b15);
const b16=F(0,n);
k44632f43(n, d, b5, b14, b15, b16);
k4d2a8049(n, d, b17, b14, b15, b5, b16, b4, b2);
return {value:v14,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b13}],gradient:b17,proxyGradient:null};
}
function r8229a0f8(own,x,y,n,d,p,c,h){
const b9=R(own,1,(c*n));
const b27=R(own,2,(c*n));
const b30=R(own,3,(d*n));
const b33=R(own,4,(c*d));
const b0=F(0,c);
k83960010(c, n, b0, y);
const v1=(-h[1]);
const b1=F(1,c);
k957de67a(c, d, p, b1);
const b2=F(2,c);
ke3137bf4(c, d, p, b1, b2);
const b3=F(3,c);
k84e038da(c, b3, b2);
const b4=F(4,(c*d));
k2ae3d3e3(c, d, b4, p, b1, b3);
const b5=F(5,n);
k957de67a(n, d, x, b5);
const b6=F(6,n);
ke3137bf4(n, d, x, b5, b6);
const b7=F(7,n);
k84e038da(n, b7, b6);
const b8=F(8,(d*n));
k2ae3d3e3(n, d, b8, x, b5, b7);
k2ee02a4f(c, n, d, b4, b8, b9);
const b10=F(2,c);
k2d841c04(c, n, v1, h[0], b9, b10, y);
const b11=F(9,(c*n));
k17502cf7(c, n, v1, h[0], b11, b9, b10, y);
const b12=F(10,c);
k782789b7(c, n, b11, b12);
const b13=F(11,c);
k27675df6(c, b13, b12, b10);
const b14=F(2,c);
ka34684f7(c, b14, b13);
const b15=U(0,c);
k4e415a92(c, b14, b15);
const b16=F(12,c);
k68c8c6d5(c, b16, b14);
const v18=k1b52dfe1(c, b0, b13, b16, b15);
const v19=k0a7efe2e(c, b0);
const v20=Math.max(v19,1);
const b17=F(13,(c*n));
k7dabb690(c, n, h[1], h[0], b17, b9, y);
const b18=F(2,c);
k071cce81(c, n, b17, b18);
const b19=F(14,(c*n));
kad7d3f97(c, n, b19, b17, b18);
const b20=F(11,c);
k782789b7(c, n, b19, b20);
const b21=F(15,c);
k27675df6(c, b21, b20, b18);
const b22=F(2,c);
ka34684f7(c, b22, b21);
const b23=U(1,c);
k4e415a92(c, b22, b23);
const b24=F(16,c);
k68c8c6d5(c, b24, b22);
const v29=kde44f58f(c, b21, b24, b23);
const v30=k07f7b137(c, b0);
const v31=Math.max(v30,1);
const v32=k0a1d799d(v18, v20, v29, v31);
const v33=(1/v31);
const b25=F(2,c);
k5931ba6f(c, v33, b25, b24, b20, b23);
const v35=(1/v20);
const b26=F(15,c);
k93d59cf0(c, v35, b26, b0, b16, b12, b15);
k910e8154(c, n, h[1], v1, b27, b19, b25, b11, b26);
const b28=F(17,(d*n));
k9b48a144(n, d, c, b27, b4, b28);
const b29=F(6,n);
k75a806c1(n, d, b8, b28, b29);
k33ac8c0b(n, d, b30, b28, b8, b29, b7, b5);
const b31=F(18,(c*d));
kac486688(c, d, n, b27, b8, b31);
const b32=F(16,c);
k75a806c1(c, d, b4, b31, b32);
k33ac8c0b(c, d, b33, b31, b4, b32, b3, b1);
return {value:v32,matrices:[{between:"proxies against samples",rows:c,columns:n,s:b9,slopes:b27}],gradient:b30,proxyGradient:b33};
}
function r88f726fe(own,x,y,n,d,p,c,h){
const b11=R(own,1,(c*n));
const b30=R(own,2,(c*n));
const b37=R(own,3,(d*n));
const b40=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
kd1c2f79d(n, d, x, b1);
const b2=F(2,n);
kd6860ed1(n, h[1], b2, b1);
const b3=F(3,n);
k957de67a(n, d, x, b3);
const b4=F(4,n);
ke3137bf4(n, d, x, b3, b4);
const b5=F(5,n);
k84e038da(n, b5, b4);
const b6=F(6,(d*n));
k2ae3d3e3(n, d, b6, x, b3, b5);
const b7=F(7,c);
k957de67a(c, d, p, b7);
const b8=F(8,c);
ke3137bf4(c, d, p, b7, b8);
const b9=F(9,c);
k84e038da(c, b9, b8);
const b10=F(10,(c*d));
k2ae3d3e3(c, d, b10, p, b7, b9);
k2ee02a4f(n, c, d, b6, b10, b11);
const b12=F(11,(c*n));
k20ab153e(n, c, b12, b2, b11, y);
const b13=F(4,n);
k071cce81(n, c, b12, b13);
const b14=F(12,(c*n));
kad7d3f97(n, c, b14, b12, b13);
const b15=F(13,n);
k782789b7(n, c, b14, b15);
const b16=F(11,(c*n));
k21c6612b(n, c, b16, b11);
const b17=F(14,(c*n));
k72799fff(n, c, b17, b2, b16, y);
const b18=F(15,n);
k071cce81(n, c, b17, b18);
const b19=F(16,(c*n));
kad7d3f97(n, c, b19, b17, b18);
const b20=F(17,n);
k782789b7(n, c, b19, b20);
const b21=F(18,n);
k0b94d2a2(n, b21, b15, b13, b20, b18);
const b22=F(4,n);
ka34684f7(n, b22, b21);
const b23=U(0,n);
k4e415a92(n, b22, b23);
const b24=F(15,n);
k68c8c6d5(n, b24, b22);
const v25=k1b52dfe1(n, b0, b21, b24, b23);
const v26=k0a7efe2e(n, b0);
const v27=Math.max(v26,1);
const v28=ke9d9ab61(v25, v27);
const v29=(1/v27);
const b25=F(4,n);
kd096e3ff(n, v29, b25, b0, b24, b23);
const b26=F(18,n);
kc56d6faa(n, b26, b25, b20);
const b27=F(14,(c*n));
k0173c754(n, c, b27, b19, b26);
const b28=F(0,n);
k9484557b(n, b28, b25, b15);
const b29=F(16,(c*n));
k0173c754(n, c, b29, b14, b28);
kf006d179(n, c, b30, b11, b27, b2, b29);
const b31=F(15,n);
k75a806c1(n, c, b27, b16, b31);
const b32=F(17,n);
k75a806c1(n, c, b29, b11, b32);
const b33=F(18,n);
k1a5c2147(n, h[1], b33, b31, b32);
const b34=U(0,n);
k78872e7c(n, b1, b34);
const b35=F(19,(d*n));
kac486688(n, d, c, b30, b10, b35);
const b36=F(4,n);
k75a806c1(n, d, b6, b35, b36);
k6dbb3315(n, d, b37, b33, x, b1, b35, b6, b36, b5, b3, b34);
const b38=F(20,(c*d));
k9b48a144(c, d, n, b30, b6, b38);
const b39=F(8,c);
k75a806c1(c, d, b10, b38, b39);
k33ac8c0b(c, d, b40, b38, b10, b39, b9, b7);
return {value:v28,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b11,slopes:b30}],gradient:b37,proxyGradient:b40};
}
function r96fee4cd(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*5));
const b34=R(own,2,((c*n)*5));
const b37=R(own,3,(d*n));
const b44=R(own,4,((c*d)*5));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*5));
k2f730769(c, d, p, b5);
const b6=F(6,(c*5));
ke430c223(c, d, p, b5, b6);
const b7=F(7,(c*5));
kb45602a1(c, b7, b6);
const b8=F(8,((c*d)*5));
k1f1a1299(c, d, b8, p, b5, b7);
k0d240772(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
k8631b4fe(n, c, h[2], b9, b10);
const b11=F(10,((c*n)*5));
kace75744(n, c, h[2], b11, b9, b10);
const b12=F(9,(c*n));
k6a9f6575(n, c, b11, b12);
const b13=F(11,((c*n)*5));
k5854a218(n, c, b13, b11, b12);
const b14=F(9,(c*n));
k31e3a8b0(n, c, b13, b9, b14);
const b15=F(2,n);
k71a38771(n, c, h[1], b14, b15, y);
const b16=F(12,(c*n));
k08403603(n, c, h[1], b16, b14, b15, y);
const b17=F(13,n);
k782789b7(n, c, b16, b17);
const b18=F(14,(c*n));
k4f72298e(n, c, h[1], h[3], b18, b14, y);
const b19=F(15,n);
k071cce81(n, c, b18, b19);
const b20=F(9,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(16,n);
k782789b7(n, c, b20, b21);
const b22=F(17,n);
k0b94d2a2(n, b22, b17, b15, b21, b19);
const b23=F(2,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(15,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const b26=F(18,(c*25));
k3c2cb8cf(c, d, b8, b26);
const v30=k167a6b97(c, b26);
const v31=ke373b627(v30);
const v32=kaaef5afa(c, v26, v28, h[4], v31);
const v33=(1/v28);
const b27=F(2,n);
kd096e3ff(n, v33, b27, b0, b25, b24);
const b28=F(17,n);
kc56d6faa(n, b28, b27, b21);
const b29=F(0,n);
k9484557b(n, b29, b27, b17);
const b30=F(14,(c*n));
k94c36a9f(n, c, h[1], b30, b20, b28, b16, b29);
const b31=F(10,((c*n)*5));
k38ab71c2(n, c, b31, b30, b9, b13);
const b32=F(9,(c*n));
k6a9f6575(n, c, b31, b32);
const b33=F(19,((c*n)*5));
k4a09290b(n, c, h[2], b33, b30, b13, b31, b32);
kd203f338(n, c, b34, b33);
const b35=F(20,(d*n));
kbd46ef39(n, d, c, b34, b8, b35);
const b36=F(15,n);
k75a806c1(n, d, b4, b35, b36);
k33ac8c0b(n, d, b37, b35, b4, b36, b3, b1);
const b38=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b34, b4, b38);
const b39=F(6,(c*5));
k6e336d28(c, d, b8, b38, b39);
const v47=(h[4]/(c*20));
const b40=F(22,(c*25));
k878030b3(c, v47, b40, b26);
const b41=F(23,((c*d)*5));
kbbf92eef(c, d, b40, b8, b41);
const b42=F(24,((c*d)*5));
kd6f8156c(c, d, b8, b40, b42);
const b43=F(25,(c*5));
k84a22ef7(c, d, b8, b41, b42, b43);
k6b68d3cb(c, d, b44, b38, b8, b39, b7, b5, b41, b42, b43);
return {value:v32,matrices:[{between:"samples against proxies",rows:n,columns:(c*5),s:b9,slopes:b34}],gradient:b37,proxyGradient:b44};
}
function r9880c8e3(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b14=R(own,2,(n**2));
const b18=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
k2799ef1a(n, d, b5, b6);
const b7=F(6,(n**2));
k8fda4f38(n, h[0], b7, b6, y);
const b8=F(3,n);
ke02f74f4(n, b7, b8);
const b9=F(7,(n**2));
k7f1c0a1a(n, b9, b7, b8);
const b10=F(8,n);
k7520f553(n, b9, b10);
const b11=F(9,n);
kc6f5509f(n, h[0], b6, b11, y);
const v12=k7de33230(n, b0, b1, b10, b8, b11);
const v13=kf517b63d(n, b0, b1);
const v14=Math.max(v13,1);
const v15=ke9d9ab61(v12, v14);
const v16=(1/v14);
const b12=F(3,n);
kef243c11(n, v16, b12, b0, b1);
const b13=F(9,n);
k7713b3bb(n, v16, b13, b0, b1, b10);
k13fa7bbc(n, h[0], b14, b12, b9, b13, y);
const b15=F(10,(d*n));
k019ec0af(n, d, b14, b5, b15);
const b16=F(11,(d*n));
k151b8e2d(n, d, b14, b5, b16);
const b17=F(0,n);
k44632f43(n, d, b5, b15, b16, b17);
k4d2a8049(n, d, b18, b15, b16, b5, b17, b4, b2);
return {value:v15,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b14}],gradient:b18,proxyGradient:null};
}
function r9c47dcb5(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*4));
const b30=R(own,2,((c**2)*4));
const b8=R(own,3,((c*n)*2));
const b33=R(own,4,((c*n)*2));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*2));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*2));
k5b47642d(c, d, p, b4);
const b5=F(5,(c*2));
kc0bf9bef(c, d, p, b4, b5);
const b6=F(6,(c*2));
k74de847c(c, b6, b5);
const b7=F(7,((c*d)*2));
k93b81019(c, d, b7, p, b4, b6);
k9d4183c8(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*2));
kfe9712a3(n, c, b9, b8, y);
const b10=F(9,(n*200));
sortRows(b9,n,(c*2),200,null,b10,true);
const b11=U(0,((c*n)*2));
k78fa656c(n, c, b11, y);
k136d43d2(n, c, b10, b11);
const b12=U(1,(c*n));
k79c9e72d(n, c, b11, b12);
const b13=F(10,(c*n));
k575cea64(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k54d6e83e(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k9d1e2913(c, d, b7, b20);
const b21=F(15,((c**2)*2));
k39ae9a1a(c, b20, b21);
const b22=F(5,(c*2));
k83135b73(c, b21, b22);
const b23=F(16,(c*2));
kcc18ad5c(c, b21, b22, b23);
const b24=F(17,(c*2));
k519576fc(c, b24, b23);
const b25=F(18,((c**2)*2));
k87c0931e(c, b25, b21, b22, b24);
const v30=k5eaa94ab(c, b25);
const v31=k7a957cec(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*2));
b26.fill(0,0,((c**2)*2));
kc2a88bb6(c, b26);
const v34=(h[2]/(c*2));
const b27=F(16,(c*2));
kcfcd3c7e(c, v34, b27);
const b28=F(5,(c*2));
k7a4c3f36(c, b26, b27, b28);
const b29=F(19,((c**2)*2));
k36c6ffee(c, b29, b26, b27, b25, b28);
k99d68265(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k7ce19741(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k2db67e14(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*2));
k059b705d(c, d, n, b33, b3, b37);
const b38=F(17,(c*2));
kde128d06(c, d, b7, b37, b38);
const b39=F(22,((c*d)*2));
ka2719e75(c, d, b30, b7, b39);
const b40=F(23,((c*d)*2));
k18fff7be(c, d, b30, b7, b40);
const b41=F(16,(c*2));
k818eeb88(c, d, b7, b39, b40, b41);
kba460200(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*2),columns:(c*2),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*2),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function r9c80ad83(own,x,y,n,d,p,c,h){
const b13=R(own,1,(c*n));
const b24=R(own,2,(c*n));
const b28=R(own,3,(d*n));
const b31=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k839e2c42(n, c, b1, y);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
const b6=F(3,n);
kd1c2f79d(n, d, b5, b6);
const b7=F(6,c);
k957de67a(c, d, p, b7);
const b8=F(7,c);
ke3137bf4(c, d, p, b7, b8);
const b9=F(8,c);
k84e038da(c, b9, b8);
const b10=F(9,(c*d));
k2ae3d3e3(c, d, b10, p, b7, b9);
const b11=F(10,(c*n));
k2ee02a4f(n, c, d, b5, b10, b11);
const b12=F(7,c);
kd1c2f79d(c, d, b10, b12);
k7e99130c(n, c, b13, b6, b11, b12);
const b14=F(10,(c*n));
kaa5adde5(n, c, h[0], b14, b13, y);
const b15=F(3,n);
k071cce81(n, c, b14, b15);
const b16=F(11,(c*n));
kad7d3f97(n, c, b16, b14, b15);
const b17=F(12,n);
k782789b7(n, c, b16, b17);
const b18=F(10,(c*n));
k6648f7e4(n, c, h[0], b18, b13, y);
const b19=F(13,n);
k071cce81(n, c, b18, b19);
const b20=F(14,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(15,n);
k782789b7(n, c, b20, b21);
const v22=k34b7ace5(n, b0, b1, b17, b15, b21, b19);
const v23=kf517b63d(n, b0, b1);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b22=F(3,n);
k5bb8d67c(n, v26, b22, b0, b1, b21);
const b23=F(13,n);
k7713b3bb(n, v26, b23, b0, b1, b17);
kf989d104(n, c, h[0], b24, b20, b22, b16, b23);
const b25=F(10,(c*n));
k2d87db43(n, c, b25, b24);
const b26=F(16,(d*n));
kac486688(n, d, c, b25, b10, b26);
const b27=F(15,n);
k75a806c1(n, d, b5, b26, b27);
k33ac8c0b(n, d, b28, b26, b5, b27, b4, b2);
const b29=F(17,(c*d));
k9b48a144(c, d, n, b25, b5, b29);
const b30=F(7,c);
k75a806c1(c, d, b10, b29, b30);
k33ac8c0b(c, d, b31, b29, b10, b30, b9, b7);
return {value:v25,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b13,slopes:b24}],gradient:b28,proxyGradient:b31};
}
function r9f8e00b3(own,x,y,n,d,p,c,h){
const b9=R(own,1,((c*n)*2));
const b29=R(own,2,((c*n)*2));
const b32=R(own,3,(d*n));
const b35=R(own,4,((c*d)*2));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(5,(c*2));
k5b47642d(c, d, p, b5);
const b6=F(6,(c*2));
kc0bf9bef(c, d, p, b5, b6);
const b7=F(7,(c*2));
k74de847c(c, b7, b6);
const b8=F(8,((c*d)*2));
k93b81019(c, d, b8, p, b5, b7);
k9d4183c8(n, c, d, b4, b8, b9);
const b10=F(9,(c*n));
k2ddb76ee(n, c, b9, b10);
const b11=F(2,n);
k71a38771(n, c, h[2], b10, b11, y);
const b12=F(10,(c*n));
k08403603(n, c, h[2], b12, b10, b11, y);
const b13=F(11,n);
k782789b7(n, c, b12, b13);
const v14=(h[1]*0.017453292519943295);
const v15=Math.cos(v14);
const v16=(-v15);
const v17=Math.sin(v14);
const v18=(v14*v17);
const b14=F(12,(c*n));
k2af88b1a(n, c, b14, b10);
const b15=F(13,(c*n));
k6502d5ab(n, c, h[2], v16, v18, v15, v17, b15, b10, b14, y);
const b16=F(14,n);
k071cce81(n, c, b15, b16);
const b17=F(15,(c*n));
kad7d3f97(n, c, b17, b15, b16);
const b18=F(16,n);
k782789b7(n, c, b17, b18);
const b19=F(17,n);
k0b94d2a2(n, b19, b13, b11, b18, b16);
const b20=F(2,n);
ka34684f7(n, b20, b19);
const b21=U(0,n);
k4e415a92(n, b20, b21);
const b22=F(14,n);
k68c8c6d5(n, b22, b20);
const v28=k1b52dfe1(n, b0, b19, b22, b21);
const v29=k0a7efe2e(n, b0);
const v30=Math.max(v29,1);
const v31=ke9d9ab61(v28, v30);
const v32=(1/v30);
const b23=F(2,n);
kd096e3ff(n, v32, b23, b0, b22, b21);
const b24=F(17,n);
kc56d6faa(n, b24, b23, b18);
const b25=F(0,n);
k9484557b(n, b25, b23, b13);
const b26=F(13,(c*n));
k7d8d8604(n, c, b9, b10, b26);
const b27=F(18,(c*n));
k9aaf1886(n, c, v16, h[2], v17, v15, b27, b10, b17, b24, b14, b12, b25, b26);
const b28=F(19,((c*n)*2));
ke1bd4ea2(n, c, b28, b9, b10, b27);
kec8a1999(n, c, b29, b28);
const b30=F(20,(d*n));
k2db67e14(n, d, c, b29, b8, b30);
const b31=F(14,n);
k75a806c1(n, d, b4, b30, b31);
k33ac8c0b(n, d, b32, b30, b4, b31, b3, b1);
const b33=F(21,((c*d)*2));
k059b705d(c, d, n, b29, b4, b33);
const b34=F(6,(c*2));
kde128d06(c, d, b8, b33, b34);
k10674a6a(c, d, b35, b33, b8, b34, b7, b5);
return {value:v31,matrices:[{between:"samples against proxies",rows:n,columns:(c*2),s:b9,slopes:b29}],gradient:b32,proxyGradient:b35};
}
function ra35eff4c(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b22=R(own,2,(n**2));
const b26=R(own,3,(d*n));
const b0=F(0,n);
k306cdf0e(n, b0, y);
const b1=F(1,n);
k32f6f300(n, b1, y);
const v2=(-h[1]);
const v3=(h[0]+1);
const b2=F(2,n);
k957de67a(n, d, x, b2);
const b3=F(3,n);
ke3137bf4(n, d, x, b2, b3);
const b4=F(4,n);
k84e038da(n, b4, b3);
const b5=F(5,(d*n));
k2ae3d3e3(n, d, b5, x, b2, b4);
k2799ef1a(n, d, b5, b6);
const v9=(1-h[0]);
const b7=F(6,(n**2));
ke33d6775(n, v2, v3, v9, b7, b6, y);
const b8=F(3,n);
ke02f74f4(n, b7, b8);
const b9=F(7,(n**2));
k7f1c0a1a(n, b9, b7, b8);
const b10=F(8,n);
k7520f553(n, b9, b10);
const b11=F(6,(n**2));
k8706f4f9(n, h[1], h[0], b11, b6, y);
const b12=F(9,n);
ke02f74f4(n, b11, b12);
const b13=F(10,(n**2));
k7f1c0a1a(n, b13, b11, b12);
const b14=F(11,n);
k7520f553(n, b13, b14);
const b15=F(12,n);
k501da157(n, b15, b10, b8, b14, b12);
const b16=F(3,n);
ka34684f7(n, b16, b15);
const b17=U(0,n);
k4e415a92(n, b16, b17);
const b18=F(9,n);
k68c8c6d5(n, b18, b16);
const v22=kfc3dbd63(n, b0, b1, b15, b18, b17);
const v23=kf517b63d(n, b0, b1);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b19=F(3,n);
k71ab157c(n, v26, b19, b0, b1, b18, b17);
const b20=F(12,n);
k9484557b(n, b20, b19, b14);
const b21=F(0,n);
k9484557b(n, b21, b19, b10);
kbcbf0992(n, h[1], h[0], v2, v3, b22, b13, b20, b6, b9, b21);
const b23=F(13,(d*n));
k019ec0af(n, d, b22, b5, b23);
const b24=F(14,(d*n));
k151b8e2d(n, d, b22, b5, b24);
const b25=F(1,n);
k44632f43(n, d, b5, b23, b24, b25);
k4d2a8049(n, d, b26, b23, b24, b5, b25, b4, b2);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b22}],gradient:b26,proxyGradient:null};
}
function rad01a90d(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*9));
const b30=R(own,2,((c**2)*9));
const b8=R(own,3,((c*n)*3));
const b33=R(own,4,((c*n)*3));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*3));
ka7c444bc(c, d, p, b4);
const b5=F(5,(c*3));
kd1971f67(c, d, p, b4, b5);
const b6=F(6,(c*3));
k67d99b99(c, b6, b5);
const b7=F(7,((c*d)*3));
k4e533f3b(c, d, b7, p, b4, b6);
k7dfe8507(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*3));
kd7642b14(n, c, b9, b8, y);
const b10=F(9,(n*8));
sortRows(b9,n,(c*3),8,null,b10,true);
const b11=U(0,((c*n)*3));
k96e1abb9(n, c, b11, y);
k4dd3011f(n, c, b10, b11);
const b12=U(1,(c*n));
k6c353db9(n, c, b11, b12);
const b13=F(10,(c*n));
k51b728ba(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
kb239a554(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
ke3334c62(c, d, b7, b20);
const b21=F(15,((c**2)*3));
kec6a66e1(c, b20, b21);
const b22=F(5,(c*3));
k696e8183(c, b21, b22);
const b23=F(16,(c*3));
kbd78c6ba(c, b21, b22, b23);
const b24=F(17,(c*3));
k8898a7cd(c, b24, b23);
const b25=F(18,((c**2)*3));
kc9d2036f(c, b25, b21, b22, b24);
const v30=k336d5417(c, b25);
const v31=kac9a921f(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*3));
b26.fill(0,0,((c**2)*3));
kd89ddd54(c, b26);
const v34=(h[2]/(c*3));
const b27=F(16,(c*3));
k30943abe(c, v34, b27);
const b28=F(5,(c*3));
kb1a4b13e(c, b26, b27, b28);
const b29=F(19,((c**2)*3));
kf3115fb7(c, b29, b26, b27, b25, b28);
kfe08d6b9(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k93d7be10(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k1ebffb85(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*3));
k5e64716d(c, d, n, b33, b3, b37);
const b38=F(17,(c*3));
k605991e4(c, d, b7, b37, b38);
const b39=F(22,((c*d)*3));
k5c3b5e65(c, d, b30, b7, b39);
const b40=F(23,((c*d)*3));
k89dd19b2(c, d, b30, b7, b40);
const b41=F(16,(c*3));
k0bf249ac(c, d, b7, b39, b40, b41);
kf3992980(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*3),columns:(c*3),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*3),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function rb4c1abff(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*9));
const b30=R(own,2,((c**2)*9));
const b8=R(own,3,((c*n)*3));
const b33=R(own,4,((c*n)*3));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*3));
ka7c444bc(c, d, p, b4);
const b5=F(5,(c*3));
kd1971f67(c, d, p, b4, b5);
const b6=F(6,(c*3));
k67d99b99(c, b6, b5);
const b7=F(7,((c*d)*3));
k4e533f3b(c, d, b7, p, b4, b6);
k7dfe8507(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*3));
kd7642b14(n, c, b9, b8, y);
const b10=F(9,(n*50));
sortRows(b9,n,(c*3),50,null,b10,true);
const b11=U(0,((c*n)*3));
k96e1abb9(n, c, b11, y);
k204beb9f(n, c, b10, b11);
const b12=U(1,(c*n));
k6c353db9(n, c, b11, b12);
const b13=F(10,(c*n));
k51b728ba(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
kb239a554(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
ke3334c62(c, d, b7, b20);
const b21=F(15,((c**2)*3));
kec6a66e1(c, b20, b21);
const b22=F(5,(c*3));
k696e8183(c, b21, b22);
const b23=F(16,(c*3));
kbd78c6ba(c, b21, b22, b23);
const b24=F(17,(c*3));
k8898a7cd(c, b24, b23);
const b25=F(18,((c**2)*3));
kc9d2036f(c, b25, b21, b22, b24);
const v30=k336d5417(c, b25);
const v31=kac9a921f(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*3));
b26.fill(0,0,((c**2)*3));
kd89ddd54(c, b26);
const v34=(h[2]/(c*3));
const b27=F(16,(c*3));
k30943abe(c, v34, b27);
const b28=F(5,(c*3));
kb1a4b13e(c, b26, b27, b28);
const b29=F(19,((c**2)*3));
kf3115fb7(c, b29, b26, b27, b25, b28);
kfe08d6b9(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k93d7be10(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k1ebffb85(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*3));
k5e64716d(c, d, n, b33, b3, b37);
const b38=F(17,(c*3));
k605991e4(c, d, b7, b37, b38);
const b39=F(22,((c*d)*3));
k5c3b5e65(c, d, b30, b7, b39);
const b40=F(23,((c*d)*3));
k89dd19b2(c, d, b30, b7, b40);
const b41=F(16,(c*3));
k0bf249ac(c, d, b7, b39, b40, b41);
kf3992980(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*3),columns:(c*3),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*3),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function rb8c942ee(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b24=R(own,2,(n**2));
const b28=R(own,3,(d*n));
const v0=(-h[0]);
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
k4316d81b(n, v0, h[2], b5, b4, y);
const b6=F(1,n);
ke02f74f4(n, b5, b6);
const b7=F(5,(n**2));
k7f1c0a1a(n, b7, b5, b6);
const b8=F(6,n);
k7520f553(n, b7, b8);
const b9=F(7,n);
k27675df6(n, b9, b8, b6);
const b10=F(1,n);
ka34684f7(n, b10, b9);
const b11=U(0,n);
k4e415a92(n, b10, b11);
const b12=F(8,n);
k68c8c6d5(n, b12, b10);
const b13=F(4,(n**2));
k4258708e(n, h[1], h[2], b13, b4, y);
const b14=F(1,n);
ke02f74f4(n, b13, b14);
const b15=F(9,(n**2));
k7f1c0a1a(n, b15, b13, b14);
const b16=F(10,n);
k7520f553(n, b15, b16);
const b17=F(11,n);
k27675df6(n, b17, b16, b14);
const b18=F(1,n);
ka34684f7(n, b18, b17);
const b19=U(1,n);
k4e415a92(n, b18, b19);
const b20=F(12,n);
k68c8c6d5(n, b20, b18);
const v22=k8c9cb9ea(n, h[0], h[1], b9, b12, b17, b20, b11, b19);
const b21=F(1,n);
k306cdf0e(n, b21, y);
const v24=k07f7b137(n, b21);
const v25=Math.max(v24,1);
const v26=ke9d9ab61(v22, v25);
const v27=(1/v25);
const b22=F(7,n);
k7bc59596(n, v27, h[1], b22, b20, b16, b19);
const b23=F(11,n);
k7bc59596(n, v27, h[0], b23, b12, b8, b11);
k60cf505e(n, h[1], v0, b24, b15, b22, b7, b23);
const b25=F(13,(d*n));
k019ec0af(n, d, b24, b3, b25);
const b26=F(14,(d*n));
k151b8e2d(n, d, b24, b3, b26);
const b27=F(1,n);
k44632f43(n, d, b3, b25, b26, b27);
k4d2a8049(n, d, b28, b25, b26, b3, b27, b2, b0);
return {value:v26,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b24}],gradient:b28,proxyGradient:null};
}
function rb9113d61(own,x,y,n,d,p,c,h){
const b12=R(own,1,(n**2));
const b20=R(own,2,(n**2));
const b36=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(1,n);
k782789b7(n, d, b3, b4);
const b5=F(4,(d*n));
k12893c0c(n, d, b5, b3, b4);
const b6=F(1,n);
kd1c2f79d(n, d, b5, b6);
const b7=F(5,n);
kd1c2f79d(n, d, b3, b7);
const b8=F(6,(d*n));
k1321596f(n, d, b8, b6, b7, b5);
const b9=F(7,n);
kd1c2f79d(n, d, b8, b9);
const b10=F(8,(n**2));
k2799ef1a(n, d, b8, b10);
const b11=F(9,(n**2));
ka73d6f2c(n, b11, b9, b10);
k999a05f3(n, b12, b9, b11);
const b13=F(8,(n**2));
keec7f32d(n, h[0], b13, b12);
const b14=F(10,n);
kb97241c7(n, b13, b14, y);
const v15=k7d0e395b(n, b14);
const b15=F(10,n);
k0724b1e6(n, b13, b15, y);
const v17=k7d0e395b(n, b15);
const v18=Math.max(v17,1);
const b16=F(11,(n**2));
ke54632f8(n, h[1], b16, b12);
const b17=F(10,n);
kc85602ab(n, b16, b17, y);
const v21=k7d0e395b(n, b17);
const b18=F(10,n);
k30c3071b(n, b16, b18, y);
const v23=k7d0e395b(n, b18);
const v24=Math.max(v23,1);
const b19=F(10,n);
k782789b7(n, d, b3, b19);
const v26=k8f7d1b48(n, h[2], b19);
const v27=k12d62e7f(n, h[2], b19);
const v28=Math.max(v27,1);
const v29=k915a1455(v15, v18, v21, v24, v26, v28);
const v30=(1/v24);
const v31=(1/v18);
k0d2cf40f(n, v30, v31, b20, b16, b13, y);
const v33=(1/v28);
const b21=F(12,n);
k127ea941(n, v33, h[2], b21, b19);
const b22=F(10,n);
k2b912cc0(n, d, b3, b21, b22);
const b23=F(11,(n**2));
k999a05f3(n, b23, b9, b20);
const b24=F(8,(n**2));
k3f206873(n, b24, b23, b9);
const b25=F(13,n);
k29684dab(n, b24, b25);
const b26=F(14,n);
k872e737f(n, b23, b11, b9, b26);
const b27=F(15,n);
k7520f553(n, b24, b27);
const b28=F(16,n);
kead68b08(n, b28, b25, b9, b26, b27);
const b29=F(11,(n**2));
k7177de57(n, b29, b24);
const b30=F(4,(d*n));
k019ec0af(n, d, b29, b8, b30);
const b31=F(17,(d*n));
k151b8e2d(n, d, b29, b8, b31);
const b32=F(18,(d*n));
k8383afc4(n, d, b32, b6, b7, b28, b8, b30, b31);
const b33=F(13,n);
ka5d859ff(n, d, b32, b33);
const b34=F(6,(d*n));
kc4ab50b2(n, d, b34, b32, b33);
const b35=F(7,n);
k75a806c1(n, d, b3, b34, b35);
k68d688cb(n, d, b36, b21, b3, b22, b2, b0, b34, b35);
return {value:v29,matrices:[{between:"samples against samples",rows:n,columns:n,s:b12,slopes:b20}],gradient:b36,proxyGradient:null};
}
function rc63227d3(own,x,y,n,d,p,c,h){
const b12=R(own,1,(c*n));
const b29=R(own,2,(c*n));
const b33=R(own,3,(d*n));
const b36=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
k957de67a(n, d, x, b1);
const b2=F(2,n);
ke3137bf4(n, d, x, b1, b2);
const b3=F(3,n);
k84e038da(n, b3, b2);
const b4=F(4,(d*n));
k2ae3d3e3(n, d, b4, x, b1, b3);
const b5=F(2,n);
kd1c2f79d(n, d, b4, b5);
const b6=F(5,c);
k957de67a(c, d, p, b6);
const b7=F(6,c);
ke3137bf4(c, d, p, b6, b7);
const b8=F(7,c);
k84e038da(c, b8, b7);
const b9=F(8,(c*d));
k2ae3d3e3(c, d, b9, p, b6, b8);
const b10=F(9,(c*n));
k2ee02a4f(n, c, d, b4, b9, b10);
const b11=F(6,c);
kd1c2f79d(c, d, b9, b11);
k7e99130c(n, c, b12, b5, b10, b11);
const b13=F(9,(c*n));
k0dd5ceed(n, c, h[0], b13, b12);
const b14=F(10,(c*n));
k672dcbbd(n, c, b14, b13, y);
const b15=F(2,n);
k071cce81(n, c, b14, b15);
const b16=F(11,(c*n));
kad7d3f97(n, c, b16, b14, b15);
const b17=F(12,n);
k782789b7(n, c, b16, b17);
const b18=F(10,(c*n));
kcd45c349(n, c, b18, b13, y);
const b19=F(13,n);
k071cce81(n, c, b18, b19);
const b20=F(9,(c*n));
kad7d3f97(n, c, b20, b18, b19);
const b21=F(14,n);
k782789b7(n, c, b20, b21);
const b22=F(15,n);
k0b94d2a2(n, b22, b17, b15, b21, b19);
const b23=F(2,n);
ka34684f7(n, b23, b22);
const b24=U(0,n);
k4e415a92(n, b23, b24);
const b25=F(13,n);
k68c8c6d5(n, b25, b23);
const v26=k1b52dfe1(n, b0, b22, b25, b24);
const v27=k0a7efe2e(n, b0);
const v28=Math.max(v27,1);
const v29=ke9d9ab61(v26, v28);
const v30=(1/v28);
const b26=F(2,n);
kd096e3ff(n, v30, b26, b0, b25, b24);
const b27=F(15,n);
kc56d6faa(n, b27, b26, b21);
const b28=F(0,n);
k9484557b(n, b28, b26, b17);
k794df069(n, c, h[0], b29, b20, b27, b16, b28);
const b30=F(10,(c*n));
k2d87db43(n, c, b30, b29);
const b31=F(16,(d*n));
kac486688(n, d, c, b30, b9, b31);
const b32=F(13,n);
k75a806c1(n, d, b4, b31, b32);
k33ac8c0b(n, d, b33, b31, b4, b32, b3, b1);
const b34=F(17,(c*d));
k9b48a144(c, d, n, b30, b4, b34);
const b35=F(6,c);
k75a806c1(c, d, b9, b34, b35);
k33ac8c0b(c, d, b36, b34, b9, b35, b8, b6);
return {value:v29,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b12,slopes:b29}],gradient:b33,proxyGradient:b36};
}
function rcf0be1ac(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*9));
const b30=R(own,2,((c**2)*9));
const b8=R(own,3,((c*n)*3));
const b33=R(own,4,((c*n)*3));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*3));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*3));
ka7c444bc(c, d, p, b4);
const b5=F(5,(c*3));
kd1971f67(c, d, p, b4, b5);
const b6=F(6,(c*3));
k67d99b99(c, b6, b5);
const b7=F(7,((c*d)*3));
k4e533f3b(c, d, b7, p, b4, b6);
k7dfe8507(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*3));
kd7642b14(n, c, b9, b8, y);
const b10=F(9,(n*200));
sortRows(b9,n,(c*3),200,null,b10,true);
const b11=U(0,((c*n)*3));
k96e1abb9(n, c, b11, y);
k79959e10(n, c, b10, b11);
const b12=U(1,(c*n));
k6c353db9(n, c, b11, b12);
const b13=F(10,(c*n));
k51b728ba(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
kb239a554(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
ke3334c62(c, d, b7, b20);
const b21=F(15,((c**2)*3));
kec6a66e1(c, b20, b21);
const b22=F(5,(c*3));
k696e8183(c, b21, b22);
const b23=F(16,(c*3));
kbd78c6ba(c, b21, b22, b23);
const b24=F(17,(c*3));
k8898a7cd(c, b24, b23);
const b25=F(18,((c**2)*3));
kc9d2036f(c, b25, b21, b22, b24);
const v30=k336d5417(c, b25);
const v31=kac9a921f(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*3));
b26.fill(0,0,((c**2)*3));
kd89ddd54(c, b26);
const v34=(h[2]/(c*3));
const b27=F(16,(c*3));
k30943abe(c, v34, b27);
const b28=F(5,(c*3));
kb1a4b13e(c, b26, b27, b28);
const b29=F(19,((c**2)*3));
kf3115fb7(c, b29, b26, b27, b25, b28);
kfe08d6b9(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
k93d7be10(n, c, b33, b32, b11);
const b34=F(20,(d*n));
k1ebffb85(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*3));
k5e64716d(c, d, n, b33, b3, b37);
const b38=F(17,(c*3));
k605991e4(c, d, b7, b37, b38);
const b39=F(22,((c*d)*3));
k5c3b5e65(c, d, b30, b7, b39);
const b40=F(23,((c*d)*3));
k89dd19b2(c, d, b30, b7, b40);
const b41=F(16,(c*3));
k0bf249ac(c, d, b7, b39, b40, b41);
kf3992980(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*3),columns:(c*3),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*3),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function rd1306c10(own,x,y,n,d,p,c,h){
const b20=R(own,1,((c**2)*25));
const b30=R(own,2,((c**2)*25));
const b8=R(own,3,((c*n)*5));
const b33=R(own,4,((c*n)*5));
const b36=R(own,5,(d*n));
const b42=R(own,6,((c*d)*5));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,(c*5));
k2f730769(c, d, p, b4);
const b5=F(5,(c*5));
ke430c223(c, d, p, b4, b5);
const b6=F(6,(c*5));
kb45602a1(c, b6, b5);
const b7=F(7,((c*d)*5));
k1f1a1299(c, d, b7, p, b4, b6);
k0d240772(n, c, d, b3, b7, b8);
const b9=F(8,((c*n)*5));
k8f6ef864(n, c, b9, b8, y);
const b10=F(9,(n*5));
sortRows(b9,n,(c*5),5,null,b10,true);
const b11=U(0,((c*n)*5));
k4851509a(n, c, b11, y);
k32122366(n, c, b10, b11);
const b12=U(1,(c*n));
kc3968dec(n, c, b11, b12);
const b13=F(10,(c*n));
ke7e0088c(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(11,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(12,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
k6f7cce59(n, c, b17, y);
const b18=F(13,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(14,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
kac59d4e6(c, d, b7, b20);
const b21=F(15,((c**2)*5));
k052b94c0(c, b20, b21);
const b22=F(5,(c*5));
kaf15f6b0(c, b21, b22);
const b23=F(16,(c*5));
k1e19da8e(c, b21, b22, b23);
const b24=F(17,(c*5));
k7702a001(c, b24, b23);
const b25=F(18,((c**2)*5));
k3dbc56d2(c, b25, b21, b22, b24);
const v30=ked07f7cf(c, b25);
const v31=ke8903774(c, v21, v23, h[2], v30);
const b26=F(15,((c**2)*5));
b26.fill(0,0,((c**2)*5));
kf755e385(c, b26);
const v34=(h[2]/(c*5));
const b27=F(16,(c*5));
k1641d4fb(c, v34, b27);
const b28=F(5,(c*5));
k64ef80fd(c, b26, b27, b28);
const b29=F(19,((c**2)*5));
kbb9893d2(c, b29, b26, b27, b25, b28);
kc7cbab05(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
const b32=F(10,(c*n));
ka6f0b9dd(n, c, v39, b32, b15, b31, b17);
kdcf3c1f7(n, c, b33, b32, b11);
const b34=F(20,(d*n));
kbd46ef39(n, d, c, b33, b7, b34);
const b35=F(13,n);
k75a806c1(n, d, b3, b34, b35);
k33ac8c0b(n, d, b36, b34, b3, b35, b2, b0);
const b37=F(21,((c*d)*5));
k2c7b9f94(c, d, n, b33, b3, b37);
const b38=F(17,(c*5));
k6e336d28(c, d, b7, b37, b38);
const b39=F(22,((c*d)*5));
kf502c410(c, d, b30, b7, b39);
const b40=F(23,((c*d)*5));
k1ac67fba(c, d, b30, b7, b40);
const b41=F(16,(c*5));
kea9c00ac(c, d, b7, b39, b40, b41);
k3347b849(c, d, b42, b37, b7, b38, b6, b4, b39, b40, b41);
return {value:v31,matrices:[{between:"proxies against proxies",rows:(c*5),columns:(c*5),s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:(c*5),s:b8,slopes:b33}],gradient:b36,proxyGradient:b42};
}
function rdf086eee(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b9=R(own,2,(n**2));
const b13=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(1,n);
k4df26392(n, h[0], b4, b5, y);
const v6=k7d0e395b(n, b5);
const b6=F(1,n);
kd73768c2(n, h[0], b4, b6, y);
const v8=k7d0e395b(n, b6);
const v9=Math.max(v8,1);
const b7=F(1,n);
kf4856082(n, h[1], b4, b7, y);
const v11=k7d0e395b(n, b7);
const b8=F(1,n);
k47535619(n, h[1], b4, b8, y);
const v13=k7d0e395b(n, b8);
const v14=Math.max(v13,1);
const v15=k0a1d799d(v6, v9, v11, v14);
const v16=(1/v14);
const v17=(1/v9);
kc06362e1(n, h[1], v16, h[0], v17, b9, b4, y);
const b10=F(4,(d*n));
k019ec0af(n, d, b9, b3, b10);
const b11=F(5,(d*n));
k151b8e2d(n, d, b9, b3, b11);
const b12=F(1,n);
k44632f43(n, d, b3, b10, b11, b12);
k4d2a8049(n, d, b13, b10, b11, b3, b12, b2, b0);
return {value:v15,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b9}],gradient:b13,proxyGradient:null};
}
function rdf10e6b9(own,x,y,n,d,p,c,h){
const b20=R(own,1,(c**2));
const b30=R(own,2,(c**2));
const b8=R(own,3,(c*n));
const b32=R(own,4,(c*n));
const b35=R(own,5,(d*n));
const b41=R(own,6,(c*d));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,c);
k957de67a(c, d, p, b4);
const b5=F(5,c);
ke3137bf4(c, d, p, b4, b5);
const b6=F(6,c);
k84e038da(c, b6, b5);
const b7=F(7,(c*d));
k2ae3d3e3(c, d, b7, p, b4, b6);
k2ee02a4f(n, c, d, b3, b7, b8);
const b9=F(8,(c*n));
k7e98e2dc(n, c, b9, b8, y);
const b10=F(9,(n*50));
sortRows(b9,n,c,50,null,b10,true);
const b11=U(0,(c*n));
k781f4016(n, c, b11, y);
k3b78e1e5(n, c, b10, b11);
const b12=U(1,(c*n));
k35f96163(n, c, b11, b12);
const b13=F(8,(c*n));
k0127506b(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(10,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(11,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
ka2deab37(n, c, b17, y);
const b18=F(12,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(13,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k2799ef1a(c, d, b7, b20);
const b21=F(14,(c**2));
k683d82c5(c, b20, b21);
const b22=F(5,c);
ke02f74f4(c, b21, b22);
const b23=F(15,c);
kd8c64e24(c, b21, b22, b23);
const b24=F(16,c);
k4bd541eb(c, b24, b23);
const b25=F(17,(c**2));
k347f556d(c, b25, b21, b22, b24);
const v30=kfdcaa326(c, b25);
const v31=k4ac75bc5(c, v21, v23, h[2], v30);
const b26=F(14,(c**2));
b26.fill(0,0,(c**2));
kf6c9c086(c, b26);
const v34=(h[2]/c);
const b27=F(15,c);
k7c9c0038(c, v34, b27);
const b28=F(5,c);
ke9abe772(c, b26, b27, b28);
const b29=F(18,(c**2));
kc4123148(c, b29, b26, b27, b25, b28);
k19c7b6b3(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
k4f8a2d9c(n, c, v39, b32, b15, b31, b11, b17);
const b33=F(19,(d*n));
kac486688(n, d, c, b32, b7, b33);
const b34=F(12,n);
k75a806c1(n, d, b3, b33, b34);
k33ac8c0b(n, d, b35, b33, b3, b34, b2, b0);
const b36=F(20,(c*d));
k9b48a144(c, d, n, b32, b3, b36);
const b37=F(16,c);
k75a806c1(c, d, b7, b36, b37);
const b38=F(21,(c*d));
k151b8e2d(c, d, b30, b7, b38);
const b39=F(22,(c*d));
k019ec0af(c, d, b30, b7, b39);
const b40=F(15,c);
k44632f43(c, d, b7, b38, b39, b40);
kdde56754(c, d, b41, b36, b7, b37, b6, b4, b38, b39, b40);
return {value:v31,matrices:[{between:"proxies against proxies",rows:c,columns:c,s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:c,s:b8,slopes:b32}],gradient:b35,proxyGradient:b41};
}
function rdf517835(own,x,y,n,d,p,c,h){
const b11=R(own,1,(c*n));
const b30=R(own,2,(c*n));
const b37=R(own,3,(d*n));
const b40=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
const b1=F(1,n);
kd1c2f79d(n, d, x, b1);
const b2=F(2,n);
kd6860ed1(n, h[1], b2, b1);
const b3=F(3,n);
k957de67a(n, d, x, b3);
const b4=F(4,n);
ke3137bf4(n, d, x, b3, b4);
const b5=F(5,n);
k84e038da(n, b5, b4);
const b6=F(6,(d*n));
k2ae3d3e3(n, d, b6, x, b3, b5);
const b7=F(7,c);
k957de67a(c, d, p, b7);
const b8=F(8,c);
ke3137bf4(c, d, p, b7, b8);
const b9=F(9,c);
k84e038da(c, b9, b8);
const b10=F(10,(c*d));
k2ae3d3e3(c, d, b10, p, b7, b9);
k2ee02a4f(n, c, d, b6, b10, b11);
const b12=F(11,(c*n));
k20ab153e(n, c, b12, b2, b11, y);
const b13=F(4,n);
k071cce81(n, c, b12, b13);
const b14=F(12,(c*n));
kad7d3f97(n, c, b14, b12, b13);
const b15=F(13,n);
k782789b7(n, c, b14, b15);
const b16=F(11,(c*n));
k2acb34e4(n, c, b16, b11);
const b17=F(14,(c*n));
k72799fff(n, c, b17, b2, b16, y);
const b18=F(15,n);
k071cce81(n, c, b17, b18);
const b19=F(16,(c*n));
kad7d3f97(n, c, b19, b17, b18);
const b20=F(17,n);
k782789b7(n, c, b19, b20);
const b21=F(18,n);
k0b94d2a2(n, b21, b15, b13, b20, b18);
const b22=F(4,n);
ka34684f7(n, b22, b21);
const b23=U(0,n);
k4e415a92(n, b22, b23);
const b24=F(15,n);
k68c8c6d5(n, b24, b22);
const v25=k1b52dfe1(n, b0, b21, b24, b23);
const v26=k0a7efe2e(n, b0);
const v27=Math.max(v26,1);
const v28=ke9d9ab61(v25, v27);
const v29=(1/v27);
const b25=F(4,n);
kd096e3ff(n, v29, b25, b0, b24, b23);
const b26=F(18,n);
kc56d6faa(n, b26, b25, b20);
const b27=F(14,(c*n));
k0173c754(n, c, b27, b19, b26);
const b28=F(0,n);
k9484557b(n, b28, b25, b15);
const b29=F(16,(c*n));
k0173c754(n, c, b29, b14, b28);
kb18049a4(n, c, b30, b11, b27, b2, b29);
const b31=F(15,n);
k75a806c1(n, c, b27, b16, b31);
const b32=F(17,n);
k75a806c1(n, c, b29, b11, b32);
const b33=F(18,n);
k1a5c2147(n, h[1], b33, b31, b32);
const b34=U(0,n);
k78872e7c(n, b1, b34);
const b35=F(19,(d*n));
kac486688(n, d, c, b30, b10, b35);
const b36=F(4,n);
k75a806c1(n, d, b6, b35, b36);
k6dbb3315(n, d, b37, b33, x, b1, b35, b6, b36, b5, b3, b34);
const b38=F(20,(c*d));
k9b48a144(c, d, n, b30, b6, b38);
const b39=F(8,c);
k75a806c1(c, d, b10, b38, b39);
k33ac8c0b(c, d, b40, b38, b10, b39, b9, b7);
return {value:v28,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b11,slopes:b30}],gradient:b37,proxyGradient:b40};
}
function re45210b2(own,x,y,n,d,p,c,h){
const b1=R(own,1,(c*n));
const b15=R(own,2,(c*n));
const b16=R(own,3,(d*n));
const b18=R(own,4,(c*d));
const b0=F(0,n);
k5753ab1e(n, c, b0, y);
k2ee02a4f(n, c, d, x, p, b1);
const b2=F(1,n);
kafb06cc2(n, c, b1, b2, y);
const b3=F(2,(c*n));
k9c6e64e3(n, c, b3, b1, b2, y);
const b4=F(3,n);
k782789b7(n, c, b3, b4);
const b5=F(4,n);
k59c8e9f3(n, c, b1, b5, y);
const b6=F(5,(c*n));
k05ff6051(n, c, b6, b1, b5, y);
const b7=F(6,n);
k782789b7(n, c, b6, b7);
const b8=F(7,n);
k0b94d2a2(n, b8, b4, b2, b7, b5);
const b9=F(1,n);
ka34684f7(n, b9, b8);
const b10=U(0,n);
k4e415a92(n, b9, b10);
const b11=F(4,n);
k68c8c6d5(n, b11, b9);
const v12=k1b52dfe1(n, b0, b8, b11, b10);
const v13=k0a7efe2e(n, b0);
const v14=Math.max(v13,1);
const v15=ke9d9ab61(v12, v14);
const v16=(1/v14);
const b12=F(1,n);
kd096e3ff(n, v16, b12, b0, b11, b10);
const b13=F(7,n);
kc56d6faa(n, b13, b12, b7);
const b14=F(0,n);
k9484557b(n, b14, b12, b4);
kdab806fe(n, c, b15, b6, b13, b3, b14);
kac486688(n, d, c, b15, p, b16);
const b17=F(8,(c*d));
k9b48a144(c, d, n, b15, x, b17);
kcbf820fb(c, d, b18, b17);
return {value:v15,matrices:[{between:"samples against proxies",rows:n,columns:c,s:b1,slopes:b15}],gradient:b16,proxyGradient:b18};
}
function rf2fcca1d(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b19=R(own,2,(n**2));
const b23=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(4,(n**2));
kc7ebad38(n, b5, b4, y);
const b6=F(5,(n**2));
k719e3dc7(n, b6, y);
const b7=F(6,(n**2));
k269d6336(n, b7, b4);
const b8=F(7,(n*402));
b8.fill(0,0,(n*402));
kd4921ce0(n, b8, b5, b6, b7);
const b9=F(8,(n**2));
k17c670cb(n, b9, b5);
const b10=F(9,(n*402));
kfb745d5a(n, b10, b8);
k75c0b1e8(n, b10, b9, b6, b7);
const b11=F(1,n);
k32f6f300(n, b11, y);
const v14=k7d0e395b(n, b11);
const v15=Math.max(v14,1);
const b12=F(10,201);
k5f3e124a(n, b10, b12);
const b13=F(11,201);
k072df0b2(b12, b13);
const b14=F(1,n);
k306cdf0e(n, b14, y);
const v19=k7d0e395b(n, b14);
const v20=Math.max(v19,1);
const b15=F(1,n);
kb25d69dc(n, v15, v20, b10, b13, b15);
const v22=k7d0e395b(n, b15);
const v23=((v19>0)?1:0);
const v24=((v14>0)?1:0);
const v25=k7bf73873(n, v23, v24);
const v26=Math.max(v25,1);
const v27=ke9d9ab61(v22, v26);
const v28=(1/v26);
const b16=F(10,201);
kd47d2660(n, v15, v28, b10, b16);
const b17=F(12,201);
k36695bf1(v20, b16, b17);
const b18=F(7,(n*402));
kd96268c7(n, v28, v20, v15, b18, b13, b17);
k298797d2(n, b19, b4, b18, b9, b6, b5);
const b20=F(13,(d*n));
k019ec0af(n, d, b19, b3, b20);
const b21=F(14,(d*n));
k151b8e2d(n, d, b19, b3, b21);
const b22=F(1,n);
k44632f43(n, d, b3, b20, b21, b22);
k4d2a8049(n, d, b23, b20, b21, b3, b22, b2, b0);
return {value:v27,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b19}],gradient:b23,proxyGradient:null};
}
function rf3c29bbb(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b17=R(own,2,(n**2));
const b21=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(1,n);
k662c091d(n, b4, b5, y);
const b6=U(0,(n**2));
k6bc3c875(n, h[3], b4, b5, b6, y);
const b7=F(1,n);
k996565f7(n, b7, b6);
const b8=F(4,n);
kbabaaa61(n, b4, b8, y);
const b9=U(1,(n**2));
k1dc48617(n, h[3], b8, b4, b9, y);
const b10=F(4,n);
k996565f7(n, b10, b9);
const b11=F(5,(n**2));
kcda27b0b(n, h[0], h[2], b11, b4);
const b12=F(6,n);
k547edc9d(n, h[0], h[2], b4, b11, b12, b6);
const b13=F(7,(n**2));
k3f93ac6b(n, h[1], h[2], b13, b4);
const b14=F(8,n);
k35465069(n, h[1], h[2], b4, b13, b14, b9);
const v15=kcac057a0(n, b7, b10, b12, b14);
const v16=kf517b63d(n, b7, b10);
const v17=Math.max(v16,1);
const v18=ke9d9ab61(v15, v17);
const v19=(1/v17);
const b15=F(6,n);
k2d464378(n, v19, b15, b7, b10);
const b16=F(8,n);
kc7ccf64a(n, v19, b16, b7, b10);
kde9bb2a7(n, h[1], h[2], h[0], b17, b4, b15, b13, b16, b11, b9, b6);
const b18=F(9,(d*n));
k019ec0af(n, d, b17, b3, b18);
const b19=F(10,(d*n));
k151b8e2d(n, d, b17, b3, b19);
const b20=F(1,n);
k44632f43(n, d, b3, b18, b19, b20);
k4d2a8049(n, d, b21, b18, b19, b3, b20, b2, b0);
return {value:v18,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b17}],gradient:b21,proxyGradient:null};
}
function rf4d693c7(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b25=R(own,2,(n**2));
const b30=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(1,n);
kd1c2f79d(n, d, b3, b4);
const b5=F(4,(n**2));
k2799ef1a(n, d, b3, b5);
kec159b6c(n, b6, b4, b5);
const b7=F(4,(n**2));
kbb66aeae(n, b7, b6);
const b8=F(5,(n**2));
k46000deb(n, b8, b7);
const b9=F(6,(n**2));
k122d4f27(n, b9, b8, y);
const b10=F(7,(n**2));
k719e3dc7(n, b10, y);
const b11=F(8,(n**2));
kb636f482(n, b11, b7, b8);
const b12=F(9,(n*42));
b12.fill(0,0,(n*42));
k3a39a58c(n, b12, b9, b10, b11);
const b13=F(4,(n**2));
k17c670cb(n, b13, b9);
const b14=F(10,(n*42));
kb2b51330(n, b14, b12);
kf3dddd1d(n, b14, b13, b10, b11);
const b15=F(11,(n*21));
k14cda391(n, b14, b15);
const b16=F(12,(n*21));
k9db83df3(n, b14, b16);
const b17=F(13,(n*21));
k82c148bd(n, b17, b15, b16);
const b18=F(1,n);
k149577a1(n, b14, b17, b18);
const b19=F(14,n);
k306cdf0e(n, b19, y);
const v22=kf5a6ed20(n, b18, b19);
const v23=k0a7efe2e(n, b19);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b20=F(1,n);
k37684c84(n, v26, b20, b19);
const b21=F(15,(n*21));
k96edc58c(n, b21, b16, b15, b20, b14, b17);
const b22=F(16,(n*21));
k80580d3b(n, b20, b14, b16, b15, b21, b22);
const b23=F(12,(n*21));
k5e44a388(n, b21, b23);
const b24=F(9,(n*42));
kb9c96732(n, b24, b22, b20, b17, b23);
ke9a2eda8(n, b25, b6, b24, b13, b10, b9);
const b26=F(5,(n**2));
k7177de57(n, b26, b25);
const b27=F(17,(d*n));
k019ec0af(n, d, b26, b3, b27);
const b28=F(18,(d*n));
k151b8e2d(n, d, b26, b3, b28);
const b29=F(14,n);
k44632f43(n, d, b3, b27, b28, b29);
k4d2a8049(n, d, b30, b27, b28, b3, b29, b2, b0);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b25}],gradient:b30,proxyGradient:null};
}
function rf93e4fd2(own,x,y,n,d,p,c,h){
const b4=R(own,1,(n**2));
const b16=R(own,2,(n**2));
const b20=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
k2799ef1a(n, d, b3, b4);
const b5=F(1,n);
k7a032bb2(n, b4, b5, y);
const b6=F(4,n);
k29852407(n, b4, b6, y);
const b7=F(5,n);
ke583c1ab(n, h[0], b7, b4, b5, b6);
const b8=U(0,n);
k85e2a69f(n, b8, y);
const b9=U(1,n);
k3574cc7c(n, b9, y);
const b10=F(6,n);
kbadb5843(n, b10, b7, b8, b9);
const b11=F(7,n);
b11.fill(0,0,n);
kc65f3f3d(n, b11, b10);
const v13=k7d0e395b(n, b11);
const b12=F(7,n);
b12.fill(0,0,n);
ke918f494(n, b12, b10);
const v16=k7d0e395b(n, b12);
const v17=Math.max(v16,1);
const v18=ke9d9ab61(v13, v17);
const v19=(1/v17);
const b13=F(6,n);
k62255c2f(n, v19, b13, b7, b8, b9);
const b14=F(8,(n**2));
b14.fill(0,0,(n**2));
k42737cab(n, b14, b5, b13);
const b15=F(9,(n**2));
b15.fill(0,0,(n**2));
kfafa0e25(n, b15, b6, b13);
k67fb7442(n, b16, b14, b15);
const b17=F(10,(d*n));
k019ec0af(n, d, b16, b3, b17);
const b18=F(11,(d*n));
k151b8e2d(n, d, b16, b3, b18);
const b19=F(7,n);
k44632f43(n, d, b3, b17, b18, b19);
k4d2a8049(n, d, b20, b17, b18, b3, b19, b2, b0);
return {value:v18,matrices:[{between:"samples against samples",rows:n,columns:n,s:b4,slopes:b16}],gradient:b20,proxyGradient:null};
}
function rff3e8d04(own,x,y,n,d,p,c,h){
const b20=R(own,1,(c**2));
const b30=R(own,2,(c**2));
const b8=R(own,3,(c*n));
const b32=R(own,4,(c*n));
const b35=R(own,5,(d*n));
const b41=R(own,6,(c*d));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(4,c);
k957de67a(c, d, p, b4);
const b5=F(5,c);
ke3137bf4(c, d, p, b4, b5);
const b6=F(6,c);
k84e038da(c, b6, b5);
const b7=F(7,(c*d));
k2ae3d3e3(c, d, b7, p, b4, b6);
k2ee02a4f(n, c, d, b3, b7, b8);
const b9=F(8,(c*n));
k7e98e2dc(n, c, b9, b8, y);
const b10=F(9,(c*n));
sortRows(b9,n,c,c,null,b10,true);
const b11=U(0,(c*n));
k781f4016(n, c, b11, y);
kd3a8f485(n, c, b10, b11);
const b12=U(1,(c*n));
k35f96163(n, c, b11, b12);
const b13=F(8,(c*n));
k0127506b(n, c, b8, b13, b11);
const b14=F(1,n);
kd0b37410(n, c, b13, b14, b12);
const b15=F(9,(c*n));
k55bae7b2(n, c, b15, b13, b14, b12);
const b16=F(10,n);
k782789b7(n, c, b15, b16);
const b17=U(1,(c*n));
ka2deab37(n, c, b17, y);
const b18=F(11,n);
k7f8133c4(n, c, b13, b18, b17);
const b19=F(12,n);
k6c007fc2(n, b19, b16, b14, b18);
const v21=k7d0e395b(n, b19);
const v22=kfec8e0cd(n);
const v23=Math.max(v22,1);
k2799ef1a(c, d, b7, b20);
const b21=F(13,(c**2));
k683d82c5(c, b20, b21);
const b22=F(5,c);
ke02f74f4(c, b21, b22);
const b23=F(14,c);
kd8c64e24(c, b21, b22, b23);
const b24=F(15,c);
k4bd541eb(c, b24, b23);
const b25=F(16,(c**2));
k347f556d(c, b25, b21, b22, b24);
const v30=kfdcaa326(c, b25);
const v31=k4ac75bc5(c, v21, v23, h[2], v30);
const b26=F(13,(c**2));
b26.fill(0,0,(c**2));
kf6c9c086(c, b26);
const v34=(h[2]/c);
const b27=F(14,c);
k7c9c0038(c, v34, b27);
const b28=F(5,c);
ke9abe772(c, b26, b27, b28);
const b29=F(17,(c**2));
kc4123148(c, b29, b26, b27, b25, b28);
k19c7b6b3(c, b30, b29);
const v39=(1/v23);
const b31=F(1,n);
k37684c84(n, v39, b31, b16);
k4f8a2d9c(n, c, v39, b32, b15, b31, b11, b17);
const b33=F(18,(d*n));
kac486688(n, d, c, b32, b7, b33);
const b34=F(11,n);
k75a806c1(n, d, b3, b33, b34);
k33ac8c0b(n, d, b35, b33, b3, b34, b2, b0);
const b36=F(19,(c*d));
k9b48a144(c, d, n, b32, b3, b36);
const b37=F(15,c);
k75a806c1(c, d, b7, b36, b37);
const b38=F(20,(c*d));
k151b8e2d(c, d, b30, b7, b38);
const b39=F(21,(c*d));
k019ec0af(c, d, b30, b7, b39);
const b40=F(14,c);
k44632f43(c, d, b7, b38, b39, b40);
kdde56754(c, d, b41, b36, b7, b37, b6, b4, b38, b39, b40);
return {value:v31,matrices:[{between:"proxies against proxies",rows:c,columns:c,s:b20,slopes:b30},{between:"samples against proxies",rows:n,columns:c,s:b8,slopes:b32}],gradient:b35,proxyGradient:b41};
}
function rffe0d399(own,x,y,n,d,p,c,h){
const b6=R(own,1,(n**2));
const b25=R(own,2,(n**2));
const b30=R(own,3,(d*n));
const b0=F(0,n);
k957de67a(n, d, x, b0);
const b1=F(1,n);
ke3137bf4(n, d, x, b0, b1);
const b2=F(2,n);
k84e038da(n, b2, b1);
const b3=F(3,(d*n));
k2ae3d3e3(n, d, b3, x, b0, b2);
const b4=F(1,n);
kd1c2f79d(n, d, b3, b4);
const b5=F(4,(n**2));
k2799ef1a(n, d, b3, b5);
kec159b6c(n, b6, b4, b5);
const b7=F(4,(n**2));
kae698681(n, b7, b6);
const b8=F(5,(n**2));
kffcded2d(n, b8, b7);
const b9=F(6,(n**2));
k389e428c(n, b9, b8, y);
const b10=F(7,(n**2));
k719e3dc7(n, b10, y);
const b11=F(8,(n**2));
kb636f482(n, b11, b7, b8);
const b12=F(9,(n*102));
b12.fill(0,0,(n*102));
k1ce101b1(n, b12, b9, b10, b11);
const b13=F(4,(n**2));
k17c670cb(n, b13, b9);
const b14=F(10,(n*102));
kd83f9e36(n, b14, b12);
kbbd6bb86(n, b14, b13, b10, b11);
const b15=F(11,(n*51));
kd2e6b6d8(n, b14, b15);
const b16=F(12,(n*51));
k2927902d(n, b14, b16);
const b17=F(13,(n*51));
k0b3b94d8(n, b17, b15, b16);
const b18=F(1,n);
k10b74715(n, b14, b17, b18);
const b19=F(14,n);
k306cdf0e(n, b19, y);
const v22=kf5a6ed20(n, b18, b19);
const v23=k0a7efe2e(n, b19);
const v24=Math.max(v23,1);
const v25=ke9d9ab61(v22, v24);
const v26=(1/v24);
const b20=F(1,n);
k37684c84(n, v26, b20, b19);
const b21=F(15,(n*51));
k8f6dbff2(n, b21, b16, b15, b20, b14, b17);
const b22=F(16,(n*51));
k874d8e26(n, b20, b14, b16, b15, b21, b22);
const b23=F(12,(n*51));
k9cff832b(n, b21, b23);
const b24=F(9,(n*102));
k5ffa3584(n, b24, b22, b20, b17, b23);
k6fc1a4d9(n, b25, b6, b24, b13, b10, b9);
const b26=F(5,(n**2));
k7177de57(n, b26, b25);
const b27=F(17,(d*n));
k019ec0af(n, d, b26, b3, b27);
const b28=F(18,(d*n));
k151b8e2d(n, d, b26, b3, b28);
const b29=F(14,n);
k44632f43(n, d, b3, b27, b28, b29);
k4d2a8049(n, d, b30, b27, b28, b3, b29, b2, b0);
return {value:v25,matrices:[{between:"samples against samples",rows:n,columns:n,s:b6,slopes:b25}],gradient:b30,proxyGradient:null};
}
return {
"Angular": {
about: "Angular loss: the angle at the negative of every triangle shall be small.",
cite: "Wang et al. 2017",
kind: "AngularLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{n\\in N_a}e^{4\\tan^2\\!\\alpha\\,(x_a+x_p)\\cdot x_n-2(1+\\tan^2\\!\\alpha)\\,x_a\\cdot x_p}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "angle in degrees", "value": 40.0, "least": 30.0, "most": 60.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r6b1e71b9(own,x,y,n,d,p,c,h))([]),
},
"ArcFace": {
about: "ArcFace: an additive margin on the angle.",
cite: "Deng et al. 2019",
kind: "ArcFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma\\cos(\\theta_y+m)}}{e^{\\sigma\\cos(\\theta_y+m)}+\\sum_{c\\ne y}e^{\\sigma\\cos\\theta_c}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin in degrees", "value": 28.6, "least": 0.0, "most": 60.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 256.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r07c48747(own,x,y,n,d,p,c,h))([]),
},
"Binomial deviance": {
about: "Binomial deviance: a soft contrastive loss.",
cite: "Yi et al. 2014",
kind: "BinomialDevianceLoss",
miner: null,
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}\\log\\bigl(1+e^{\\alpha(\\gamma-s_{ij})}\\bigr) +\\frac{1}{|N_i|}\\sum_{k\\in N_i}\\log\\bigl(1+e^{\\beta(s_{ik}-\\gamma)}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r78874091(own,x,y,n,d,p,c,h))([]),
},
"Binomial deviance + VTHM": {
about: "Binomial deviance: a soft contrastive loss.",
cite: "Yi et al. 2014",
kind: "BinomialDevianceLoss",
miner: "ValidTripletMiner",
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}\\log\\bigl(1+e^{\\alpha(\\gamma-s_{ij})}\\bigr) +\\frac{1}{|N_i|}\\sum_{k\\in N_i}\\log\\bigl(1+e^{\\beta(s_{ik}-\\gamma)}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "miner.margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rf3c29bbb(own,x,y,n,d,p,c,h))([]),
},
"Circle": {
about: "Circle loss: every similarity is optimized at a pace that its own distance to the optimum sets.",
cite: "Sun et al. 2020",
kind: "CircleLoss",
miner: null,
formula: "\\mathrm{softplus}\\Bigl(\\log\\sum_{j\\in P_i}e^{-\\gamma\\,[1+m-s_{ij}]_+(s_{ij}-1+m)} +\\log\\sum_{k\\in N_i}e^{\\gamma\\,[s_{ik}+m]_+(s_{ik}-m)}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "relaxation", "value": 0.4, "least": 0.0, "most": 0.6, "log": false, "whole": false, "choices": null}, {"name": "gamma", "help": "scale", "value": 80.0, "least": 8.0, "most": 512.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>ra35eff4c(own,x,y,n,d,p,c,h))([]),
},
"Contrastive": {
about: "Contrastive loss: pull positives above one margin, push negatives below another.",
cite: "Hadsell et al. 2006",
kind: "ContrastiveLoss",
miner: null,
formula: "\\frac{1}{|\\mathcal P|}\\sum_{(i,j)\\in\\mathcal P}[m_+ - s_{ij}]_+ + \\frac{1}{|\\mathcal N|}\\sum_{(i,k)\\in\\mathcal N}[s_{ik} - m_-]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "positive_margin", "help": "positives above this similarity cost nothing", "value": 1.0, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives below this similarity cost nothing", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rdf086eee(own,x,y,n,d,p,c,h))([]),
},
"CosFace": {
about: "CosFace: an additive margin on the cosine.",
cite: "Wang et al. 2018",
kind: "CosFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma(\\cos\\theta_y-m)}}{e^{\\sigma(\\cos\\theta_y-m)}+\\sum_{c\\ne y}e^{\\sigma\\cos\\theta_c}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.35, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 128.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r5c6d1dd7(own,x,y,n,d,p,c,h))([]),
},
"FastAP": {
about: "FastAP: one minus the average precision of each anchor's ranking, through soft histograms of distances.",
cite: "Cakir et al. 2019",
kind: "FastAPLoss",
miner: null,
formula: "1-\\frac{1}{|P_i|}\\sum_l\\frac{h^+_l\\,H^+_l}{H_l}",
similarity: "squared_euclidean",
centers: 0,
parameters: [{"name": "bins", "help": "number of histogram intervals", "value": 10, "least": 5, "most": 50, "log": false, "whole": true, "choices": [5, 10, 20, 50]}],
exact: true,
run: choose([0], [[5, 10, 20, 50]], [
((own)=>(x,y,n,d,p,c,h)=>r3eae9537(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r6c055d88(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>rf4d693c7(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>rffe0d399(own,x,y,n,d,p,c,h))([])]),
},
"Generalized lifted structure": {
about: "Generalized lifted structure: all positives and all negatives of an anchor, in one hinge.",
cite: "Hermans et al. 2017",
kind: "GeneralizedLiftedStructureLoss",
miner: null,
formula: "\\Bigl[\\log\\sum_{j\\in P_i}e^{\\lambda-s_{ij}}+\\log\\sum_{k\\in N_i}e^{s_{ik}}\\Bigr]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "multiplies the similarities", "value": 1.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r574b17d2(own,x,y,n,d,p,c,h))([]),
},
"Histogram": {
about: "Histogram loss: the probability that a random negative pair is more similar than a random positive one.",
cite: "Ustinova & Lempitsky 2016",
kind: "HistogramLoss",
miner: null,
formula: "\\sum_r h^-_r\\sum_{q\\le r}h^+_q",
similarity: "cosine",
centers: 0,
parameters: [{"name": "bins", "help": "number of histogram intervals", "value": 100, "least": 20, "most": 200, "log": false, "whole": true, "choices": [20, 50, 100, 200]}],
exact: true,
run: choose([0], [[20, 50, 100, 200]], [
((own)=>(x,y,n,d,p,c,h)=>r2e1ec150(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r2730c239(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r6c83641e(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>rf2fcca1d(own,x,y,n,d,p,c,h))([])]),
},
"Intra-pair variance": {
about: "Intra-pair variance: pairs shall not lie far on the wrong side of their own mean.",
cite: "Yu & Tao 2019",
kind: "IntraPairVarianceLoss",
miner: null,
formula: "\\mathrm{mean}_{\\mathcal P}[(1-\\varepsilon_+)\\bar s_+ - s]_+^2 + \\mathrm{mean}_{\\mathcal N}[s-(1+\\varepsilon_-)\\bar s_-]_+^2",
similarity: "cosine",
centers: 0,
parameters: [{"name": "positive_epsilon", "help": "slack of positives", "value": 0.01, "least": 0.001, "most": 0.2, "log": true, "whole": false, "choices": null}, {"name": "negative_epsilon", "help": "slack of negatives", "value": 0.01, "least": 0.001, "most": 0.2, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r15c50c94(own,x,y,n,d,p,c,h))([]),
},
"Lifted structure": {
about: "Lifted structure loss as first published: every positive pair against the negatives of both its ends.",
cite: "Song et al. 2016",
kind: "LiftedStructureLoss",
miner: null,
formula: "\\tfrac12\\Bigl[d_{ij}+\\log\\Bigl(\\sum_{k\\in N_i}e^{\\lambda-d_{ik}}+\\sum_{l\\in N_j}e^{\\lambda-d_{jl}}\\Bigr)\\Bigr]_+^2",
similarity: "euclidean",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 1.0, "least": 0.1, "most": 2.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r73132063(own,x,y,n,d,p,c,h))([]),
},
"Margin": {
about: "Margin loss with a learned boundary β between positive and negative distances.",
cite: "Wu et al. 2017",
kind: "MarginLoss",
miner: null,
formula: "\\frac{\\sum_{(a,p,n)}[\\lambda+d_{ap}-\\beta]_+ + [\\lambda+\\beta-d_{an}]_+}{\\text{number of non-zero terms}}+\\nu\\,\\bar\\beta",
similarity: "euclidean",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.2, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "beta", "help": "boundary between positive and negative distances", "value": 1.2, "least": 0.5, "most": 1.5, "log": false, "whole": false, "choices": null}, {"name": "nu", "help": "weight of the mean beta", "value": 0.0, "least": 0.0, "most": 0.1, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r71d4fd29(own,x,y,n,d,p,c,h))([]),
},
"Multi-similarity": {
about: "Multi-similarity loss: each pair is weighted by its own similarity and by those around it.",
cite: "Wang et al. 2019",
kind: "MultiSimilarityLoss",
miner: null,
formula: "\\frac1\\alpha\\log\\Bigl[1+\\sum_{k\\in P_i}e^{-\\alpha(s_{ik}-\\lambda)}\\Bigr] +\\frac1\\beta\\log\\Bigl[1+\\sum_{k\\in N_i}e^{\\beta(s_{ik}-\\lambda)}\\Bigr]",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rb8c942ee(own,x,y,n,d,p,c,h))([]),
},
"Multi-similarity + its miner": {
about: "Multi-similarity loss: each pair is weighted by its own similarity and by those around it.",
cite: "Wang et al. 2019",
kind: "MultiSimilarityLoss",
miner: "MultiSimilarityMiner",
formula: "\\frac1\\alpha\\log\\Bigl[1+\\sum_{k\\in P_i}e^{-\\alpha(s_{ik}-\\lambda)}\\Bigr] +\\frac1\\beta\\log\\Bigl[1+\\sum_{k\\in N_i}e^{\\beta(s_{ik}-\\lambda)}\\Bigr]",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "miner.epsilon", "help": "slack", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r33038e4f(own,x,y,n,d,p,c,h))([]),
},
"N-pairs": {
about: "N-pairs loss: all negatives and all positives of an anchor in one logarithm.",
cite: "Sohn 2016",
kind: "NPairsLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{j\\in P_i}\\sum_{k\\in N_i}e^{s_{ik}-s_{ij}}\\Bigr) + \\ell_2\\,\\lVert x_i\\rVert^2",
similarity: "dot",
centers: 0,
parameters: [{"name": "l2", "help": "weight of the mean squared norm", "value": 0.0, "least": 0.0, "most": 0.1, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "multiplies the similarities", "value": 1.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r3cf51b9d(own,x,y,n,d,p,c,h))([]),
},
"NCA": {
about: "Neighborhood components analysis: the probability that a random neighbor is a positive.",
cite: "Goldberger et al. 2005",
kind: "NCALoss",
miner: null,
formula: "-\\log\\frac{\\sum_{j\\in P_i}e^{\\sigma s_{ij}}}{\\sum_{k\\ne i}e^{\\sigma s_{ik}}}",
similarity: "squared_euclidean",
centers: 0,
parameters: [{"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r41d36dac(own,x,y,n,d,p,c,h))([]),
},
"Normalized softmax": {
about: "Softmax cross entropy on cosines over a temperature.",
cite: "Wang et al. 2017, Zhai & Wu 2019",
kind: "NormalizedSoftmaxLoss",
miner: null,
formula: "-\\log\\frac{e^{\\cos(x,w_y)/\\tau}}{\\sum_c e^{\\cos(x,w_c)/\\tau}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.05, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r00a3512b(own,x,y,n,d,p,c,h))([]),
},
"NT-Xent": {
about: "NT-Xent (InfoNCE): every positive pair against the negatives of its anchor.",
cite: "Sohn 2016, van den Oord et al. 2018, Chen et al. 2020",
kind: "NTXentLoss",
miner: null,
formula: "-\\log\\frac{e^{s_{ij}/\\tau}}{e^{s_{ij}/\\tau}+\\sum_{k\\in N_i}e^{s_{ik}/\\tau}}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.07, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r1577076b(own,x,y,n,d,p,c,h))([]),
},
"Proxy repulsion": {
about: "Samples are pulled to their proxies, and the proxies push each other.",
cite: null,
kind: "ProxyRepulsionLoss",
miner: null,
formula: "\\frac{1}{|W^+|}\\sum_{w\\in W^+}\\log\\Bigl(1+\\sum_{x\\in X_w^+}e^{-\\alpha(w\\cdot x-\\lambda)}\\Bigr) +\\frac{1}{|W|}\\sum_{w\\in W}\\log\\Bigl(1+\\sum_{w'\\ne w}e^{\\alpha(w\\cdot w'+\\lambda)}\\Bigr)",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "scale", "value": 32.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r21b979fa(own,x,y,n,d,p,c,h))([]),
},
"Proxy-Anchor": {
about: "Proxy-Anchor: proxies are the anchors, and the whole batch their positives and negatives.",
cite: "Kim et al. 2020",
kind: "ProxyAnchorLoss",
miner: null,
formula: "\\frac{1}{|P^+|}\\sum_{p\\in P^+}\\log\\Bigl(1+\\sum_{x\\in X_p^+}e^{-\\alpha(s(x,p)-\\delta)}\\Bigr) +\\frac{1}{|P|}\\sum_{p\\in P}\\log\\Bigl(1+\\sum_{x\\in X_p^-}e^{\\alpha(s(x,p)+\\delta)}\\Bigr)",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "scale", "value": 32.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r8229a0f8(own,x,y,n,d,p,c,h))([]),
},
"ProxyGML": {
about: "ProxyGML: several proxies for each class, of which each sample sees the nearest alone.",
cite: "Zhu et al. 2020",
kind: "ProxyGMLLoss",
miner: null,
formula: "-\\log\\frac{e^{S_y}}{\\sum_{c\\in M}e^{S_c}}+\\lambda\\,\\mathrm{mean}_{p}\\Bigl(-\\log\\frac{e^{S^p_{y(p)}}}{\\sum_c e^{S^p_c}}\\Bigr)",
similarity: "cosine",
centers: 3,
parameters: [{"name": "centers", "help": "proxies of each class", "value": 3, "least": 1, "most": 5, "log": false, "whole": true, "choices": [1, 2, 3, 5]}, {"name": "neighbors", "help": "proxies that a sample sees", "value": 8, "least": 5, "most": 200, "log": true, "whole": true, "choices": [5, 8, 50, 200]}, {"name": "weight", "help": "weight of the term on proxies", "value": 0.3, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: choose([0, 1], [[1, 2, 3, 5], [5, 8, 50, 200]], [
((own)=>(x,y,n,d,p,c,h)=>c>=5?r5e163b30(own,x,y,n,d,p,c,h):rff3e8d04(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>c<8?rff3e8d04(own,x,y,n,d,p,c,h):r43af0eb3(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>c<50?rff3e8d04(own,x,y,n,d,p,c,h):rdf10e6b9(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>c<200?rff3e8d04(own,x,y,n,d,p,c,h):r6436ff5a(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*2)>=5?r2f82a6c9(own,x,y,n,d,p,c,h):r4421e948(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*2)>=8?r49c709df(own,x,y,n,d,p,c,h):r4421e948(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*2)<50?r4421e948(own,x,y,n,d,p,c,h):r2e8c9225(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*2)<200?r4421e948(own,x,y,n,d,p,c,h):r9c47dcb5(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>c!==1&&c>=2?r1971166d(own,x,y,n,d,p,c,h):r5b79a5b8(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*3)>=8?rad01a90d(own,x,y,n,d,p,c,h):r28db8f6d(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*3)<50?r28db8f6d(own,x,y,n,d,p,c,h):rb4c1abff(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*3)<200?r28db8f6d(own,x,y,n,d,p,c,h):rcf0be1ac(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>rd1306c10(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>c!==1&&c>=2?r09d252cb(own,x,y,n,d,p,c,h):r20a73c92(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*5)<50?r22a2d5b9(own,x,y,n,d,p,c,h):r127172b5(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>(c*5)<200?r22a2d5b9(own,x,y,n,d,p,c,h):r6ba044a4(own,x,y,n,d,p,c,h))([])]),
},
"ProxyNCA": {
about: "ProxyNCA: near the class's own proxy, far from the others.",
cite: "Movshovitz-Attias et al. 2017",
kind: "ProxyNCALoss",
miner: null,
formula: "-\\log\\frac{e^{-\\sigma\\lVert x-p_y\\rVert^2}}{\\sum_{c\\ne y}e^{-\\sigma\\lVert x-p_c\\rVert^2}}",
similarity: "squared_euclidean",
centers: 1,
parameters: [{"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r9c80ad83(own,x,y,n,d,p,c,h))([]),
},
"ProxyNCA++": {
about: "ProxyNCA++: the probability of the own proxy among all, with a temperature.",
cite: "Teh et al. 2020",
kind: "ProxyNCAPPLoss",
miner: null,
formula: "-\\log\\frac{e^{-\\lVert x-p_y\\rVert^2/T}}{\\sum_c e^{-\\lVert x-p_c\\rVert^2/T}}",
similarity: "squared_euclidean",
centers: 1,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.111, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rc63227d3(own,x,y,n,d,p,c,h))([]),
},
"Quadruplet": {
about: "Quadruplet loss: a triplet loss, and positive pairs against negative pairs of other classes.",
cite: "Chen et al. 2017",
kind: "QuadrupletLoss",
miner: null,
formula: "\\mathrm{mean}\\,[s_{an}-s_{ap}+\\lambda_1]_+ + \\mathrm{mean}\\,[s_{nk}-s_{ap}+\\lambda_2]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin1", "help": "margin of the triplets", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "margin2", "help": "margin of the quadruplets", "value": 0.05, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r3e056021(own,x,y,n,d,p,c,h))([]),
},
"RAW + VTHM": {
about: "Relative and absolute weighting (RAW) of the pairs that valid-triplet hard mining keeps.",
cite: "Eq. 17 of the unified view",
kind: "RAWLoss",
miner: "ValidTripletMiner",
formula: "",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "margin", "help": "margin of the mining", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r33038e4f(own,x,y,n,d,p,c,h))([]),
},
"SNR contrastive": {
about: "Contrastive loss on the signal-to-noise distance $d = \\mathrm{var}(b - a)/\\mathrm{var}(a)$, $a$ the anchor.",
cite: "Yuan et al. 2019",
kind: "SNRContrastiveLoss",
miner: null,
formula: "\\mathrm{mean}_{\\mathcal P}[d - m_+]_+ + \\mathrm{mean}_{\\mathcal N}[m_- - d]_+ + \\lambda\\,\\mathrm{mean}_i\\Bigl|\\sum_k e_{ik}\\Bigr|",
similarity: "snr",
centers: 0,
parameters: [{"name": "positive_margin", "help": "positives below this distance cost nothing", "value": 0.0, "least": 0.0, "most": 0.5, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives above this distance cost nothing", "value": 1.0, "least": 0.1, "most": 2.0, "log": false, "whole": false, "choices": null}, {"name": "regularizer", "help": "weight of the zero-mean term", "value": 0.0, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rb9113d61(own,x,y,n,d,p,c,h))([]),
},
"Softmax": {
about: "Softmax cross entropy on inner products with one weight vector for each class.",
cite: "Eq. 2.25 and 2.26 of the thesis",
kind: "SoftmaxLoss",
miner: null,
formula: "-\\log\\frac{e^{w_y\\cdot x+b_y}}{\\sum_c e^{w_c\\cdot x+b_c}}",
similarity: "dot",
centers: 1,
parameters: [],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>re45210b2(own,x,y,n,d,p,c,h))([]),
},
"SoftTriple": {
about: "SoftTriple: several centers for each class, weighted by a softmax, and a pull that merges those not needed.",
cite: "Qian et al. 2019",
kind: "SoftTripleLoss",
miner: null,
formula: "S_c=\\sum_k\\frac{e^{x\\cdot w_{ck}/\\gamma}}{\\sum_l e^{x\\cdot w_{cl}/\\gamma}}\\,x\\cdot w_{ck},\\qquad -\\log\\frac{e^{\\lambda(S_y-\\delta)}}{e^{\\lambda(S_y-\\delta)}+\\sum_{c\\ne y}e^{\\lambda S_c}} +\\frac{\\tau\\sum_c\\sum_{k<l}\\sqrt{2+10^{-5}-2\\,w_{ck}\\cdot w_{cl}}}{C\\,K(K-1)}",
similarity: "cosine",
centers: 10,
parameters: [{"name": "centers", "help": "centers of each class", "value": 10, "least": 1, "most": 10, "log": false, "whole": true, "choices": [1, 2, 5, 10]}, {"name": "la", "help": "scale", "value": 20.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "gamma", "help": "temperature over centers", "value": 0.1, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}, {"name": "margin", "help": "margin", "value": 0.01, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "tau", "help": "weight of merging", "value": 0.2, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: choose([0], [[1, 2, 5, 10]], [
((own)=>(x,y,n,d,p,c,h)=>r380e25a5(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r6a40eb4e(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r96fee4cd(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r00d216bd(own,x,y,n,d,p,c,h))([])]),
},
"SphereFace": {
about: "SphereFace: a multiplicative angular margin.",
cite: "Liu et al. 2017",
kind: "SphereFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma\\lVert x\\rVert\\psi(\\theta_y)}}{e^{\\sigma\\lVert x\\rVert\\psi(\\theta_y)}+\\sum_{c\\ne y}e^{\\sigma\\lVert x\\rVert\\cos\\theta_c}}, \\qquad\\psi(\\theta)=(-1)^k\\cos(m\\theta)-2k,\\quad\\theta\\in\\bigl[\\tfrac{k\\pi}{m},\\tfrac{(k+1)\\pi}{m}\\bigr]",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "the multiple of the angle", "value": 4, "least": 2, "most": 5, "log": false, "whole": true, "choices": [2, 3, 4, 5]}, {"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: false,
run: choose([0], [[2, 3, 4, 5]], [
((own)=>(x,y,n,d,p,c,h)=>rdf517835(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r88f726fe(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r6dd06e48(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r3686a3a5(own,x,y,n,d,p,c,h))([])]),
},
"Sub-center ArcFace": {
about: "Sub-center ArcFace: `ArcFaceLoss` on the most similar of several centers of each class.  Deng et al. 2020.",
cite: "Deng et al. 2020",
kind: "SubCenterArcFaceLoss",
miner: null,
formula: "\\cos\\theta_c=\\max_k\\cos(x,w_{ck})",
similarity: "cosine",
centers: 3,
parameters: [{"name": "centers", "help": "centers of each class", "value": 3, "least": 1, "most": 5, "log": false, "whole": true, "choices": [1, 2, 3, 5]}, {"name": "margin", "help": "margin in degrees", "value": 28.6, "least": 0.0, "most": 60.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 256.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: choose([0], [[1, 2, 3, 5]], [
((own)=>(x,y,n,d,p,c,h)=>r6d2707ee(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r9f8e00b3(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r60574cc6(own,x,y,n,d,p,c,h))([]),
((own)=>(x,y,n,d,p,c,h)=>r00da20c4(own,x,y,n,d,p,c,h))([])]),
},
"SupCon": {
about: "Supervised contrastive loss: the mean log-probability of an anchor's positives among all others.",
cite: "Khosla et al. 2020",
kind: "SupConLoss",
miner: null,
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}-\\log\\frac{e^{s_{ij}/\\tau}}{\\sum_{k\\ne i}e^{s_{ik}/\\tau}}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.1, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r9880c8e3(own,x,y,n,d,p,c,h))([]),
},
"Triplet": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: null,
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r540f7db6(own,x,y,n,d,p,c,h))([]),
},
"Triplet, batch-hard": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: "BatchHardMiner",
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>rf93e4fd2(own,x,y,n,d,p,c,h))([]),
},
"Triplet, semi-hard": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: "SemiHardMiner",
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r251c2865(own,x,y,n,d,p,c,h))([]),
},
"Tuplet margin": {
about: "Tuplet margin loss: every positive, some degrees in arrears, against all negatives.",
cite: "Yu & Tao 2019",
kind: "TupletMarginLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{k\\in N_i}e^{\\sigma(\\cos\\theta_{ik}-\\cos(\\theta_{ij}-m))}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin in degrees", "value": 5.73, "least": 0.0, "most": 20.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 8.0, "most": 128.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: ((own)=>(x,y,n,d,p,c,h)=>r57e8aa0c(own,x,y,n,d,p,c,h))([]),
},
};
})();
