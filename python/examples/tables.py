"""Results in data frames, without a copy. Needs polars and DuckDB."""

import duckdb
import opentcp
import polars as pl

result = opentcp.Scenario.read("scenarios/dumbbell.toml").run()
windows = pl.DataFrame(result.cwnd)
print(windows.group_by("flow").agg(pl.col("cwnd").mean()).sort("flow"))
flows = result.flows
print(duckdb.sql("SELECT algorithm, retransmits FROM flows ORDER BY algorithm"))
