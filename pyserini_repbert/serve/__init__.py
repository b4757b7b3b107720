"""The service: search over HTTP with rerankers, explanations and comparisons; its web page; MCP
tools.
"""
