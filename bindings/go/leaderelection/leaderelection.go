// Package leaderelection has the shape of client-go's package of that name, so that a program that
// uses that changes its import and how it makes its lock. What differs is what client-go leaves
// open: OnStoppedLeading is called, and the leadership passes on, only after OnStartedLeading has
// returned.
package leaderelection

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	baton "baton/bindings/go"
)

// LeaderCallbacks are told of leadership, as client-go's are.
type LeaderCallbacks struct {
	// OnStartedLeading does the work. Its context is cancelled when the leadership ends.
	OnStartedLeading func(context.Context)
	// OnStoppedLeading is called when the leadership has ended, and when Run ends without one.
	OnStoppedLeading func()
	// OnNewLeader is told the id of each new leader, this process included.
	OnNewLeader func(identity string)
}

// Lock names the election: where client-go has a resource lock.
type Lock struct {
	Store    string // a URL
	Name     string
	Identity string // "": one that the library makes up
}

// LeaderElectionConfig has client-go's fields. RenewDeadline is how long a leader tries to renew.
type LeaderElectionConfig struct {
	Lock            Lock
	LeaseDuration   time.Duration
	RenewDeadline   time.Duration
	RetryPeriod     time.Duration
	Callbacks       LeaderCallbacks
	ReleaseOnCancel bool
	Name            string
}

// A LeaderElector takes part in one election.
type LeaderElector struct {
	config   LeaderElectionConfig
	reported atomic.Pointer[string]
	election atomic.Pointer[baton.Election]
}

// NewLeaderElector checks the configuration. It does no I/O.
func NewLeaderElector(config LeaderElectionConfig) (*LeaderElector, error) {
	if config.Callbacks.OnStartedLeading == nil {
		return nil, errors.New("OnStartedLeading callback must not be nil")
	}
	if config.Callbacks.OnStoppedLeading == nil {
		return nil, errors.New("OnStoppedLeading callback must not be nil")
	}
	if config.Lock.Store == "" || config.Lock.Name == "" {
		return nil, errors.New("the lock must name a store and an election")
	}
	if config.LeaseDuration != 0 && config.LeaseDuration <= config.RenewDeadline {
		return nil, errors.New("LeaseDuration must be greater than RenewDeadline")
	}
	return &LeaderElector{config: config}, nil
}

// RunOrDie contends once, as Run does, and panics if the configuration is wrong.
func RunOrDie(ctx context.Context, config LeaderElectionConfig) {
	le, err := NewLeaderElector(config)
	if err != nil {
		panic(err)
	}
	le.Run(ctx)
}

// Run contends until ctx ends or a leadership has been won and has ended, and then returns, as
// client-go's does: call it again to contend again. It panics if the store's URL is wrong.
func (le *LeaderElector) Run(ctx context.Context) {
	defer le.config.Callbacks.OnStoppedLeading()
	c := &le.config
	// Of client-go's deadline, what is behind the next renewal is our grace.
	var renew, grace time.Duration
	if c.LeaseDuration != 0 && c.RenewDeadline != 0 {
		renew = c.LeaseDuration / 3
		grace = max(c.RenewDeadline-renew, time.Millisecond)
	}
	store, err := baton.Open(c.Lock.Store, &baton.Options{ID: c.Lock.Identity,
		Lease: c.LeaseDuration, Renew: renew, Grace: grace, Retry: c.RetryPeriod})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	election, err := store.Election(c.Lock.Name, &baton.ElectionOptions{
		KeepOnStop: !c.ReleaseOnCancel, OnEvent: le.told})
	if err != nil {
		panic(err)
	}
	le.election.Store(election)
	defer le.election.Store(nil)
	_ = election.Run(ctx, func(ctx context.Context, _ *baton.Lead) error {
		c.Callbacks.OnStartedLeading(ctx)
		return baton.ErrDone
	})
}

func (le *LeaderElector) told(event baton.Event) {
	if event.Kind != baton.Changed || event.Leader == "" {
		return
	}
	leader := event.Leader
	le.reported.Store(&leader)
	if le.config.Callbacks.OnNewLeader != nil {
		le.config.Callbacks.OnNewLeader(leader)
	}
}

// IsLeader asks the clock whether this process leads now.
func (le *LeaderElector) IsLeader() bool {
	election := le.election.Load()
	return election != nil && election.Leads()
}

// GetLeader is the id of the last leader that was seen: "" if none was.
func (le *LeaderElector) GetLeader() string {
	if leader := le.reported.Load(); leader != nil {
		return *leader
	}
	return ""
}
