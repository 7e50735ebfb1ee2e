"""What applications submit: payloads that can be checked at every delivery, and sources of load."""
