package baton

// lead.go: work that is bound to one leadership.

/*
#include <baton.h>
#include <fcntl.h>
#include <stdint.h>

// A number, not a pointer: cgo looks up where each pointer points to, which takes longer than the
// answer.
static bool lead_leads(uintptr_t ctx)
{
	return baton_context_is_leader((const struct baton_context *)ctx);
}

static int lead_descriptor(const struct baton_context *ctx)
{
	return fcntl(baton_context_fd(ctx), F_DUPFD_CLOEXEC, 0);
}
*/
import "C"

import (
	"context"
	"log"
	"os"
	"runtime"
	"time"
	"unsafe"
)

// How long a loss waits for the word that says why. The clock knows of the loss without it.
const reasonWait = 5 * time.Millisecond

// A Lead is one leadership, with work bound to it. The leadership is not passed on while it is
// open: close it when the work has ended.
type Lead struct {
	*lead
	election *Election // a lead in use keeps its election and store from being collected
}

type lead struct {
	election *election
	handle   *C.struct_baton_context
	term     uint64
	ctx      context.Context
	cancel   context.CancelCauseFunc
	file     *os.File // the runtime polls it: readable when the leadership ends
	watched  chan struct{}
	users    users
}

// Enter binds work to the present leadership: an error of [CodeNotLeader] if there is none. The
// context of the lead is a child of parent.
func (e *Election) Enter(parent context.Context) (*Lead, error) {
	var err C.struct_baton_error
	l := &lead{election: e.election, watched: make(chan struct{})}
	s := e.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, ErrClosed
	}
	if code := C.baton_enter(e.handle, &l.handle, &err); code != 0 {
		return nil, failure(code, &err)
	}
	fd := C.lead_descriptor(l.handle)
	if fd < 0 {
		C.baton_leave(l.handle)
		return nil, &Error{CodeSystem, "no descriptor is left"}
	}
	s.leads++
	l.term = uint64(C.baton_context_term(l.handle))
	l.file = os.NewFile(uintptr(fd), "baton lead")
	l.ctx, l.cancel = context.WithCancelCause(parent)
	go l.watch()
	outer := &Lead{l, e}
	runtime.SetFinalizer(outer, func(outer *Lead) {
		log.Printf("baton: a lead of %q was not closed: it stays open", outer.election.name)
	})
	return outer, nil
}

// A watcher for each lead: no timer of Go's, since those stand still while the machine sleeps.
func (l *lead) watch() {
	defer close(l.watched)
	raw, err := l.file.SyscallConn()
	if err != nil {
		l.cancel(err)
		return
	}
	lost := false
	_ = raw.Read(func(uintptr) bool {
		lost = !l.leads()
		return lost
	})
	if lost {
		l.cancel(l.reason())
	}
}

func (l *lead) reason() *LostError {
	limit := time.After(reasonWait)
	e := l.election
	for {
		e.mu.Lock()
		wake, event := e.wake, e.lost
		e.mu.Unlock()
		if event.Term == l.term {
			return &LostError{e.name, l.term, event.Reason, event.Text}
		}
		select {
		case <-wake:
		case <-limit:
			return &LostError{e.name, l.term, ReasonExpired, "no renewal came through in time"}
		}
	}
}

func (l *lead) leads() bool {
	if !l.users.enter() {
		return false
	}
	leads := bool(C.lead_leads(C.uintptr_t(uintptr(unsafe.Pointer(l.handle)))))
	l.users.leave()
	return leads
}

// Leads asks the clock whether this leadership still holds. Ask before each piece of work.
func (l *Lead) Leads() bool { return l.leads() }

// Term is the fencing token: hand it on to what the work writes to.
func (l *Lead) Term() uint64 { return l.term }

// Context is cancelled when the leadership ends, with a [*LostError] as its cause.
func (l *Lead) Context() context.Context { return l.ctx }

// TimeLeft is how long Leads stays true if nothing more is heard from the store.
func (l *Lead) TimeLeft() time.Duration {
	if !l.users.enter() {
		return 0
	}
	left := C.baton_context_time_left_ms(l.handle)
	l.users.leave()
	return time.Duration(left) * time.Millisecond
}

// Alive is a sign of life of the work (see WorkTimeout).
func (l *Lead) Alive() {
	_ = l.election.store.use(func() error {
		C.baton_alive(l.election.handle)
		return nil
	})
}

// Close says that the work has ended. A leadership that is lost may pass on from here.
func (l *Lead) Close() {
	if !l.users.close() {
		return
	}
	runtime.SetFinalizer(l, nil)
	_ = l.file.Close()
	<-l.watched
	l.cancel(context.Canceled)
	s := l.lead.election.store
	s.mu.Lock()
	defer s.mu.Unlock()
	C.baton_leave(l.handle)
	s.leads--
	if s.leads == 0 && s.left != nil {
		close(s.left)
		s.left = nil
	}
}

// The lead is closed however fn ends. After a panic, or Goexit, nobody would work in a later
// leadership: then the election is stopped, too. Says whether the lead was lost before.
func (l *Lead) do(fn func(context.Context, *Lead) error) (lost bool, err error) {
	returned := false
	defer func() {
		if e := l.election; !returned {
			_ = e.store.use(func() error { e.stopNow(); return nil })
		}
		l.Close()
	}()
	err = fn(l.ctx, l)
	returned = true
	return !l.leads(), err
}
