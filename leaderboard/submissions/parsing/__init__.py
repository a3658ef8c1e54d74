"""From what a submitter sends to checked rows; one module per format."""
