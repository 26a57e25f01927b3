package leaderelection

// leaderelection_test.go: the usage that client-go documents, with two candidates.

import (
	"context"
	"testing"
	"time"
)

func config(store, identity string, started, stopped, leaders chan string) LeaderElectionConfig {
	return LeaderElectionConfig{
		Lock:          Lock{Store: store, Name: "controller", Identity: identity},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
		RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				started <- identity
				<-ctx.Done()
			},
			OnStoppedLeading: func() { stopped <- identity },
			OnNewLeader: func(leader string) {
				select {
				case leaders <- leader:
				default:
				}
			},
		},
	}
}

func next(t *testing.T, from chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("got %q, not %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%q never came", want)
	}
}

func TestTwoCandidates(t *testing.T) {
	store := "file:" + t.TempDir()
	started, stopped := make(chan string, 2), make(chan string, 2)
	leaders := make(chan string, 8)
	first, firstEnds := context.WithCancel(context.Background())
	second, secondEnds := context.WithCancel(context.Background())
	defer firstEnds()
	defer secondEnds()
	go RunOrDie(first, config(store, "one", started, stopped, leaders))
	next(t, started, "one")
	next(t, leaders, "one")
	le, err := NewLeaderElector(config(store, "two", started, stopped, leaders))
	if err != nil {
		t.Fatal(err)
	}
	go le.Run(second)
	next(t, leaders, "one")
	if le.IsLeader() || le.GetLeader() != "one" {
		t.Fatalf("%q leads", le.GetLeader())
	}
	firstEnds()
	next(t, stopped, "one")
	next(t, started, "two")
	if !le.IsLeader() {
		t.Fatal("two does not lead")
	}
	secondEnds()
	next(t, stopped, "two")
}

func TestConfigurationIsChecked(t *testing.T) {
	if _, err := NewLeaderElector(LeaderElectionConfig{}); err == nil {
		t.Fatal("an empty configuration is taken")
	}
}
