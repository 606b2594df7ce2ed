"""Schedulers that ask before they act: kube-scheduler's extenders."""
