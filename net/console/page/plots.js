// Lines over time as SVG, and the same figures as a table.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 176;
const GAP = 45000;  // ms between two samples: more, and some are missing
const LINES = ['one', 'two', 'three'];
const LEFT = 64;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** A round number at or above `value`: 1, 2 or 5 times a power of ten, or of two for bytes. */
function roundUp(value, isBytes) {
  if (value <= 0) return 1;
  if (isBytes) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

const clock = (ms) => new Date(ms).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});

function lineOf(samples, field, x, y, gap) {
  let path = '';
  let before = null;
  for (const sample of samples) {
    // A gap where samples are missing: the machine slept.
    const joins = before !== null && sample.unix_ms - before < gap;
    path += `${joins ? 'L' : 'M'}${x(sample.unix_ms).toFixed(1)} ${y(sample[field]).toFixed(1)}`;
    before = sample.unix_ms;
  }
  return path;
}

/** plot: {title, series: [{name, field}], format, isBytes, gap, height}; samples in order of time. */
export function drawPlot(plot, samples, width) {
  const last = samples[samples.length - 1];
  const height = plot.height ?? HEIGHT;
  // At most an hour; a young node has what there is, and at least five minutes of room.
  const span = Math.min(3600000, Math.max(300000, last.unix_ms - samples[0].unix_ms));
  const from = last.unix_ms - span;
  const top = roundUp(Math.max(...plot.series.map(
    ({field}) => Math.max(...samples.map((sample) => sample[field])))), plot.isBytes);
  const x = (ms) => LEFT + (width - LEFT - RIGHT) * (ms - from) / span;
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - value / top);
  const summary = plot.series.map(({name, field}) => `${name} ${plot.format(last[field])}`).join(', ');
  const svg = shape('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `${plot.title}, last: ${summary}`});
  for (const part of [0, 0.5, 1]) {
    svg.append(shape('line', {class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(top * part), y2: y(top * part)}));
    svg.append(shape('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, plot.format(top * part)));
  }
  for (const part of [0, 0.5, 1]) {
    const anchor = part === 0 ? 'start' : part === 1 ? 'end' : 'middle';
    svg.append(shape('text', {x: x(from + part * span), y: height - 6, 'text-anchor': anchor},
      clock(from + part * span)));
  }
  plot.series.forEach(({field}, index) => {
    svg.append(shape('path', {class: `line ${LINES[index]}`, d: lineOf(samples, field, x, y, plot.gap ?? GAP)}));
    if (samples.length > 1) return;
    svg.append(shape('path', {class: `line ${LINES[index]}`, 'stroke-linecap': 'round',
      d: `M${x(last.unix_ms) - 2} ${y(last[field])}h2`}));
  });
  return svg;
}

export function drawMark(index) {
  const svg = shape('svg', {viewBox: '0 0 30 10', 'aria-hidden': 'true'});
  svg.append(shape('path', {class: `line ${LINES[index]}`, d: 'M0 5H30'}));
  return svg;
}
