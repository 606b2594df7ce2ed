"""Labels: names for revisions (``production``) that decisions follow when they are moved."""
