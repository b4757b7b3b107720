"""Tests of extensions have the fixtures of collections and of the page."""

from room_fixtures import fixtures_of

globals().update(fixtures_of('collection') | fixtures_of('web'))
