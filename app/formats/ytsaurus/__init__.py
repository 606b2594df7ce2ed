"""Pool trees of YTsaurus, in and out."""
