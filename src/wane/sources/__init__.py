"""Where rows come from: each source yields Arrow record batches."""

from wane.sources.generator import ATTACKER, Attack, Traffic, batches, generate, ip_text

__all__ = ["ATTACKER", "Attack", "Traffic", "batches", "generate", "ip_text"]
