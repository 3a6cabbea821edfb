"""The shell around streammetrics: I/O, clocks, processes, HTTP and the command line.

The core only computes. A worker reads a source, decodes events, keeps the delta since its last
commit, and writes that delta and its offsets to a ledger in one transaction.
"""
