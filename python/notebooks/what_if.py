# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # What if this data centre ran DCTCP, CUBIC or BBR?
#
# A leaf-spine network at 60 % load, flow sizes of a web search (Alizadeh et al. 2010), Poisson arrivals. The measure is the FCT slowdown: how many
# times longer than alone in the network a flow takes. Five seeds each, since one draw of arrivals proves nothing.

# %%
import tempfile

import opentcp
import opentcp.plot

network = opentcp.Scenario.from_dict(
    {
        "duration": "500 ms",
        "network": {
            "topology": {"leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 4}},
            "rate": "1 Gbit/s",
            "delay": "1 us",
            "queue": {"threshold_ecn": {"mark_packets": 20, "packets": 200}},
        },
        "tcp": {"rto_min": "10 ms"},
        "traffic": [{"poisson": {"load": "60 %", "sizes": "web-search"}}],
    },
    name="what-if",
)

# %% [markdown]
# With `out` the runs are a dataset on disk: stopped, this cell continues where it was; with `ray="auto"` the same runs go on on a cluster,
# and have the same bytes.

# %%
folder = tempfile.mkdtemp(prefix="what-if-")
axes: dict[str, list[opentcp.Value]] = {"tcp.cc": ["dctcp", "cubic", "bbr"], "seed": [1, 2, 3, 4, 5]}
sweep = network.sweep(axes, out=folder)
opentcp.plot.slowdown(sweep, "p99")

# %% [markdown]
# DCTCP's short queues help the short flows, which are most of them. Long flows want throughput, and there the algorithms are closer. All flows are in one
# table, so any other question is a query:

# %%
import polars as pl

flows = pl.scan_parquet(f"{folder}/flows", hive_partitioning=True)
sizes = pl.col("bytes").cut([10_000, 100_000, 1_000_000], labels=["< 10 kB", "10-100 kB", "100 kB-1 MB", "> 1 MB"])
print(
    flows.with_columns(size=sizes)
    .group_by("algorithm", "size")
    .agg(pl.len().alias("flows"), pl.col("slowdown").median().round(2), pl.col("slowdown").quantile(0.99).alias("p99").round(1))
    .sort("size", "algorithm")
    .collect()
)
