"""Training late interaction has the fixtures of training."""

from room_fixtures import fixtures_of

globals().update(fixtures_of('train'))
