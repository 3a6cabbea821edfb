"""The loop: source, decoder, delta, commit."""
