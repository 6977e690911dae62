"""Which network?  The thesis' question about trunks, asked again with the same search and seeds for each."""
