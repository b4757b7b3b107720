"""Models of sentence-transformers: their folders' settings, tokenizers and bodies, without that package."""
