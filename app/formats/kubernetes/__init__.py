"""Objects of Kubernetes as all of its schedulers have them: kinds, amounts, pods, nodes, priority classes."""
