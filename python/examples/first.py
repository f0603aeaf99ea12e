"""A first bottleneck: two flows, one queue."""

import opentcp

scenario = opentcp.Scenario.read("scenarios/dumbbell.toml")
result = scenario.run(seed=1)
print(result)
