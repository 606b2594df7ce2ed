"""Which flavors an ask takes, and at which size."""
