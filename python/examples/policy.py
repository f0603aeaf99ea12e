"""Does a policy help? The network with and without it, seed by seed."""

import opentcp

policy = opentcp.Policy.read("policies/opentcp2.toml")
print(policy.check())
print(policy.explain("policies/example-view.json"))
network = opentcp.Scenario.read("scenarios/policy-try.toml")
trial = policy.try_(network, seeds=5)
print(trial)
if trial.answer != "helps":
    print("do not apply it:", trial.reason)
