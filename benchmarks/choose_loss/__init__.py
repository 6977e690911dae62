"""Which loss under which conditions?  Losses of different kinds on Glyphs, one condition at a time.

``design`` states what is compared, ``training`` trains and measures once, ``measure`` runs what is missing, ``page`` and
``plot`` write docs/choose-a-loss.md.
"""
