package sidecar

// lead.go: work that is bound to one leadership of the sidecar, and the clock of its deadline. It
// must never use a timer of Go's for the deadline: those stand still while the machine sleeps.

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	bootTime     = 7 // CLOCK_BOOTTIME
	timerAbsTime = 1 // TFD_TIMER_ABSTIME
)

// now is CLOCK_BOOTTIME, which goes on while the machine sleeps.
func now() int64 {
	var t syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, bootTime,
		uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// A LostError is the cause of the end of a lead's context.
type LostError struct {
	Election string
	Term     uint64
	Reason   string // in a word, as the sidecar says it: "expired", "ordered"
}

func (e *LostError) Error() string {
	return fmt.Sprintf("baton: the leadership of %q in term %d is lost (%s)", e.Election, e.Term,
		e.Reason)
}

// A Lead is one leadership, with work bound to it. The leadership is not passed on while it is
// open: close it when the work has ended.
type Lead struct {
	*lead
}

type lead struct {
	election string
	term     uint64
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stream   *stream
	timer    *os.File // of the system, on CLOCK_BOOTTIME: the runtime polls it
	closing  sync.Once
	watchers sync.WaitGroup

	mu       sync.Mutex   // for writing the deadline
	deadline atomic.Int64 // on CLOCK_BOOTTIME; 0: lost
}

func newLead(parent context.Context, election string, s *stream, first event) (*Lead, error) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, bootTime,
		syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("baton: no timer is left: %w", errno)
	}
	l := &lead{election: election, term: first.Term, stream: s,
		timer: os.NewFile(fd, "baton deadline")}
	l.ctx, l.cancel = context.WithCancelCause(parent)
	l.deadline.Store(first.Deadline)
	l.arm(first.Deadline)
	l.watchers.Add(2)
	go l.listen()
	go l.watch()
	outer := &Lead{l}
	runtime.SetFinalizer(outer, func(outer *Lead) {
		log.Printf("baton: a lead of %q was not closed: it stays open", outer.election)
	})
	return outer, nil
}

// arm lets the timer fire at the deadline.
func (l *lead) arm(deadline int64) {
	spec := [2]syscall.Timespec{{}, syscall.NsecToTimespec(deadline)}
	raw, err := l.timer.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, timerAbsTime,
			uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
}

// lose ends the leadership: nothing brings it back.
func (l *lead) lose(reason string) {
	l.mu.Lock()
	l.deadline.Store(0)
	l.mu.Unlock()
	l.cancel(&LostError{l.election, l.term, reason})
}

// renew moves the deadline of a leadership that still holds.
func (l *lead) renew(deadline int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads() && deadline > l.deadline.Load() {
		l.deadline.Store(deadline)
		l.arm(deadline)
	}
}

// listen takes what the sidecar says. A sidecar that is gone renews no more: that is a loss.
func (l *lead) listen() {
	defer l.watchers.Done()
	for {
		e, err := l.stream.next()
		switch {
		case err != nil:
			l.lose("the sidecar is gone")
			return
		case e.Event == "lost":
			l.lose(e.Reason)
		case e.Event == "renewed" && e.Term == l.term:
			l.renew(e.Deadline)
		}
	}
}

// watch waits for the deadline, whatever the sidecar does.
func (l *lead) watch() {
	defer l.watchers.Done()
	var times [8]byte
	for {
		if _, err := l.timer.Read(times[:]); err != nil {
			return // the lead is closed
		}
		if !l.leads() {
			l.lose("expired")
		}
	}
}

func (l *lead) leads() bool {
	deadline := l.deadline.Load() // before the clock: the answer is never later than the deadline
	return now() < deadline
}

// Leads asks the clock whether this leadership still holds. Ask before each piece of work.
func (l *Lead) Leads() bool { return l.leads() }

// Term is the fencing token: hand it on to what the work writes to.
func (l *Lead) Term() uint64 { return l.term }

// Context is cancelled when the leadership ends, with a [*LostError] as its cause.
func (l *Lead) Context() context.Context { return l.ctx }

// TimeLeft is how long Leads stays true if nothing more is heard from the sidecar.
func (l *Lead) TimeLeft() time.Duration {
	return max(0, time.Duration(l.deadline.Load()-now()))
}

// Close says that the work has ended: the leadership may pass on from here.
func (l *Lead) Close() {
	l.closing.Do(func() {
		runtime.SetFinalizer(l, nil)
		l.mu.Lock()
		l.deadline.Store(0)
		l.mu.Unlock()
		l.cancel(context.Canceled)
		l.stream.close()
		_ = l.timer.Close()
		l.watchers.Wait()
	})
}

// The lead is closed however fn ends, by a panic, too. Says whether it was lost before.
func (l *Lead) do(fn func(context.Context, *Lead) error) (lost bool, err error) {
	defer l.Close()
	err = fn(l.ctx, l)
	return !l.leads(), err
}
