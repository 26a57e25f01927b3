//go:build servers

// Package servers names the program that go.mod must know enough about to build it: it is never built
// itself. Consul has a module of its own, since its dependencies contradict those of the others. What
// they share has the same version in both, and so is compiled once.
package servers

import _ "github.com/hashicorp/consul"
