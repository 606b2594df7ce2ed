"""What kube-scheduler reads of a cluster, in and out."""
