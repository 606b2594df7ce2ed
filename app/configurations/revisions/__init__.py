"""The history of a configuration: its revisions, what differs between them, and bringing one back."""
