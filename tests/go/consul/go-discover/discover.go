// Package discover stands in for the module of that name when Consul is built for our tests: it
// finds servers in no cloud, and so needs no cloud's libraries, which are a good part of the build.
package discover

import (
	"errors"
	"log"
)

// Provider would be one cloud.
type Provider interface {
	Addrs(args map[string]string, l *log.Logger) ([]string, error)
	Help() string
}

// Discover finds nothing.
type Discover struct{}

// Option changes nothing.
type Option func(*Discover) error

// Providers are those of no cloud.
var Providers = map[string]Provider{}

// New makes one that finds nothing.
func New(...Option) (*Discover, error) { return &Discover{}, nil }

// WithProviders takes no notice of them.
func WithProviders(map[string]Provider) Option { return nil }

// WithUserAgent takes no notice of it.
func WithUserAgent(string) Option { return nil }

// Names of the clouds: none.
func (*Discover) Names() []string { return nil }

// Help has nothing to say.
func (*Discover) Help() string { return "" }

// Addrs fails: addresses must be given as such.
func (*Discover) Addrs(string, *log.Logger) ([]string, error) {
	return nil, errors.New("this Consul was built without the discovery of servers in clouds")
}
