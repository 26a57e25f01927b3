package baton

// baton_test.go: what only Go can do wrong: calls on what is closed, and at the moment when it is
// closed. The scenarios (tests/bindings) have the rest.

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func opened(t *testing.T) (*Store, *Election) {
	t.Helper()
	s, err := Open("memory:go-test", &Options{Lease: 3 * time.Second, Retry: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Election("night", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

func TestClosed(t *testing.T) {
	s, e := opened(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if e.Leads() || e.Term() != 0 || s.ID() != "" || s.Promises() != "" || s.Lease() != 0 {
		t.Error("a closed store knows something")
	}
	_, statusErr := e.Status()
	_, _, tryErr := e.TryAcquire(time.Second)
	_, _, observeErr := s.Observe("night")
	_, candidatesErr := s.Candidates("night")
	_, enterErr := e.Enter(context.Background())
	_, newErr := s.Election("other", nil)
	for i, err := range []error{e.Start(), e.Stop(context.Background()), e.Resign(0),
		e.Transfer("x"), e.ReportHealth(1000, ""), statusErr, tryErr, observeErr, candidatesErr,
		enterErr, newErr, e.Run(context.Background(), nil)} {
		if err != ErrClosed {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever runs when a store is closed ends, and uses nothing that is freed.
func TestClosedMeanwhile(t *testing.T) {
	for i := 0; i < 200; i++ {
		s, e := opened(t)
		var all sync.WaitGroup
		all.Add(2)
		begun := make(chan struct{})
		go func() {
			defer all.Done()
			err := e.Run(context.Background(), func(context.Context, *Lead) error { return nil })
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}()
		go func() {
			defer all.Done()
			close(begun)
			for {
				e.Leads()
				if _, err := e.Status(); err != nil {
					return
				}
			}
		}()
		<-begun
		time.Sleep(time.Duration(i) * 10 * time.Microsecond)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
	}
}
