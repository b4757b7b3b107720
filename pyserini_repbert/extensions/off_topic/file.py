"""The file that a collection keeps, and its sizes: light to import."""

FILE = 'off_topic.safetensors'
# Of fewer passages, a person sees what a collection is about, and nothing is claimed.
LEAST_PASSAGES = 50
# Fixed questions.
N_QUESTIONS = 100
