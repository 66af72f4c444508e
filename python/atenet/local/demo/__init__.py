"""The demo: real software that nobody here wrote, woken through the whole path, each promise checked."""
