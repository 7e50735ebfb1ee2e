"""The data pipeline on Spark: sweep, ingest, verify, measure, report.

Every stage is a function from DataFrames (or paths) to DataFrames, uses the DataFrame API alone (no RDD, no JVM access,
so it also runs through Spark Connect) and gives the same rows on any master.  `session` makes the session; `render`
and `tables` need no Spark at all.
"""
