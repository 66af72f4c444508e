"""What a process that decides about egress lately denied, told to people who may look."""
