/* Optional extras; the report's text and pictures are complete without them: values under the pointer, and sorting of tables. */
'use strict';

/* Charts: the nearest point of a line under the pointer or finger, or by the arrow keys. Values are read back from the drawing. */
(() => {
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  let shown = null;

  const hide = () => {
    shown?.dot.remove();
    shown = null;
    tip.hidden = true;
  };

  /* From a place on an axis to its value. */
  const axis = text => {
    const [from, to, low, high, log] = text.split(' ').map(Number);
    return at => {
      const share = (at - from) / (to - from);
      return log ? low * (high / low) ** share : low + (high - low) * share;
    };
  };

  const number = value => {
    const size = Math.abs(value);
    return size >= 1000 ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(3));
  };

  const chart = svg => {
    const labels = svg.dataset.labels.split('|').map(label => {
      const [, what, unit] = /^(.*?)(?: \(([^)]*)\))?(?:, log scale)?$/.exec(label);
      return { what, unit: unit ?? '' };
    });
    const axes = [axis(svg.dataset.x), axis(svg.dataset.y)];
    const lines = [...svg.querySelectorAll('g.line')].map(group => {
      /* The browser's own tooltip would cover ours. */
      group.querySelector('title')?.remove();
      const points = group.querySelector('polyline').getAttribute('points').trim().split(' ');
      return {
        name: group.dataset.name,
        bounds: group.dataset.bounds ?? '',
        colour: group.querySelector('polyline').classList[0],
        points: points.filter(Boolean).map(point => point.split(',').map(Number)),
      };
    }).filter(line => line.points.length);
    const box = () => svg.getBoundingClientRect();
    const width = svg.viewBox.baseVal.width;

    const show = (line, index, spoken) => {
      shown?.dot.remove();
      const { name, bounds, colour, points } = lines[line];
      const place = points[index];
      const dot = document.createElementNS(svg.namespaceURI, 'circle');
      dot.setAttribute('class', 'dot ' + colour);
      dot.setAttribute('cx', place[0]);
      dot.setAttribute('cy', place[1]);
      dot.setAttribute('r', 4);
      svg.append(dot);
      shown = { svg, line, index, dot };
      const row = axes.map((value, k) => {
        const least = k === 1 && bounds[index] === '1' ? 'at least ' : '';
        const text = `${labels[k].what}: ${least}${number(value(place[k]))} ${labels[k].unit}`;
        return Object.assign(document.createElement('div'), { textContent: text });
      });
      tip.setAttribute('aria-live', spoken ? 'polite' : 'off');
      tip.replaceChildren(Object.assign(document.createElement('b'), { textContent: name }), ...row);
      tip.hidden = false;
      const { left, top, width: drawn } = box();
      const scale = drawn / width;
      const x = left + place[0] * scale, y = top + place[1] * scale;
      const page = document.documentElement.clientWidth;
      const at = x + 12 + tip.offsetWidth > page ? x - 12 - tip.offsetWidth : x + 12;
      tip.style.left = `${Math.max(4, at) + scrollX}px`;
      tip.style.top = `${(y - tip.offsetHeight - 8 < 0 ? y + 12 : y - tip.offsetHeight - 8) + scrollY}px`;
    };

    /* Horizontal distance counts more than vertical, so that the pointer follows a curve without touching it. */
    const nearest = (x, y, only) => {
      let best = null, least = Infinity;
      lines.forEach(({ points }, line) => points.forEach((place, index) => {
        const distance = Math.hypot(place[0] - x, (place[1] - y) / 2);
        if ((only === undefined || line === only) && distance < least) [best, least] = [[line, index], distance];
      }));
      return best;
    };

    const point = event => {
      const { left, top, width: drawn } = box();
      const scale = width / drawn;
      const found = nearest((event.clientX - left) * scale, (event.clientY - top) * scale);
      if (found) show(...found, false);
    };

    const keys = {
      ArrowLeft: (line, index) => [line, Math.max(0, index - 1)],
      ArrowRight: (line, index) => [line, Math.min(lines[line].points.length - 1, index + 1)],
      Home: line => [line, 0],
      End: line => [line, lines[line].points.length - 1],
      ArrowUp: (line, index) => nearest(...lines[line].points[index], (line + lines.length - 1) % lines.length),
      ArrowDown: (line, index) => nearest(...lines[line].points[index], (line + 1) % lines.length),
    };

    if (!lines.length) return;
    svg.addEventListener('pointermove', point);
    svg.addEventListener('pointerdown', point);
    svg.addEventListener('pointerleave', event => event.pointerType === 'mouse' && hide());
    svg.addEventListener('focus', () => svg.matches(':focus-visible') && show(0, 0, true));
    svg.addEventListener('blur', hide);
    svg.addEventListener('keydown', event => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      const from = shown?.svg === svg ? [shown.line, shown.index] : [0, 0];
      show(...keys[event.key](...from), true);
    });
  };

  document.querySelectorAll('svg[data-x]').forEach(chart);
  addEventListener('keydown', event => event.key === 'Escape' && hide());
  addEventListener('pointerdown', event => event.target.closest?.('svg[data-x]') || hide());
  addEventListener('resize', hide);
  addEventListener('beforeprint', hide);
})();

/* Tables of runs: sorted by the column whose heading is chosen, up and then down. */
document.querySelectorAll('table.runs').forEach(table => {
  const headings = [...table.querySelectorAll('thead tr:last-child th')];
  headings.forEach((heading, column) => {
    const key = row => {
      const { v } = row.cells[column].dataset;
      return v === undefined ? row.cells[column].textContent : v === '' ? Infinity : +v;
    };
    const sort = () => {
      const up = heading.getAttribute('aria-sort') !== 'ascending';
      headings.forEach(other => other.removeAttribute('aria-sort'));
      heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (up ? 1 : -1);
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    };
    heading.title = 'Sort by this column';
    heading.tabIndex = 0;
    heading.addEventListener('click', sort);
    heading.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      sort();
    });
  });
});
