"""Where States come from: each source emits the current one at once and then every change."""
