"""A first bottleneck: a CUBIC and a NewReno flow share a queue."""

import opentcp
import opentcp.plot

result = opentcp.Scenario.read("scenarios/dumbbell.toml").run()
print(result)
opentcp.plot.save(opentcp.plot.cwnd(result), "first.svg")
