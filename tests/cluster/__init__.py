"""A real API server for tests: kube-apiserver, kube-scheduler and etcd, built from source."""
