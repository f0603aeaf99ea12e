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
# DCTCP's short queues help the typical short flow; long flows want throughput, and there the algorithms are closer. The tail is another matter:
# a flow that waits for a timeout is not helped by a short queue. All flows are in one table, so any other question is a query:

# %%
import polars as pl

flows = pl.scan_parquet(f"{folder}/flows", hive_partitioning=True)
by_size = (
    flows.with_columns(bytes_from=10 ** pl.col("bytes").log10().floor().cast(pl.Int64))
    .group_by("bytes_from", "algorithm")
    .agg(flows=pl.len(), median=pl.col("slowdown").median().round(1), p99=pl.col("slowdown").quantile(0.99).round(1))
    .sort("bytes_from", "algorithm")
    .collect()
)
with pl.Config(tbl_rows=-1):
    print(by_size)
