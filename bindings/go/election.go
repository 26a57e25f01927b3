package baton

// election.go: a candidate in one election, from start to stop.

/*
#include <baton.h>
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// ElectionOptions; the zero value has the library's defaults.
type ElectionOptions struct {
	Metadata      string
	KeepOnStop    bool // don't release: the lease runs out
	IgnoreHealth  bool // the health score gates nothing
	StayUnhealthy bool // don't step down when unhealthy
	ObserveOnly   bool
	Manual        bool   // campaign only in TryAcquire
	MinScore      uint32 // of 1000; 0: 800
	Priority      int32
	Preempt       time.Duration
	WorkTimeout   time.Duration // Lead.Alive must come this often
	// OnEvent is called on a goroutine of this election, one event after the other. The work of
	// those who ask Leads without holding a Lead counts as ended when it returns from Lost.
	OnEvent func(Event)
}

// An Election is this process' candidate. It belongs to its store, which frees it.
type Election struct {
	*election
	owner *Store // an election in use keeps its store from being collected
}

type election struct {
	store   *store
	handle  *C.struct_baton_election
	name    string
	onEvent func(Event)
	more    chan struct{} // there are events that are untold
	told    chan struct{} // closed when no more are told

	mu      sync.Mutex
	untold  []Event       // no slow OnEvent delays the pump
	wake    chan struct{} // closed and made anew when something has changed
	stopped bool
	unheard bool  // OnEvent has yet to hear that the stop is complete
	lost    Event // the last
}

// Election makes a candidate in the named election. It does nothing until it is started.
func (s *Store) Election(name string, options *ElectionOptions) (*Election, error) {
	var o C.struct_baton_election_options
	var err C.struct_baton_error
	if options == nil {
		options = &ElectionOptions{}
	}
	if err := hasZero(name, options.Metadata); err != nil {
		return nil, err
	}
	C.baton_election_options_init_sized(&o, C.sizeof_struct_baton_election_options)
	if options.Metadata != "" {
		o.metadata = C.CString(options.Metadata)
		defer C.free(unsafe.Pointer(o.metadata))
	}
	o.release_on_stop = C.bool(!options.KeepOnStop)
	o.check_health = C.bool(!options.IgnoreHealth)
	o.step_down_unhealthy = C.bool(!options.StayUnhealthy)
	o.observe_only = C.bool(options.ObserveOnly)
	o.manual = C.bool(options.Manual)
	if options.MinScore != 0 {
		o.min_score_permille = C.uint32_t(options.MinScore)
	}
	o.priority = C.int32_t(options.Priority)
	o.preempt_ms = millis(options.Preempt)
	o.work_timeout_ms = millis(options.WorkTimeout)
	o.drain_by_hand = true
	e := &election{store: s.store, name: name, onEvent: options.OnEvent,
		wake: make(chan struct{})}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, ErrClosed
	}
	if code := C.baton_election_new(s.handle, c, &o, &e.handle, &err); code != 0 {
		return nil, failure(code, &err)
	}
	s.elections[e.handle] = e
	if e.onEvent != nil {
		e.more, e.told = make(chan struct{}, 1), make(chan struct{})
		go e.tell()
	}
	return &Election{e, s}, nil
}

func (e *election) wakeUp() {
	e.mu.Lock()
	e.wakeLocked()
	e.mu.Unlock()
}

func (e *election) wakeLocked() {
	close(e.wake)
	e.wake = make(chan struct{})
}

// stopNow never waits. No start that has begun earlier comes after it.
func (e *election) stopNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	C.baton_election_stop(e.handle, 0)
	e.wakeLocked()
}

// The pump has taken an event.
func (e *election) took(event Event) {
	if event.Kind == Lost {
		e.mu.Lock()
		e.lost = event
		e.mu.Unlock()
	}
	if event.Kind == Became || event.Kind == Lost || event.Kind == Stopped {
		e.wakeUp()
	}
	if e.onEvent == nil {
		e.dealtWith(event)
		return
	}
	e.mu.Lock()
	e.untold = append(e.untold, event)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// Of work without a lead nobody knows when it ends: it has ended when Lost was told. Contexts that
// are open are waited for.
func (e *election) dealtWith(event Event) {
	if event.Kind == Lost {
		C.baton_drained(e.handle, C.uint64_t(event.Term))
	}
	if event.Kind == Stopped {
		e.mu.Lock()
		e.unheard = e.unheard && !(e.stopped && len(e.untold) == 0) // or it was started again
		e.wakeLocked()
		e.mu.Unlock()
	}
}

// What runs OnEvent now, by its thread: Go doesn't say which goroutine runs.
var handlers sync.Map

func isHandler() bool {
	_, is := handlers.Load(syscall.Gettid())
	return is
}

func (e *election) tell() {
	defer close(e.told)
	for range e.more {
		for event, is := e.next(); is; event, is = e.next() {
			e.tellOne(event)
			e.dealtWith(event)
		}
	}
}

func (e *election) next() (event Event, is bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.untold) == 0 {
		return event, false
	}
	event, e.untold = e.untold[0], e.untold[1:]
	return event, true
}

func (e *election) tellOne(event Event) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := syscall.Gettid()
	handlers.Store(tid, nil)
	defer handlers.Delete(tid)
	e.onEvent(event)
}

// awaitHeard waits until OnEvent has heard of all that happened before the stop (S8). False: limit
// came first. OnEvent itself doesn't wait.
func (e *election) awaitHeard(limit <-chan struct{}) bool {
	for {
		e.mu.Lock()
		wake, heard := e.wake, !e.unheard
		e.mu.Unlock()
		if heard || isHandler() {
			return true
		}
		select {
		case <-wake:
		case <-limit:
			return false
		}
	}
}

// The pump has ended: nothing more is told.
func (e *election) finish() {
	if e.onEvent != nil {
		close(e.more)
		<-e.told
	}
}

// Name is the election's.
func (e *Election) Name() string { return e.name }

// Start contends from now on. It is idempotent and never blocks.
func (e *Election) Start() error {
	return e.store.use(func() error {
		e.store.mu.Lock()
		defer e.store.mu.Unlock()
		if e.store.closing {
			return ErrClosed
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stopped = false
		code := C.baton_election_start(e.handle)
		e.unheard = e.unheard || code == 0
		return failure(code, nil)
	})
}

// Stop steps down and stops contending. It waits until the work has ended, the claim is released,
// and OnEvent has heard of it (no longer than a lease; a call from OnEvent doesn't wait for that). An
// end of ctx ends the waiting, and the rest goes on in the background. Not from within the work of
// a lead: return from that instead.
func (e *Election) Stop(ctx context.Context) error {
	return e.store.use(func() error {
		e.stopNow()
		for {
			code := C.baton_election_stop(e.handle, 50)
			if code != C.BATON_E_TIMEOUT {
				if err := failure(code, nil); err != nil {
					return err
				}
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		late, cancel := context.WithTimeout(ctx, e.store.lease())
		defer cancel()
		if !e.awaitHeard(late.Done()) {
			return ctx.Err()
		}
		return nil
	})
}

// Leads asks the clock whether this candidate leads now.
func (e *Election) Leads() bool {
	if !e.store.users.enter() {
		return false
	}
	defer e.store.users.leave()
	return bool(C.baton_is_leader(e.handle))
}

// Term is that of the present leadership, 0 if there is none: the fencing token.
func (e *Election) Term() uint64 {
	if !e.store.users.enter() {
		return 0
	}
	defer e.store.users.leave()
	return uint64(C.baton_term(e.handle))
}

// Resign steps down, and leaves it to others for so long.
func (e *Election) Resign(quiet time.Duration) error {
	return e.store.use(func() error {
		return failure(C.baton_resign(e.handle, C.int64_t(millis(quiet))), nil)
	})
}

// Transfer steps down in favour of the named candidate.
func (e *Election) Transfer(candidate string) error {
	var err C.struct_baton_error
	return e.store.useText(candidate, func(c *C.char) error {
		return failure(C.baton_transfer(e.handle, c, &err), &err)
	})
}

// ReportHealth says how healthy this candidate is, from 0 to 1000; "" leaves the metadata.
func (e *Election) ReportHealth(score uint32, metadata string) error {
	return e.store.useText(metadata, func(c *C.char) error {
		if metadata == "" {
			c = nil
		}
		return failure(C.baton_report_health(e.handle, C.uint32_t(score), c), nil)
	})
}

// TryAcquire tries to become leader now, and says in a word what kept it from leading: "held".
func (e *Election) TryAcquire(timeout time.Duration) (leads bool, obstacle string, err error) {
	err = e.store.use(func() error {
		var why C.int
		code := C.baton_try_acquire(e.handle, C.int64_t(millis(timeout)), &why)
		leads, obstacle = code == 1, C.GoString(C.baton_obstacle_name(why))
		return failure(code, nil)
	})
	return leads, obstacle, err
}

// Status is who leads, as far as this candidate knows.
type Status struct {
	State                              string
	Leads, Paused                      bool
	Term                               uint64
	Leader, Address, Metadata, WaitFor string
	TimeLeft, Wait                     time.Duration
	LastRenewal                        time.Time // zero: none
}

// Status is from memory, and asks nobody.
func (e *Election) Status() (Status, error) {
	var s C.struct_baton_status
	if err := e.store.use(func() error {
		return failure(C.baton_get_status_sized(e.handle, &s, C.sizeof_struct_baton_status), nil)
	}); err != nil {
		return Status{}, err
	}
	status := Status{
		State: C.GoString(C.baton_state_name(s.state)), Leads: bool(s.is_leader),
		Paused: bool(s.paused), Term: uint64(s.term), Leader: C.GoString(&s.leader[0]),
		Address:  C.GoString(&s.leader_address[0]),
		Metadata: C.GoString(&s.leader_metadata[0]), WaitFor: C.GoString(&s.wait[0]),
		TimeLeft: time.Duration(s.time_left_ms) * time.Millisecond,
		Wait:     time.Duration(s.wait_ms) * time.Millisecond,
	}
	if s.last_renewal_ms != 0 {
		status.LastRenewal = time.UnixMilli(int64(s.last_renewal_ms))
	}
	return status, nil
}

// Observe asks the store who leads the named election: "" if no candidate does.
func (s *Store) Observe(name string) (leader string, term uint64, err error) {
	var o C.struct_baton_observed
	var e C.struct_baton_error
	err = s.useText(name, func(c *C.char) error {
		return failure(C.baton_observe_sized(s.handle, c, &o, C.sizeof_struct_baton_observed,
			&e), &e)
	})
	return C.GoString(&o.leader[0]), uint64(o.term), err
}

// A Candidate as the store knows it.
type Candidate struct {
	ID, Address, Metadata string
	Leads, Healthy        bool
	Score                 uint32
	Priority              int32
	Updated               time.Time
}

// Candidates asks the store which candidates the named election has.
func (s *Store) Candidates(name string) ([]Candidate, error) {
	var e C.struct_baton_error
	var found []C.struct_baton_candidate
	err := s.useText(name, func(c *C.char) error {
		n := C.int(16)
		for int(n) > len(found) {
			found = make([]C.struct_baton_candidate, n)
			n = C.baton_get_candidates_sized(s.handle, c, &found[0], C.size_t(len(found)),
				C.sizeof_struct_baton_candidate, &e)
		}
		found = found[:max(n, 0)]
		return failure(n, &e)
	})
	if err != nil {
		return nil, err
	}
	var list []Candidate
	for _, one := range found {
		list = append(list, Candidate{
			ID: C.GoString(&one.id[0]), Address: C.GoString(&one.address[0]),
			Metadata: C.GoString(&one.metadata[0]), Leads: bool(one.is_leader),
			Healthy: bool(one.is_healthy), Score: uint32(one.score_permille),
			Priority: int32(one.priority), Updated: time.UnixMilli(int64(one.updated_ms)),
		})
	}
	return list, nil
}

// ErrDone ends Run without an error when fn returns it.
var ErrDone = errors.New("baton: the work is done")

// Run runs fn whenever this candidate is elected. The context of fn is cancelled when the
// leadership ends, and [context.Cause] is then a [*LostError]; the leadership passes on only after
// fn has returned. If fn returns nil while it leads, Run resigns and contends again. Run ends when
// ctx does (with its error), when the election is stopped or the store is closed ([ErrClosed]), and
// when fn returns an error that is not the loss itself: with that error, or nil for [ErrDone]. The
// election is stopped then. To stop it from within fn, call Stop with fn's context.
func (e *Election) Run(ctx context.Context, fn func(context.Context, *Lead) error) error {
	if err := e.Start(); err != nil {
		return err
	}
	for after := uint64(0); ; {
		lead, err := e.acquire(ctx, after)
		if err != nil {
			if ctx.Err() != nil || !errors.Is(err, ErrClosed) {
				_ = e.Stop(context.WithoutCancel(ctx))
			}
			return err
		}
		after = lead.term
		lost, err := lead.do(fn)
		var loss *LostError
		if lost && (errors.Is(err, context.Canceled) || errors.As(err, &loss)) {
			err = nil
		}
		if ctx.Err() == nil && err == nil {
			if !lost {
				_ = e.Resign(0)
			}
			continue
		}
		_ = e.Stop(context.WithoutCancel(ctx))
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return ctx.Err()
		}
		if errors.Is(err, ErrDone) {
			return nil
		}
		return err
	}
}

// Acquire waits until this candidate leads, and binds work to that leadership. Start the election
// first, and close the lead when the work has ended.
func (e *Election) Acquire(ctx context.Context) (*Lead, error) { return e.acquire(ctx, 0) }

// Of a leadership that is later than that: one that was resigned may linger for a moment.
func (e *Election) acquire(ctx context.Context, after uint64) (*Lead, error) {
	for {
		e.mu.Lock()
		wake, stopped := e.wake, e.stopped
		e.mu.Unlock()
		if stopped {
			return nil, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lead, err := e.Enter(ctx)
		if err == nil && lead.Term() > after {
			return lead, nil
		}
		var is *Error
		if err == nil {
			lead.Close()
		} else if !errors.As(err, &is) || is.Code != CodeNotLeader {
			return nil, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}
