"""Results as pictures and pages: curves as SVG, HTML for notebooks, and plots. Nothing here is needed to train."""
