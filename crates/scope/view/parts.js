// The parts of a view, for any page that shows one: network, charts, flows, outcome.
const PARTS = `
<dl class="figures" aria-label="The run in figures">
  <div><dt>simulated time</dt><dd><span id="at-time">0 s</span> <small id="of-time" class="quiet"></small></dd></div>
  <div><dt>drops</dt><dd id="at-drops">0</dd></div>
  <div><dt>ECN marks</dt><dd id="at-marks">0</dd></div>
  <div><dt>flows opened</dt><dd id="at-flows">0</dd></div>
  <div><dt>packet-hops</dt><dd id="at-hops">0</dd></div>
</dl>
<progress id="progress" max="1" value="0" aria-label="Share of the run that is done"></progress>
<section id="network-part" aria-labelledby="network-title">
  <h2 id="network-title">Network</h2>
  <div id="network" class="network"></div>
  <p id="network-said" class="said"></p>
  <ul class="legend" aria-label="What the picture means">
    <li><span class="tank-key"></span>queue of a switch’s port</li>
    <li><span class="tank-key high"></span>at its ECN threshold, or nearly full</li>
    <li><span class="tank-key drops"></span>drops</li>
    <li><span class="busy-key"></span>cable, idle to busy</li>
    <li><span class="down-key"></span>down</li>
  </ul>
</section>
<section id="series-part" aria-labelledby="series-title">
  <h2 id="series-title">Over time</h2>
  <figure id="chart-queue"></figure>
  <figure id="chart-cwnd"></figure>
  <figure id="chart-rtt"></figure>
</section>
<section id="flows-part" aria-labelledby="flows-title">
  <h2 id="flows-title">Flows now</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="flows-title">
    <table>
      <thead><tr><th scope="col">flow</th><th scope="col">algorithm</th><th scope="col">state</th><th scope="col" class="n">cwnd</th><th scope="col" class="n">in flight</th><th scope="col" class="n">ssthresh</th><th scope="col" class="n">srtt</th></tr></thead>
      <tbody id="states"></tbody>
    </table>
  </div>
</section>
<section id="outcome" aria-labelledby="outcome-title" hidden>
  <h2 id="outcome-title">Results</h2>
  <dl id="facts" class="figures" aria-label="The run’s totals"></dl>
  <p id="outcome-files"></p>
  <div class="scroll" tabindex="0" role="region" aria-label="Results by flow">
    <table>
      <thead><tr><th scope="col">flow</th><th scope="col">algorithm</th><th scope="col" class="n">goodput</th><th scope="col" class="n">completion time</th><th scope="col" class="n">retransmits</th><th scope="col" class="n">RTOs</th><th scope="col" class="n">last srtt</th></tr></thead>
      <tbody id="rows"></tbody>
    </table>
  </div>
  <p id="rows-left" class="quiet"></p>
</section>`;

export function addParts(place) {
  place.innerHTML = PARTS;
}
