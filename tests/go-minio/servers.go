//go:build servers

// Package servers names the second S3 server that go.mod must know enough about to build it: it is
// never built itself. It has a module of its own, because it is large, and built only on request.
package servers

import _ "github.com/minio/minio"
