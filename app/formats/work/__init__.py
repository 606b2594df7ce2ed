"""Work that does not run yet, as asks: which objects start which pods, and what a system makes of them.

``kinds`` says what is known, as data; ``read`` and ``pod_sets`` read objects by it; a module a system groups pods into
asks.
"""
