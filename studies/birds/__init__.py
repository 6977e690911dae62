"""33 methods of metric learning on CUB-200-2011, compared fairly."""
