"""What a monitoring system asks for."""
