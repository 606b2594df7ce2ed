"""Fair shares, as YTsaurus' own library has them."""
