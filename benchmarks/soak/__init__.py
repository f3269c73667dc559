"""The soak: hours of mixed load on both stores, while servers are killed, clocks step and disks fill up."""
