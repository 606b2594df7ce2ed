"""Queue configurations of YuniKorn, in and out, and its pods."""
