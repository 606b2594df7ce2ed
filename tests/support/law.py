"""What tests of law share with those beside them."""

from datetime import UTC, datetime

LATER = datetime(2030, 1, 1, tzinfo=UTC)
