"""Who comes first: queues, jobs, victims."""
