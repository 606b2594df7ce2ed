"""What decisions on snapshots need to be made again: states and configurations by digest, once each."""
