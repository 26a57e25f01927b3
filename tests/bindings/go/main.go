// The driver program of the Go binding: it does what the lines on standard input say. See
// tests/bindings/README.md for the lines. It uses the binding as a program would.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	baton "baton/bindings/go"
)

type skip string

func (s skip) Error() string { return string(s) }

type driver struct {
	mu        sync.Mutex
	stores    map[string]*baton.Store
	elections map[string]*baton.Election
	owners    map[string]string
	leads     map[string]*baton.Lead
	finish    map[string]chan struct{}
	heard     map[string][]string
	pipes     []io.WriteCloser
	made      int
	out       sync.Mutex
}

func nowNs() int64 {
	var t syscall.Timespec
	const bootTime = 7
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, bootTime,
		uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func quote(word string) string {
	if word == "" {
		return "%"
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		c := word[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-._~:/=,?&@+", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func unquote(word string) string {
	if word == "%" {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '%' && i+2 < len(word) {
			n, _ := strconv.ParseUint(word[i+1:i+3], 16, 8)
			b.WriteByte(byte(n))
			i += 2
		} else {
			b.WriteByte(word[i])
		}
	}
	return b.String()
}

func (d *driver) say(words ...any) {
	d.out.Lock()
	defer d.out.Unlock()
	var line []string
	for _, word := range words {
		line = append(line, fmt.Sprint(word))
	}
	fmt.Println(strings.Join(line, " "))
}

// failed is "error CODE-NAME NUMBER SENTENCE".
func failed(err error) string {
	var is *baton.Error
	switch {
	case errors.As(err, &is):
		return fmt.Sprintf("error %v %d %s", is.Code, int(is.Code), quote(is.Text))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("error %v %d %s", baton.CodeTimeout, int(baton.CodeTimeout),
			quote("the given time has passed"))
	}
	return "error other 0 " + quote(err.Error())
}

func millis(word string) time.Duration {
	n, _ := strconv.ParseInt(word, 10, 64)
	return time.Duration(n) * time.Millisecond
}

func limit(word string) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), millis(word))
}

func keys(words []string) map[string]string {
	found := map[string]string{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		found[key] = value
	}
	return found
}

func (d *driver) nameLead(l *baton.Lead) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	name := fmt.Sprintf("L%d", d.made)
	d.leads[name] = l
	return name
}

// spin asks as often as the oracle wants to know.
func (d *driver) spin(ctx context.Context, e string, lead *baton.Lead) {
	for ctx.Err() == nil {
		before := nowNs()
		leads := lead.Leads()
		after := nowNs()
		if !leads {
			return
		}
		d.say("! yes", e, lead.Term(), before, after)
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

func (d *driver) body(ctx context.Context, lead *baton.Lead, e, mode string,
	finish chan struct{}) (err error) {
	name := d.nameLead(lead)
	how := "cancelled"
	d.say("! enter", e, name, lead.Term(), nowNs())
	defer func() { d.say("! leave", e, name, how, nowNs()) }()
	switch mode {
	case "raise":
		how = "raised"
		return errors.New("the body failed")
	case "spin":
		d.spin(ctx, e, lead)
		return ctx.Err()
	case "stop":
		d.mu.Lock()
		election := d.elections[e]
		d.mu.Unlock()
		_ = election.Stop(ctx)
	case "until":
		select {
		case <-finish:
			how = "returned"
			return nil
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	d.say("! lost", e, name, nowNs())
	if mode == "stubborn" {
		<-finish
		how = "returned"
		return nil
	}
	return context.Cause(ctx)
}

func (d *driver) run(e string, election *baton.Election, mode string) {
	finish := make(chan struct{}, 1)
	d.mu.Lock()
	d.finish[e] = finish
	d.mu.Unlock()
	go func() {
		err := election.Run(context.Background(),
			func(ctx context.Context, lead *baton.Lead) error {
				return d.body(ctx, lead, e, mode, finish)
			})
		var is *baton.Error
		switch {
		case err == nil || errors.Is(err, baton.ErrClosed):
			d.say("! end", e, "stopped")
		case errors.As(err, &is):
			d.say("! end", e, failed(err))
		default:
			d.say("! end", e, "raised", quote(err.Error()))
		}
	}()
}

func (d *driver) open(words []string) (string, error) {
	k := keys(words[2:])
	s, err := baton.Open(words[1], &baton.Options{ID: k["id"], Address: k["address"],
		Lease: millis(k["lease_ms"]), Renew: millis(k["renew_ms"]),
		Grace: millis(k["grace_ms"]), Retry: millis(k["retry_ms"]), Outlive: k["outlive"] == "1"})
	if err != nil {
		return "", err
	}
	d.stores[words[0]] = s
	return quote(s.ID()), nil
}

func (d *driver) election(words []string) (string, error) {
	k := keys(words[3:])
	priority, _ := strconv.Atoi(k["priority"])
	options := &baton.ElectionOptions{
		Metadata: k["metadata"], Priority: int32(priority), Manual: k["manual"] == "1",
		ObserveOnly: k["observe_only"] == "1", KeepOnStop: k["release_on_stop"] == "0",
		StayUnhealthy: k["step_down_unhealthy"] == "0", Preempt: millis(k["preempt_ms"]),
		WorkTimeout: millis(k["work_timeout_ms"])}
	if k["hear_ms"] != "" {
		options.OnEvent = d.hear(words[0], d.stores[words[1]], millis(k["hear_ms"]), k["inside"])
	}
	e, err := d.stores[words[1]].Election(words[2], options)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	d.elections[words[0]], d.owners[words[0]] = e, words[1]
	d.mu.Unlock()
	return quote(e.Name()), nil
}

// hear makes a handler that is slow to deal with the beginning.
func (d *driver) hear(e string, s *baton.Store, slow time.Duration,
	inside string) func(baton.Event) {
	d.mu.Lock()
	d.heard[e] = nil
	d.mu.Unlock()
	return func(event baton.Event) {
		if event.Kind == baton.Became {
			time.Sleep(slow)
			d.mu.Lock()
			election := d.elections[e]
			d.mu.Unlock()
			if inside == "stop" {
				_ = election.Stop(context.Background())
			}
			if inside == "close" {
				_ = s.Close()
			}
		}
		switch event.Kind {
		case baton.Became, baton.Lost, baton.Stopped:
			d.mu.Lock()
			d.heard[e] = append(d.heard[e], event.Kind.String())
			d.mu.Unlock()
		}
	}
}

func (d *driver) cycle(n int, url string) error {
	for i := 0; i < n; i++ {
		s, err := baton.Open(url, nil)
		if err != nil {
			return err
		}
		e, err := s.Election("cycle", nil)
		if err == nil {
			err = e.Start()
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) forget(s string) {
	d.mu.Lock()
	for e, owner := range d.owners {
		if owner == s {
			delete(d.elections, e)
			delete(d.owners, e)
		}
	}
	delete(d.stores, s)
	d.leads = map[string]*baton.Lead{}
	d.mu.Unlock()
}

func (d *driver) drop(s string) {
	d.forget(s)
	collect()
}

func collect() {
	for i := 0; i < 5; i++ { // a finalizer runs some time after the collection
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *driver) child() (string, error) {
	c := exec.Command("cat")
	pipe, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return "", err
	}
	d.pipes = append(d.pipes, pipe)
	go func() { _ = c.Wait() }()
	return strconv.Itoa(c.Process.Pid), nil
}

func bit(b bool) string { return map[bool]string{true: "1", false: "0"}[b] }

// ofElection answers the requests about an election.
func (d *driver) ofElection(verb, name string, e *baton.Election, words []string) (string, error) {
	switch verb {
	case "start":
		return "", e.Start()
	case "run":
		d.run(name, e, words[0])
		return "", nil
	case "finish":
		d.finish[name] <- struct{}{}
		return "", nil
	case "await":
		ctx, done := limit(words[0])
		defer done()
		lead, err := e.Acquire(ctx)
		if err != nil {
			return "", err
		}
		defer lead.Close()
		return fmt.Sprint(lead.Term()), nil
	case "enter":
		lead, err := e.Enter(context.Background())
		if err != nil {
			return "", err
		}
		return fmt.Sprint(d.nameLead(lead), " ", lead.Term()), nil
	case "leads":
		return bit(e.Leads()), nil
	case "term":
		return fmt.Sprint(e.Term()), nil
	case "left":
		s, err := e.Status()
		return fmt.Sprint(s.TimeLeft.Milliseconds()), err
	case "status":
		s, err := e.Status()
		return fmt.Sprint(s.State, " ", quote(s.Leader), " ", s.Term), err
	case "try":
		leads, _, err := e.TryAcquire(millis(words[0]))
		return bit(leads), err
	case "resign":
		return "", e.Resign(millis(words[0]))
	case "transfer":
		return "", e.Transfer(words[0])
	case "health":
		score, err := strconv.ParseUint(words[0], 10, 32)
		return "", errors.Join(err, e.ReportHealth(uint32(score), strings.Join(words[1:], "")))
	case "stop":
		ctx, done := limit(words[0])
		defer done()
		return "", e.Stop(ctx)
	case "fork":
		return "", skip("Go has no fork without exec")
	}
	return "", errors.New("unknown request " + verb)
}

func (d *driver) ofLead(verb string, l *baton.Lead, words []string) (string, error) {
	switch verb {
	case "leave":
		l.Close()
		return "", nil
	case "leads":
		return bit(l.Leads()), nil
	case "lost":
		return bit(l.Context().Err() != nil), nil
	case "awaitlost":
		ctx, done := limit(words[0])
		defer done()
		select {
		case <-l.Context().Done():
			return fmt.Sprint(nowNs()), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	case "term":
		return fmt.Sprint(l.Term()), nil
	case "left":
		return fmt.Sprint(l.TimeLeft().Milliseconds()), nil
	case "bench":
		n, _ := strconv.Atoi(words[0])
		return bench(l, n), nil
	}
	return "", errors.New("unknown request " + verb)
}

func (d *driver) answer(words []string) (string, error) {
	switch words[0] {
	case "hello":
		return fmt.Sprint("go ", baton.Version(), " ", baton.VersionNumber()), nil
	case "open":
		return d.open(words[1:])
	case "election":
		return d.election(words[1:])
	case "close":
		s := d.stores[words[1]]
		d.forget(words[1])
		return "", s.Close()
	case "candidates":
		list, err := d.stores[words[1]].Candidates(words[2])
		var all []string
		for _, c := range list {
			all = append(all, quote(fmt.Sprintf("%s=%s,%s,%d,%s", c.ID, bit(c.Leads),
				bit(c.Healthy), c.Score, c.Metadata)))
		}
		return strings.Join(all, " "), err
	case "promises":
		return quote(d.stores[words[1]].Promises()), nil
	case "condition":
		return "", skip("no condition")
	case "alive":
		d.mu.Lock()
		lead := d.leads[words[2]]
		d.mu.Unlock()
		lead.Alive()
		return "", nil
	case "observe":
		go d.observe(words[1], d.stores[words[1]], words[2])
		return "", nil
	case "heard":
		d.mu.Lock()
		defer d.mu.Unlock()
		return strings.Join(d.heard[words[1]], " "), nil
	case "constants":
		return constants(), nil
	case "child":
		return d.child()
	case "drop":
		d.drop(words[1])
		return "", nil
	case "lose":
		d.mu.Lock()
		delete(d.leads, words[1])
		d.mu.Unlock()
		collect()
		return "", nil
	case "order":
		return "", skip("no orders")
	case "gc":
		collect()
		debug.FreeOSMemory()
		return "", nil
	case "cycle":
		n, _ := strconv.Atoi(words[1])
		return "", d.cycle(n, words[2])
	case "exit":
		code, _ := strconv.Atoi(words[1])
		baton.Exit(code)
	}
	d.mu.Lock()
	e, l := d.elections[words[1]], d.leads[words[1]]
	d.mu.Unlock()
	if e != nil {
		return d.ofElection(words[0], words[1], e, words[2:])
	}
	if l == nil {
		return "", errors.New("no such name: " + words[1])
	}
	return d.ofLead(words[0], l, words[2:])
}

func (d *driver) observe(name string, s *baton.Store, election string) {
	leader, term, err := s.Observe(election)
	if err != nil {
		d.say("! observed", quote(name), failed(err))
		return
	}
	d.say("! observed", quote(name), "leader", quote(leader), fmt.Sprint(term))
}

func constants() string {
	var words []string
	for name, value := range map[string]int{
		"BATON_E_INVALID":          int(baton.CodeInvalid),
		"BATON_E_TIMING":           int(baton.CodeTiming),
		"BATON_E_URL":              int(baton.CodeURL),
		"BATON_E_NO_DRIVER":        int(baton.CodeNoDriver),
		"BATON_E_MEMORY":           int(baton.CodeMemory),
		"BATON_E_SYSTEM":           int(baton.CodeSystem),
		"BATON_E_NOT_STARTED":      int(baton.CodeNotStarted),
		"BATON_E_NOT_LEADER":       int(baton.CodeNotLeader),
		"BATON_E_TIMEOUT":          int(baton.CodeTimeout),
		"BATON_E_EXISTS":           int(baton.CodeExists),
		"BATON_E_UNAVAILABLE":      int(baton.CodeUnavailable),
		"BATON_E_DENIED":           int(baton.CodeDenied),
		"BATON_E_CORRUPT":          int(baton.CodeCorrupt),
		"BATON_E_UNSUPPORTED":      int(baton.CodeUnsupported),
		"BATON_E_NO_CANDIDATE":     int(baton.CodeNoCandidate),
		"BATON_E_STALE":            int(baton.CodeStale),
		"BATON_E_FORKED":           int(baton.CodeForked),
		"BATON_E_BUSY":             int(baton.CodeBusy),
		"BATON_E_DUPLICATE_ID":     int(baton.CodeDuplicateID),
		"BATON_EVENT_BECAME":       int(baton.Became),
		"BATON_EVENT_LOST":         int(baton.Lost),
		"BATON_EVENT_CHANGED":      int(baton.Changed),
		"BATON_EVENT_ERROR":        int(baton.Failed),
		"BATON_EVENT_STOPPED":      int(baton.Stopped),
		"BATON_EVENT_WAITS":        int(baton.Waits),
		"BATON_EVENT_RENEWED":      int(baton.Renewed),
		"BATON_REASON_NONE":        int(baton.ReasonNone),
		"BATON_REASON_EXPIRED":     int(baton.ReasonExpired),
		"BATON_REASON_REFUSED":     int(baton.ReasonRefused),
		"BATON_REASON_SUPERSEDED":  int(baton.ReasonSuperseded),
		"BATON_REASON_GONE":        int(baton.ReasonGone),
		"BATON_REASON_STALLED":     int(baton.ReasonStalled),
		"BATON_REASON_STOPPED":     int(baton.ReasonStopped),
		"BATON_REASON_RESIGNED":    int(baton.ReasonResigned),
		"BATON_REASON_ORDERED":     int(baton.ReasonOrdered),
		"BATON_REASON_TRANSFERRED": int(baton.ReasonTransferred),
		"BATON_REASON_UNHEALTHY":   int(baton.ReasonUnhealthy),
		"BATON_REASON_PAUSED":      int(baton.ReasonPaused),
	} {
		words = append(words, fmt.Sprintf("%s=%d", name, value))
	}
	return strings.Join(words, " ")
}

// bench says how many nanoseconds a question takes, and an empty call of the same kind.
func bench(lead *baton.Lead, n int) string {
	best := func(call func()) int64 {
		least := time.Hour
		for round := 0; round < 5; round++ {
			begin := time.Now()
			for i := 0; i < n; i++ {
				call()
			}
			least = min(least, time.Since(begin))
		}
		return least.Nanoseconds() / int64(n)
	}
	leads := best(func() { lead.Leads() })
	return fmt.Sprint(leads, " ", best(func() { baton.VersionNumber() }))
}

func (d *driver) closeAll() {
	for _, s := range d.stores {
		_ = s.Close()
	}
}

func main() {
	d := &driver{stores: map[string]*baton.Store{}, elections: map[string]*baton.Election{},
		owners: map[string]string{}, leads: map[string]*baton.Lead{}, heard: map[string][]string{},
		finish: map[string]chan struct{}{}}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		<-interrupts
		d.closeAll()
		os.Exit(130)
	}()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		words := strings.Split(in.Text(), " ")
		for i := range words {
			words[i] = unquote(words[i])
		}
		answer, err := d.answer(words)
		var no skip
		switch {
		case err == nil:
			d.say(strings.TrimSpace("ok " + answer))
		case errors.As(err, &no):
			d.say("skip", quote(no.Error()))
		default:
			d.say(failed(err))
		}
	}
	for _, finish := range d.finish {
		select {
		case finish <- struct{}{}:
		default:
		}
	}
	d.closeAll()
}
