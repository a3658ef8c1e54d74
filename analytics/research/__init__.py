"""Studies of methods: nothing of the service nor of the rest of the core imports them."""
