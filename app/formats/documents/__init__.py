"""What every format stands on: text to documents and their fields, what an import and an export give."""
