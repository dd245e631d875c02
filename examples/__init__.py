"""Programs to read and to run: see the README of each folder."""
