"""Tests of confidence have the fixtures of the service."""

from room_fixtures import fixtures_of

globals().update(fixtures_of('serve'))
