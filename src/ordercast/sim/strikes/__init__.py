"""How each class of faults strikes and ends: on links, on processes, on hosts and their disks, on the load."""
