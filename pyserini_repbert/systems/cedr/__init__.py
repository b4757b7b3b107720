"""CEDR (MacAvaney et al., 2019): contextual term matching for long documents, on a BERT that reads
query and document.

Use it behind a sparse first stage, on documents of up to a few pages.
https://arxiv.org/abs/1904.07094
"""
