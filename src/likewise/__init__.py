"""likewise: deep metric learning.  Train embeddings, measure them honestly, see why a loss works.

Rooms: `likewise.core` (the algebra of losses), `likewise.losses`, `likewise.miners`, `likewise.backends` (engines),
`likewise.metrics` (exact evaluation), `likewise.data`, `likewise.trunks` (networks), `likewise.testing` (the contract
that every loss and miner keeps, as tests).
"""

__version__ = "0.1.0"
