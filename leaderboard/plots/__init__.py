"""Charts as inline SVG, drawn from the rows of their table twins; no script, no library, no style attribute.

`scales` puts values in places, `marks` draws them in its colours, and each kind of chart has a
module of its own, which takes numbers and words, never models. The lengths of a drawing are user units, one
for a CSS pixel at its natural width.
"""
