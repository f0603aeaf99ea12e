"""Two algorithms, two loads, three seeds on a leaf–spine: FCT slowdown by flow size."""

import opentcp
import opentcp.plot

network = opentcp.Scenario.from_dict(
    {
        "duration": "30 ms",
        "network": {"topology": {"leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 4}}, "rate": "1 Gbit/s"},
        "traffic": [{"name": "web", "poisson": {"load": "30 %", "sizes": "web-search"}}],
    },
    name="leaf-spine",
)
sweep = network.sweep({"tcp.cc": ["cubic", "dctcp"], "traffic.web.poisson.load": ["30 %", "60 %"], "seed": [1, 2, 3]})
print(sweep)
for algorithm in ("cubic", "dctcp"):
    tail = [run.summary["p99_fct_ns"] for run in sweep.where(algorithm=algorithm, load="60 %")]
    print(algorithm, [f"{fct / 1e6:.1f} ms" for fct in tail if fct is not None])
opentcp.plot.save(opentcp.plot.slowdown(sweep), "sweep.pdf")
