"""A published study, a second of it instead of a minute: our numbers beside the paper's."""

import opentcp

study = opentcp.study("cfi16", overrides={"duration": "1 s"}, out="cfi16-short")
for row in study.comparisons:
    paper = "–" if row.paper is None else f"{row.paper:g}"
    print(f"{row.figure}  {row.case:24} {row.quantity:12} {row.ours:8.3g} {row.unit}, the paper's: {paper}")
