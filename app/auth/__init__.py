"""Who asks, what they may do, and what they did: tokens, OpenID Connect, scopes, the audit log."""
