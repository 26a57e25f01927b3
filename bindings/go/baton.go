// Package baton elects one leader among many instances of a program. It stands on libbaton, which
// pkg-config finds.
//
// A [Store] is a handle on the store that a URL names, an [Election] is this process' candidate in
// one election, and a [Lead] is work that is bound to one leadership. The end of the leadership
// cancels the context of a Lead; [Lead.Leads] asks the clock, and is the truth. The leadership
// passes on only after the Lead is closed, or the function that [Election.Run] called has returned.
//
// C never calls Go: events are pulled when the library's descriptor is readable.
package baton

/*
#cgo pkg-config: baton
#include <baton.h>
#include <fcntl.h>
#include <stdlib.h>

// The Go runtime polls a duplicate, which it may close when it likes.
static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A Code says what kind of failure an [Error] is.
type Code int

// The codes of the library.
const (
	CodeInvalid     Code = C.BATON_E_INVALID
	CodeTiming      Code = C.BATON_E_TIMING
	CodeURL         Code = C.BATON_E_URL
	CodeNoDriver    Code = C.BATON_E_NO_DRIVER
	CodeMemory      Code = C.BATON_E_MEMORY
	CodeSystem      Code = C.BATON_E_SYSTEM
	CodeNotStarted  Code = C.BATON_E_NOT_STARTED
	CodeNotLeader   Code = C.BATON_E_NOT_LEADER
	CodeTimeout     Code = C.BATON_E_TIMEOUT
	CodeExists      Code = C.BATON_E_EXISTS
	CodeUnavailable Code = C.BATON_E_UNAVAILABLE
	CodeDenied      Code = C.BATON_E_DENIED
	CodeCorrupt     Code = C.BATON_E_CORRUPT
	CodeUnsupported Code = C.BATON_E_UNSUPPORTED
	CodeNoCandidate Code = C.BATON_E_NO_CANDIDATE
	CodeStale       Code = C.BATON_E_STALE
	CodeForked      Code = C.BATON_E_FORKED
	CodeBusy        Code = C.BATON_E_BUSY
	CodeDuplicateID Code = C.BATON_E_DUPLICATE_ID
)

// String is the code's name in one word: "timeout".
func (c Code) String() string { return C.GoString(C.baton_code_name(C.int(c))) }

// An Error is a failure of the library: its code, and one sentence.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return "baton: " + e.Text }

// ErrClosed is returned by calls on a store that is closed, or an election that is stopped.
var ErrClosed = errors.New("baton: the store is closed, or the election is stopped")

func failure(code C.int, err *C.struct_baton_error) error {
	if code >= 0 {
		return nil
	}
	if err != nil && err.text[0] != 0 {
		return &Error{Code(code), C.GoString(&err.text[0])}
	}
	return &Error{Code(code), C.GoString(C.baton_strerror(code))}
}

// C ends a string at its first zero byte: what follows would be cut off without a word.
func hasZero(texts ...string) error {
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return &Error{CodeInvalid, "a text holds a zero byte; expected none"}
		}
	}
	return nil
}

// Version is that of the library which runs: "0.1.0".
func Version() string { return C.GoString(C.baton_version()) }

// VersionNumber is the same as a number that can be compared.
func VersionNumber() uint32 { return uint32(C.baton_version_number()) }

// Options of a store; what is zero has the library's default.
type Options struct {
	ID, Address                          string
	Lease, Renew, Grace, Retry, RetryMax time.Duration
	DriftPermille                        uint32
	// Outlive: the deadlines of this process are trusted by others that may outlive it.
	Outlive bool
}

// A Store makes elections. Close it.
type Store struct {
	*store
}

// What the pump knows. It must not know the Store itself, which could then never be collected.
type store struct {
	mu        sync.Mutex
	handle    *C.struct_baton
	elections map[*C.struct_baton_election]*election
	pump      *os.File
	pumped    chan struct{}
	leads     int
	left      chan struct{} // closed when the last lead is left
	closing   bool          // nothing begins any more
	closeMu   sync.Mutex    // one Close at a time
	closed    bool
	users     users // calls that use the handle, or that of an election
}

// users counts calls that use a handle of C, so that none uses it when it is freed.
type users struct {
	n atomic.Int64 // negative: it is closed
}

// enter says whether the handle can be used: then leave must follow.
func (u *users) enter() bool {
	if u.n.Add(1) > 0 {
		return true
	}
	u.n.Add(-1)
	return false
}

func (u *users) leave() { u.n.Add(-1) }

// close lets nobody in any more, and waits for those who are. False: it was closed before.
func (u *users) close() bool {
	for {
		n := u.n.Load()
		if n < 0 {
			return false
		}
		if u.n.CompareAndSwap(n, n+math.MinInt64) {
			break
		}
	}
	for i := 0; u.n.Load() != math.MinInt64; i++ {
		if i < 100 {
			runtime.Gosched() // most calls never wait
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	return true
}

// use calls C, unless the store is closed.
func (s *store) use(call func() error) error {
	if !s.users.enter() {
		return ErrClosed
	}
	defer s.users.leave()
	return call()
}

// useText calls C with that text.
func (s *store) useText(text string, call func(*C.char) error) error {
	if err := hasZero(text); err != nil {
		return err
	}
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	return s.use(func() error { return call(c) })
}

func millis(d time.Duration) C.uint64_t {
	return C.uint64_t((d + time.Millisecond - 1) / time.Millisecond)
}

// Open opens a handle on the store that the URL names. It does no I/O.
func Open(url string, options *Options) (*Store, error) {
	var o C.struct_baton_options
	var e C.struct_baton_error
	var handle *C.struct_baton
	if options == nil {
		options = &Options{}
	}
	if err := hasZero(url, options.ID, options.Address); err != nil {
		return nil, err
	}
	C.baton_options_init_sized(&o, C.sizeof_struct_baton_options)
	for _, field := range []struct {
		from string
		to   **C.char
	}{{options.ID, &o.id}, {options.Address, &o.address}} {
		if field.from != "" {
			*field.to = C.CString(field.from)
			defer C.free(unsafe.Pointer(*field.to))
		}
	}
	for _, field := range []struct {
		from time.Duration
		to   *C.uint64_t
	}{{options.Lease, &o.lease_ms}, {options.Renew, &o.renew_ms}, {options.Grace, &o.grace_ms},
		{options.Retry, &o.retry_ms}, {options.RetryMax, &o.retry_max_ms}} {
		if field.from != 0 {
			*field.to = millis(field.from)
		}
	}
	if options.DriftPermille != 0 {
		o.drift_permille = C.uint32_t(options.DriftPermille)
	}
	o.outlive = C.bool(options.Outlive)
	name := C.CString(url)
	defer C.free(unsafe.Pointer(name))
	if code := C.baton_open(name, &o, &handle, &e); code != 0 {
		return nil, failure(code, &e)
	}
	s := &store{handle: handle, elections: map[*C.struct_baton_election]*election{},
		pumped: make(chan struct{})}
	// The event descriptor does not block; so the runtime polls its duplicate.
	fd := C.duplicate(C.baton_fd(handle))
	if fd < 0 {
		C.baton_close(handle)
		return nil, &Error{CodeSystem, "no descriptor is left"}
	}
	s.pump = os.NewFile(uintptr(fd), "baton events")
	go s.pumpEvents()
	outer := &Store{s}
	open.Store(s, nil)
	runtime.SetFinalizer(outer, func(outer *Store) { outer.abandon() })
	return outer, nil
}

// A store that nobody closed: it says so, steps down without waiting, and releases nothing else.
func (s *store) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	log.Print("baton: a store was not closed; its elections are stopped")
	for handle := range s.elections {
		C.baton_election_stop(handle, 0)
	}
}

// ID is this process' own in the elections of the store.
func (s *Store) ID() string { return s.text(func() *C.char { return C.baton_id(s.handle) }) }

// Promises is what this store promises, and under which faults it doesn't: text for people.
func (s *Store) Promises() string {
	return s.text(func() *C.char { return C.baton_promises(s.handle) })
}

func (s *store) text(ask func() *C.char) (text string) {
	_ = s.use(func() error {
		text = C.GoString(ask())
		return nil
	})
	return text
}

// Lease is how long the claim of a silent leader stands.
func (s *Store) Lease() time.Duration { return s.lease() }

func (s *store) lease() time.Duration {
	var t C.struct_baton_timings
	_ = s.use(func() error {
		C.baton_get_timings_sized(s.handle, &t, C.sizeof_struct_baton_timings)
		return nil
	})
	return time.Duration(t.lease_ns)
}

// The runtime's poller is edge-triggered: each time, all events are taken, up to the first miss.
func (s *store) pumpEvents() {
	defer close(s.pumped)
	raw, err := s.pump.SyscallConn()
	if err != nil {
		return
	}
	event := new(C.struct_baton_event)
	_ = raw.Read(func(uintptr) bool {
		for C.baton_wait_sized(s.handle, 0, event, C.sizeof_struct_baton_event) == 1 {
			s.mu.Lock()
			e := s.elections[event.election]
			s.mu.Unlock()
			C.baton_event_done(s.handle, event.token)
			if e != nil {
				e.took(newEvent(event))
			}
		}
		return false
	})
}

// Close stops all elections, waits for the work of leads that are open, no longer than a lease, lets
// OnEvent hear of the end, and gives everything back. An error of [CodeBusy]: leads are still open,
// and the claim is kept. Not from within the work of a lead. A call from OnEvent returns at once,
// and the rest goes on in the background.
func (s *Store) Close() error {
	if isHandler() {
		go func() {
			if err := s.Close(); err != nil {
				log.Print(err)
			}
		}()
		return nil
	}
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed {
		return nil
	}
	if !s.stopAll() {
		return &Error{CodeBusy, "leads of this store are still open"}
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.users.close()
	_ = s.pump.Close()
	<-s.pumped
	for _, e := range s.elections {
		e.finish()
	}
	C.baton_close(s.handle)
	open.Delete(s.store)
	runtime.SetFinalizer(s, nil)
	return nil
}

// stopAll stops all elections. It waits for leads that are open (false: they still are), and then
// for OnEvent to hear of the end.
func (s *store) stopAll() bool {
	left := make(chan struct{})
	s.mu.Lock()
	s.closing = true
	for _, e := range s.elections {
		e.stopNow()
	}
	s.left = left
	if s.leads == 0 {
		close(left)
		s.left = nil
	}
	s.mu.Unlock()
	limit := time.NewTimer(s.lease())
	defer limit.Stop() // else it would be kept for a lease
	select {
	case <-left:
	case <-limit.C:
		return false
	}
	late, cancel := context.WithTimeout(context.Background(), s.lease())
	defer cancel()
	for _, e := range s.elections { // nothing is added to them any more
		e.awaitHeard(late.Done())
	}
	return true
}

// What Exit stops.
var open sync.Map

// Exit ends the program as os.Exit does, after it has stopped the elections of all stores that are
// open. It waits for that, and for the work, no longer than a second.
func Exit(code int) {
	limit := time.Now().Add(time.Second)
	var all []*election
	open.Range(func(key, _ any) bool {
		s := key.(*store)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.elections {
			all = append(all, e)
		}
		return true
	})
	for _, wait := range []bool{false, true} {
		for _, e := range all {
			_ = e.store.use(func() error {
				ms := max(0, time.Until(limit).Milliseconds())
				if !wait {
					ms = 0
				}
				C.baton_election_stop(e.handle, C.int64_t(ms))
				return nil
			})
		}
	}
	os.Exit(code)
}

// An Event of an election.
type Event struct {
	Kind              Kind
	Reason            Reason
	Code              Code
	Term, OldTerm     uint64
	Leader, OldLeader string
	Text, Detail      string
	Wait              time.Duration
}

// A Kind of an event.
type Kind int

// The kinds of events.
const (
	Became  Kind = C.BATON_EVENT_BECAME
	Lost    Kind = C.BATON_EVENT_LOST
	Changed Kind = C.BATON_EVENT_CHANGED
	Failed  Kind = C.BATON_EVENT_ERROR
	Stopped Kind = C.BATON_EVENT_STOPPED
	Waits   Kind = C.BATON_EVENT_WAITS
	Renewed Kind = C.BATON_EVENT_RENEWED
)

// String is the kind's name in one word: "lost".
func (k Kind) String() string { return C.GoString(C.baton_event_name(C.int(k))) }

// A Reason says why a leadership ended.
type Reason int

// The reasons.
const (
	ReasonNone        Reason = C.BATON_REASON_NONE
	ReasonExpired     Reason = C.BATON_REASON_EXPIRED
	ReasonRefused     Reason = C.BATON_REASON_REFUSED
	ReasonSuperseded  Reason = C.BATON_REASON_SUPERSEDED
	ReasonGone        Reason = C.BATON_REASON_GONE
	ReasonStalled     Reason = C.BATON_REASON_STALLED
	ReasonStopped     Reason = C.BATON_REASON_STOPPED
	ReasonResigned    Reason = C.BATON_REASON_RESIGNED
	ReasonOrdered     Reason = C.BATON_REASON_ORDERED
	ReasonTransferred Reason = C.BATON_REASON_TRANSFERRED
	ReasonUnhealthy   Reason = C.BATON_REASON_UNHEALTHY
	ReasonPaused      Reason = C.BATON_REASON_PAUSED
)

// String is the reason's name in one word: "expired".
func (r Reason) String() string { return C.GoString(C.baton_reason_name(C.int(r))) }

// A LostError is why the context of a lead was cancelled: [context.Cause] returns it.
type LostError struct {
	Election string
	Term     uint64
	Reason   Reason
	Text     string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("baton: the leadership of %q in term %d is lost (%v)", e.Election, e.Term,
		e.Reason)
}

func newEvent(e *C.struct_baton_event) Event {
	return Event{
		Kind: Kind(e.kind), Reason: Reason(e.reason), Code: Code(e.code),
		Term: uint64(e.term), OldTerm: uint64(e.old_term),
		Leader: C.GoString(&e.leader[0]), OldLeader: C.GoString(&e.old_leader[0]),
		Text: C.GoString(&e.text[0]), Detail: C.GoString(&e.detail[0]),
		Wait: time.Duration(e.wait_ms) * time.Millisecond,
	}
}
