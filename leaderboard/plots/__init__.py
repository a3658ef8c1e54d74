"""Charts as inline SVG, drawn from the rows of their table twins: they take numbers and words, no models."""
