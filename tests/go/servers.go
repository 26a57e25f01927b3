//go:build servers

// Package servers names the programs that go.mod must know enough about to build them: it is never
// built itself.
package servers

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
