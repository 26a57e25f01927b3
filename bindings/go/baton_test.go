package baton

// baton_test.go: what only Go can do wrong: calls on what is closed, and at the moment when it is
// closed. The scenarios (tests/bindings) have the rest.

import (
	"context"
	"errors"
	"runtime"
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

// The context of a lost lead says why, to those who know the election's loop and to those who don't.
func TestCause(t *testing.T) {
	s, e := opened(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	check := func(ctx context.Context, term uint64) {
		t.Helper()
		<-ctx.Done()
		var lost *LostError
		cause := context.Cause(ctx)
		if !errors.As(cause, &lost) || lost.Term != term || lost.Election != "night" ||
			lost.Reason == ReasonNone {
			t.Errorf("the cause is %#v", cause)
		}
		if ctx.Err() != context.Canceled {
			t.Errorf("the error is %v", ctx.Err())
		}
	}
	err := e.Run(context.Background(), func(ctx context.Context, lead *Lead) error {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := e.Resign(0); err != nil {
			t.Error(err)
		}
		check(ctx, lead.Term())
		check(child, lead.Term())
		check(lead.Context(), lead.Term())
		if lead.Term() == 2 {
			return ErrDone
		}
		return context.Cause(child) // the loss itself: contends again
	})
	if err != nil {
		t.Error(err)
	}
	// A lead that was left, not lost, has no such cause.
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	lead, err := e.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lead.Close()
	if cause := context.Cause(lead.Context()); cause != context.Canceled {
		t.Errorf("the cause is %v", cause)
	}
}

// A panic of the work passes through Run; nobody works any more, so the election contends no more.
func TestPanicOfTheWork(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("the work failed") },
		"Goexit": runtime.Goexit} {
		s, e := opened(t)
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			_ = e.Run(context.Background(), func(context.Context, *Lead) error {
				end()
				return nil
			})
		}()
		if found := <-ended; (found != nil) != (name == "panic") {
			t.Errorf("%s: recovered %v", name, found)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if lead, err := e.Acquire(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: it contends on: %v", name, err)
			if err == nil {
				lead.Close()
			}
		}
		cancel()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
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
