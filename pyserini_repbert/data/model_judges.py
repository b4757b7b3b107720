"""The name of a language model as a judge, and the setting of a record that names one."""

# With what the names of language models as judges begin, and no person's name does.
MODEL_PREFIX = 'llm:'
# The setting of a record that names the language model whose grades taught a search.
TAUGHT_BY = 'taught_by'


def model_of(judge: str) -> str:
    """The model in a judge's name."""
    return judge.removeprefix(MODEL_PREFIX).rpartition(':')[0]
