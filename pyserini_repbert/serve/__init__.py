"""The service: search over HTTP with rerankers, explanations and comparisons; the page; the MCP tools."""
