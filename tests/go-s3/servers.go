//go:build servers

// Package servers names the S3 server that go.mod must know enough about to build it: it is never
// built itself. It has a module of its own, so that another version of it builds nothing else.
package servers

import _ "github.com/versity/versitygw/cmd/versitygw"
