"""What leaves an actor: its certificate, its DNS relay, its way to the gateway."""
